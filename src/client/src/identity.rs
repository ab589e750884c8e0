//! Who this client is to the server and whom it trusts: a value whose version changes while the client lives.
//!
//! Files are read again when they are a minute old, and at once after a refusal or a failed handshake. A
//! plugin's credentials are renewed before they expire.
//!
//! 1. Callers share one renewal, which goes on if one of them stops waiting. While something valid is known,
//!    only the caller that begins the renewal waits, for at most half a second.
//! 2. A failed renewal keeps what is valid. If nothing is valid, callers get the reason.
//! 3. A plugin runs on its own thread: it blocks no arbiter, and outlives its caller and the runtime.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use http::HeaderValue;
use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::error::{Error, PluginError, TransportError};
use super::retry_after::wall_time;
use super::warning::OnceInAWhile;

pub(crate) mod exec;
mod figures;
pub(crate) mod material;
pub(crate) mod oidc;

use exec::{Plugin, ProvidedCredentials};
pub use figures::{CallFigures, CredentialFigures};
use material::{Material, Read, Tls};
use oidc::{Issuers, Oidc};

const FRESH: Duration = Duration::from_secs(60);
/// For a caller that begins a renewal, while the old credentials are valid.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long reading files may take: a network disk may hang.
const FILES: Duration = Duration::from_secs(30);
/// After a failed renewal, while the old credentials are valid.
const RETRY: Duration = Duration::from_secs(10);
/// Between renewals after refusals: otherwise each refused request would start a plugin.
const BETWEEN_REFUSALS: Duration = Duration::from_secs(1);

pub(crate) struct Identity {
    /// Counts changes of any credential.
    pub(crate) version: u64,
    /// Counts changes of the TLS configuration: connections of an older one are replaced.
    pub(crate) connections: u64,
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) tls: Option<Tls>,
    pub(crate) proxy_tls: Option<Tls>,
    read: Read,
}

pub(crate) struct Identities {
    inner: Arc<Inner>,
}

struct Inner {
    material: Material,
    state: Mutex<State>,
    failures: OnceInAWhile,
}

struct State {
    figures: CredentialFigures,
    current: Option<Current>,
    renewal: Option<Renewal>,
    failed: Option<(Arc<Error>, Instant)>,
    refused: Option<Instant>,
}

struct Current {
    identity: Arc<Identity>,
    /// When to read again; `None` if nothing can change.
    due: Option<Instant>,
    ends: Option<Instant>,
}

type Renewed = Result<Arc<Identity>, Arc<Error>>;
type Renewal = Shared<BoxFuture<'static, Renewed>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// A plugin's credentials stay until they are due.
    Due,
    Refused,
}

enum Step {
    Use(Arc<Identity>),
    Fail(Arc<Error>),
    Wait(Renewal),
    Begin(Renewal, Arc<Identity>),
}

impl Identities {
    /// Blocking: reads files.
    pub(crate) fn new(material: Material) -> Result<Self, Error> {
        let figures = CredentialFigures::default();
        let state = State { figures, current: None, renewal: None, failed: None, refused: None };
        let read = material.check()?;
        let inner = Arc::new(Inner { material, state: Mutex::new(state), failures: OnceInAWhile::default() });
        if let Some(read) = read {
            inner.accept(read, None)?;
        }
        Ok(Self { inner })
    }

    pub(crate) async fn current(&self) -> Result<Arc<Identity>, TransportError> {
        self.take(self.step()).await.map_err(TransportError::Credentials)
    }

    /// `None` if nothing else can be tried.
    pub(crate) async fn after_refusal_of(&self, version: u64) -> Option<Arc<Identity>> {
        let renewed = self.take(self.step_after_refusal_of(version)?).await.ok()?;
        (renewed.version != version).then_some(renewed)
    }

    pub(crate) fn figures(&self) -> CredentialFigures {
        let now = Instant::now();
        let state = self.inner.state();
        let ends = state.current.as_ref().and_then(|current| current.ends);
        CredentialFigures {
            expire_in: ends.map(|ends| ends.saturating_duration_since(now)),
            ..state.figures.clone()
        }
    }

    pub(crate) fn credentials(&self) -> String {
        self.inner.material.credentials()
    }

