//! The chain of a server's certificate that is itself an authority, which rustls' verifier refuses.
//!
//! Answers "does a trusted certificate stand over it?" by Go's rules (`crypto/x509`). Invariants:
//! 1. At most [`SIGNATURES`] signatures are checked, as in Go.
//! 2. What these few rules do not cover (rules for names, unknown critical extensions) is refused.

use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};

use super::certificate::Certificate;

const SIGNATURES: usize = 100;
const AUTHORITIES: usize = 8;

/// Whether a trusted certificate stands over `leaf`, directly or by those that the server sent.
pub(super) fn has_trusted_issuer(
    leaf: &Certificate<'_>,
    sent: &[CertificateDer<'_>],
    trusted: &[CertificateDer<'_>],
    now: UnixTime,
    algorithms: &[&'static dyn SignatureVerificationAlgorithm],
) -> bool {
    let trusted: Vec<_> = trusted.iter().filter_map(Certificate::read).collect();
    let sent: Vec<_> = sent.iter().take(SIGNATURES).filter_map(Certificate::read).collect();
    Search { trusted: &trusted, sent: &sent, now, algorithms, left: SIGNATURES }.climb(leaf, &mut Vec::new())
}

struct Search<'a> {
    trusted: &'a [Certificate<'a>],
    sent: &'a [Certificate<'a>],
    now: UnixTime,
    algorithms: &'a [&'static dyn SignatureVerificationAlgorithm],
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
            && issuer.is_simple()
            && issuer.is_in_time(self.now)
            && issuer.allows_below(between)
            && below.is_signed_by(issuer, self.algorithms)
    }
}
