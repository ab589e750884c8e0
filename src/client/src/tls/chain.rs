//! The chain of a server's certificate by the rules that rustls' verifier lacks.
//!
//! Answers "does a trusted certificate stand over it?" by Go's rules (`crypto/x509`). rustls' verifier takes a trusted
//! certificate for a name and a key: its time, purpose and depth are asked for here, and whether what the server sent may
//! sign. It refuses a server's certificate that is itself an authority, which is judged here alone. Invariants:
//! 1. At most [`SIGNATURES`] signatures are checked, as in Go; those that rustls' verifier checks of a chain count, too.
//! 2. One chain is accepted by both, or none: rustls' verifier is given the chain that was found here, and nothing else.
//! 3. What these few rules do not cover (rules for names, unknown critical extensions) is refused where rustls' verifier
//!    does not judge it.
//! 4. Of the trusted certificates those are read whose name is looked for.

use std::collections::BTreeSet;

use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};

use super::authorities::Trusted;
use super::certificate::Certificate;

const SIGNATURES: usize = 100;
const AUTHORITIES: usize = 8;

/// What may stand over a server's certificate, and by what it is judged.
#[derive(Clone, Copy)]
pub(super) struct Above<'a> {
    pub(super) sent: &'a [CertificateDer<'a>],
    pub(super) trusted: &'a [Trusted],
    pub(super) now: UnixTime,
    pub(super) algorithms: &'a [&'static dyn SignatureVerificationAlgorithm],
}

/// What else judges a chain: the certificate on top of it, alone, and those between.
pub(super) type Judge<'a> = &'a dyn Fn(&RootCertStore, &[CertificateDer<'_>]) -> bool;

impl Above<'_> {
    /// Whether a trusted certificate stands over `leaf`, directly or by those that the server sent, in a chain that the judge
    /// accepts, too.
    pub(super) fn has_trusted_issuer_of(&self, leaf: &Certificate<'_>, judge: Option<Judge<'_>>) -> bool {
        let sent = self.sent.iter().take(SIGNATURES);
        let sent: Vec<_> = sent.filter_map(|der| Some((der, Certificate::read(der)?))).collect();
        let below = std::iter::once(leaf).chain(sent.iter().map(|(_, read)| read));
        let names: BTreeSet<_> = below.filter_map(Certificate::name_of_issuer).collect();
        let named =
            self.trusted.iter().filter(|one| one.name.as_ref().is_some_and(|name| names.contains(name)));
        let trusted: Vec<_> = named.filter_map(|one| Some((one, Certificate::read(&one.der)?))).collect();
        let mut search = Search { above: *self, trusted: &trusted, sent: &sent, judge, left: SIGNATURES };
        search.climb(leaf, &mut Vec::new())
    }
}

struct Search<'a> {
    above: Above<'a>,
    trusted: &'a [(&'a Trusted, Certificate<'a>)],
    sent: &'a [(&'a CertificateDer<'a>, Certificate<'a>)],
    judge: Option<Judge<'a>>,
    left: usize,
}

impl Search<'_> {
    /// Looks for an issuer of `below`; `passed` are the places in `sent` of what stands between it and the server's.
    fn climb(&mut self, below: &Certificate<'_>, passed: &mut Vec<usize>) -> bool {
        let (trusted, sent) = (self.trusted, self.sent);
        for (issuer, read) in trusted {
            if self.has_issued(read, below, passed.len()) && self.is_judged_well(issuer, passed) {
                return true;
            }
        }
        for (place, (_, issuer)) in sent.iter().enumerate() {
            if passed.len() == AUTHORITIES || passed.contains(&place) || !issuer.is_authority() {
                continue;
            }
            if self.has_issued(issuer, below, passed.len()) {
                passed.push(place);
                if self.climb(issuer, passed) {
                    return true;
                }
                passed.pop();
            }
        }
        false
    }

    fn has_issued(&mut self, issuer: &Certificate<'_>, below: &Certificate<'_>, between: usize) -> bool {
        if !below.names_as_issuer(issuer) || self.left == 0 {
            return false;
        }
        self.left -= 1;
        issuer.may_sign()
            && issuer.may_serve()
            && (issuer.is_simple() || self.judge.is_some())
            && issuer.is_in_time(self.above.now)
            && issuer.allows_below(between)
            && below.is_signed_by(issuer, self.above.algorithms)
    }

    fn is_judged_well(&mut self, issuer: &Trusted, passed: &[usize]) -> bool {
        let Some(judge) = self.judge else { return true };
        self.left = self.left.saturating_sub(passed.len() + 1);
        let between: Vec<_> = passed.iter().map(|place| self.sent[*place].0.clone()).collect();
        issuer.alone().is_some_and(|top| judge(&top, &between))
    }
}
