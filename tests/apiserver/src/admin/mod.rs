//! The admin port: the fault switches, the clock and the state of a server over HTTP, on a port of its own.
//!
//! Answers: how does a shell, or a test in another language, break a running server? The API itself never answers here.
//! 1. It listens on loopback only, and asks for no credentials: every process that can open the port may do
//!    everything.
//! 2. It keeps running while the API is frozen or refuses connections; it ends with the handle of the server.
//! 3. A POST must say that its body is JSON, so that no page in a browser can send one unasked.
//!
//! Next: `api.rs` has the endpoints.
mod api;

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::JoinHandle;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpServer, web};

use crate::builder::StartError;
use crate::faults::Faults;
use crate::serve::listen;

/// The port that the command line uses by default.
#[cfg(feature = "cli")]
pub const ADMIN_PORT: u16 = 6_444;

/// An admin port that listens.
#[derive(Debug)]
pub(crate) struct Admin {
    pub(crate) addr: SocketAddr,
    handle: ServerHandle,
    thread: JoinHandle<()>,
}

impl Admin {
    pub(crate) fn start(faults: Faults, port: u16) -> Result<Self, StartError> {
        let listener = listen(port).map_err(|source| StartError::Bind { port, source })?;
        let addr = listener.local_addr().map_err(|source| StartError::Bind { port, source })?;
        let (ready, started) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name(format!("apiserver-admin-{}", addr.port()))
            .spawn(move || {
                actix_web::rt::System::new().block_on(async move {
                    let app = move || {
                        App::new()
                            .app_data(web::Data::new(faults.clone()))
                            .default_service(web::to(api::handle))
                    };
                    let server = HttpServer::new(app).workers(1).disable_signals().listen(listener);
                    let failed = match server.map(HttpServer::run) {
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
        Ok(Self { addr, handle, thread })
    }

    /// Ends it and waits for its thread.
    pub(crate) fn stop(self) {
        drop(self.handle.stop(false));
        let _panicked = self.thread.join();
    }
}
