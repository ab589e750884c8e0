//! Who this client is to the server and whom it trusts, as a value with a version that changes while the client lives.
//!
//! Answers "which TLS configuration and which Authorization header count now?" Files (authority, certificate, key,
//! token) are looked at when what was read is a minute old, and at once after the server has refused or a handshake has
//! failed; credentials of a plugin are renewed before they expire. Invariants:
//! 1. Callers that need the same renewal share one; it goes on if one of them stops waiting. Nobody waits for it while
//!    what is known is valid, but the one that begins it for half a second: files are read by then.
//! 2. A renewal that fails leaves what was valid in use; the next try comes 10 s later. Without anything valid, callers
//!    get the reason.
//! 3. [`Identity::connections`] changes with the TLS configuration only, [`Identity::version`] with any credential.
//! 4. Debug, errors and logs show only names of files and programs.
//! 5. A plugin or a login is asked without blocking an arbiter. A plugin runs on a thread of its own, which outlives a
//!    caller that stops waiting and the runtime that began it.
//!
//! Read next: `identity/material.rs`, where what is read becomes a TLS configuration; `identity/exec.rs`.

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
pub(crate) mod material;
pub(crate) mod oidc;

use exec::{Plugin, PluginCredentials};
use material::{Material, Read, Tls};
use oidc::{Issuers, Oidc};

/// How old a read file may be.
const FRESH: Duration = Duration::from_secs(60);
/// How long the request that begins a renewal waits for it although it has valid credentials.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long files may take: one may be on a network that has gone.
const FILES: Duration = Duration::from_secs(30);
/// When to try again after a renewal that failed.
const RETRY: Duration = Duration::from_secs(10);
/// How often a refused identity is renewed at most: more would start a plugin for every refused request.
const BETWEEN_REFUSALS: Duration = Duration::from_secs(1);

/// One state of the client's identity.
pub(crate) struct Identity {
    /// Counts changes of any credential.
    pub(crate) version: u64,
    /// Counts changes of the TLS configuration: connections of an older one are replaced.
    pub(crate) connections: u64,
    /// The Authorization header of each request, unless the request brings its own.
    pub(crate) authorization: Option<HeaderValue>,
    /// Nothing for a plain http endpoint.
    pub(crate) tls: Option<Tls>,
    /// Nothing unless there is an https proxy.
    pub(crate) proxy_tls: Option<Tls>,
    read: Read,
}

/// The identity of a client, kept up to date. Shared by all connections on all threads.
pub(crate) struct Identities {
    inner: Arc<Inner>,
}

struct Inner {
    material: Material,
    state: Mutex<State>,
    /// Of failures that were told.
    failures: OnceInAWhile,
}

struct State {
    current: Option<Current>,
    renewal: Option<Renewal>,
    failed: Option<(Arc<Error>, Instant)>,
    refused: Option<Instant>,
}

struct Current {
    identity: Arc<Identity>,
    /// When to look again; never if nothing can change.
    due: Option<Instant>,
    ends: Option<Instant>,
}

type Renewed = Result<Arc<Identity>, Arc<Error>>;
type Renewal = Shared<BoxFuture<'static, Renewed>>;

/// Why a renewal begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// What was read is old; a plugin's credentials stay until they are due themselves.
    Due,
    /// The server has refused them: everything is obtained anew.
    Refused,
}

enum Step {
    Use(Arc<Identity>),
    Fail(Arc<Error>),
    Wait(Renewal),
    /// A renewal that has begun, and what is valid meanwhile.
    Begin(Renewal, Arc<Identity>),
}

impl Identities {
    /// Reads what can be read at once. Blocking: files. Plugins and token files wait for the first request.
    ///
    /// # Errors
    /// When a certificate, a key or a token cannot be used.
    pub(crate) fn new(material: Material) -> Result<Self, Error> {
        let state = State { current: None, renewal: None, failed: None, refused: None };
        let read = material.check()?;
        let inner = Arc::new(Inner { material, state: Mutex::new(state), failures: OnceInAWhile::default() });
        if let Some(read) = read {
            inner.accept(read, None)?;
        }
        Ok(Self { inner })
    }

    /// The identity for a request that is sent now. Waits only where nothing valid is known.
    pub(crate) async fn current(&self) -> Result<Arc<Identity>, TransportError> {
        self.take(self.step()).await.map_err(TransportError::Credentials)
    }

    /// What to try once again with after the server has refused `version`, or a handshake with it has failed: `None` if
    /// nothing else is there.
    pub(crate) async fn after_refusal_of(&self, version: u64) -> Option<Arc<Identity>> {
        let renewed = self.take(self.step_after_refusal_of(version)?).await.ok()?;
        (renewed.version != version).then_some(renewed)
    }

    /// The kind of the credentials, as people call it, with the file or program that they come from.
    pub(crate) fn credentials(&self) -> String {
        self.inner.material.credentials()
    }

    /// Whether a later identity may differ from the current one.
    pub(crate) fn can_change(&self) -> bool {
        self.inner.material.can_change()
    }

    /// Whether connections may have to be replaced while the client lives.
    pub(crate) fn tls_can_change(&self) -> bool {
        self.inner.material.has_tls() && self.inner.material.can_change()
    }

    /// The count of TLS configurations so far; a look that renews nothing.
    pub(crate) fn connections(&self) -> u64 {
        self.inner.state().current.as_ref().map_or(0, |current| current.identity.connections)
    }

    async fn take(&self, step: Step) -> Renewed {
        match step {
            Step::Use(identity) => Ok(identity),
            Step::Fail(error) => Err(error),
            Step::Wait(renewal) => renewal.await,
            Step::Begin(renewal, identity) => {
                // It goes on when this caller does.
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
        // A renewal that is under way may have read the files before the refusal; what it finds is tried all the same.
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
        // Nothing that runs under this lock can panic halfway through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a renewal; it runs while one of its callers waits, or calls again.
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
        // A client that is dropped meanwhile is not kept alive.
        drop(strong);
        let now = Instant::now();
        let may_stay = |known: &&Arc<Identity>| known.read.renewed_from().is_none_or(|from| now < from);
        let kept = known.as_ref().filter(|_| reason == Reason::Due).filter(may_stay).map(|known| &known.read);
        let read = material.read_elsewhere(kept, reason == Reason::Refused).await;
        let this = this.upgrade().ok_or_else(stopped)?;
        read.and_then(|read| this.accept(read, known.as_deref()))
            .or_else(|error| this.keep_what_is_valid(error))
    }

    /// Makes what was read the current identity.
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

/// How long until then; nothing if it has passed.
fn left(expires: Timestamp) -> Duration {
    Duration::try_from(expires.duration_since(wall_time())).unwrap_or_default()
}

informer_core::debug_as!(Identities, self);

informer_core::debug_as!(Identity, self, version = self.version, connections = self.connections);

/// What gives credentials that expire.
pub(crate) enum Provider {
    Plugin(Plugin),
    /// A login that is given up after the limit.
    Oidc {
        login: Arc<Oidc>,
        limit: Duration,
        issuers: Issuers,
    },
}

impl Provider {
    /// Other credentials than those that the server has refused, if it has.
    pub(crate) async fn obtain(&self, is_refused: bool) -> Result<PluginCredentials, Error> {
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

async fn run_plugin(plugin: Plugin) -> Result<PluginCredentials, Error> {
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
