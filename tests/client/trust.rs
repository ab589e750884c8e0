//! Which certificates of servers are accepted: a table that Go's client judges, and the words for what is refused.
//!
//! Answers "does this client reach what kubectl reaches?" Invariants:
//! 1. Where the Go clients of `tests/control-plane` are built, Go decides what is right: a row that states something else
//!    fails, and so does our answer.
//! 2. What rcgen can make is made here; the rest is in `trust/`, made by `trust/make.sh`.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use actix_informer::client::{Client, Config};
use informer_control_plane::Binaries;
use k8s_openapi::api::core::v1::ConfigMap;
use p521::ecdsa::signature::Signer as _;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use serde_json::json;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::{CertifiedKey, Signer, SigningKey, SingleCertAndKey};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{Error, ServerConfig, SignatureAlgorithm, SignatureScheme};

use crate::harness::*;
use crate::raw_server::*;
use crate::tls::serve_empty_lists;

/// A server, what is configured as its authority, and what a client has to say.
struct Row {
    what: &'static str,
    /// What the server sends, and its key, all PEM.
    sent: String,
    key: String,
    /// The newest version of TLS that it speaks.
    is_old: bool,
    trusted: String,
    /// `None` if it is accepted, else a part of what is said.
    refused: Option<&'static str>,
}

/// Whose certificate is to be made.
struct Made {
    params: CertificateParams,
    key: KeyPair,
}

impl Made {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        Self { params, key: KeyPair::generate().unwrap() }
    }

    fn with_key(mut self, algorithm: &'static rcgen::SignatureAlgorithm) -> Self {
        self.key = KeyPair::generate_for(algorithm).unwrap();
        self
    }

    fn change(mut self, change: impl FnOnce(&mut CertificateParams)) -> Self {
        change(&mut self.params);
        self
    }

    fn authority(self) -> Self {
        self.change(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained))
    }

    fn alone(self) -> Issued {
        CertifiedIssuer::self_signed(self.params, self.key).unwrap()
    }

    fn by(self, issuer: &Issued) -> Issued {
        CertifiedIssuer::signed_by(self.params, self.key, issuer).unwrap()
    }
}

type Issued = CertifiedIssuer<'static, KeyPair>;

fn row(what: &'static str, server: &Issued, trusted: &str, refused: Option<&'static str>) -> Row {
    let key = server.key().serialize_pem();
    Row { what, sent: server.pem(), key, is_old: false, trusted: trusted.to_owned(), refused }
}

fn stored(what: &'static str, server: &str, trusted: &str, refused: Option<&'static str>) -> Row {
    let (sent, key) = (server.to_owned(), server.to_owned());
    Row { what, sent, key, is_old: false, trusted: trusted.to_owned(), refused }
}

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("trust/", $name, ".pem"))
    };
}

const FROM_NOBODY: &str = "comes from nobody who is trusted";
const ISSUER_ENDED: &str = "has an issuer whose certificate ended on 2020-01-01";

fn rows() -> Vec<Row> {
    let root = Made::new("root").authority().alone();
    let between = Made::new("between").authority().by(&root);
    let leaf = Made::new("leaf").by(&root);
    let other = Made::new("other").authority().alone();
    let below = Made::new("below").by(&between);
    let mut rows = vec![
        row("leaf as root", &leaf, &leaf.pem(), None),
        row(
            "a leaf as root makes no other one",
            &Made::new("false").by(&leaf),
            &leaf.pem(),
            Some(FROM_NOBODY),
        ),
        row("self-signed", &Made::new("alone").alone(), "", Some("is trusted by nobody")),
        row("another root", &leaf, &other.pem(), Some(FROM_NOBODY)),
        row(
            "another root of the same name",
            &leaf,
            &Made::new("root").authority().alone().pem(),
            Some("was the authority made anew?"),
        ),
        row("intermediate as root", &below, &between.pem(), None),
        row("an intermediate is missing", &below, &root.pem(), Some(FROM_NOBODY)),
        Row {
            sent: below.pem() + &between.pem(),
            ..row("an intermediate is sent", &below, &root.pem(), None)
        },
        row("CRLF", &leaf, &root.pem().replace('\n', "\r\n"), None),
        row(
            "several in one file",
            &leaf,
            &format!("{}text\n{}{}", other.pem(), between.pem(), root.pem()),
            None,
        ),
        row("none in the file", &leaf, &leaf.key().serialize_pem(), Some("it has no certificate in PEM")),
    ];
    rows.extend(rows_of_issuers(&root));
    rows.extend(rows_of_authorities_as_servers(&root, &between, &leaf));
    rows.extend(rows_of_names_times_and_purposes(&root));
    rows.extend(rows_of_keys_and_signatures());
    rows
}

