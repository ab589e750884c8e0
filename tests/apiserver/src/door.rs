//! The listening socket: opened at the start, closed by an outage, opened again on the same port.
//!
//! Answers: how does a server go away and come back while its store stays? It does not handle requests.
//! 1. At most one `Serving` exists at a time, always on the same port; none if the server is in process.
//! 2. After `shut` (the handle was dropped) nothing opens it again.
//! 3. While it is closed its port is kept: no connection of another program gets it.
//! 4. What was begun while it was open, by this process too, is cancelled when it is closed.
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use socket2::Socket;
use tokio_util::sync::CancellationToken;

use crate::kubeconfig::Credential;
use crate::serve::{Serving, Setup, StartError, bind};
use crate::world::World;

/// The listening socket of one server.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) setup: Setup,
    pub(crate) addr: SocketAddr,
    world: Arc<World>,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Open(Option<Serving>, CancellationToken),
    /// With its port, unless somebody was faster.
    Closed(Option<Socket>),
    Shut,
}

impl Door {
    /// Starts to listen.
    pub(crate) fn new(world: &Arc<World>, setup: Setup) -> Result<Self, StartError> {
        if setup.in_process {
            let (addr, open) = ((Ipv4Addr::LOCALHOST, 0).into(), State::Open(None, CancellationToken::new()));
            return Ok(Self { setup, addr, world: Arc::clone(world), state: Mutex::new(open) });
        }
        let serving = Serving::start(world, &setup, setup.port, None)?;
        let addr = serving.addr();
        let state = Mutex::new(State::Open(Some(serving), CancellationToken::new()));
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
        if self.end(State::Closed(None))
            && let State::Closed(port) = &mut *self.lock()
        {
            *port = bind(self.addr.port()).ok();
        }
    }

    /// As `close`, but permanently.
    pub(crate) fn shut(&self) {
        let _was_open = self.end(State::Shut);
    }

    /// Listens again.
    pub(crate) fn open(&self) -> Result<(), StartError> {
        let mut state = self.lock();
        if let State::Closed(port) = &mut *state {
            let (listens, port) = (!self.setup.in_process, port.take());
            let serve = || Serving::start(&self.world, &self.setup, self.addr.port(), port);
            *state = State::Open(listens.then(serve).transpose()?, CancellationToken::new());
        }
        Ok(())
    }

    /// Cancelled when the server stops; none if it has stopped already.
    pub(crate) fn closing(&self) -> Option<CancellationToken> {
        match &*self.lock() {
            State::Open(_, closing) => Some(closing.clone()),
            State::Closed(_) | State::Shut => None,
        }
    }

    /// Returns whether it listened.
    fn end(&self, next: State) -> bool {
        let mut state = self.lock();
        if matches!((&*state, &next), (State::Shut, _) | (State::Closed(_), State::Closed(_))) {
            return false;
        }
        let State::Open(serving, closing) = std::mem::replace(&mut *state, next) else { return false };
        closing.cancel();
        serving.map(Serving::stop).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
