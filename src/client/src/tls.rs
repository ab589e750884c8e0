//! Makes the TLS configuration of a client: trusted authorities and client certificate.
//!
//! Without configured authorities the system's are trusted; an empty bundle trusts no server. With a client certificate, sessions
//! are not resumed: a resumed session would not present a renewed certificate. No crypto provider is installed for the process.
//! It offers HTTP/1.1, all that awc speaks.

mod algorithms;
mod authorities;
mod certificate;
mod chain;
mod verifier;
mod words;

use std::sync::Arc;

use rustls::client::{Resumption, WantsClientCert};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ConfigBuilder};

use self::authorities::{Authorities, pem_reason};
use self::verifier::Verifier;
#[cfg(feature = "http2")]
pub(crate) use self::words::copied;
pub(crate) use self::words::{is_about_certificates, of_handshake};
use super::error::Error;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Roots<'a> {
    Anybody,
    System,
    /// PEM.
    Only(&'a [u8]),
    /// PEM, and the system's if any.
    SystemAnd(&'a [u8]),
}

/// `certificate`: chain and key, both PEM. Blocking if it reads the system's authorities.
pub(crate) fn client_config(
    roots: Roots<'_>,
    certificate: Option<(&[u8], &[u8])>,
) -> Result<Arc<ClientConfig>, Error> {
    let authorities = match roots {
        Roots::Anybody => None,
        Roots::System => Some(Authorities::of_system()?),
        Roots::Only(pem) => Some(Authorities::of_pem(pem)?),
        Roots::SystemAnd(pem) => {
            let mut authorities = Authorities::of_pem(pem)?;
            authorities.add_those_of_the_system();
            Some(authorities)
        }
    };
    let provider = algorithms::provider();
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Unusable { what: "the crypto provider", reason: error.to_string() })?;
    let builder =
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Verifier { authorities, provider }));
    let mut tls = match certificate {
        None => builder.with_no_client_auth(),
        Some(certificate) => with_certificate(builder, certificate)?,
    };
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(tls))
}

fn with_certificate(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    (chain, key): (&[u8], &[u8]),
) -> Result<ClientConfig, Error> {
    let what = "the client certificate";
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|error| Error::Unusable { what, reason: pem_reason(&error).to_owned() })?;
    // The parser's error could quote the key.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate() -> String {
        rcgen::generate_simple_self_signed(["authority".to_owned()]).expect("a certificate").cert.pem()
    }

    #[test]
    fn rest_24_an_empty_authority_leaves_no_root() {
        assert!(Authorities::of_pem(b"").expect("a choice").certificates.is_empty());
    }

    #[test]
    fn a_bundle_with_one_unreadable_certificate_keeps_the_rest() {
        let broken = "-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n";
        let bundle = format!("{}{broken}{}", certificate(), certificate());
        assert_eq!(Authorities::of_pem(bundle.as_bytes()).expect("two are left").certificates.len(), 2);
        assert!(matches!(Authorities::of_pem(broken.as_bytes()), Err(Error::Unusable { .. })));
    }

    #[test]
    fn a_certificate_that_is_not_read_whole_is_left_out() {
        let names = ["leaf".to_owned()];
        let mut params = rcgen::CertificateParams::new(names).expect("a name");
        // RFC 5280 allows 20 bytes.
        params.serial_number = Some(vec![1; 30].into());
        let key = rcgen::KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        assert!(matches!(Authorities::of_pem(pem.as_bytes()), Err(Error::Unusable { .. })));
        let beside = format!("{pem}{}", certificate());
        assert_eq!(Authorities::of_pem(beside.as_bytes()).expect("one is left").certificates.len(), 1);
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
