//! TCP connections, and the limit of each step of a connection.
//!
//! 1. Keepalive and, on Linux, TCP_USER_TIMEOUT notice an unreachable peer within 30 s, also during a write.
//! 2. The address families take turns (RFC 8305, "happy eyeballs"), beginning with the resolver's first. The next attempt begins
//!    when one fails, or after 250 ms; earlier ones continue. So a family or server that drops packets costs 250 ms.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::config::limits::Limits;

const KEEPALIVE_TIME: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
#[cfg(target_os = "linux")]
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);
/// RFC 8305's recommended connection attempt delay.
const DELAY: Duration = Duration::from_millis(250);

/// awc carries it inside an `io::Error`.
#[derive(Debug, thiserror::Error)]
#[error("{what} took longer than {after:?}")]
struct DeadlinePassed {
    what: &'static str,
    after: Duration,
}

pub(super) fn passed_deadline(error: &io::Error) -> Option<(&'static str, Duration)> {
    let passed: &DeadlinePassed = error.get_ref()?.downcast_ref()?;
    Some((passed.what, passed.after))
}

fn deadline_error(what: &'static str, after: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, DeadlinePassed { what, after })
}

pub(in crate::transport) async fn within<T>(
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

pub(super) async fn connected<T, F: Future<Output = io::Result<T>>>(
    limits: &Limits,
    looking: impl Future<Output = io::Result<Vec<SocketAddr>>>,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<T> {
    let addresses = within(limits.lookup, "the lookup of the name", looking).await?;
    within(limits.connect, "connecting", first_connected(addresses, connect)).await
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

/// The error has the cause for each address.
async fn first_connected<T, F>(addresses: Vec<SocketAddr>, connect: impl Fn(SocketAddr) -> F) -> io::Result<T>
where
    F: Future<Output = io::Result<T>>,
{
    let mut left = in_turns(addresses);
    let (mut attempts, mut failed) = (FuturesUnordered::new(), Vec::new());
    loop {
        if let Some(address) = left.pop_front() {
            let attempt = connect(address);
            attempts.push(async move { (address, attempt.await) });
        }
        let ended = tokio::select! {
            ended = attempts.next() => ended,
            () = sleep(DELAY), if !left.is_empty() => continue,
        };
        match ended {
            Some((_, Ok(connected))) => return Ok(connected),
            Some((address, Err(error))) => failed.push((address, error)),
            None => return Err(all(failed)),
        }
    }
}

fn in_turns(addresses: Vec<SocketAddr>) -> VecDeque<SocketAddr> {
    let is_first_family = addresses.first().map(SocketAddr::is_ipv6);
    let (first, second): (VecDeque<_>, VecDeque<_>) =
        addresses.into_iter().partition(|address| Some(address.is_ipv6()) == is_first_family);
    let longest = first.len().max(second.len());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    (0..longest).flat_map(|_| [first.next(), second.next()]).flatten().collect()
}

fn all(mut failed: Vec<(SocketAddr, io::Error)>) -> io::Error {
    if failed.len() <= 1 {
        let only = failed.pop().map(|(_, error)| error);
        return only.unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    }
    let kind = failed[0].1.kind();
    let each: Vec<_> = failed.iter().map(|(address, error)| format!("{address}: {error}")).collect();
    io::Error::new(kind, each.join("; "))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tokio::time::Instant;

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
                sleep(Duration::from_secs(lookup)).await;
                Ok(vec!["192.0.2.1:1".parse().unwrap()])
            };
            connected(limits, looking, |_| async {
                sleep(Duration::from_secs(connecting)).await;
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

    /// What an address does: connects after so many milliseconds, refuses after so many, or never answers.
    #[derive(Clone, Copy)]
    enum Does {
        Connects(u64),
        Refuses(u64),
        Nothing,
    }
    use Does::{Connects, Nothing, Refuses};

    /// Who was connected, or why nobody; who was tried when; and how long it took, in milliseconds.
    async fn tried(hosts: &[(&str, Does)]) -> (io::Result<SocketAddr>, Vec<(String, u128)>, u128) {
        let began = Instant::now();
        let tried = RefCell::new(Vec::new());
        let addresses = hosts.iter().map(|(address, _)| address.parse().expect("an address")).collect();
        let connect = |address: SocketAddr| {
            tried.borrow_mut().push((address.to_string(), began.elapsed().as_millis()));
            let does = hosts.iter().find(|(of, _)| *of == address.to_string()).map(|(_, does)| *does);
            async move {
                match does.expect("a host") {
                    Connects(after) => {
                        sleep(Duration::from_millis(after)).await;
                        Ok(address)
                    }
                    Refuses(after) => {
                        sleep(Duration::from_millis(after)).await;
                        Err(io::ErrorKind::ConnectionRefused.into())
                    }
                    Nothing => std::future::pending().await,
                }
            }
        };
        let connected = first_connected(addresses, connect).await;
        (connected, tried.into_inner(), began.elapsed().as_millis())
    }

    const SIX: &str = "[2001:db8::1]:1";
    const SIX_TOO: &str = "[2001:db8::2]:1";
    const FOUR: &str = "192.0.2.1:1";
    const FOUR_TOO: &str = "192.0.2.2:1";

    #[tokio::test(start_paused = true)]
    async fn an_address_that_drops_packets_costs_a_quarter_of_a_second_and_a_refusal_nothing() {
        for (hosts, expected, at_most) in [
            (vec![(SIX, Connects(20)), (FOUR, Connects(5))], SIX, 30),
            (vec![(SIX, Nothing), (FOUR, Connects(5))], FOUR, 270),
            (vec![(FOUR, Nothing), (SIX, Connects(5))], SIX, 270),
            (vec![(SIX, Refuses(1)), (FOUR, Connects(5))], FOUR, 20),
            (vec![(SIX, Connects(300)), (FOUR, Nothing)], SIX, 310),
            (vec![(FOUR, Nothing), (FOUR_TOO, Connects(1))], FOUR_TOO, 260),
        ] {
            let (connected, _, took) = tried(&hosts).await;
            assert_eq!(connected.expect("a connection").to_string(), expected);
            assert!(took <= at_most, "{expected} after {took} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn families_take_turns_beginning_with_the_first_of_the_resolver() {
        let hosts = [(SIX, Nothing), (SIX_TOO, Nothing), (FOUR, Nothing), (FOUR_TOO, Connects(1))];
        let (_, tried, _) = tried(&hosts).await;
        let order: Vec<_> = tried.iter().map(|(address, _)| address.as_str()).collect();
        assert_eq!(order, [SIX, FOUR, SIX_TOO, FOUR_TOO]);
        for ((_, at), expected) in tried.iter().zip([0, 250, 500, 750]) {
            assert!((expected..expected + 5).contains(at), "{tried:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_names_what_was_wrong_with_each_address() {
        let (connected, ..) = tried(&[(SIX, Refuses(1)), (FOUR, Refuses(1))]).await;
        let error = connected.expect_err("both refuse");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(error.to_string().contains(SIX) && error.to_string().contains(FOUR), "{error}");
        assert_eq!(tried(&[]).await.0.expect_err("nobody").kind(), io::ErrorKind::NotFound);
    }
}
