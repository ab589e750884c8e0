//! The server's own certificate authority and certificate.
//!
//! Answers: what does the server present, and what must a client trust? Both are made for each server.
//! 1. The certificate names localhost and the loopback addresses, nothing else.
//! 2. A user's certificate names all groups of the user, where the crate that makes it (`rcgen`) keeps a single value for
//!    each type of name: it is made without a subject, and gets one here. Only the subject changes; the key that signed the
//!    certificate signs it again.
//! 3. The common name comes first, then one organization for each group, in their order.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SigningKey,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use yasna::models::ObjectIdentifier;
use yasna::{ASN1Result, DERWriter};

use crate::access::certificate::AnyCertificate;
use crate::access::user::User;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a server with TLS needs.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    pub(crate) ca_pem: String,
    pub(crate) config: ServerConfig,
    /// Checks client certificates.
    pub(crate) clients: Arc<dyn ClientCertVerifier>,
    issuer: Arc<Issuer<'static, KeyPair>>,
}

impl Tls {
    /// A new authority, and a certificate of it.
    ///
    /// # Errors
    /// If no key can be made.
    pub(crate) fn new() -> Result<Self, Failure> {
        let authority = KeyPair::generate()?;
        let ca = authority_params().self_signed(&authority)?;
        let issuer = Issuer::new(authority_params(), authority);
        let names = ["localhost", "127.0.0.1", "::1", "kubernetes.default"].map(str::to_owned);
        let mut leaf = CertificateParams::new(names)?;
        leaf.distinguished_name.push(DnType::CommonName, "informer-apiserver");
        let key = KeyPair::generate()?;
        let certificate = leaf.signed_by(&key, &issuer)?;
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(ca.der().clone())?;
        let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider));
        let clients = clients.allow_unauthenticated().build()?;
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(AnyCertificate(Arc::clone(&clients))))
            .with_single_cert(vec![certificate.der().clone()], private)?;
        Ok(Self { ca_pem: ca.pem(), config, clients, issuer: Arc::new(issuer) })
    }

    /// A client certificate for a user, with its key: both as PEM.
    pub(crate) fn issue(&self, user: &User) -> Result<(String, String), Failure> {
        let mut leaf = CertificateParams::default();
        leaf.distinguished_name = DistinguishedName::new();
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let unnamed = leaf.signed_by(&key, &self.issuer)?;
        let certificate = renamed(unnamed.der(), user, self.issuer.key())?;
        Ok((pem(&certificate), key.serialize_pem()))
    }
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "informer-apiserver authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// A certificate as text.
fn pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let lines = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("base64 is ASCII"));
    let body: String = lines.flat_map(|line| [line, "\n"]).collect();
    format!("-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n")
}

const COMMON_NAME: [u64; 4] = [2, 5, 4, 3];
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];
/// The index of the subject among the signed elements: after the version, the serial number, the algorithm,
/// the issuer and the validity.
const SUBJECT: usize = 5;

/// The certificate (in DER) that names this user, signed by `key`.
///
/// # Errors If the bytes are not a certificate, or the key cannot sign.
fn renamed(certificate: &[u8], user: &User, key: &impl SigningKey) -> Result<Vec<u8>, Failure> {
    let [signed, algorithm, _] = parts(certificate)?
        .try_into()
        .map_err(|_| "a certificate is what is signed, an algorithm and a signature")?;
    let mut fields = parts(&signed)?;
    *fields.get_mut(SUBJECT).ok_or("a certificate has a subject")? = subject(user);
    let signed = sequence(&fields);
    let signature = key.sign(&signed)?;
    let signature = yasna::construct_der(|out| out.write_bitvec_bytes(&signature, signature.len() * 8));
    Ok(sequence(&[signed, algorithm, signature]))
}

fn subject(user: &User) -> Vec<u8> {
    let name = (COMMON_NAME, user.name.as_str());
    let groups = user.groups.iter().map(|group| (ORGANIZATION, group.as_str()));
    yasna::construct_der(|out| {
        out.write_sequence(|names| {
            for (kind, value) in std::iter::once(name).chain(groups) {
                names.next().write_set(|set| attribute(set.next(), &kind, value));
            }
        });
    })
}

fn attribute(out: DERWriter<'_>, kind: &[u64], value: &str) {
    out.write_sequence(|pair| {
        pair.next().write_oid(&ObjectIdentifier::from_slice(kind));
        pair.next().write_utf8_string(value);
    });
}

/// The elements of a sequence, each with its head.
fn parts(sequence: &[u8]) -> ASN1Result<Vec<Vec<u8>>> {
    let mut parts = Vec::new();
    yasna::parse_der(sequence, |reader| {
        reader.read_sequence_of(|part| {
            parts.push(part.read_der()?);
            Ok(())
        })
    })?;
    Ok(parts)
}

fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    yasna::construct_der(|out| {
        out.write_sequence(|out| parts.iter().for_each(|part| out.next().write_der(part)));
    })
}
