//! Makes the TLS configuration of a client: the authorities that it trusts and the certificate that it presents.
//!
//! Answers "which certificates are used?" It makes no connection. Invariants:
//! 1. The configured authorities are trusted, or the system's if none are configured; an empty bundle trusts no server.
//!    A certificate of a bundle that cannot be read is left out with a warning; if none can be read, that is an error.
//! 2. HTTP/1.1 is the only protocol offered.
//! 3. With a client certificate, sessions are not resumed: a resumed session would not present a renewed certificate.
//! 4. The crypto provider is ring, given to this configuration only: none is installed for the process.
//!
//! Read next: `config.rs`, which reads the certificates and keys.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WantsClientCert};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::error::Error;

/// The authorities whose certificates a server may present.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Roots<'a> {
    /// Any certificate is accepted.
    Anybody,
    /// Those of the operating system.
    System,
    /// Those in this PEM text.
    Only(&'a [u8]),
    /// Those in this PEM text and those of the operating system, if it has any.
    SystemAnd(&'a [u8]),
}

/// Makes a configuration; `certificate` is a chain and its key, both PEM. Blocking with the system's: files.
pub(crate) fn client_config(
    roots: Roots<'_>,
    certificate: Option<(&[u8], &[u8])>,
) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Unusable { what: "the crypto provider", reason: error.to_string() })?;
    let builder = match roots {
        Roots::Anybody => builder.dangerous().with_custom_certificate_verifier(Arc::new(Unchecked(provider))),
        Roots::System => builder.with_root_certificates(system_roots()?),
        Roots::Only(pem) => builder.with_root_certificates(roots_of(pem)?),
        Roots::SystemAnd(pem) => {
            let mut roots = roots_of(pem)?;
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            builder.with_root_certificates(roots)
        }
    };
    let mut tls = match certificate {
        None => builder.with_no_client_auth(),
        Some(certificate) => with_certificate(builder, certificate)?,
    };
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(tls))
}

fn roots_of(pem: &[u8]) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let mut refused = None;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let added = certificate
            .map_err(|error| pem_reason(&error))
            .and_then(|certificate| roots.add(certificate).map_err(|error| error.to_string()));
        if let Err(reason) = added {
            tracing::warn!(
                target: "actix_informer::client",
                reason,
                "a certificate of the certificate authority cannot be used and is left out"
            );
            refused = Some(reason);
        }
    }
    match refused {
        Some(reason) if roots.is_empty() => {
            Err(Error::Unusable { what: "the certificate authority", reason })
        }
        _ => Ok(roots),
    }
}

fn system_roots() -> Result<RootCertStore, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let reason = match found.errors.first() {
            Some(error) => format!("the system's certificates cannot be read: {error}"),
            None => "none is configured, and the system has none".to_owned(),
        };
        return Err(Error::Unusable { what: "the certificate authority", reason });
    }
    Ok(roots)
}

fn with_certificate(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    (chain, key): (&[u8], &[u8]),
) -> Result<ClientConfig, Error> {
    let what = "the client certificate";
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|error| Error::Unusable { what, reason: pem_reason(&error) })?;
    // The parser's error could quote the key, so it is not used.
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| Error::Unusable {
        what: "the client key",
        reason: "no private key in PEM found".to_owned(),
    })?;
    let mut tls = builder
        .with_client_auth_cert(chain, key)
        .map_err(|error| Error::Unusable { what, reason: error.to_string() })?;
    tls.resumption = Resumption::disabled();
    Ok(tls)
}

/// What is wrong with a PEM text. The parser's own message quotes lines, which may belong to a key.
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

    fn certificate() -> String {
        rcgen::generate_simple_self_signed(["authority".to_owned()]).expect("a certificate").cert.pem()
    }

    #[test]
    fn rest_24_an_empty_authority_leaves_no_root() {
        assert!(roots_of(b"").expect("a choice").is_empty());
    }

    #[test]
    fn a_bundle_with_one_unreadable_certificate_keeps_the_rest() {
        let broken = "-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n";
        let bundle = format!("{}{broken}{}", certificate(), certificate());
        assert_eq!(roots_of(bundle.as_bytes()).expect("two are left").len(), 2);
        assert!(matches!(roots_of(broken.as_bytes()), Err(Error::Unusable { .. })));
    }

    #[test]
    fn keys_in_pkcs_1_pkcs_8_and_sec_1_are_read() {
        let own = rcgen::generate_simple_self_signed(["client".to_owned()]).expect("a certificate");
        let pem = own.signing_key.serialize_pem();
        assert!(pem.contains("BEGIN PRIVATE KEY"), "PKCS#8");
        client_config(Roots::Only(b""), Some((own.cert.pem().as_bytes(), pem.as_bytes())))
            .expect("its own key");
        for section in ["RSA PRIVATE KEY", "EC PRIVATE KEY"] {
            let text = format!("-----BEGIN {section}-----\nMAA=\n-----END {section}-----\n");
            PrivateKeyDer::from_pem_slice(text.as_bytes()).expect(section);
        }
    }
}
