//! What a relay answers in the server's place, as a load balancer does when it finds no healthy server.
//!
//! Answers "how does a 429 or 503 get into a connection that is encrypted?" The relay ends TLS itself, with a
//! certificate of its own that the client is configured to trust. Invariants:
//! 1. One request, one answer, then the connection is closed.
//! 2. No more than [`HEAD`] bytes of a request are read.

use std::sync::Arc;

use rcgen::CertifiedKey;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// The longest head of a request.
const HEAD: u64 = 64 * 1024;

/// Answers in a server's place.
pub(super) struct Answerer {
    secure: Option<(TlsAcceptor, String)>,
}

impl Answerer {
    pub(super) fn plain() -> Self {
        Self { secure: None }
    }

    /// For servers behind HTTPS.
    pub(super) fn secure() -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("its key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring knows them")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("the two belong together");
        Self { secure: Some((TlsAcceptor::from(Arc::new(config)), cert.pem())) }
    }

    /// What a client must trust, in PEM.
    pub(super) fn certificate(&self) -> Option<&str> {
        self.secure.as_ref().map(|(_, pem)| pem.as_str())
    }

    /// Reads one request's head and answers it.
    pub(super) async fn answer(&self, near: TcpStream, text: &str) {
        let Some((acceptor, _)) = &self.secure else { return answer(near, text).await };
        // A client that closes during the handshake needs no answer.
        if let Ok(near) = acceptor.accept(near).await {
            answer(near, text).await;
        }
    }
}

async fn answer(mut near: impl AsyncRead + AsyncWrite + Unpin, text: &str) {
    let mut head = Vec::new();
    let mut limited = (&mut near).take(HEAD);
    while !head.ends_with(b"\r\n\r\n") {
        match limited.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    // A client that has closed by now does not need it.
    if near.write_all(text.as_bytes()).await.is_ok() {
        let _gone = near.shutdown().await;
    }
}
