//! The client under the load: keep-alive creates over several connections, one large read, many watches.
//!
//! Answers: how does one thread keep a server busy? It parses as little of the answers as possible.
//! 1. A create is answered before the next one is sent on the same connection.
//! 2. Watches are counted by their lines; nothing is parsed.
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::Failure;

trait Socket: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Socket for S {}

/// The server under load, how to reach it, and its processes.
#[derive(Clone)]
pub(crate) struct Target {
    address: String,
    authorization: String,
    tls: Option<TlsConnector>,
    pub(crate) processes: Vec<u32>,
}

pub(crate) fn config_map(bytes: usize) -> String {
    format!(r#"{{"metadata":{{"name":"NAME"}},"data":{{"k":"{}"}}}}"#, "x".repeat(bytes))
}

pub(crate) fn secret() -> String {
    r#"{"metadata":{"name":"NAME"},"type":"Opaque","data":{"k":"eHh4eHh4eHg="}}"#.to_owned()
}

/// A pod of about this many bytes, as deployments make them, the rest in annotations.
pub(crate) fn pod(bytes: usize) -> String {
    let padding = "x".repeat(bytes.saturating_sub(700));
    format!(
        r#"{{"metadata":{{"name":"NAME","labels":{{"app":"web","pod-template-hash":"abcdef"}},"annotations":{{"padding":"{padding}"}}}},"spec":{{"containers":[{{"name":"web","image":"web:1","ports":[{{"containerPort":80}}],"env":[{{"name":"A","value":"b"}}],"resources":{{"requests":{{"cpu":"100m","memory":"64Mi"}}}}}}]}}}}"#
    )
}

impl Target {
    pub(crate) fn new(
        url: &str,
        ca_pem: Option<&str>,
        token: Option<&str>,
        processes: Vec<u32>,
    ) -> Result<Self, Failure> {
        let address = url.rsplit("//").next().unwrap_or_default().to_owned();
        let tls = match ca_pem {
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                roots.add(CertificateDer::from_pem_slice(pem.as_bytes())?)?;
                let provider = Arc::new(rustls::crypto::ring::default_provider());
                let config = rustls::ClientConfig::builder_with_provider(provider)
                    .with_safe_default_protocol_versions()?
                    .with_root_certificates(roots)
                    .with_no_client_auth();
                Some(TlsConnector::from(Arc::new(config)))
            }
            None => None,
        };
        let authorization = match (&tls, token) {
            (Some(_), Some(token)) => format!("Authorization: Bearer {token}\r\n"),
            _ => String::new(),
        };
        Ok(Self { address, authorization, tls, processes })
    }

    async fn connect(&self) -> Result<Box<dyn Socket>, Failure> {
        let tcp = TcpStream::connect(&self.address).await?;
        tcp.set_nodelay(true)?;
        Ok(match &self.tls {
            Some(tls) => Box::new(tls.connect(ServerName::try_from("127.0.0.1")?, tcp).await?),
            None => Box::new(tcp),
        })
    }

    fn get(&self, path: &str, more: &str) -> String {
        format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{}{more}\r\n", self.address, self.authorization)
    }

    /// Pods of a real server are refused until the default namespace has its account; ours has it or needs none.
    pub(crate) async fn wait_for_default_account(&self) -> Result<(), Failure> {
        for _ in 0..100 {
            let mut socket = self.connect().await?;
            let body = pod(700).replace("NAME", "first");
            let (code, _) = self.post(&mut *socket, "pods", &body, &mut Vec::new()).await?;
            if code == 201 {
                return Ok(());
            }
            let account = r#"{"metadata":{"name":"default"}}"#;
            self.post(&mut *socket, "serviceaccounts", account, &mut Vec::new()).await?;
            // A server of another process, which serves it some time later without an event.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err("pods are refused".into())
    }

    async fn post(
        &self,
        socket: &mut dyn Socket,
        resource: &str,
        body: &str,
        buffer: &mut Vec<u8>,
    ) -> Result<(u16, usize), Failure> {
        let head = format!(
            "POST /api/v1/namespaces/default/{resource} HTTP/1.1\r\nHost: {}\r\n{}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.authorization,
            body.len()
        );
        socket.write_all(head.as_bytes()).await?;
        buffer.clear();
        loop {
            if socket.read_buf(buffer).await? == 0 {
                return Err("the connection was closed".into());
            }
            if is_whole(buffer) {
                let code = std::str::from_utf8(buffer.get(9..12).unwrap_or_default())?.parse()?;
                return Ok((code, buffer.len()));
            }
        }
    }

    /// Creates this many objects of one body, in which `NAME` is replaced by their names.
    pub(crate) async fn create_all(
        self: &Arc<Self>,
        resource: &'static str,
        count: usize,
        connections: usize,
        body: &str,
    ) -> Result<(), Failure> {
        let body: Rc<str> = body.into();
        let work = (0..connections).map(|first| {
            let (target, body) = (Arc::clone(self), Rc::clone(&body));
            tokio::task::spawn_local(async move {
                let mut socket = target.connect().await.map_err(|error| error.to_string())?;
                let mut buffer = Vec::with_capacity(64 * 1024);
                for number in (first..count).step_by(connections) {
                    let body = body.replacen("NAME", &format!("load-{number:06}"), 1);
                    let done = target.post(&mut *socket, resource, &body, &mut buffer).await;
                    match done.map_err(|error| error.to_string())? {
                        (201, _) => {}
                        (code, _) => return Err(format!("{code}: {}", String::from_utf8_lossy(&buffer))),
                    }
                }
                Ok(())
            })
        });
        let work: Vec<JoinHandle<Result<(), String>>> = work.collect();
        for connection in work {
            connection.await??;
        }
        Ok(())
    }

    /// Reads one answer to its end; returns its length.
    pub(crate) async fn read_all(&self, path: &str) -> Result<usize, Failure> {
        let mut socket = self.connect().await?;
        socket.write_all(self.get(path, "Connection: close\r\n").as_bytes()).await?;
        let (mut buffer, mut total) = (vec![0; 256 * 1024], 0);
        loop {
            match socket.read(&mut buffer).await {
                Ok(0) => return Ok(total),
                Ok(count) => total += count,
                // A server that closes without a close_notify has still sent everything.
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(total),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Opens this many watches; each task ends when it has seen `events` lines.
    pub(crate) async fn watch_all(
        self: &Arc<Self>,
        path: &str,
        watchers: usize,
        events: usize,
    ) -> Result<Vec<JoinHandle<Result<(), String>>>, Failure> {
        let ask = self.get(&format!("{path}?watch=1&resourceVersion=0"), "");
        let mut all = Vec::new();
        for _ in 0..watchers {
            let mut socket = self.connect().await?;
            socket.write_all(ask.as_bytes()).await?;
            let mut buffer = Vec::with_capacity(64 * 1024);
            while !buffer.windows(4).any(|four| four == b"\r\n\r\n") {
                socket.read_buf(&mut buffer).await?;
            }
            all.push(tokio::task::spawn_local(async move {
                let (mut seen, mut last) = (0, 0);
                buffer.resize(64 * 1024, 0);
                while seen < events {
                    let count = socket.read(&mut buffer).await.map_err(|error| error.to_string())?;
                    if count == 0 {
                        return Err(format!("a watch ended after {seen} events"));
                    }
                    seen += lines(&buffer[..count], last);
                    last = buffer[count - 1];
                }
                Ok(())
            }));
        }
        Ok(all)
    }
}

/// How many events end in these bytes: each ends with a brace and a newline, which chunks never do.
fn lines(bytes: &[u8], last: u8) -> usize {
    let before = |at: usize| if at == 0 { last } else { bytes[at - 1] };
    memchr::memchr_iter(b'\n', bytes).filter(|at| before(*at) == b'}').count()
}

/// Whether an answer with a small body is complete.
fn is_whole(answer: &[u8]) -> bool {
    let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(&answer[..head]).to_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    match length.and_then(|text| text.trim().parse::<usize>().ok()) {
        Some(length) => answer.len() >= head + 4 + length,
        None => answer.ends_with(b"\r\n0\r\n\r\n"),
    }
}