fn rows_of_issuers(root: &Issued) -> Vec<Row> {
    let leaf = |issuer: &Issued| Made::new("leaf").by(issuer);
    let of_root = |change: fn(&mut CertificateParams)| Made::new("root").authority().change(change).alone();
    let ended = of_root(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    let future = of_root(|params| params.not_before = rcgen::date_time_ymd(2090, 1, 1));
    let for_clients =
        of_root(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
    let narrow = of_root(|params| params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0)));
    let between = Made::new("between").authority().by(&narrow);
    let (below, beside) = (leaf(&between), leaf(&narrow));
    let useless = Made::new("useless").authority();
    let useless =
        useless.change(|params| params.key_usages = vec![KeyUsagePurpose::DigitalSignature]).by(root);
    let of_useless = leaf(&useless);
    let long = Made::new("long").change(|params| params.serial_number = Some(vec![1; 30].into())).alone();
    let begins = Some("has an issuer whose certificate begins to be valid on 2090-01-01");
    vec![
        row("leaf of an expired root", &leaf(&ended), &ended.pem(), Some(ISSUER_ENDED)),
        row("leaf of a root that is not yet valid", &leaf(&future), &future.pem(), begins),
        row(
            "root for clients only",
            &leaf(&for_clients),
            &for_clients.pem(),
            Some("may not be used by a server"),
        ),
        row("root pathlen 0", &beside, &narrow.pem(), None),
        Row {
            sent: below.pem() + &between.pem(),
            ..row("root pathlen 0 with an intermediate", &below, &narrow.pem(), Some(FROM_NOBODY))
        },
        Row {
            sent: of_useless.pem() + &useless.pem(),
            ..row("an intermediate that may not sign", &of_useless, &root.pem(), Some(FROM_NOBODY))
        },
        row(
            "a leaf as root that is not read whole",
            &leaf(&long),
            &long.pem(),
            Some("is not an X.509 certificate in DER"),
        ),
    ]
}

fn rows_of_authorities_as_servers(root: &Issued, between: &Issued, leaf: &Issued) -> Vec<Row> {
    let alone = Made::new("alone").authority().alone();
    let by_root = Made::new("authority").authority().by(root);
    let below = Made::new("authority").authority().by(between);
    let by_leaf = Made::new("false").authority().by(leaf);
    let narrow = Made::new("narrow")
        .change(|params| params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0)))
        .by(root);
    let too_deep = Made::new("deep").authority();
    let wide = Made::new("wide").authority().by(&narrow);
    let deep = too_deep.by(&wide);
    let old =
        Made::new("old").authority().change(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    let old = old.alone();
    let by_old = Made::new("authority").authority().by(&old);
    vec![
        row("an authority as a server, for itself", &alone, &alone.pem(), None),
        row("an authority as a server", &by_root, &root.pem(), None),
        row("an authority as a server, below an intermediate as root", &below, &between.pem(), None),
        Row {
            sent: below.pem() + &between.pem(),
            ..row("an authority as a server, an intermediate is sent", &below, &root.pem(), None)
        },
        row("an authority as a server, of a leaf", &by_leaf, &leaf.pem(), Some(FROM_NOBODY)),
        row("an authority as a server, of one that has expired", &by_old, &old.pem(), Some(ISSUER_ENDED)),
        Row {
            sent: deep.pem() + &wide.pem() + &narrow.pem(),
            ..row("an authority as a server, deeper than is allowed", &deep, &root.pem(), Some(FROM_NOBODY))
        },
    ]
}

