//! Expectations of a controller that counts its children: what it has asked for and has not seen yet.
//!
//! Answers "may I count now, or is my own last pass still on its way into the cache?". Whoever reports its answers to the
//! request (`Request::written`) does not need them: the key waits by itself. They are for controllers that create and
//! delete many children at once and are told of them by a subscription. Invariants:
//! 1. The decision is that of `informer_core::expectations`; here are only the lock and the clock.
//! 2. No call waits.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use informer_actors::runtime::Runtime;
use informer_core::expectations as core;
use informer_core::meta::ObjectKey;

pub use core::Progress;

/// What is expected of each key. Cloning is cheap; clones share the expectations.
///
/// ```
/// use actix_informer::prelude::*;
/// use actix_informer::reconcile::Expectations;
///
/// let runtime = Runtime::threads().start()?;
/// let expectations = Expectations::new(&runtime);
/// let web = ObjectKey::namespaced("shop", "web");
///
/// // In the reconcile function, before the requests:
/// if expectations.is_satisfied(&web) {
///     expectations.expect(web.clone(), 2, ["uid-of-the-pod-to-be-deleted"]);
/// }
/// // In the subscriber to the children, or where a request has failed:
/// expectations.created(&web);
/// expectations.created(&web);
/// assert!(!expectations.is_satisfied(&web));
/// expectations.deleted(&web, "uid-of-the-pod-to-be-deleted");
/// assert!(expectations.is_satisfied(&web));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Expectations {
    inner: Arc<Mutex<core::Expectations<ObjectKey>>>,
    runtime: Runtime,
}

impl Expectations {
    /// None yet. Each holds for at most 5 minutes, as in Kubernetes' controllers, on the clock of this runtime.
    pub fn new(runtime: &Runtime) -> Self {
        Self::with_limit(runtime, core::DEFAULT_LIMIT)
    }

    /// None yet, each of which will hold for at most this long.
    pub fn with_limit(runtime: &Runtime, limit: Duration) -> Self {
        let inner = Arc::new(Mutex::new(core::Expectations::new(limit)));
        Self { inner, runtime: runtime.clone() }
    }

    /// Expects so many creations, and the deletion of the objects with these uids, instead of what was expected of this key
    /// before. Call it before the first request: an event may come before the answer.
    pub fn expect<U: Into<String>>(
        &self,
        key: ObjectKey,
        creations: u32,
        deletions: impl IntoIterator<Item = U>,
    ) {
        let now = self.runtime.now();
        let deletions: Vec<String> = deletions.into_iter().map(Into::into).collect();
        self.with(|inner| inner.expect(key, creations, deletions, now));
    }

    /// A child of this key was created, or will not be because the request failed.
    pub fn created(&self, key: &ObjectKey) {
        self.with(|inner| inner.created(key));
    }

    /// The child with this uid was deleted, or will not be because the request failed.
    pub fn deleted(&self, key: &ObjectKey, uid: &str) {
        self.with(|inner| inner.deleted(key, uid));
    }

    /// Expects nothing of this key any more: it was deleted.
    pub fn forget(&self, key: &ObjectKey) {
        self.with(|inner| inner.forget(key));
    }

    /// Whether the children of this key may be counted: all that was expected has been observed, or the limit is over.
    pub fn is_satisfied(&self, key: &ObjectKey) -> bool {
        let now = self.runtime.now();
        self.with(|inner| inner.is_satisfied(key, now))
    }

    /// How far the expectations of this key are, for a log line.
    pub fn progress(&self, key: &ObjectKey) -> Progress {
        let now = self.runtime.now();
        self.with(|inner| inner.progress(key, now))
    }

    /// No call under the lock is foreign code, so it is never left half done.
    fn with<R>(&self, call: impl FnOnce(&mut core::Expectations<ObjectKey>) -> R) -> R {
        call(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Expectations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.with(|inner| inner.len());
        f.debug_struct("Expectations").field("keys", &keys).finish_non_exhaustive()
    }
}
