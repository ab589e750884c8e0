//! The chain of a server's certificate by the rules that rustls' verifier lacks.
//!
//! Answers "does a trusted certificate stand over it?" by Go's rules (`crypto/x509`). rustls' verifier takes a trusted
//! certificate for a name and a key: its time, purpose and depth are asked for here, and whether what the server sent may
//! sign. It refuses a server's certificate that is itself an authority, which is judged here alone. Invariants:
//! 1. At most [`SIGNATURES`] signatures are checked, as in Go.
//! 2. What these few rules do not cover (rules for names, unknown critical extensions) is refused where nobody else
//!    judges it.

use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};

use super::certificate::Certificate;

const SIGNATURES: usize = 100;
const AUTHORITIES: usize = 8;

/// What may stand over a server's certificate, and by what it is judged.
#[derive(Clone, Copy)]
pub(super) struct Above<'a> {
    pub(super) sent: &'a [CertificateDer<'a>],
    pub(super) trusted: &'a [CertificateDer<'a>],
    pub(super) now: UnixTime,
    pub(super) algorithms: &'a [&'static dyn SignatureVerificationAlgorithm],
    /// Nobody else judges rules for names and critical extensions.
    pub(super) is_alone: bool,
}

impl Above<'_> {
    /// Whether a trusted certificate stands over `leaf`, directly or by those that the server sent.
    pub(super) fn has_trusted_issuer_of(&self, leaf: &Certificate<'_>) -> bool {
        let trusted: Vec<_> = self.trusted.iter().filter_map(Certificate::read).collect();
        let sent: Vec<_> = self.sent.iter().take(SIGNATURES).filter_map(Certificate::read).collect();
        let mut search = Search { above: *self, trusted: &trusted, sent: &sent, left: SIGNATURES };
        search.climb(leaf, &mut Vec::new())
    }
}

struct Search<'a> {
    above: Above<'a>,
    trusted: &'a [Certificate<'a>],
    sent: &'a [Certificate<'a>],
    left: usize,
}

impl Search<'_> {
    /// Looks for an issuer of `below`; `passed` are the places in `sent` of what stands between it and the server's.
    fn climb(&mut self, below: &Certificate<'_>, passed: &mut Vec<usize>) -> bool {
        let (trusted, sent) = (self.trusted, self.sent);
        if trusted.iter().any(|issuer| self.has_issued(issuer, below, passed.len())) {
            return true;
        }
        for (place, issuer) in sent.iter().enumerate() {
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
            && (issuer.is_simple() || !self.above.is_alone)
            && issuer.is_in_time(self.above.now)
            && issuer.allows_below(between)
            && below.is_signed_by(issuer, self.above.algorithms)
    }
}
