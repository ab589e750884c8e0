//! Finds the chain above a server's certificate by Go's rules (`crypto/x509`). rustls' verifier takes only name and key of a
//! trusted certificate, so time, purpose and depth are checked here, and whether sent certificates may sign. It refuses a
//! server's certificate that is itself an authority; that is judged here alone.
//!
//! 1. At most [`SIGNATURES`] signatures are checked, as in Go, including those that rustls' verifier checks.
//! 2. rustls' verifier receives only the chain found here: both accept it, or neither.
//! 3. Without rustls' verifier, rules for names and unknown critical extensions are refused.

use std::collections::BTreeSet;

use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};

use super::authorities::Trusted;
use super::certificate::Certificate;

const SIGNATURES: usize = 100;
const AUTHORITIES: usize = 8;

#[derive(Clone, Copy)]
pub(super) struct Above<'a> {
    pub(super) sent: &'a [CertificateDer<'a>],
    pub(super) trusted: &'a [Trusted],
    pub(super) now: UnixTime,
    pub(super) algorithms: &'a [&'static dyn SignatureVerificationAlgorithm],
}

/// rustls' verifier: the trusted certificate alone, and those between.
pub(super) type Judge<'a> = &'a dyn Fn(&RootCertStore, &[CertificateDer<'_>]) -> bool;

impl Above<'_> {
    /// Whether `judge` accepts a chain from `leaf` to a trusted certificate.
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
    /// `passed`: places in `sent` between `below` and the server's certificate.
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
