//! A value that is used on one arbiter only: a subscriber's async closure.
//!
//! The owner needs no task while there are no events: a job moves the value to the arbiter and back. The value is
//! used and dropped on its arbiter (elsewhere only if that has ended). After a job that panicked the value is gone,
//! and the owner gets [`Closed`].

use std::future::Future;
use std::sync::Arc;

use super::ArbiterHandle;
use crate::runtime::locked::Guarded;
use crate::runtime::mailbox::Closed;
use crate::runtime::signal::Signal;

pub(crate) struct OnArbiter<T: Send + 'static>(Arc<Owned<T>>);

struct Owned<T: Send + 'static> {
    arbiter: ArbiterHandle,
    // Locked only while a pointer is moved.
    place: Guarded<Place<T>>,
    /// Raised when the value is back or lost.
    back: Signal,
}

enum Place<T> {
    Here(T),
    Away,
    /// A job ended without it.
    Gone,
}

impl<T: Send + 'static> OnArbiter<T> {
    pub(crate) fn new(arbiter: ArbiterHandle, value: T) -> Self {
        Self(Arc::new(Owned { arbiter, place: Guarded::new(Place::Here(value)), back: Signal::default() }))
    }

    /// The job runs whether or not the future is polled; that ends when the value is back.
    pub(crate) fn run<J, F>(&self, job: J) -> impl Future<Output = Result<(), Closed>> + use<T, J, F>
    where
        J: FnOnce(T) -> F + Send + 'static,
        F: Future<Output = T> + 'static,
    {
        if let Some(value) = self.0.take() {
            let way_back = WayBack(Some(Arc::clone(&self.0)));
            self.0.arbiter.spawn(move || async move {
                let value = job(value).await;
                way_back.bring(value);
            });
        }
        let owned = Arc::clone(&self.0);
        async move { owned.until_back().await }
    }
}

/// Dropped before the value is back, it marks the value as gone.
struct WayBack<T: Send + 'static>(Option<Arc<Owned<T>>>);

impl<T: Send + 'static> WayBack<T> {
    fn bring(mut self, value: T) {
        if let Some(owned) = self.0.take() {
            owned.put(Place::Here(value));
        }
    }
}

impl<T: Send + 'static> Drop for WayBack<T> {
    fn drop(&mut self) {
        if let Some(owned) = self.0.take() {
            owned.put(Place::Gone);
        }
    }
}

impl<T: Send + 'static> Owned<T> {
    fn take(&self) -> Option<T> {
        self.place.with(|place| match std::mem::replace(place, Place::Away) {
            Place::Here(value) => Some(value),
            other => {
                *place = other;
                None
            }
        })
    }

    fn put(&self, now: Place<T>) {
        self.place.with(|place| *place = now);
        self.back.raise();
    }

    async fn until_back(&self) -> Result<(), Closed> {
        let look = |place: &mut Place<T>| match place {
            Place::Here(_) => Some(Ok(())),
            Place::Gone => Some(Err(Closed)),
            Place::Away => None,
        };
        self.back.until(|| self.place.with(look)).await
    }
}

impl<T: Send + 'static> Drop for Owned<T> {
    fn drop(&mut self) {
        if let Some(value) = self.take() {
            self.arbiter.spawn(move || async move { drop(value) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::OnArbiter;
    use crate::runtime::Runtime;
    use crate::runtime::mailbox::Closed;

    #[test]
    fn an_answer_is_that_of_the_newest_job_and_a_job_that_panics_ends_them_all() {
        Runtime::simulated(1).run(|runtime| async move {
            let value = OnArbiter::new(runtime.callback_arbiter(), 1);
            // There is no waiter for this one: its notice is still there when the next job begins.
            drop(value.run(|value| async move { value + 1 }));
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            let (go, gate) = tokio::sync::oneshot::channel::<()>();
            let mut second = Box::pin(value.run(|value| async move {
                drop(gate.await);
                assert_eq!(value, 2);
                value
            }));
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            assert!(futures_util::poll!(&mut second).is_pending(), "the job has not ended");
            drop(go);
            assert_eq!(second.await, Ok(()));
            assert_eq!(value.run(|_| async { panic!("on purpose") }).await, Err(Closed));
            assert_eq!(value.run(|value| async move { value }).await, Err(Closed));
        });
    }
}
