//! The connections of one kind of request to one server.
//!
//! 1. Requests share an HTTP/2 connection up to [`MOST_STREAMS`] or the server's own limit; the next one makes another: no
//!    request waits for another's end.
//! 2. Requests without room wait for a connection that is being made: a thousand watches that begin at once make a tenth as many
//!    connections. A failure is theirs, too.
//! 3. The window of a connection is that of all its streams together: a stream that is not read holds up no other.
//! 4. A connection counts as made when the server's settings have come. Before, nothing is sent, and a failure is one to connect.
//! 5. A connection that is silent, or takes no writes for a second, gets no new requests.
//! 6. Without HTTP/2 each request has its own connection, which the next one may use.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, Shared, WeakShared};
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::time::Instant;

use super::super::connecting::socket::Socket;
use super::super::connecting::tcp::within;
use super::super::connecting::{Offered, connect, not_connected};
use super::wire::{Wire, WireEnd};
use crate::connection_settings::ConnectionSettings;
use crate::error::{ProxyError, TransportError};
use crate::identity::Identity;
use crate::tls;

/// RFC 9113, section 6.5.2, wants no server to allow fewer.
const MOST_STREAMS: usize = 100;
/// What one stream may send before it is read.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * 100;
const LARGEST_FRAME: u32 = 64 << 10;
/// As awc's.
const LARGEST_HEAD: u32 = 128 << 10;
const MOST_HEADERS: usize = 256;
/// After this silence a connection in use is asked, and has [`PING_TIMEOUT`] to answer.
const PING_AFTER: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(30);
/// After this silence a connection gets no new requests: one in use would have an answer to its ping. So an informer opens a
/// second watch beside a silent one on another connection.
const QUIET: Duration = Duration::from_secs(15);
/// Unused connections of HTTP/1.1.
const MOST_IDLE: usize = 16;
const LONGEST_IDLE: Duration = Duration::from_secs(90);

pub(super) type Sent = Full<Bytes>;

pub(super) struct Pool {
    settings: Arc<ConnectionSettings>,
    identity: Arc<Identity>,
    connections: RefCell<Connections>,
    pub(super) timeouts: Cell<u8>,
}

#[derive(Default)]
struct Connections {
    shared: Vec<Multiplexed>,
    /// The longest idle first.
    idle: Vec<(Single, Instant)>,
    making: Vec<WeakShared<Making>>,
    /// Of the last connection.
    is_http1: bool,
}

type Making = LocalBoxFuture<'static, Result<(), Rc<TransportError>>>;

/// Knows how many streams the server allows. Its own task polls it and drops it at its end: waiting requests learn of that.
type Running = Rc<RefCell<Option<http2::Connection<TokioIo<Wire>, Sent, HereExecutor>>>>;

struct Multiplexed {
    sender: http2::SendRequest<Sent>,
    end: WireEnd,
    connection: Running,
    streams: Rc<Cell<usize>>,
    was_used: bool,
}

pub(super) struct Single {
    pub(super) sender: http1::SendRequest<Sent>,
    end: WireEnd,
}

/// The right to send one request. Dropping it gives a stream back, and closes a connection of HTTP/1.1, unless [`Lease::keep`]
/// keeps it.
pub(super) struct Lease {
    pub(super) on: On,
    pub(super) end: WireEnd,
    pub(super) is_reused: bool,
}

pub(super) enum On {
    Http2 { sender: http2::SendRequest<Sent>, _stream: StreamInUse },
    Http1(http1::SendRequest<Sent>, Weak<Pool>),
}

pub(super) struct StreamInUse {
    streams: Rc<Cell<usize>>,
    pool: Weak<Pool>,
}

impl Drop for StreamInUse {
    fn drop(&mut self) {
        self.streams.set(self.streams.get() - 1);
        if self.streams.get() == 0
            && let Some(pool) = self.pool.upgrade()
            && let Ok(mut connections) = pool.connections.try_borrow_mut()
        {
            connections.forget_the_useless();
        }
    }
}

impl Multiplexed {
    fn is_quiet(&self) -> bool {
        self.end.last_read().is_none_or(|read| read.elapsed() >= QUIET)
    }

    fn lease(&mut self, pool: &Rc<Pool>, is_checked: bool) -> Option<Lease> {
        let allowed =
            self.connection.borrow().as_ref().map_or(0, http2::Connection::current_max_send_streams);
        let room = allowed.min(MOST_STREAMS);
        if self.streams.get() >= room || self.is_quiet() || !self.end.takes(is_checked) {
            return None;
        }
        self.streams.set(self.streams.get() + 1);
        let stream = StreamInUse { streams: Rc::clone(&self.streams), pool: Rc::downgrade(pool) };
        let on = On::Http2 { sender: self.sender.clone(), _stream: stream };
        Some(Lease { on, end: self.end.clone(), is_reused: std::mem::replace(&mut self.was_used, true) })
    }
}

