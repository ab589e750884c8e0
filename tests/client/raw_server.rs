//! A TCP server that sends exactly the bytes that a test gives it, plain or over TLS.
//!
//! Answers "what if a server did this?" Each connection is given to the test's script, with its number; the script
//! reads requests and writes bytes. Invariants:
//! 1. It is bound to loopback, and ends with its handle.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_codec::Encoder;
use actix_http::ws::{Codec, Message, hash_key};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// One accepted connection.
pub(crate) struct Connection {
    io: Box<dyn Io>,
    /// How many connections were accepted before this one.
    pub(crate) number: usize,
}

impl Connection {
    /// For another way to read and write.
    pub(crate) fn into_io(self) -> Box<dyn Io> {
        self.io
    }

    /// Reads one request without a body; `None` when the peer closed.
    pub(crate) async fn request(&mut self) -> Option<String> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.io.read_u8().await.ok()?);
        }
        Some(String::from_utf8(head).unwrap())
    }

    /// Reads one frame of HTTP/2; gives its type.
    #[cfg(feature = "http2")]
    pub(crate) async fn frame(&mut self) -> Option<u8> {
        let mut head = [0; 9];
        self.io.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        self.io.read_exact(&mut vec![0; length as usize]).await.ok()?;
        Some(head[3])
    }

    /// Waits for the first bytes, whatever they are.
    pub(crate) async fn some(&mut self) {
        let _ = self.io.read(&mut [0; 1024]).await;
    }

    /// Reads a body of this length.
    pub(crate) async fn body(&mut self, length: usize) -> String {
        let mut body = vec![0; length];
        self.io.read_exact(&mut body).await.unwrap();
        String::from_utf8(body).unwrap()
    }

    /// Writes and flushes; it does not matter if the peer has gone.
    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.io.write_all(bytes.as_ref()).await;
        let _ = self.io.flush().await;
    }

    /// Writes and flushes; whether the peer was still there.
    pub(crate) async fn is_written(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.io.write_all(bytes.as_ref()).await.is_ok() && self.io.flush().await.is_ok()
    }

    /// Closes in order: over TLS with a close_notify.
    pub(crate) async fn close(mut self) {
        let _ = self.io.shutdown().await;
    }

    /// Waits until the peer closes.
    pub(crate) async fn gone(mut self) {
        let mut rest = [0; 64];
        while self.io.read(&mut rest).await.is_ok_and(|count| count > 0) {}
    }
}

type Served = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(crate) struct RawServer {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    scheme: &'static str,
    task: JoinHandle<()>,
}

impl RawServer {
    pub(crate) async fn start<F>(script: impl Fn(Connection) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::serve(None, Box::new(move |connection| Box::pin(script(connection)))).await
    }

    pub(crate) async fn start_tls<F>(
        acceptor: TlsAcceptor,
        script: impl Fn(Connection) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::serve(Some(acceptor), Box::new(move |connection| Box::pin(script(connection)))).await
    }

    async fn serve(tls: Option<TlsAcceptor>, script: Box<dyn Fn(Connection) -> Served + Send>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let scheme = if tls.is_some() { "https" } else { "http" };
        let count = Arc::clone(&accepted);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                // What is written is on its way before the connection may be reset.
                stream.set_nodelay(true).unwrap();
                let number = count.fetch_add(1, Ordering::SeqCst);
                let io: Box<dyn Io> = match &tls {
                    None => Box::new(stream),
                    Some(acceptor) => match acceptor.accept(stream).await {
                        Ok(stream) => Box::new(stream),
                        Err(_) => continue,
                    },
                };
                tokio::spawn(script(Connection { io, number }));
            }
        });
        Self { address, accepted, scheme, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// The number of accepted connections.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An answer with a length.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

/// The head of an answer 101 to this request.
pub(crate) fn switched(request: &str, protocol: &str) -> String {
    let key = request.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).unwrap();
    let accept = String::from_utf8(hash_key(key.trim().as_bytes()).to_vec()).unwrap();
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-accept: {accept}\r\nsec-websocket-protocol: {protocol}\r\n\r\n"
    )
}

/// The frames in which a server says this.
pub(crate) fn frames(messages: impl IntoIterator<Item = Message>) -> Vec<u8> {
    let (mut codec, mut out) = (Codec::new(), bytes::BytesMut::new());
    messages.into_iter().for_each(|message| codec.encode(message, &mut out).unwrap());
    out.to_vec()
}

/// The head of a chunked answer.
pub(crate) const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
/// The end of a chunked answer.
pub(crate) const LAST_CHUNK: &str = "0\r\n\r\n";

/// One chunk of a chunked answer.
pub(crate) fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}
