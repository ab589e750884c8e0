//! An OpenID Connect issuer on loopback that a real kube-apiserver trusts.
//!
//! Answers "who signs the id tokens of these tests?" It answers the three questions of the protocol: where things are,
//! which keys it signs with, and a new id token for a refresh token. Invariants:
//! 1. A refresh token that it does not know is refused; it accepts one only.
//! 2. It ends with its handle.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PublicKeyData as _, SigningKey as _,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

/// The client that tokens are for.
pub(crate) const CLIENT: &str = "kubernetes";
/// The refresh token that it accepts.
pub(crate) const REFRESH_TOKEN: &str = "refresh-me";

pub(crate) struct Issuer {
    inner: Arc<Inner>,
    ca_pem: String,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Drop for Issuer {
    /// A runtime cannot wait for its threads where a test is async.
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(tokio::runtime::Runtime::shutdown_background);
    }
}

struct Inner {
    address: SocketAddr,
    key: KeyPair,
}

impl Issuer {
    /// Listens, on a thread of its own.
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a thread");
        let (acceptor, ca_pem) = acceptor();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let inner = Arc::new(Inner { address, key: KeyPair::generate().expect("a key") });
        let serving = Arc::clone(&inner);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, inner) = (acceptor.clone(), Arc::clone(&serving));
                tokio::spawn(async move {
                    if let Ok(mut stream) = acceptor.accept(stream).await {
                        while let Some(request) = request(&mut stream).await {
                            let _ = stream.write_all(inner.answer(&request).as_bytes()).await;
                        }
                    }
                });
            }
        });
        Self { inner, ca_pem, runtime: Some(runtime) }
    }

    pub(crate) fn url(&self) -> String {
        self.inner.url()
    }

    pub(crate) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// An id token of this user that ends in so many seconds, or has ended.
    pub(crate) fn id_token(&self, user: &str, seconds: i64) -> String {
        self.inner.id_token(user, seconds)
    }
}

impl Inner {
    fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    fn answer(&self, request: &str) -> String {
        let url = self.url();
        let path = request.split(' ').nth(1).unwrap_or_default();
        let (status, body) = match path {
            "/.well-known/openid-configuration" => (
                "200 OK",
                serde_json::json!({
                    "issuer": url, "jwks_uri": format!("{url}/keys"), "token_endpoint": format!("{url}/token"),
                    "authorization_endpoint": format!("{url}/authorize"), "response_types_supported": ["code"],
                    "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["ES256"],
                }),
            ),
            "/keys" => ("200 OK", serde_json::json!({ "keys": [self.public_key()] })),
            "/token"
                if request.contains(&format!("refresh_token={}", REFRESH_TOKEN.replace('-', "%2D")))
                    || request.contains(&format!("refresh_token={REFRESH_TOKEN}")) =>
            {
                let answer = serde_json::json!({
                    "id_token": self.id_token("refreshed", 3600), "access_token": "unused", "token_type": "Bearer",
                });
                ("200 OK", answer)
            }
            _ => ("400 Bad Request", serde_json::json!({ "error": "invalid_grant" })),
        };
        let body = body.to_string();
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    fn public_key(&self) -> serde_json::Value {
        // An uncompressed point: a byte, x, y.
        let point = self.key.der_bytes();
        let [x, y] = [&point[1..33], &point[33..65]].map(|number| URL_SAFE_NO_PAD.encode(number));
        serde_json::json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "1", "x": x, "y": y })
    }

    fn id_token(&self, user: &str, seconds: i64) -> String {
        let now = now();
        let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let head = part(serde_json::json!({ "alg": "ES256", "kid": "1", "typ": "JWT" }));
        let claims = part(serde_json::json!({
            "iss": self.url(), "aud": CLIENT, "sub": user, "iat": now - 7200, "exp": now + seconds,
        }));
        let signed = format!("{head}.{claims}");
        let signature = self.key.sign(signed.as_bytes()).expect("it signs");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(two_numbers(&signature)))
    }
}

#[expect(clippy::disallowed_methods, reason = "a token ends at a time of day")]
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs().cast_signed()
}

/// Makes of a signature in DER, `SEQUENCE { INTEGER, INTEGER }`, the two numbers of 32 bytes that tokens have.
fn two_numbers(der: &[u8]) -> Vec<u8> {
    let (mut rest, mut numbers) = (&der[2..], Vec::new());
    for _ in 0..2 {
        let length = usize::from(rest[1]);
        let number = &rest[2..2 + length];
        let number = &number[length.saturating_sub(32)..];
        numbers.extend(std::iter::repeat_n(0, 32 - number.len()));
        numbers.extend_from_slice(number);
        rest = &rest[2 + length..];
    }
    numbers
}

/// One request with its body; `None` when the peer has gone.
async fn request(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Option<String> {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8_lossy(&text).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    text.extend(body);
    String::from_utf8(text).ok()
}

fn acceptor() -> (TlsAcceptor, String) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority =
        CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
    let certificate = certificate.signed_by(&key, &authority).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("its own key");
    (TlsAcceptor::from(Arc::new(config)), authority.pem())
}