impl Lease {
    /// Keeps the connection after the end of an answer.
    pub(super) fn keep(self) {
        if let On::Http1(sender, pool) = self.on
            && !sender.is_closed()
            && let Some(pool) = pool.upgrade()
        {
            let mut connections = pool.connections.borrow_mut();
            if connections.idle.len() < MOST_IDLE {
                connections.idle.push((Single { sender, end: self.end }, Instant::now()));
            }
        }
    }
}

enum Next {
    Leased(Lease),
    Idle(Single),
    Wait(Shared<Making>),
    Make,
}

enum Made {
    Http2(Multiplexed),
    Http1(Single),
}

impl Pool {
    pub(super) fn new(settings: &Arc<ConnectionSettings>, identity: &Arc<Identity>) -> Rc<Self> {
        let connections = Connections { is_http1: identity.tls.is_none(), ..Connections::default() };
        Rc::new(Self {
            settings: Arc::clone(settings),
            identity: Arc::clone(identity),
            connections: RefCell::new(connections),
            timeouts: Cell::new(0),
        })
    }

    pub(super) async fn lease(self: &Rc<Self>, is_checked: bool) -> Result<Lease, TransportError> {
        loop {
            match self.next(is_checked) {
                Next::Leased(lease) => return Ok(lease),
                Next::Idle(single) => {
                    // Its task sees now that its answer has ended. One that still writes a request is not waited for.
                    tokio::task::yield_now().await;
                    if single.sender.is_ready() && !single.end.is_writing() {
                        return Ok(self.single(single, true));
                    }
                }
                Next::Wait(making) => making.await.map_err(|failed| copied(&failed))?,
                Next::Make => match self.make().await? {
                    Made::Http1(single) => return Ok(self.single(single, false)),
                    // The server has learned HTTP/2 since the last connection.
                    made @ Made::Http2(_) => self.add(made),
                },
            }
        }
    }

    pub(super) fn is_in_use(&self) -> bool {
        let connections = self.connections.borrow();
        !(connections.shared.is_empty() && connections.idle.is_empty() && connections.making.is_empty())
    }

    fn single(self: &Rc<Self>, single: Single, is_reused: bool) -> Lease {
        Lease { on: On::Http1(single.sender, Rc::downgrade(self)), end: single.end, is_reused }
    }

    fn next(self: &Rc<Self>, is_checked: bool) -> Next {
        let mut connections = self.connections.borrow_mut();
        connections.forget_the_useless();
        if let Some(lease) = connections.shared.iter_mut().find_map(|shared| shared.lease(self, is_checked)) {
            return Next::Leased(lease);
        }
        if let Some((single, _)) = connections.idle.pop() {
            return Next::Idle(single);
        }
        if connections.is_http1 {
            return Next::Make;
        }
        let making = connections.making.iter().filter_map(WeakShared::upgrade);
        // This one counts itself.
        let mut joined =
            making.filter(|making| making.strong_count().is_some_and(|count| count <= MOST_STREAMS));
        Next::Wait(joined.next().unwrap_or_else(|| {
            let pool = Rc::clone(self);
            let making: Making = Box::pin(async move {
                let made = pool.make().await.map_err(Rc::new)?;
                pool.add(made);
                Ok(())
            });
            let making = making.shared();
            connections.making.extend(making.downgrade());
            making
        }))
    }

    fn add(&self, made: Made) {
        let mut connections = self.connections.borrow_mut();
        connections.is_http1 = matches!(made, Made::Http1(_));
        match made {
            Made::Http2(shared) => connections.shared.push(shared),
            Made::Http1(single) => connections.idle.push((single, Instant::now())),
        }
    }

    async fn make(&self) -> Result<Made, TransportError> {
        let made = async {
            let socket = connect(&self.settings, &self.identity, Offered::Http2OrHttp1).await?;
            match socket.speaks_http2() {
                true => self.begin_http2(socket).await.map(Made::Http2),
                false => begin_http1(socket).await.map(Made::Http1),
            }
        };
        made.await.map_err(|source| not_connected(&self.settings, source))
    }

