//! What the handle, the handlers and the streams share: the core behind one lock, and the wake-ups of waiting streams.
//!
//! Answers: how does outside code reach the core, and how are waiting streams woken? It decides nothing.
//! 1. The core is touched only inside `with`; nothing in there waits, reads a socket or encodes a list.
//! 2. After each visit every stream with pending events is notified, outside the lock.
//! 3. Waiting for a version or a fault switch follows the server's clock.
//! 4. What waits is woken in the same order in every run: a `watch` channel of tokio would draw it.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::access::{Access, Authorization};
use crate::agent::Agent;
use crate::clock::Clock;
use crate::cluster::rng::Rng;
use crate::cluster::store::{Cluster, Settings};
use crate::fault_state::FaultState;
use crate::requests::{Limits, RequestLog};

/// How long a list waits for a version that is ahead of the store.
const FRESHNESS_WAIT: Duration = Duration::from_secs(3);

/// Everything behind the lock.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) cluster: Cluster,
    pub(crate) faults: FaultState,
    pub(crate) log: RequestLog,
    pub(crate) rng: Rng,
    streams: BTreeMap<usize, Arc<Notify>>,
}

/// The shared world of one server.
#[derive(Debug)]
pub(crate) struct World {
    inner: Mutex<Inner>,
    /// Told when there is a newer version.
    advanced: Notify,
    /// Told when a switch was set.
    switched: Notify,
    pub(crate) clock: Clock,
    pub(crate) bookmark_period: Duration,
    pub(crate) access: Access,
    pub(crate) agent: Agent,
    /// Whether objects are deleted after their owners.
    pub(crate) garbage_collection: bool,
    /// How many requests are answered at once.
    pub(crate) limits: Limits,
}

impl World {
    pub(crate) fn new(settings: Settings, bookmark_period: Duration, access: Access, clock: Clock) -> Self {
        let mut cluster = Cluster::new(settings, clock.seconds());
        cluster.add_beginnings(clock.seconds());
        if access.authorization == Authorization::Rbac {
            cluster.add_default_roles(clock.seconds());
        }
        let rng = Rng::new(settings.seed.rotate_left(17));
        let (faults, log) = (FaultState::default(), RequestLog::default());
        let inner = Mutex::new(Inner { cluster, faults, log, rng, streams: BTreeMap::new() });
        Self {
            inner,
            advanced: Notify::new(),
            switched: Notify::new(),
            agent: Agent::new(clock.clone()),
            clock,
            bookmark_period,
            access,
            garbage_collection: false,
            limits: Limits::default(),
        }
    }

    /// Deletes a few objects whose owners are gone, if that is switched on. Returns whether there may be
    /// more.
    fn swept(&self) -> bool {
        let now = self.now();
        self.garbage_collection && self.with(|inner| inner.cluster.sweep(now))
    }

    /// Waits until the consequences of the changes so far are done.
    pub(crate) async fn settled(&self) {
        while self.swept() {
            tokio::task::yield_now().await;
        }
    }

    /// As `settled`, blocking.
    pub(crate) fn settle(&self) {
        while self.swept() {}
    }

    /// Seconds since 1970, by the clock of this server.
    pub(crate) fn now(&self) -> i64 {
        self.clock.seconds()
    }

    /// Visits the core, then wakes the streams that the visit concerns.
    pub(crate) fn with<R>(&self, visit: impl FnOnce(&mut Inner) -> R) -> R {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let before = inner.cluster.revision();
        let result = visit(&mut inner);
        let woken = inner.cluster.take_woken();
        let notifies: Vec<Arc<Notify>> =
            woken.iter().filter_map(|watch| inner.streams.get(watch)).map(Arc::clone).collect();
        let revision = inner.cluster.revision();
        drop(inner);
        for notify in notifies {
            notify.notify_one();
        }
        if revision != before {
            self.advanced.notify_waiters();
        }
        result
    }

    /// Changes the fault switches and lets everything that waits look at them again.
    pub(crate) fn switch<R>(&self, change: impl FnOnce(&mut Inner) -> R) -> R {
        let (result, streams) = self.with(|inner| {
            let result = change(inner);
            (result, inner.streams.values().map(Arc::clone).collect::<Vec<_>>())
        });
        for notify in streams {
            notify.notify_one();
        }
        self.switched.notify_waiters();
        result
    }

    /// What the stream of this watch waits on.
    pub(crate) fn notify_of(&self, watch: usize) -> Arc<Notify> {
        self.with(|inner| Arc::clone(inner.streams.entry(watch).or_default()))
    }

    pub(crate) fn forget_watch(&self, watch: usize) {
        self.with(|inner| {
            inner.streams.remove(&watch);
            inner.cluster.unwatch(watch);
        });
    }

    /// Waits until the store has reached `version`, at most as long as the API waits.
    pub(crate) async fn fresh(&self, version: u64) {
        let late = self.clock.elapsed() + FRESHNESS_WAIT;
        loop {
            // It hears of each notice from here on.
            let advanced = self.advanced.notified();
            if self.with(|inner| inner.cluster.revision()) >= version {
                return;
            }
            tokio::select! {
                biased;
                () = advanced => {}
                () = self.clock.sleep_until(late) => return,
            }
        }
    }

    /// Waits until the fault switches satisfy `condition`.
    pub(crate) async fn until(&self, condition: impl Fn(&FaultState) -> bool) {
        loop {
            let switched = self.switched.notified();
            if self.with(|inner| condition(&inner.faults)) {
                return;
            }
            switched.await;
        }
    }
}
