//! Whether the server listens: opened at the start, closed by an outage, opened again on the same port.
//!
//! Answers: how does a server go away and come back while its store stays? It knows no requests.
//! 1. At most one `Serving` exists at a time, always on the same port.
//! 2. After `shut` (the handle was dropped) nothing opens it again.
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::builder::StartError;
use crate::kubeconfig::Credential;
use crate::serve::{Serving, Setup};
use crate::world::World;

/// The door of one server.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) setup: Setup,
    pub(crate) addr: SocketAddr,
    world: Arc<World>,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Open(Serving),
    Closed,
    Shut,
}

impl Door {
    /// Starts to listen.
    pub(crate) fn new(world: &Arc<World>, setup: Setup) -> Result<Self, StartError> {
        // A port that another has meanwhile is not waited for: any free one was asked for.
        let known = setup.again.and_then(|port| Serving::start(world, &setup, port).ok());
        let serving = known.map_or_else(|| Serving::start(world, &setup, setup.port), Ok)?;
        let (addr, state) = (serving.addr(), Mutex::new(State::Open(serving)));
        Ok(Self { setup, addr, world: Arc::clone(world), state })
    }

    /// The base URL, without a slash at its end.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.setup.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.addr)
    }

    /// A kubeconfig for this server.
    pub(crate) fn kubeconfig(&self) -> String {
        let first = self.world.access.tokens.first();
        self.kubeconfig_for(&first.map_or(Credential::None, |known| Credential::Token(known.token.clone())))
    }

    /// A kubeconfig with this credential.
    pub(crate) fn kubeconfig_for(&self, credential: &Credential) -> String {
        let authority = self.setup.tls.as_ref().map(|tls| tls.ca_pem.as_str());
        crate::kubeconfig::text(&self.url(), authority, credential)
    }

    /// Resets all connections and stops listening. Blocks until the serving threads have ended.
    pub(crate) fn close(&self) {
        self.end(State::Closed);
    }

    /// As `close`, for good.
    pub(crate) fn shut(&self) {
        self.end(State::Shut);
    }

    /// Listens again.
    pub(crate) fn open(&self) -> Result<(), StartError> {
        let mut state = self.lock();
        if matches!(*state, State::Closed) {
            *state = State::Open(Serving::start(&self.world, &self.setup, self.addr.port())?);
        }
        Ok(())
    }

    /// Whether connections are taken now, or the server was stopped by its handle for good.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(*self.lock(), State::Closed)
    }

    fn end(&self, next: State) {
        let mut state = self.lock();
        if matches!(*state, State::Shut) {
            return;
        }
        if let State::Open(serving) = std::mem::replace(&mut *state, next) {
            serving.stop();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
