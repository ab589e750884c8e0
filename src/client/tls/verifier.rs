//! Whether the certificate of a server is accepted: by what is configured, or any.
//!
//! Answers "is this the server?" as Go's client does. Invariants:
//! 1. The name and the time count for every certificate, also for one that is trusted for itself.
//! 2. A refusal names the certificate, the cause and what to do about it (`words.rs`).

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

use super::authorities::Authorities;
use super::certificate::Certificate;
use super::{chain, words};

#[derive(Debug)]
pub(super) struct Verifier {
    /// `None` accepts any certificate; only for configurations that say so.
    pub(super) authorities: Option<Authorities>,
    pub(super) provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn check(
        &self,
        authorities: &Authorities,
        (presented, intermediates): (&CertificateDer<'_>, &[CertificateDer<'_>]),
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        let algorithms = self.provider.signature_verification_algorithms.all;
        let parsed = ParsedCertificate::try_from(presented)?;
        let read = Certificate::read(presented);
        let is_trusted = authorities.certificates.iter().any(|one| **one == **presented);
        match &read {
            Some(read) if is_trusted => check_itself(read, now)?,
            Some(read) if read.is_authority() => {
                check_itself(read, now)?;
                let trusted = &authorities.certificates;
                if !chain::has_trusted_issuer(read, intermediates, trusted, now, algorithms) {
                    return Err(CertificateError::UnknownIssuer.into());
                }
            }
            _ => verify_server_cert_signed_by_trust_anchor(
                &parsed,
                &authorities.issuers,
                intermediates,
                now,
                algorithms,
            )?,
        }
        verify_server_name(&parsed, name)
    }
}

/// What counts without an issuer.
fn check_itself(read: &Certificate<'_>, now: UnixTime) -> Result<(), Error> {
    let (begins, ends) = (read.begins(), read.ends());
    if now < begins {
        return Err(CertificateError::NotValidYetContext { time: now, not_before: begins }.into());
    }
    if now > ends {
        return Err(CertificateError::ExpiredContext { time: now, not_after: ends }.into());
    }
    if !read.may_serve() {
        return Err(CertificateError::InvalidPurpose.into());
    }
    Ok(())
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(authorities) = &self.authorities {
            self.check(authorities, (end_entity, intermediates), server_name, now)
                .map_err(|error| words::of_refusal(error, end_entity, authorities))?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