    pub(crate) fn can_change(&self) -> bool {
        self.inner.material.can_change()
    }

    pub(crate) fn tls_can_change(&self) -> bool {
        self.inner.material.has_tls() && self.inner.material.can_change()
    }

    pub(crate) fn connections(&self) -> u64 {
        self.inner.state().current.as_ref().map_or(0, |current| current.identity.connections)
    }

    async fn take(&self, step: Step) -> Renewed {
        match step {
            Step::Use(identity) => Ok(identity),
            Step::Fail(error) => Err(error),
            Step::Wait(renewal) => renewal.await,
            Step::Begin(renewal, identity) => {
                tokio::spawn(renewal.clone());
                match timeout(PATIENCE, renewal).await {
                    Ok(Ok(renewed)) => Ok(renewed),
                    _ => Ok(identity),
                }
            }
        }
    }

    fn step(&self) -> Step {
        let now = Instant::now();
        let mut state = self.inner.state();
        let known =
            state.current.as_ref().map(|current| (Arc::clone(&current.identity), current.is_valid(now)));
        if let Some(renewal) = state.renewal.clone() {
            drop(state);
            return match known {
                // The caller that began it may have stopped waiting: each caller polls it.
                Some((identity, true)) => match renewal.now_or_never() {
                    Some(Ok(renewed)) => Step::Use(renewed),
                    _ => Step::Use(identity),
                },
                _ => Step::Wait(renewal),
            };
        }
        match (known, &state.failed) {
            (Some((identity, true)), _) if !state.is_due(now) => Step::Use(identity),
            (None | Some((_, false)), Some((error, until))) if now < *until => Step::Fail(Arc::clone(error)),
            (known, _) => {
                let renewal = Inner::renew(&self.inner, &mut state, Reason::Due);
                match known {
                    Some((identity, true)) => Step::Begin(renewal, identity),
                    _ => Step::Wait(renewal),
                }
            }
        }
    }

    fn step_after_refusal_of(&self, version: u64) -> Option<Step> {
        let now = Instant::now();
        let mut state = self.inner.state();
        if let Some(current) = state.current.as_ref().filter(|current| current.identity.version != version) {
            return Some(Step::Use(Arc::clone(&current.identity)));
        }
        // It may have read the files before the refusal; its result is tried anyway.
        if let Some(renewal) = state.renewal.clone() {
            return Some(Step::Wait(renewal));
        }
        if !self.inner.material.can_change() || state.refused.is_some_and(|at| now < at + BETWEEN_REFUSALS) {
            return None;
        }
        state.refused = Some(now);
        Some(Step::Wait(Inner::renew(&self.inner, &mut state, Reason::Refused)))
    }
}

impl State {
    fn is_due(&self, now: Instant) -> bool {
        self.current.as_ref().is_none_or(|current| current.due.is_some_and(|due| due <= now))
    }
}

impl Current {
    fn is_valid(&self, now: Instant) -> bool {
        self.ends.is_none_or(|ends| now < ends)
    }
}

impl Inner {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing under this lock can panic halfway through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs only while a caller, or the task that `take` spawns, polls it.
    fn renew(this: &Arc<Self>, state: &mut State, reason: Reason) -> Renewal {
        let renewal = Self::renewal(Arc::downgrade(this), reason).boxed().shared();
        state.renewal = Some(renewal.clone());
        renewal
    }

    async fn renewal(this: Weak<Self>, reason: Reason) -> Renewed {
        let stopped = || Arc::new(Error::Stopped);
        let strong = this.upgrade().ok_or_else(stopped)?;
        let known = strong.state().current.as_ref().map(|current| Arc::clone(&current.identity));
        let material = strong.material.clone();
        // A renewal does not keep a dropped client alive.
        drop(strong);
        let now = Instant::now();
        let may_stay = |known: &&Arc<Identity>| known.read.renewed_from().is_none_or(|from| now < from);
        let kept = known.as_ref().filter(|_| reason == Reason::Due).filter(may_stay).map(|known| &known.read);
        let read = material.read_elsewhere(kept, reason == Reason::Refused).await;
        let this = this.upgrade().ok_or_else(stopped)?;
        if this.material.asks_provider(kept) {
            this.state().figures.calls.count(read.as_ref());
        }
        let accepted = read.and_then(|read| this.accept(read, known.as_deref()));
        match &accepted {
            Ok(_) => this.state().figures.renewals += 1,
            Err(_) => this.state().figures.failures += 1,
        }
        accepted.or_else(|error| this.keep_what_is_valid(error))
    }