    async fn begin_http2(&self, socket: Socket) -> io::Result<Multiplexed> {
        let (wire, end) = Wire::new(socket);
        let begun = http2::Builder::new(HereExecutor)
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_max_send_streams(0)
            .max_frame_size(LARGEST_FRAME)
            .max_header_list_size(LARGEST_HEAD)
            // More than can be dropped at once: bytes for a stream that h2 has forgotten are an error of the connection.
            .max_concurrent_reset_streams(2 * MOST_STREAMS)
            .keep_alive_interval(PING_AFTER)
            .keep_alive_timeout(PING_TIMEOUT)
            .handshake(TokioIo::new(wire))
            .await;
        let failed = |error: hyper::Error| match end.failure() {
            Some(source) => tls::of_handshake(source),
            None => io::Error::other(error),
        };
        let (sender, mut connection) = begun.map_err(failed)?;
        // 0 until the server's settings have come.
        let settings = poll_fn(|context| match Pin::new(&mut connection).poll(context) {
            Poll::Ready(ended) => Poll::Ready(Err(match ended {
                Err(error) => failed(error),
                Ok(()) => io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed"),
            })),
            Poll::Pending if connection.current_max_send_streams() > 0 => Poll::Ready(Ok(())),
            Poll::Pending => {
                // hyper's own task reads, and wakes nobody for settings.
                end.wake_at_read(context);
                Poll::Pending
            }
        });
        within(self.settings.limits.handshake, "the server's first words of HTTP/2", settings).await?;
        let connection = Rc::new(RefCell::new(Some(connection)));
        let running = Rc::clone(&connection);
        let run = poll_fn(move |context| {
            let mut running = running.borrow_mut();
            // Its requests have the error.
            let ended =
                running.as_mut().is_none_or(|connection| Pin::new(connection).poll(context).is_ready());
            if !ended {
                return Poll::Pending;
            }
            *running = None;
            Poll::Ready(())
        });
        tokio::task::spawn_local(run);
        Ok(Multiplexed { sender, end, connection, streams: Rc::default(), was_used: false })
    }
}

async fn begin_http1(socket: Socket) -> io::Result<Single> {
    let (wire, end) = Wire::new(socket);
    let begun = http1::Builder::new().max_headers(MOST_HEADERS).handshake(TokioIo::new(wire)).await;
    let (sender, connection) = begun.map_err(io::Error::other)?;
    tokio::task::spawn_local(connection.map(drop));
    Ok(Single { sender, end })
}

impl Connections {
    /// Closes what the server has closed, and all idle connections of HTTP/2 but one.
    fn forget_the_useless(&mut self) {
        let mut has_idle = false;
        self.shared.retain(|shared| {
            let is_idle = shared.streams.get() == 0;
            let is_useless = has_idle || shared.is_quiet() || shared.end.is_stuck();
            let is_dropped = shared.sender.is_closed() || (is_idle && is_useless);
            has_idle |= is_idle && !is_dropped;
            !is_dropped
        });
        self.idle.retain(|(single, since)| !single.sender.is_closed() && since.elapsed() < LONGEST_IDLE);
        self.making.retain(|making| making.upgrade().is_some_and(|making| making.peek().is_none()));
    }
}

/// The error for each that waits, with what the layers look for in it.
fn copied(failed: &TransportError) -> TransportError {
    match failed {
        TransportError::Timeout { what, after } => TransportError::Timeout { what, after: *after },
        TransportError::Connect { endpoint, source } => {
            TransportError::Connect { endpoint: endpoint.clone(), source: tls::copied(source) }
        }
        TransportError::Proxy { endpoint, proxy, source } => TransportError::Proxy {
            endpoint: endpoint.clone(),
            proxy: proxy.clone(),
            source: copied_proxy_error(source),
        },
        other => TransportError::Malformed(other.to_string()),
    }
}

fn copied_proxy_error(error: &ProxyError) -> ProxyError {
    match error {
        ProxyError::Unreachable(source) => ProxyError::Unreachable(tls::copied(source)),
        ProxyError::Tls(source) => ProxyError::Tls(tls::copied(source)),
        ProxyError::TimedOut { what, after } => ProxyError::TimedOut { what, after: *after },
        ProxyError::Broken(source) => ProxyError::Broken(tls::copied(source)),
        ProxyError::Malformed(why) => ProxyError::Malformed(why),
        ProxyError::Login { is_given } => ProxyError::Login { is_given: *is_given },
        ProxyError::Refused { code, target } => ProxyError::Refused { code: *code, target: target.clone() },
        ProxyError::SocksRefused { reply, target } => {
            ProxyError::SocksRefused { reply: *reply, target: target.clone() }
        }
        ProxyError::LongHost => ProxyError::LongHost,
    }
}

#[derive(Clone)]
struct HereExecutor;

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for HereExecutor {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}