fn rows_of_names_times_and_purposes(root: &Issued) -> Vec<Row> {
    let expired = || Made::new("old").change(|params| params.not_after = rcgen::date_time_ymd(2020, 2, 3));
    let future = Made::new("new").change(|params| params.not_before = rcgen::date_time_ymd(2090, 1, 1));
    let mut params = CertificateParams::new(["api.example".to_owned(), "10.1.2.3".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "elsewhere");
    let elsewhere = || Made { params: params.clone(), key: KeyPair::generate().unwrap() };
    let client = |made: Made| {
        made.change(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth])
    };
    let nameless = Made::new("nameless").change(|params| params.subject_alt_names.clear());
    let (old_itself, other_itself) = (expired().alone(), elsewhere().authority().alone());
    let client_itself = client(Made::new("client").authority()).alone();
    let end = Some("has ended on 2020-02-03T00:00:00Z, and it is");
    let name = Some("is for api.example, 10.1.2.3, and not for 127.0.0.1");
    let purpose = Some("may not be used by a server");
    vec![
        row("expired", &expired().by(root), &root.pem(), end),
        row("expired, for itself", &old_itself, &old_itself.pem(), end),
        row("not yet", &future.by(root), &root.pem(), Some("begins to be valid on 2090-01-01")),
        row("wrong name", &elsewhere().by(root), &root.pem(), name),
        row("wrong name, for itself", &other_itself, &other_itself.pem(), name),
        row("no name", &nameless.by(root), &root.pem(), Some("names no host")),
        row("for clients", &client(Made::new("client")).by(root), &root.pem(), purpose),
        row("for clients, for itself", &client_itself, &client_itself.pem(), purpose),
    ]
}

fn rows_of_keys_and_signatures() -> Vec<Row> {
    let of = |algorithm| Made::new("alone").with_key(algorithm).alone();
    let (p256, p384) = (of(&rcgen::PKCS_ECDSA_P256_SHA256), of(&rcgen::PKCS_ECDSA_P384_SHA384));
    let ed25519 = of(&rcgen::PKCS_ED25519);
    vec![
        row("P-256", &p256, &p256.pem(), None),
        row("P-384", &p384, &p384.pem(), None),
        row("Ed25519", &ed25519, &ed25519.pem(), None),
        stored("P-521", file!("p521"), file!("p521"), None),
        Row { is_old: true, ..stored("P-521 over TLS 1.2", file!("p521"), file!("p521"), None) },
        stored("P-521 that signs with SHA-256", file!("p521-sha256"), file!("p521-sha256-ca"), None),
        stored("P-384 that signs with SHA-512", file!("p384-sha512"), file!("p384-sha512-ca"), None),
        stored("P-256 that signs with SHA-512", file!("p256-sha512"), file!("p256-sha512-ca"), None),
        stored("RSA with SHA-512", file!("rsa-sha512"), file!("rsa-ca"), None),
        stored(
            "RSA with SHA-1",
            file!("rsa-sha1"),
            file!("rsa-ca"),
            Some("is signed with SHA-1, which is not accepted"),
        ),
        stored("RSA with SHA-1, for itself", file!("rsa-sha1"), file!("rsa-sha1"), None),
        stored("an authority of version 1", file!("v1"), file!("v1-ca"), None),
        stored("a wrong P-521", file!("p521-sha256"), file!("p521"), Some(FROM_NOBODY)),
    ]
}

