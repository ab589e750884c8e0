//! A value that is used on one arbiter only: what an async callback needs of its closure.
//!
//! Answers "how does foreign async code cost nothing while it has nothing to do?": no task waits for work. The value
//! rests with its owner; a job takes it to the arbiter and brings it back. Invariants:
//! 1. One job at a time has the value; its owner asks for no second one before the first has ended.
//! 2. The value is used, and dropped, on its arbiter; elsewhere only when that has ended already.
//! 3. A job that panics keeps the value from coming back: whoever asks then is told [`Closed`].
//!
//! Read next: `callbacks.rs`, the same for closures that block; `callback.rs`, the user.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use super::ArbiterHandle;
use crate::runtime::mailbox::Closed;

/// The value and where it is used.
pub(crate) struct Lent<T: Send + 'static>(Arc<Owned<T>>);

struct Owned<T: Send + 'static> {
    arbiter: ArbiterHandle,
    // Held for as long as a pointer takes to move; nobody ever waits for it.
    value: Mutex<Option<T>>,
}

impl<T: Send + 'static> Lent<T> {
    pub(crate) fn new(arbiter: ArbiterHandle, value: T) -> Self {
        Self(Arc::new(Owned { arbiter, value: Mutex::new(Some(value)) }))
    }

    /// Runs `job` with the value on the arbiter; the future ends when the value is back. The job runs whether or not
    /// the future is polled.
    pub(crate) fn run<J, F>(&self, job: J) -> impl Future<Output = Result<(), Closed>> + use<T, J, F>
    where
        J: FnOnce(T) -> F + Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let (returned, ended) = oneshot::channel::<()>();
        if let Some(value) = self.0.take() {
            let owned = Arc::clone(&self.0);
            self.0.arbiter.spawn(move || async move {
                let value = job(value).await;
                owned.put_back(value);
                // Whoever asked may have ended meanwhile.
                let _heard = returned.send(());
            });
        }
        async move { ended.await.map_err(|_| Closed) }
    }
}

impl<T: Send + 'static> Owned<T> {
    fn take(&self) -> Option<T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put_back(&self, value: T) {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }
}

impl<T: Send + 'static> Drop for Owned<T> {
    fn drop(&mut self) {
        if let Some(value) = self.take() {
            self.arbiter.spawn(move || async move { drop(value) });
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Lent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lent")
    }
}
