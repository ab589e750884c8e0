//! Async closures: how a subscriber's closure is called, one event at a time.
//!
//! Answers "where does a closure run that awaits?": on the callbacks' arbiter, a window of events at a time, in a task
//! that lives for that window: a closure that has nothing to do costs its own memory and no task. With `blocking_host.rs`
//! it is the only place where foreign code is called. Invariants:
//! 1. A call starts after the last one's future has ended, in order.
//! 2. A panic, in the closure, in its future or in dropping that, is counted and logged with the event's key, and that
//!    event is skipped; the next one is delivered.
//! 3. After the subscription's end no further call starts; the closure is dropped on the arbiter, after its last call.
//!    A call that has not ended 30 s after that (`seat::CALL_GRACE`), or at a shutdown's limit, is cancelled: its
//!    future is dropped.
//! 4. A shutdown knows when it is awaited inside a callback of the same subscription or informer: it does not wait for
//!    that one.
//!
//! Read next: `runtime/lent.rs`, which takes it there; `blocking_host.rs`, closures that block.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::pipeline::messages::{Body, Notify};
use crate::pipeline::seat::{Presence, Seat};
use crate::runtime::{ArbiterHandle, Clock, Label, drop_payload, panic_text};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use informer_core::meta::ObjectKey;
use informer_core::words::{QUOTED, one_line};

tokio::task_local! {
    /// The subscription whose callback is being run.
    static CALLED: Seat;
}

/// Runs a piece of a subscriber's code, known to be that of this seat.
pub(crate) fn inside<T>(seat: &Seat, call: impl FnOnce() -> T) -> T {
    CALLED.sync_scope(seat.clone(), call)
}

/// Whether the caller is the callback of this seat.
pub(crate) fn is_inside(seat: &Seat) -> bool {
    CALLED.try_with(|called| called.is(seat)).unwrap_or(false)
}

/// The subscription whose callback the caller is, if it is one of this informer.
pub(crate) fn calling_seat(informer: &Arc<str>) -> Option<Seat> {
    CALLED.try_with(Seat::clone).ok().filter(|called| Arc::ptr_eq(&called.label().owner, informer))
}

/// A subscriber's closure, as the host calls it.
pub(crate) type Callback<S> = Box<dyn FnMut(Notify<S>) -> LocalBoxFuture<'static, ()> + Send>;

/// A closure and where it reports; fields are dropped in this order, so that a shutdown outlasts the closure.
pub(crate) struct CallbackHost<S: Body> {
    callback: Callback<S>,
    seat: Presence,
}

impl<S: Body> CallbackHost<S> {
    /// The closure of the subscription of this seat.
    pub(crate) fn new(callback: Callback<S>, seat: &Seat) -> Self {
        Self { callback, seat: seat.enter() }
    }

    /// Calls the closure with each event, unless the subscription ends before; cancels a call that is overdue.
    pub(crate) async fn handle(mut self, window: Vec<Notify<S>>, here: ArbiterHandle) -> Self {
        let (Self { callback, seat }, clock) = (&mut self, here.clock());
        let (owner, name) = (Arc::clone(&seat.label().owner), Arc::clone(seat.name()));
        let labelled = here.label(Arc::new(Label { owner, kind: "", name }));
        let current = RefCell::new(None);
        let calls = async {
            let mut began = clock.now();
            for notify in window {
                if seat.has_ended() {
                    return;
                }
                let key = notify.key().clone();
                current.replace(Some(key.clone()));
                let callback = &mut *callback;
                // The future is dropped inside, too: that is the subscriber's code as well.
                let call = CALLED.scope((**seat).clone(), async move { callback(notify).await });
                let called = AssertUnwindSafe(call).catch_unwind().await;
                began = count_call(seat, clock, began);
                if let Err(panic) = called {
                    count_panic(seat, &key, panic);
                }
            }
        };
        // Boxed, so that a panic in dropping it can be caught.
        let mut calls = Box::pin(labelled.run(calls));
        let is_overdue = tokio::select! {
            biased;
            () = &mut calls => false,
            () = seat.overdue() => true,
        };
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(calls)));
        if let Some(key) = current.take().filter(|_| is_overdue) {
            let (informer, subscription) = (&seat.label().owner, seat.name());
            tracing::warn!(%informer, %subscription, %key, "a callback of {subscription} had not ended in time after the end of its subscription: cancelled on {key}, its future is dropped");
            if let Err(panic) = dropped {
                count_panic(seat, &key, panic);
            }
        }
        self
    }
}

/// Counts a call of a callback that began then; the next one begins now.
pub(crate) fn count_call(seat: &Seat, clock: &Clock, began: Duration) -> Duration {
    let now = clock.now();
    seat.count_call(now.saturating_sub(began));
    now
}

/// Counts and logs a panic of a callback.
pub(crate) fn count_panic(seat: &Seat, key: &ObjectKey, panic: Box<dyn Any + Send>) {
    let (informer, subscription) = (&seat.label().owner, seat.name());
    let panicked = one_line(&panic_text(&*panic), QUOTED);
    tracing::error!(%informer, %subscription, %key, "a callback of {subscription} has panicked on {key}, which is skipped: {panicked}");
    seat.count_panic();
    drop_payload(panic);
}

impl<S: Body> fmt::Debug for CallbackHost<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackHost").field("seat", &self.seat).finish_non_exhaustive()
    }
}