    fn accept(&self, read: Read, known: Option<&Identity>) -> Result<Arc<Identity>, Error> {
        let same_tls = known.is_some_and(|known| known.read.has_same_tls(&read));
        let same_login = known.is_some_and(|known| known.read.has_same_login(&read));
        let (tls, proxy_tls) = match known.filter(|_| same_tls) {
            Some(known) => (known.tls.clone(), known.proxy_tls.clone()),
            None => (self.material.tls(&read)?, self.material.tls_with_proxy(&read)?),
        };
        let identity = Arc::new(Identity {
            version: known.map_or(0, |known| known.version + u64::from(!same_tls || !same_login)),
            connections: known.map_or(0, |known| known.connections + u64::from(!same_tls)),
            authorization: read.authorization()?,
            tls,
            proxy_tls,
            read,
        });
        let read = &identity.read;
        let of_files = self.material.has_files().then(|| Instant::now() + FRESH);
        let due = [of_files, read.renewed_from()].into_iter().flatten().min();
        let mut state = self.state();
        state.current = Some(Current { due, ends: read.ends(), identity: Arc::clone(&identity) });
        (state.renewal, state.failed) = (None, None);
        Ok(identity)
    }

    fn keep_what_is_valid(&self, error: Error) -> Renewed {
        let now = Instant::now();
        let error = Arc::new(error);
        let mut state = self.state();
        state.renewal = None;
        match &mut state.current {
            Some(current) if current.is_valid(now) => {
                let text = error.to_string();
                if self.failures.is_new(&text) {
                    tracing::warn!(
                        target: "actix_informer::client", error = text,
                        "credentials cannot be renewed; the old ones stay in use, and the next try comes in 10 s"
                    );
                } else {
                    tracing::debug!(target: "actix_informer::client", error = text, "credentials still cannot be renewed");
                }
                current.due = Some(now + RETRY);
                Ok(Arc::clone(&current.identity))
            }
            _ => {
                state.failed = Some((Arc::clone(&error), now + BETWEEN_REFUSALS));
                Err(error)
            }
        }
    }
}

fn left(expires: Timestamp) -> Duration {
    Duration::try_from(expires.duration_since(wall_time())).unwrap_or_default()
}

informer_core::debug_as!(Identities, self);

informer_core::debug_as!(Identity, self, version = self.version, connections = self.connections);

pub(crate) enum Provider {
    Plugin(Plugin),
    /// Given up after `limit`.
    Oidc {
        login: Arc<Oidc>,
        limit: Duration,
        issuers: Issuers,
    },
}

impl Provider {
    /// With `is_refused`, not the refused credentials again.
    pub(crate) async fn obtain(&self, is_refused: bool) -> Result<ProvidedCredentials, Error> {
        match self {
            Self::Oidc { login, limit, issuers } => {
                let obtaining = login.credentials(wall_time(), is_refused, *issuers);
                let obtaining = timeout(*limit, obtaining).await;
                Ok(obtaining.unwrap_or_else(|_| Err(login.late(*limit)))?)
            }
            Self::Plugin(plugin) => run_plugin(plugin.clone()).await,
        }
    }
}

async fn run_plugin(plugin: Plugin) -> Result<ProvidedCredentials, Error> {
    let command = plugin.command().to_owned();
    let (sender, answer) = oneshot::channel();
    let started = std::thread::Builder::new()
        .name("informer-plugin".to_owned())
        .spawn(move || drop(sender.send(plugin.run())));
    let answer = match started {
        Ok(_) => answer
            .await
            .unwrap_or_else(|_| Err(PluginError::Malformed("the thread that ran it panicked".to_owned()))),
        Err(error) => Err(PluginError::NotStarted { reason: error.to_string(), hint: None }),
    };
    answer.map_err(|source| Error::Plugin { command, source })
}

#[cfg(test)]
mod tests;
