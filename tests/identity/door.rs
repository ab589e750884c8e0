//! The in-memory server behind a door that asks for credentials which change while it stands open.
//!
//! Answers "what does a client meet whose authority, certificate and token are all replaced each second?" The door
//! speaks TLS, checks certificate and token, and passes requests on. Invariants:
//! 1. A certificate or token is accepted until its fifth successor is given out. What the door itself presents is of an
//!    authority that was given out five successors ago: whoever read the authorities since then trusts it.
//! 2. A certificate is checked when a connection is made, a token with every request; a refusal is 401.
//! 3. A watch is ended in good order after two seconds, so that it has to be opened again with what counts then.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// How many successors an accepted credential may have.
const KEPT: usize = 5;
const WATCH: Duration = Duration::from_secs(2);
const LAST_CHUNK: &str = "0\r\n\r\n";

/// Credentials that were given out together.
struct Generation {
    authority: CertifiedIssuer<'static, KeyPair>,
    token: String,
}

pub(crate) struct Door {
    address: SocketAddr,
    inner: Arc<Mutex<Inner>>,
    task: tokio::task::JoinHandle<()>,
}

struct Inner {
    /// The newest last.
    generations: VecDeque<Generation>,
    acceptor: TlsAcceptor,
    count: usize,
    refused: usize,
}

impl Door {
    /// Opens the door of the server at `upstream`; the first credentials are in `folder`.
    pub(crate) async fn open(upstream: SocketAddr, folder: &Path) -> Self {
        let first = Generation::new(0);
        let inner =
            Inner { acceptor: first.acceptor([&first]), generations: [first].into(), count: 0, refused: 0 };
        inner.give_out(folder);
        let inner = Arc::new(Mutex::new(inner));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let serving = Arc::clone(&inner);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = locked(&serving).acceptor.clone();
                let inner = Arc::clone(&serving);
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        // Whoever breaks off, breaks off both ends.
                        let _ = serve(stream, upstream, &inner).await;
                    }
                });
            }
        });
        Self { address, inner, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Replaces all credentials, in the files and at the door.
    pub(crate) fn rotate(&self, folder: &Path) {
        let mut inner = locked(&self.inner);
        inner.count += 1;
        let next = Generation::new(inner.count);
        inner.generations.push_back(next);
        if inner.generations.len() > KEPT + 1 {
            inner.generations.pop_front();
        }
        inner.give_out(folder);
        inner.acceptor = inner.generations[0].acceptor(&inner.generations);
    }

    /// How many requests it has refused for their token.
    pub(crate) fn refused(&self) -> usize {
        locked(&self.inner).refused
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn locked(inner: &Mutex<Inner>) -> std::sync::MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    /// Writes all accepted authorities, and the newest certificate and token. Each file is replaced at once.
    fn give_out(&self, folder: &Path) {
        let authorities: String =
            self.generations.iter().map(|generation| generation.authority.pem()).collect();
        let newest = self.generations.back().expect("there is always one");
        let (certificate, key) = newest.issue();
        for (name, text) in [
            ("ca.crt", &authorities),
            ("client.pem", &format!("{certificate}{key}")),
            ("token", &newest.token),
        ] {
            replace(&folder.join(name), text);
        }
    }

    fn accepts(&mut self, head: &str) -> bool {
        let shown = head.lines().find_map(|line| line.strip_prefix("authorization: Bearer "));
        let is_valid = self.generations.iter().any(|generation| Some(&*generation.token) == shown);
        self.refused += usize::from(!is_valid);
        is_valid
    }
}

/// Replaces a file so that no reader sees half of it.
pub(crate) fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, path)).expect("its own folder");
}

impl Generation {
    fn new(number: usize) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, format!("authority {number}"));
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("an authority");
        Self { authority, token: format!("token-{number}") }
    }

    /// A certificate and its key, in PEM, for the door and for a client alike.
    fn issue(&self) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
        (params.signed_by(&key, &self.authority).expect("a certificate").pem(), key.serialize_pem())
    }

    /// Presents a certificate of this authority and accepts clients of all of `clients`.
    fn acceptor<'a>(&self, clients: impl IntoIterator<Item = &'a Self>) -> TlsAcceptor {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        clients
            .into_iter()
            .for_each(|client| roots.add(client.authority.der().clone()).expect("an authority"));
        let verifier =
            WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider)).build();
        let (certificate, key) = self.issue();
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("a certificate");
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_client_cert_verifier(verifier.expect("roots"))
            .with_single_cert(
                vec![certificate],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key"),
            );
        TlsAcceptor::from(Arc::new(config.expect("its own key")))
    }
}

/// Passes the requests of one connection on, each after a look at its token.
async fn serve(
    stream: impl tokio::io::AsyncRead + AsyncWrite + Unpin,
    upstream: SocketAddr,
    inner: &Mutex<Inner>,
) -> std::io::Result<()> {
    let (client_reads, mut client) = tokio::io::split(stream);
    let (server_reads, mut server) = TcpStream::connect(upstream).await?.into_split();
    let (mut client_reads, mut server_reads) = (BufReader::new(client_reads), BufReader::new(server_reads));
    loop {
        let request = head(&mut client_reads).await?;
        if !locked(inner).accepts(&request) {
            let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":401,"reason":"Unauthorized"}"#;
            let answer =
                format!("HTTP/1.1 401 Unauthorized\r\ncontent-length: {}\r\n\r\n{status}", status.len());
            client.write_all(answer.as_bytes()).await?;
            continue;
        }
        let own = request.lines().filter(|line| !line.starts_with("authorization:"));
        let passed_on: String = own.map(|line| format!("{line}\r\n")).collect();
        server.write_all(passed_on.as_bytes()).await?;
        let answer = head(&mut server_reads).await?;
        client.write_all(answer.as_bytes()).await?;
        let length = answer.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if let Some(length) = length {
            tokio::io::copy(&mut (&mut server_reads).take(length), &mut client).await?;
        } else if request.contains("watch=") {
            let _ = tokio::time::timeout(WATCH, chunks(&mut server_reads, &mut client)).await;
            // What was passed on last may be half a chunk only if the server is slow, which this one is not.
            client.write_all(LAST_CHUNK.as_bytes()).await?;
            return client.shutdown().await;
        } else {
            chunks(&mut server_reads, &mut client).await?;
            client.write_all(LAST_CHUNK.as_bytes()).await?;
        }
        client.flush().await?;
    }
}

/// A head with its empty line, in lower-case names as the client writes them.
async fn head(from: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<String> {
    let mut text = String::new();
    while !text.ends_with("\r\n\r\n") {
        if from.read_line(&mut text).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(text)
}

/// Passes whole chunks on, without the last one.
async fn chunks(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> std::io::Result<()> {
    loop {
        let mut size = String::new();
        from.read_line(&mut size).await?;
        let length = usize::from_str_radix(size.trim(), 16).map_err(std::io::Error::other)?;
        let mut chunk = vec![0; length + 2];
        from.read_exact(&mut chunk).await?;
        if length == 0 {
            return Ok(());
        }
        to.write_all(&[size.as_bytes(), &chunk].concat()).await?;
        to.flush().await?;
    }
}
