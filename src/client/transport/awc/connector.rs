//! Makes connections: name lookup, TCP with the options below, TLS with the client's configuration.
//!
//! Answers "how is a connection made, and how soon is a dead one noticed?" Proxies are not supported.
//! Invariants:
//! 1. Every connection has TCP_NODELAY, keepalive probes (first after 15 s, then each 5 s, dead after 3) and, on Linux,
//!    TCP_USER_TIMEOUT 30 s: a peer that is unreachable is noticed within 30 s also in the middle of a write.
//! 2. The lookup and the connection have 5 s together, the TLS handshake another 5 s.
//! 3. When a request needs a new connection, [`MADE_CONNECTION`] is set for it: a failure on a connection that had been
//!    used before is retried, a failure on a new one is not.
//!
//! Read next: `socket.rs`.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_service::Service;
use actix_tls::connect::{ConnectError, ConnectInfo, Connection};
use awc::http::Uri;
use futures_util::future::LocalBoxFuture;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::happy_eyeballs;
use super::socket::Socket;
use crate::client::endpoint::ConnectionSettings;
use crate::client::identity::material::Tls;

const TCP_DEADLINE: Duration = Duration::from_secs(5);
const TLS_DEADLINE: Duration = Duration::from_secs(5);
const KEEPALIVE_TIME: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
#[cfg(target_os = "linux")]
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);

tokio::task_local! {
    /// Set to true when the connection of the current request had to be made for it. The transport runs each request
    /// in a scope with its own flag; awc calls the connector inside that scope.
    pub(super) static MADE_CONNECTION: Rc<Cell<bool>>;
}

/// The service that awc calls for a new connection.
#[derive(Clone)]
pub(super) struct Connect {
    settings: Arc<ConnectionSettings>,
    tls: Option<Tls>,
}

impl Connect {
    pub(super) fn new(settings: Arc<ConnectionSettings>, tls: Option<Tls>) -> Self {
        Self { settings, tls }
    }
}

impl Service<ConnectInfo<Uri>> for Connect {
    type Response = Connection<Uri, Socket>;
    type Error = ConnectError;
    type Future = LocalBoxFuture<'static, Result<Self::Response, ConnectError>>;

    actix_service::always_ready!();

    fn call(&self, info: ConnectInfo<Uri>) -> Self::Future {
        let (settings, tls) = (Arc::clone(&self.settings), self.tls.clone());
        Box::pin(async move {
            // Outside of a request's scope there is no flag. Today every connection is made inside one.
            let _ = MADE_CONNECTION.try_with(|made| made.set(true));
            let socket = connect(&settings, tls).await.map_err(ConnectError::Io)?;
            Ok(Connection::new(info.request().clone(), socket))
        })
    }
}

/// A deadline of this module has passed. awc carries it inside an `io::Error`.
#[derive(Debug, thiserror::Error)]
#[error("{what} took longer than {after:?}")]
struct DeadlinePassed {
    what: &'static str,
    after: Duration,
}

/// Which deadline of this module has passed; `None` for other errors.
pub(super) fn passed_deadline(error: &io::Error) -> Option<(&'static str, Duration)> {
    let passed: &DeadlinePassed = error.get_ref()?.downcast_ref()?;
    Some((passed.what, passed.after))
}

fn deadline_error(what: &'static str, after: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, DeadlinePassed { what, after })
}

async fn connect(settings: &ConnectionSettings, tls: Option<Tls>) -> io::Result<Socket> {
    let endpoint = &settings.endpoint;
    let connecting = async {
        #[cfg(unix)]
        if let Some(path) = &endpoint.socket {
            return UnixStream::connect(path).await.map(Socket::Unix);
        }
        connect_tcp(&endpoint.host, endpoint.port).await.map(Socket::Plain)
    };
    let connected = timeout(TCP_DEADLINE, connecting).await;
    let socket = connected.unwrap_or_else(|_| Err(deadline_error("connecting", TCP_DEADLINE)))?;
    let (tls, stream) = match (tls, socket) {
        (Some(tls), Socket::Plain(stream)) => (tls, stream),
        (_, socket) => return Ok(socket),
    };
    let handshake = TlsConnector::from(tls.config).connect(tls.server_name, stream);
    let stream = timeout(TLS_DEADLINE, handshake)
        .await
        .unwrap_or_else(|_| Err(deadline_error("the TLS handshake", TLS_DEADLINE)))
        .map_err(explain_plain_answer)?;
    Ok(Socket::Tls(Box::new(stream)))
}

/// The peer answered the handshake with something else, such as an HTTP error.
#[derive(Debug, thiserror::Error)]
#[error("the server does not speak TLS on this port; is it an http endpoint?")]
struct NotTls(#[source] io::Error);

/// Replaces rustls' error about an answer that is not TLS by one that names the likely cause.
fn explain_plain_answer(error: io::Error) -> io::Error {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) => {
            io::Error::new(error.kind(), NotTls(error))
        }
        _ => error,
    }
}

async fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let addresses = tokio::net::lookup_host((host, port)).await?;
    let stream = happy_eyeballs::first_connected(addresses.collect(), TcpStream::connect).await?;
    configure(stream)
}

fn configure(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_TIME)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(TCP_USER_TIMEOUT))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_has_nodelay_keepalive_and_a_user_timeout() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = connect_tcp("127.0.0.1", listener.local_addr().unwrap().port()).await.unwrap();
        assert!(stream.nodelay().unwrap());
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE_TIME);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), KEEPALIVE_INTERVAL);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), KEEPALIVE_RETRIES);
        #[cfg(target_os = "linux")]
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(TCP_USER_TIMEOUT));
    }
}
