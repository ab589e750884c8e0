//! Makes connections: name lookup, TCP with our options, TLS with our configuration.
//!
//! Answers "how is a connection made, and how soon is a dead one noticed?" No proxy and no racing of addresses yet:
//! addresses are tried one after another. Invariants:
//! 1. Every connection has TCP_NODELAY, keepalive probes (first after 15 s, then each 5 s, dead after 3) and, on Linux,
//!    TCP_USER_TIMEOUT 30 s: a peer that vanished is noticed within 30 s also in the middle of a write.
//! 2. Looking up and connecting have 5 s together, the TLS handshake 5 s.
//! 3. Making a connection marks the request it is made for as running on a fresh one ([`FRESH`]).
//!
//! Read next: `socket.rs`.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_service::Service;
use actix_tls::connect::{ConnectError, ConnectInfo, Connection};
use awc::http::Uri;
use futures_util::future::LocalBoxFuture;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::socket::Socket;
use crate::client::endpoint::Prepared;

const TCP_DEADLINE: Duration = Duration::from_secs(5);
const TLS_DEADLINE: Duration = Duration::from_secs(5);
const PROBE_AFTER: Duration = Duration::from_secs(15);
const PROBE_EACH: Duration = Duration::from_secs(5);
const PROBES: u32 = 3;
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

tokio::task_local! {
    /// Set to true when the request being polled had to make its connection.
    pub(super) static FRESH: Rc<Cell<bool>>;
}

/// awc's way to a connection.
#[derive(Clone)]
pub(super) struct Connect(Arc<Prepared>);

impl Connect {
    pub(super) fn new(prepared: Arc<Prepared>) -> Self {
        Self(prepared)
    }
}

impl Service<ConnectInfo<Uri>> for Connect {
    type Response = Connection<Uri, Socket>;
    type Error = ConnectError;
    type Future = LocalBoxFuture<'static, Result<Self::Response, ConnectError>>;

    actix_service::always_ready!();

    fn call(&self, info: ConnectInfo<Uri>) -> Self::Future {
        let prepared = Arc::clone(&self.0);
        Box::pin(async move {
            // Outside of a request (there is none today) nobody asks.
            let _ = FRESH.try_with(|fresh| fresh.set(true));
            let socket = connect(&prepared).await.map_err(ConnectError::Io)?;
            Ok(Connection::new(info.request().clone(), socket))
        })
    }
}

/// A deadline of this module that passed, inside the `io::Error` that awc carries.
#[derive(Debug, thiserror::Error)]
#[error("{what} took longer than {after:?}")]
struct Late {
    what: &'static str,
    after: Duration,
}

/// Which deadline of connecting passed, if that is what this error says.
pub(super) fn deadline_of(error: &io::Error) -> Option<(&'static str, Duration)> {
    let late: &Late = error.get_ref()?.downcast_ref()?;
    Some((late.what, late.after))
}

fn late(what: &'static str, after: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, Late { what, after })
}

async fn connect(prepared: &Prepared) -> io::Result<Socket> {
    let reached = timeout(TCP_DEADLINE, reach(&prepared.endpoint.host, prepared.endpoint.port)).await;
    let stream = reached.unwrap_or_else(|_| Err(late("connecting", TCP_DEADLINE)))?;
    let Some(tls) = &prepared.tls else { return Ok(Socket::Plain(stream)) };
    let shaking = TlsConnector::from(Arc::clone(&tls.config)).connect(tls.server_name.clone(), stream);
    let shaken = timeout(TLS_DEADLINE, shaking).await;
    let stream = shaken.unwrap_or_else(|_| Err(late("the TLS handshake", TLS_DEADLINE))).map_err(in_words)?;
    Ok(Socket::Tls(Box::new(stream)))
}

/// A peer that answers a handshake with something else, such as an HTTP error.
#[derive(Debug, thiserror::Error)]
#[error("the server does not speak TLS on this port; is it an http endpoint?")]
struct NotTls(#[source] io::Error);

fn in_words(error: io::Error) -> io::Error {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) => {
            io::Error::new(error.kind(), NotTls(error))
        }
        _ => error,
    }
}

async fn reach(host: &str, port: u16) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host((host, port)).await?.collect();
    let share = TCP_DEADLINE / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return configure(stream),
            Ok(Err(error)) => last = error,
            Err(_) => last = late("connecting", share),
        }
    }
    Err(last)
}

fn configure(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    let probes = TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_EACH).with_retries(PROBES);
    socket.set_tcp_keepalive(&probes)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_has_nodelay_keepalive_and_a_user_timeout() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = reach("127.0.0.1", listener.local_addr().unwrap().port()).await.unwrap();
        assert!(stream.nodelay().unwrap());
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), PROBE_AFTER);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), PROBE_EACH);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), PROBES);
        #[cfg(target_os = "linux")]
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(UNACKNOWLEDGED));
    }
}
