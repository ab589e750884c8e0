//! Accepts a server's certificate as Go's client does.
//!
//! Name and time are checked for each, also for a trusted one. A refusal names the certificate, the cause and the remedy
//! (`words.rs`).

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::authorities::{Authorities, Trusted};
use super::certificate::Certificate;
use super::chain::Above;
use super::words;

#[derive(Debug)]
pub(super) struct Verifier {
    /// `None` accepts any certificate.
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
        let read = Certificate::read(presented).ok_or(CertificateError::BadEncoding)?;
        let trusted = &authorities.certificates[..];
        if trusted.iter().any(|one| one.der == *presented) {
            check_itself(&read, now)?;
            return verify_server_name(&parsed, name);
        }
        let above = Above { sent: intermediates, trusted, now, algorithms };
        let judged = |issuers: &RootCertStore, between: &[CertificateDer<'_>]| {
            verify_server_cert_signed_by_trust_anchor(&parsed, issuers, between, now, algorithms)
        };
        let is_over = match read.is_authority() {
            true => check_itself(&read, now).map(|()| above.has_trusted_issuer_of(&read, None))?,
            false => above.has_trusted_issuer_of(&read, Some(&|top, between| judged(top, between).is_ok())),
        };
        if !is_over {
            // rustls' verifier may have a more exact reason.
            if !read.is_authority() {
                judged(&issuers(trusted), intermediates)?;
            }
            return Err(without_issuer(&read, trusted, now));
        }
        verify_server_name(&parsed, name)
    }
}

fn issuers(trusted: &[Trusted]) -> RootCertStore {
    let issuing = trusted.iter().filter(|one| one.name.is_some());
    let mut store = RootCertStore::empty();
    issuing.filter_map(Trusted::alone).for_each(|one| store.roots.extend(one.roots));
    store
}

/// Prefers a fault of a trusted certificate with the issuer's name.
fn without_issuer(read: &Certificate<'_>, trusted: &[Trusted], now: UnixTime) -> Error {
    let issuers = trusted.iter().filter_map(|one| Certificate::read(&one.der));
    let mut wrong =
        issuers.filter(|one| read.names_as_issuer(one)).filter_map(|issuer| check_itself(&issuer, now).err());
    wrong.next().unwrap_or_else(|| CertificateError::UnknownIssuer.into())
}

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
