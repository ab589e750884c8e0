//! A relay between an informer and its server, and the faults that a network can have, none of which is the server's.
//!
//! Answers "how does an informer handle a bad network?" The relay passes bytes on and reads none, so TLS goes through
//! it; only while it answers in the server's place (`answer.rs`) does it speak HTTP. Invariants:
//! 1. It never invents, drops or reorders bytes within a connection; a connection's bytes stop, slow down or end.
//! 2. What it holds is one buffer for each direction of a connection; the rest waits in the senders' sockets.
//! 3. A change also applies to open connections, unless it says otherwise, except for at most one buffer in transit.
//! 4. It keeps its port while it refuses: no other process gets the port, and no dialling client connects to itself.
//! 5. Dropping it ends all of its connections.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use crate::server::Server;
use answer::Answerer;

mod answer;

/// The most bytes of one direction that are in transit here.
const BUFFER: usize = 16 * 1024;
const BACKLOG: u32 = 128;

/// A relay on loopback, served by the scenario's own thread.
pub(crate) struct Relay {
    address: SocketAddr,
    line: watch::Sender<Line>,
    traffic: Arc<Traffic>,
    certificate: Option<String>,
}

/// How much has passed through.
#[derive(Default)]
struct Traffic {
    connections: AtomicU64,
    down: AtomicU64,
}

/// The present condition of the relay.
#[derive(Clone)]
struct Line {
    wire: Wire,
    /// Connections with a lower number are broken, however soon the relay was repaired.
    broken_below: u64,
    /// Connections with a lower number have fallen silent.
    silent_below: u64,
}

#[derive(Clone)]
enum Wire {
    Whole,
    Held,
    Slow { bytes_per_second: u64 },
    Frayed { after: u64 },
    Stalling { after: u64 },
    Cut,
    Refusing,
    Answering(Arc<str>),
}

impl Relay {
    /// A relay to this server, without faults.
    pub(crate) async fn to(server: &Server) -> Self {
        let listener = listener(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let address = listener.local_addr().expect("it is bound");
        let answerer = if server.is_secure() { Answerer::secure() } else { Answerer::plain() };
        let certificate = answerer.certificate().map(str::to_owned);
        let (line, seen) = watch::channel(Line { wire: Wire::Whole, broken_below: 0, silent_below: 0 });
        let traffic = Arc::new(Traffic::default());
        let way =
            Way { server: server.address(), answerer, traffic: Arc::clone(&traffic), line: seen.clone() };
        actix_rt::spawn(serve(Arc::new(way), listener, seen));
        Self { address, line, traffic, certificate }
    }

    /// The address at which it is reached.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate that a client must trust besides the server's own, for what the relay answers itself.
    pub(crate) fn certificate(&self) -> Option<&str> {
        self.certificate.as_deref()
    }

    /// How many connections it has accepted so far.
    pub(crate) fn connections(&self) -> u64 {
        self.traffic.connections.load(Ordering::Relaxed)
    }

    /// How many bytes have come from the server so far.
    pub(crate) fn received(&self) -> u64 {
        self.traffic.down.load(Ordering::Relaxed)
    }

    /// Breaks every connection, and each new one as soon as it was accepted.
    pub(crate) fn cut(&self) {
        self.set(Wire::Cut);
    }

    /// Breaks every connection, and stops listening: new ones are refused by the system.
    pub(crate) fn refuse(&self) {
        self.set(Wire::Refusing);
    }

    /// Breaks every connection, and answers each new one with this HTTP answer in the server's place.
    pub(crate) fn answer(&self, text: impl Into<Arc<str>>) {
        self.set(Wire::Answering(text.into()));
    }

    /// Lets no byte through, on old and new connections, and breaks none: they continue when it is repaired.
    pub(crate) fn hold(&self) {
        self.set(Wire::Held);
    }

    /// Lets none of the open connections carry a byte ever again, without breaking one; new ones have no
    /// fault.
    pub(crate) fn silence(&self) {
        let next = self.connections();
        self.line.send_modify(|line| line.silent_below = next);
    }

    /// Lets each direction of each connection carry this many bytes a second.
    pub(crate) fn slow(&self, bytes_per_second: u64) {
        self.set(Wire::Slow { bytes_per_second });
    }

    /// Breaks each connection after this many bytes from the server.
    pub(crate) fn fray(&self, after: u64) {
        self.set(Wire::Frayed { after });
    }

    /// Connections from now on carry this many bytes from the server and then none, also after a repair; old
    /// ones have no fault.
    pub(crate) fn stall(&self, after: u64) {
        self.set(Wire::Stalling { after });
    }

    /// Removes all faults: for connections that are held, slow or breaking, and for new ones.
    pub(crate) fn mend(&self) {
        self.set(Wire::Whole);
    }

    fn set(&self, wire: Wire) {
        let next = self.connections();
        self.line.send_modify(|line| {
            if wire.breaks() {
                line.broken_below = next;
            }
            line.wire = wire;
        });
    }
}

impl Wire {
    fn breaks(&self) -> bool {
        matches!(self, Self::Cut | Self::Refusing | Self::Answering(_))
    }

