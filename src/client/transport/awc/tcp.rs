//! TCP connections, and the limit of each step of a connection.
//!
//! Answers "how is a host reached, and how soon is a dead peer noticed?" Invariants:
//! 1. Every connection has TCP_NODELAY, keepalive probes (first after 15 s, then each 5 s, dead after 3) and, on Linux,
//!    TCP_USER_TIMEOUT 30 s: a peer that is unreachable is noticed within 30 s also in the middle of a write.
//! 2. The lookup of a name and the connection have a limit each; a step whose limit passes is an error that
//!    [`passed_deadline`] recognizes.
//!
//! Read next: `happy_eyeballs.rs`, which address is tried when; `connector.rs` and `tunnel.rs`, which connect.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::happy_eyeballs;
use crate::client::config::limits::Limits;

const KEEPALIVE_TIME: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
#[cfg(target_os = "linux")]
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);

/// A limit has passed. awc carries it inside an `io::Error`.
#[derive(Debug, thiserror::Error)]
#[error("{what} took longer than {after:?}")]
struct DeadlinePassed {
    what: &'static str,
    after: Duration,
}

/// Which limit has passed; `None` for other errors.
pub(super) fn passed_deadline(error: &io::Error) -> Option<(&'static str, Duration)> {
    let passed: &DeadlinePassed = error.get_ref()?.downcast_ref()?;
    Some((passed.what, passed.after))
}

fn deadline_error(what: &'static str, after: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, DeadlinePassed { what, after })
}

/// What a step gives, unless it takes longer than its limit.
pub(super) async fn within<T>(
    limit: Duration,
    what: &'static str,
    step: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    timeout(limit, step).await.unwrap_or_else(|_| Err(deadline_error(what, limit)))
}

pub(super) async fn connect_tcp(host: &str, port: u16, limits: &Limits) -> io::Result<TcpStream> {
    configure(connected(limits, look_up(host, port), TcpStream::connect).await?)
}

pub(super) async fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((host, port)).await?.collect())
}

/// A connection to one of the addresses that are looked up.
pub(super) async fn connected<T, F: Future<Output = io::Result<T>>>(
    limits: &Limits,
    looking: impl Future<Output = io::Result<Vec<SocketAddr>>>,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<T> {
    let addresses = within(limits.lookup, "the lookup of the name", looking).await?;
    within(limits.connect, "connecting", happy_eyeballs::first_connected(addresses, connect)).await
}

pub(super) fn configure(stream: TcpStream) -> io::Result<TcpStream> {
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
        let port = listener.local_addr().unwrap().port();
        let stream = connect_tcp("127.0.0.1", port, &Limits::default()).await.unwrap();
        assert!(stream.nodelay().unwrap());
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE_TIME);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), KEEPALIVE_INTERVAL);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), KEEPALIVE_RETRIES);
        #[cfg(target_os = "linux")]
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(TCP_USER_TIMEOUT));
    }

    #[tokio::test(start_paused = true)]
    async fn client_p7_a_lookup_of_six_seconds_connects_and_each_step_has_its_own_limit() {
        let connect = async |lookup: u64, connecting: u64, limits: &Limits| {
            let looking = async {
                tokio::time::sleep(Duration::from_secs(lookup)).await;
                Ok(vec!["192.0.2.1:1".parse().unwrap()])
            };
            connected(limits, looking, |_| async {
                tokio::time::sleep(Duration::from_secs(connecting)).await;
                Ok(())
            })
            .await
        };
        let limits = Limits::default();
        connect(6, 4, &limits).await.unwrap();
        connect(14, 4, &limits).await.unwrap();
        for (lookup, connecting, expected) in
            [(16, 0, ("the lookup of the name", 15)), (14, 6, ("connecting", 5))]
        {
            let error = connect(lookup, connecting, &limits).await.unwrap_err();
            let (what, after) = passed_deadline(&error).unwrap();
            assert_eq!((what, after.as_secs()), expected);
        }
        let limits = Limits { lookup: Duration::from_secs(60), connect: Duration::from_secs(9), ..limits };
        connect(59, 8, &limits).await.unwrap();
    }
}