#[tokio::test]
async fn client_trust_bugs_1_3_4_what_go_trusts_is_trusted_and_what_is_refused_is_said_in_words() {
    let mut wrong = Vec::new();
    for row in rows() {
        let server = row.serve().await;
        let answer = asked(&server.url(), &row.trusted).await;
        let is_right = match (&answer, row.refused) {
            (Ok(()), None) => true,
            (Err(said), Some(words)) => said.contains(words) && is_plain(said),
            _ => false,
        };
        if !is_right {
            wrong.push((row.what, answer));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn client_trust_a_self_signed_p_521_certificate_is_accepted_where_nobody_asks() {
    let server = stored("", file!("p521"), "", None).serve().await;
    let config = Config::new(server.url()).unwrap().accept_invalid_certificates();
    assert!(lists(config).await.is_ok());
}

#[tokio::test]
async fn client_trust_go_gives_the_same_answers() {
    let Some(program) = Binaries::find_or_skip().and_then(|found| found.go_clients().map(ToOwned::to_owned))
    else {
        return;
    };
    // Go takes an empty text for none, and then trusts the system; here it trusts nobody.
    let rows: Vec<_> = rows().into_iter().filter(|row| !row.trusted.is_empty()).collect();
    let mut servers = Vec::new();
    for row in &rows {
        servers.push(row.serve().await);
    }
    let asked: Vec<_> = rows
        .iter()
        .zip(&servers)
        .map(|(row, server)| json!({"URL": server.url(), "Authority": row.trusted}))
        .collect();
    let output = tokio::task::spawn_blocking(move || {
        let mut go =
            Command::new(program).arg("trust").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        go.stdin.take().unwrap().write_all(json!(asked).to_string().as_bytes()).unwrap();
        go.wait_with_output().unwrap()
    });
    let output = output.await.unwrap();
    assert!(output.status.success());
    let answers: Vec<String> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answers.len(), rows.len());
    let wrong: Vec<_> = rows
        .iter()
        .zip(&answers)
        .filter(|(row, answer)| row.refused.is_none() != answer.is_empty())
        .map(|(row, answer)| (row.what, answer))
        .collect();
    assert!(wrong.is_empty(), "Go says otherwise: {wrong:#?}");
}

/// Whether there are neither raw bytes nor names of our code in it.
fn is_plain(said: &str) -> bool {
    let is_number = |word: &str| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_digit());
    let bytes = said.split(", ").filter(|word| is_number(word)).count();
    bytes < 3 && ["Other(", "Context", "1.2.840"].iter().all(|raw| !said.contains(raw))
}

async fn asked(url: &str, trusted: &str) -> Result<(), String> {
    lists(Config::new(url).unwrap().certificate_authority(trusted)).await
}

async fn lists(config: Config) -> Result<(), String> {
    let source = Client::new(config).map_err(|error| error.to_string())?.resource::<ConfigMap>();
    local(async { list(&made(source), latest()).await.map(|_| ()).map_err(|error| error.to_string()) }).await
}

impl Row {
    async fn serve(&self) -> RawServer {
        let chain = CertificateDer::pem_slice_iter(self.sent.as_bytes()).collect::<Result<_, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap();
        let key = ring::sign::any_supported_type(&key).unwrap_or_else(|_| Arc::new(P521::read(&key)));
        let provider = Arc::new(ring::default_provider());
        let versions = if self.is_old { &[&TLS12][..] } else { &[&TLS12, &TLS13] };
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(CertifiedKey::new(chain, key))));
        RawServer::start_tls(TlsAcceptor::from(Arc::new(config)), serve_empty_lists).await
    }
}

/// A key that ring does not have.
#[derive(Debug, Clone)]
struct P521(p521::ecdsa::SigningKey);

impl P521 {
    fn read(key: &PrivateKeyDer<'_>) -> Self {
        const NUMBER: [u8; 2] = [4, 66];
        let der = key.secret_der();
        let at = der.windows(2).position(|two| two == NUMBER).unwrap() + 2;
        Self(p521::ecdsa::SigningKey::from_slice(&der[at..at + 66]).unwrap())
    }
}

impl SigningKey for P521 {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        offered.contains(&self.scheme()).then(|| Box::new(self.clone()) as _)
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }
}

impl Signer for P521 {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let signature: p521::ecdsa::Signature = self.0.sign(message);
        Ok(signature.to_der().as_bytes().to_vec())
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ECDSA_NISTP521_SHA512
    }
}
