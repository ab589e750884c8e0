//! The thread that serves: a listening socket, an actix system of its own, and how both end.
//!
//! Answers: how does the server start and stop, whatever runtime its user has? It contains no Kubernetes logic.
//! 1. The socket listens before `start` returns, so a client may connect at once.
//! 2. `stop` first marks all connections for a reset, then ends the system, then joins the thread.
//! 3. `stop` returns when the worker threads have ended too, so nothing of the server outlives it.
//! 4. The accept backlog and the number of connections are those of the framework; idle ones are kept 3 min.
//! 5. Each reason why a server does not start ([`StartError`]) keeps what the system said as its source.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use actix_web::{App, HttpServer, web};
use socket2::{Domain, Socket, Type};

use crate::http::connections::Connections;
use crate::http::handle;
use crate::tls::Tls;
use crate::world::World;

const KEEP_ALIVE: Duration = Duration::from_secs(180);
const HEAD_TIMEOUT: Duration = Duration::from_secs(32);
const BACKLOG: i32 = 1_024;
/// How long `stop` waits for the worker threads, which wait for nothing any more.
const WORKERS_END: Duration = Duration::from_secs(10);

thread_local! {
    /// Dropped when a worker thread ends, so that `stop` can wait for that.
    static ALIVE: RefCell<Option<mpsc::Sender<()>>> = const { RefCell::new(None) };
}

/// How to serve.
#[derive(Debug)]
pub(crate) struct Setup {
    /// Whether there is no socket and no thread: requests of this process only.
    pub(crate) in_process: bool,
    pub(crate) port: u16,
    pub(crate) workers: usize,
    pub(crate) tls: Option<Tls>,
}

/// A server that listens.
#[derive(Debug)]
pub(crate) struct Serving {
    addr: SocketAddr,
    handle: ServerHandle,
    connections: Arc<Connections>,
    thread: JoinHandle<()>,
    /// Closed once no worker thread is left.
    workers: Mutex<mpsc::Receiver<()>>,
}

impl Serving {
    /// On this socket, if its port is kept; else on this port.
    pub(crate) fn start(
        world: &Arc<World>,
        setup: &Setup,
        port: u16,
        kept: Option<Socket>,
    ) -> Result<Self, StartError> {
        let bound = kept.map_or_else(|| bind(port), Ok);
        let listener = bound.and_then(listen).map_err(|source| StartError::Bind { port, source })?;
        let addr = listener.local_addr().map_err(|source| StartError::Bind { port, source })?;
        let connections = Arc::new(Connections::default());
        let (world, noted) = (Arc::clone(world), Arc::clone(&connections));
        let (workers, tls) = (setup.workers, setup.tls.clone());
        let (ready, started) = mpsc::channel();
        let (alive, gone_workers) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name(format!("apiserver-{}", addr.port()))
            .spawn(move || {
                actix_web::rt::System::new().block_on(async move {
                    let server = server(web::Data::from(world), noted, (workers, alive), listener, tls);
                    let failed = match server {
                        Ok(server) => {
                            // The starter waits for this message, so it still exists.
                            let _told = ready.send(Ok(server.handle()));
                            server.await.err()
                        }
                        Err(error) => Some(error),
                    };
                    if let Some(error) = failed {
                        let _told = ready.send(Err(error));
                    }
                });
            })
            .map_err(StartError::Thread)?;
        let gone = |_| StartError::Thread(std::io::ErrorKind::BrokenPipe.into());
        let handle = started.recv().map_err(gone)?.map_err(StartError::Thread)?;
        Ok(Self { addr, handle, connections, thread, workers: Mutex::new(gone_workers) })
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Ends the server and waits for its thread.
    pub(crate) fn stop(self) {
        self.connections.reset_all();
        // The join below waits for the same end as this future.
        drop(self.handle.stop(false));
        let _panicked = self.thread.join();
        // Nothing is ever sent: an error means that the channel is closed, as expected.
        let workers = self.workers.into_inner().unwrap_or_else(PoisonError::into_inner);
        let _closed = workers.recv_timeout(WORKERS_END);
    }
}

/// A socket with this port of loopback, which refuses connections until it listens.
pub(crate) fn bind(port: u16) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    Ok(socket)
}

pub(crate) fn listen(socket: Socket) -> std::io::Result<TcpListener> {
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn server(
    data: web::Data<World>,
    connections: Arc<Connections>,
    (workers, alive): (usize, mpsc::Sender<()>),
    listener: TcpListener,
    tls: Option<Tls>,
) -> std::io::Result<Server> {
    let app = move || {
        ALIVE.with(|slot| *slot.borrow_mut() = Some(alive.clone()));
        App::new().app_data(data.clone()).default_service(web::to(handle))
    };
    let server = HttpServer::new(app)
        .on_connect(move |io, data| connections.note(io, data))
        .workers(workers)
        .keep_alive(KEEP_ALIVE)
        .client_request_timeout(HEAD_TIMEOUT)
        // A client that closes its side is gone; otherwise its watches would stay open.
        .h1_allow_half_closed(false)
        .disable_signals();
    let server = match tls {
        Some(tls) => server.listen_rustls_0_23(listener, tls.config)?,
        None => server.listen(listener)?,
    };
    Ok(server.run())
}

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The port cannot be listened on.
    #[error("cannot listen on loopback port {port}")]
    Bind {
        /// The port that was asked for.
        port: u16,
        /// What the system said.
        source: std::io::Error,
    },
    /// The server's own authority or certificate could not be made.
    #[error("cannot make the certificates")]
    Certificates(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A server in process follows the clock of a tokio runtime, and was not started inside of one.
    #[error("a server in process has to be started inside of a tokio runtime")]
    NoRuntime,
    /// The server's thread could not be started, or ended before it listened.
    #[error("cannot start the server's thread")]
    Thread(#[source] std::io::Error),
}
