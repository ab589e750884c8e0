//! The TLS configuration of a client: whom it trusts, and who it says it is.
//!
//! Answers "which certificates count?" It makes no connection. Invariants:
//! 1. Only the configured authorities are trusted, never the system's; an empty bundle trusts nobody.
//! 2. HTTP/1.1 is the only protocol offered.
//! 3. With a client certificate, sessions are not resumed: a resumed one would not present a renewed certificate.
//! 4. The crypto provider is ring, taken by value: nothing is installed for the process.
//!
//! Read next: `config.rs`, where the material comes from.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WantsClientCert};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme};
use secrecy::ExposeSecret;

use super::config::{Config, Identity};
use super::error::Error;

pub(crate) fn client_config(config: &Config) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Unusable { what: "the crypto provider", reason: error.to_string() })?;
    let builder = if config.accepts_invalid_certificates {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Unchecked(provider)))
    } else {
        builder.with_root_certificates(roots(config)?)
    };
    let mut tls = match &config.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => with_identity(builder, identity)?,
    };
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(tls))
}

fn roots(config: &Config) -> Result<RootCertStore, Error> {
    let what = "the certificate authority";
    let Some(authorities) = &config.certificate_authorities else {
        return Err(Error::Unsupported(
            "an https endpoint without a certificate authority (the system's own are not used)".to_owned(),
        ));
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities) {
        let certificate =
            certificate.map_err(|error| Error::Unusable { what, reason: pem_reason(&error) })?;
        roots.add(certificate).map_err(|error| Error::Unusable { what, reason: error.to_string() })?;
    }
    Ok(roots)
}

fn with_identity(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    identity: &Identity,
) -> Result<ClientConfig, Error> {
    let what = "the client certificate";
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&identity.certificates)
        .collect::<Result<_, _>>()
        .map_err(|error| Error::Unusable { what, reason: pem_reason(&error) })?;
    // The parser's error could quote the key: only its kind is told.
    let key = PrivateKeyDer::from_pem_slice(identity.key.expose_secret()).map_err(|_| Error::Unusable {
        what: "the client key",
        reason: "no private key in PEM found".to_owned(),
    })?;
    let mut tls = builder
        .with_client_auth_cert(chain, key)
        .map_err(|error| Error::Unusable { what, reason: error.to_string() })?;
    tls.resumption = Resumption::disabled();
    Ok(tls)
}

/// The parser's own words quote lines, which may be a key's.
fn pem_reason(error: &pem::Error) -> String {
    let reason = match error {
        pem::Error::MissingSectionEnd { .. } => "a section of its PEM has no end",
        pem::Error::IllegalSectionStart { .. } => "a section of its PEM begins with a broken line",
        pem::Error::Base64Decode(_) => "a section of its PEM is not base64",
        _ => "it is not PEM",
    };
    reason.to_owned()
}

/// Accepts any certificate; only for configurations that say so.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_24_an_empty_authority_leaves_no_root_and_without_one_the_systems_are_not_used() {
        let config = Config::new("https://api.example").expect("an endpoint");
        let refused = roots(&config).expect_err("nobody is trusted unasked").to_string();
        assert!(refused.contains("the system's own are not used"), "{refused}");
        assert!(roots(&config.certificate_authority("")).expect("a choice").is_empty());
    }
}
