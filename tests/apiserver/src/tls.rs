//! The server's own certificate authority and certificate.
//!
//! Answers: what does the server show, and what must a client trust? Made afresh for each server, kept in memory.
//! 1. The certificate names localhost and the loopback addresses, nothing else.
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a server with TLS needs.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    pub(crate) ca_pem: String,
    pub(crate) config: ServerConfig,
}

impl Tls {
    pub(crate) fn generate() -> Result<Self, Failure> {
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, "informer-apiserver authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority_key = KeyPair::generate()?;
        let ca = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);
        let names = ["localhost", "127.0.0.1", "::1", "kubernetes.default"].map(str::to_owned);
        let mut leaf = CertificateParams::new(names)?;
        leaf.distinguished_name.push(DnType::CommonName, "informer-apiserver");
        let key = KeyPair::generate()?;
        let certificate = leaf.signed_by(&key, &issuer)?;
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = rustls::crypto::ring::default_provider();
        let config = ServerConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)?;
        Ok(Self { ca_pem: ca.pem(), config })
    }
}
