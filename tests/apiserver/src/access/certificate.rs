//! Client certificates: the common name is the user, each organization a group.
//!
//! Answers: whose certificate is this, and did our authority sign it?
//! 1. The handshake takes any certificate whose key the client has, as a real server's does; whether the authority
//!    signed it is checked here, and a foreign one is answered with 401 in place of a broken connection.
//! 2. A certificate is checked once for its connection.
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use super::user::User;

/// The certificates that a client presented when it connected.
#[derive(Debug)]
pub(crate) struct PeerCertificate {
    chain: Vec<CertificateDer<'static>>,
    user: OnceLock<Option<User>>,
}

impl PeerCertificate {
    /// The certificates of a connection; none if the client presented none.
    pub(crate) fn shown(chain: Option<&[CertificateDer<'static>]>) -> Option<Self> {
        let chain = chain.filter(|chain| !chain.is_empty())?.to_vec();
        Some(Self { chain, user: OnceLock::new() })
    }

    /// The user, if the authority signed the certificate.
    pub(crate) fn user(&self, authority: &dyn ClientCertVerifier, now: i64) -> Option<User> {
        self.user.get_or_init(|| self.judge(authority, now)).clone()
    }

    fn judge(&self, authority: &dyn ClientCertVerifier, now: i64) -> Option<User> {
        let (leaf, rest) = self.chain.split_first()?;
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now.try_into().ok()?));
        authority.verify_client_cert(leaf, rest, now).ok()?;
        let certificate = webpki::EndEntityCert::try_from(leaf).ok()?;
        let (names, organizations) = subject(certificate.subject())?;
        let mut user = User::new(names.into_iter().next_back()?);
        let credential = format!("X509SHA256={}", fingerprint(leaf));
        user.extra.insert("authentication.kubernetes.io/credential-id".to_owned(), vec![credential]);
        Some(organizations.into_iter().fold(user, User::group))
    }
}

fn fingerprint(certificate: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const ORGANIZATION: &[u8] = &[0x55, 4, 10];

/// The common names and organizations of a subject: a list of sets of pairs, in DER.
fn subject(mut rest: &[u8]) -> Option<(Vec<String>, Vec<String>)> {
    let (mut names, mut organizations) = (Vec::new(), Vec::new());
    while !rest.is_empty() {
        let (mut set, after) = element(rest)?;
        rest = after;
        while !set.is_empty() {
            let (pair, after) = element(set)?;
            set = after;
            let (kind, value) = element(pair)?;
            let text = String::from_utf8(element(value)?.0.to_vec()).ok()?;
            match kind {
                COMMON_NAME => names.push(text),
                ORGANIZATION => organizations.push(text),
                _ => {}
            }
        }
    }
    Some((names, organizations))
}

/// The content of the first DER element, and what follows it.
fn element(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&first, mut rest) = bytes.get(1..)?.split_first()?;
    let mut len = usize::from(first);
    if first >= 0x80 {
        let (digits, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
        rest = after;
        len = digits
            .iter()
            .try_fold(0_usize, |len, digit| len.checked_mul(256)?.checked_add((*digit).into()))?;
    }
    rest.split_at_checked(len)
}

/// Takes any certificate at the handshake; the signature that proves its key is still checked.
#[derive(Debug)]
pub(crate) struct AnyCertificate(pub(crate) Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_names_a_user_and_groups_and_a_broken_one_names_none() {
        let pair = |kind: &[u8], text: &str| {
            let wrap = |tag: u8, inner: &[u8]| [&[tag, inner.len() as u8], inner].concat();
            let inner = [wrap(6, kind), wrap(12, text.as_bytes())].concat();
            wrap(0x31, &wrap(0x30, &inner))
        };
        let bytes = [pair(ORGANIZATION, "a"), pair(ORGANIZATION, "b"), pair(COMMON_NAME, "jane")].concat();
        let (names, organizations) = subject(&bytes).unwrap();
        assert_eq!((names, organizations), (vec!["jane".to_owned()], vec!["a".to_owned(), "b".to_owned()]));
        for end in 1..bytes.len() {
            let _either = subject(&bytes[..end]);
        }
        assert_eq!(element(&[0x30, 0x88, 255, 255, 255, 255, 255, 255, 255, 255, 1]), None);
    }
}
