//! The settings of a server before it runs.
//!
//! Answers: which port, token, first version, bounds and seed? Every setting has a default that fits a test.
//! 1. Nothing is bound or spawned before `start`.
//! 2. `start` needs no timer and no particular runtime of its caller; the server brings its own thread.
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::access::user::User;
use crate::access::{Plan, StaticToken};
use crate::clock::Clock;
use crate::cluster::store::Settings;
use crate::fault_state::Dial;
use crate::requests::Limits;
use crate::serve::{Setup, StartError};
use crate::server::ApiServer;
use crate::tls::Tls;
use crate::world::World;

/// The settings of a server; `start` runs it.
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder {
    port: u16,
    in_process: Option<SystemTime>,
    access: Plan,
    first_revision: u64,
    event_window: usize,
    watch_queue: usize,
    bookmark_period: Duration,
    tls: bool,
    seed: Option<u64>,
    validation: bool,
    workers: usize,
    latency: Option<Duration>,
    managed_fields: bool,
    garbage_collection: bool,
    /// For requests that read, then for requests that change something.
    in_flight: (usize, usize),
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            port: 0,
            in_process: None,
            access: Plan::default(),
            // Above 1, because a client that takes versions for small numbers should fail in tests.
            first_revision: 1_000,
            // Far above what a real watch cache keeps at first (100), so that only tests that want a 410 see one.
            event_window: 10_000,
            // How far a watcher may be behind: some seconds of a busy cluster, a few MB in the worst case.
            watch_queue: 4_096,
            // As a real server.
            bookmark_period: Duration::from_secs(60),
            tls: false,
            seed: None,
            validation: true,
            // One thread serves 1,000 watchers, and keeps requests in order.
            workers: 1,
            latency: None,
            managed_fields: true,
            // A kube-apiserver alone has none.
            garbage_collection: false,
            // Real ones have 400 and 200, but divide them by priority, so that few clients ever see a
            // refusal.
            in_flight: (0, 0),
        }
    }
}

impl ApiServer {
    /// Starts describing a server.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
    /// The loopback port; 0 (the default) takes a free one.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Opens no socket and starts no thread: only this process reaches the server, through
    /// [`ApiServer::service`](crate::ApiServer::service). The address has port 0.
    ///
    /// Its clock follows that of the tokio runtime in which the server is started, and shows the time of day `wall_time`
    /// at the start. On a paused clock an hour of watches takes milliseconds, and with [`Self::seed`] each run is like
    /// the other.
    pub fn in_process(mut self, wall_time: SystemTime) -> Self {
        self.in_process = Some(wall_time);
        self
    }