    /// How many bytes may be read at once, and how many may pass in a second.
    fn room(&self) -> (u64, Option<u64>) {
        match self {
            // A twentieth of a second's worth, so that the bytes come slowly.
            Self::Slow { bytes_per_second } => ((bytes_per_second / 20).max(1), Some(*bytes_per_second)),
            _ => (BUFFER as u64, None),
        }
    }
}

/// Where connections lead, and how they behave.
struct Way {
    server: SocketAddr,
    answerer: Answerer,
    traffic: Arc<Traffic>,
    line: watch::Receiver<Line>,
}

fn listener(address: SocketAddr) -> TcpListener {
    let listening = bound(address).listen(BACKLOG);
    listening.expect("a bound socket listens")
}

/// Two sockets may be bound to one port while only one listens: the other keeps the port.
fn bound(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseport(true).expect("ports can be shared");
    socket.bind(address).expect("loopback has a free port");
    socket
}

async fn serve(way: Arc<Way>, first: TcpListener, mut line: watch::Receiver<Line>) {
    let address = first.local_addr().expect("it is bound");
    let _keeps_the_port = bound(address);
    let mut next = Some(first);
    loop {
        let listener = next.take().unwrap_or_else(|| listener(address));
        let refused = line.wait_for(|line| matches!(line.wire, Wire::Refusing));
        tokio::select! {
            biased;
            seen = refused => if seen.is_err() { return },
            () = accept(&way, &listener) => {}
        }
        drop(listener);
        if line.wait_for(|line| !matches!(line.wire, Wire::Refusing)).await.is_err() {
            return;
        }
    }
}

async fn accept(way: &Arc<Way>, listener: &TcpListener) {
    loop {
        let (near, _) = listener.accept().await.expect("a listener accepts");
        let number = way.traffic.connections.fetch_add(1, Ordering::Relaxed);
        let way = Arc::clone(way);
        actix_rt::spawn(async move { way.lead(near, number).await });
    }
}

impl Way {
    async fn lead(&self, near: TcpStream, number: u64) {
        let mut line = self.line.clone();
        let wire = line.borrow_and_update().wire.clone();
        match wire {
            Wire::Cut | Wire::Refusing => return,
            Wire::Answering(text) => return self.answerer.answer(near, &text).await,
            _ => {}
        }
        let stalls_after = if let Wire::Stalling { after } = wire { Some(after) } else { None };
        let connection = Connection { number, stalls_after, way: self };
        tokio::select! {
            biased;
            // An error means that the relay has been dropped.
            _ = line.wait_for(|line| number < line.broken_below) => {}
            () = connection.pass(near) => {}
        }
    }
}

/// One connection through the relay.
struct Connection<'a> {
    number: u64,
    stalls_after: Option<u64>,
    way: &'a Way,
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Up,
    Down,
}

impl Connection<'_> {
    async fn pass(&self, near: TcpStream) {
        // If the server cannot be reached, the connection just ends.
        let Ok(far) = TcpStream::connect(self.way.server).await else { return };
        let _slower = (near.set_nodelay(true), far.set_nodelay(true));
        let ((near_in, near_out), (far_in, far_out)) = (split(near), split(far));
        tokio::select! {
            () = self.pump(Direction::Up, near_in, far_out) => {}
            () = self.pump(Direction::Down, far_in, near_out) => {}
        }
    }

    /// Passes one direction on until it ends.
    async fn pump(
        &self,
        direction: Direction,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
    ) {
        let (mut line, mut passed, mut buffer) = (self.way.line.clone(), 0, vec![0; BUFFER]);
        loop {
            let Ok(now) = line.wait_for(|line| self.carries(line, direction, passed)).await else { return };
            let (mut room, rate) = now.wire.room();
            if let (Wire::Frayed { after }, Direction::Down) = (&now.wire, direction) {
                room = room.min(after.saturating_sub(passed));
            }
            drop(now);
            if room == 0 {
                return;
            }
            if let (Some(after), Direction::Down) = (self.stalls_after, direction) {
                room = room.min(after - passed);
            }
            let room = usize::try_from(room).unwrap_or(BUFFER).min(BUFFER);
            let read = tokio::select! {
                biased;
                changed = line.changed() => if changed.is_ok() { continue } else { return },
                read = from.read(&mut buffer[..room]) => read,
            };
            let Ok(read @ 1..) = read else { return };
            if to.write_all(&buffer[..read]).await.is_err() {
                return;
            }
            passed += read as u64;
            if direction == Direction::Down {
                self.way.traffic.down.fetch_add(read as u64, Ordering::Relaxed);
            }
            // A slow wire takes real time: the processes at its ends know no other.
            if let Some(rate) = rate {
                tokio::time::sleep(Duration::from_secs_f64(read as f64 / rate as f64)).await;
            }
        }
    }

    fn carries(&self, line: &Line, direction: Direction, passed: u64) -> bool {
        let stalled = direction == Direction::Down && self.stalls_after.is_some_and(|after| passed >= after);
        self.number >= line.silent_below && !stalled && !matches!(line.wire, Wire::Held)
    }
}