    /// Asks every request for a credential, and makes this the bearer token of an administrator, who may do everything
    /// (user `admin`, group `system:masters`). The kubeconfig holds it. By default none is needed.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.access.admin(token.into());
        self
    }

    /// Adds a bearer token of another user. Without `rbac`, every user may do everything.
    pub fn user_token(mut self, token: impl Into<String>, user: User) -> Self {
        self.access.tokens.push(StaticToken { token: token.into(), user });
        self
    }

    /// Whether a request without credentials is the user `system:anonymous` (the default, as on a real server) or 401.
    pub fn anonymous(mut self, on: bool) -> Self {
        self.access.anonymous = on;
        self
    }

    /// Lets Roles, ClusterRoles and their bindings decide who may do what; the store begins with those a
    /// fresh cluster has. Without `token`, the administrator gets a random one, which the kubeconfig holds.
    /// By default every user may do everything.
    pub fn rbac(mut self) -> Self {
        self.access.rbac = true;
        self
    }

    /// The version before the first write; by default 1,000.
    pub fn first_revision(mut self, revision: u64) -> Self {
        self.first_revision = revision;
        self
    }

    /// How many events each resource remembers for watches that resume; by default 10,000.
    pub fn event_window(mut self, events: usize) -> Self {
        self.event_window = events;
        self
    }

    /// How many events a watcher may be behind before its stream is closed; by default 4,096.
    pub fn watch_queue(mut self, events: usize) -> Self {
        self.watch_queue = events.max(1);
        self
    }

    /// How often a quiet watch gets a bookmark, if it asked for them; by default every 60 s.
    pub fn bookmark_period(mut self, period: Duration) -> Self {
        self.bookmark_period = period;
        self
    }

    /// Serves HTTPS with a certificate of an authority made for this server. By default plain HTTP.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Fixes uids and generated names; by default they differ from run to run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Whether built-in objects that a real server would refuse (for example a pod without containers) are
    /// refused; by default they are.
    ///
    /// Turned off, tests may store fragments. Names, versions and conflicts are checked in any case.
    pub fn validation(mut self, validation: bool) -> Self {
        self.validation = validation;
        self
    }

    /// How many threads serve requests; by default 1.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// Lets each request wait this long, as `Faults::delay_requests` does. By default none waits.
    pub fn latency(mut self, latency: Duration) -> Self {
        self.latency = Some(latency);
        self
    }

    /// Whether objects carry `metadata.managedFields`; by default they do, as on a real server.
    ///
    /// Without them writes are cheaper and objects smaller. Server-side apply still works, but without
    /// owners: nothing conflicts, and fields that are left out are not removed.
    pub fn managed_fields(mut self, kept: bool) -> Self {
        self.managed_fields = kept;
        self
    }

    /// Whether objects are deleted after their owners, as the controller manager of a cluster does; by
    /// default they stay.
    ///
    /// With it, a foreground deletion ends once the dependants that block it are gone, and an orphaning one
    /// once no object refers to the owner; without it, both wait for their finalizers. The deletions that
    /// follow from a write are done before the write is answered, a few objects at a time.
    pub fn garbage_collection(mut self, on: bool) -> Self {
        self.garbage_collection = on;
        self
    }

    /// How many requests that read are answered at once, as `--max-requests-inflight` of a real server
    /// without priorities: one more is 429, `Retry-After: 1`, in plain text. Watches and `system:masters` are
    /// always admitted. By default (0) any number.
    pub fn max_requests_inflight(mut self, requests: usize) -> Self {
        self.in_flight.0 = requests;
        self
    }

    /// The same for requests that change something (`--max-mutating-requests-inflight`).
    pub fn max_mutating_requests_inflight(mut self, requests: usize) -> Self {
        self.in_flight.1 = requests;
        self
    }

    /// Starts the server. May be awaited on any runtime, also one with a paused clock.
    ///
    /// # Errors
    /// If the port is taken, or the thread or the certificates cannot be made; in process, outside of a runtime.
    pub async fn start(self) -> Result<ApiServer, StartError> {
        // Binding and starting a thread take a few milliseconds and do not wait for the caller's runtime.
        self.start_blocking()
    }

    /// Starts the server from code that is not async.
    ///
    /// # Errors
    /// As `start`.
    pub fn start_blocking(self) -> Result<ApiServer, StartError> {
        let clock = self.in_process.map(Clock::of_runtime).transpose().map_err(|_| StartError::NoRuntime)?;
        let seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one("seed"));
        let settings = Settings {
            validation: self.validation,
            first_revision: self.first_revision,
            event_window: self.event_window,
            watch_queue: self.watch_queue,
            seed,
            managed_fields: self.managed_fields,
        };
        let tls = self.tls.then(Tls::new).transpose();
        let tls = tls.map_err(StartError::Certificates)?;
        let authority = tls.as_ref().map(|tls| Arc::clone(&tls.clients));
        let access = self.access.build(authority).map_err(StartError::Certificates)?;
        let mut world = World::new(settings, self.bookmark_period, access, clock.unwrap_or_else(Clock::real));
        if self.garbage_collection {
            world.garbage_collection = true;
            world.with(|inner| inner.cluster.collect_garbage());
            world.settle();
        }
        world.limits = Limits::new(self.in_flight.0, self.in_flight.1);
        let world = Arc::new(world);
        if let Some(latency) = self.latency {
            let milliseconds = latency.as_millis().try_into().unwrap_or(u64::MAX);
            world.switch(|inner| inner.faults.set_size(Dial::Latency, None, Some(milliseconds)));
        }
        let in_process = self.in_process.is_some();
        let setup = Setup { in_process, port: self.port, workers: self.workers, tls };
        ApiServer::serve(world, setup)
    }
}
