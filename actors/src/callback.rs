//! The callback host: runs a subscriber's async closure, one event at a time.
//!
//! Answers "how does a closure receive what an actor receives?": by an actor of its own on the callbacks' arbiter, to
//! which the Listener delivers like to any subscribed actor. It is the only place where foreign code runs in a task
//! of ours. Invariants:
//! 1. A call starts after the last one's future has ended.
//! 2. A panic, in the closure or in its future, is counted and logged with the event's key, and that event is
//!    skipped; the next one is delivered.
//! 3. After the subscription's end no further call starts.
//! 4. A callback can be told from the rest of the world: its own subscription's shutdown would wait for itself.
//!
//! Mailbox: one window of the Listener. Read next: `listener.rs`; `blocking.rs`, closures that block.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use actix::{Actor, ActorFutureExt, AtomicResponse, Context, Handler, WrapFuture};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use informer_core::meta::ObjectKey;

use crate::messages::{Body, Notify};
use crate::runtime::panic_text;
use crate::seat::Seat;

tokio::task_local! {
    /// The seat of the subscription whose callback is being run, by its identity.
    static CALLED: usize;
}

/// Runs a piece of a subscriber's code, known to be that of this seat.
pub(crate) fn inside<T>(seat: &Seat, call: impl FnOnce() -> T) -> T {
    CALLED.sync_scope(seat.identity(), call)
}

/// Whether the caller is the callback of this seat.
pub(crate) fn is_inside(seat: &Seat) -> bool {
    CALLED.try_with(|called| *called == seat.identity()).unwrap_or(false)
}

/// A subscriber's closure, as the host calls it.
pub(crate) type Callback<S> = Box<dyn FnMut(Notify<S>) -> LocalBoxFuture<'static, ()>>;

/// The actor that runs one closure.
pub(crate) struct CallbackHost<S: Body> {
    callback: Callback<S>,
    seat: Seat,
}

impl<S: Body> CallbackHost<S> {
    pub(crate) fn new(callback: Callback<S>, seat: Seat) -> Self {
        Self { callback, seat }
    }
}

impl<S: Body> Actor for CallbackHost<S> {
    type Context = Context<Self>;
}

impl<S: Body> Handler<Notify<S>> for CallbackHost<S> {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, notify: Notify<S>, _ctx: &mut Context<Self>) -> Self::Result {
        let key = notify.key().clone();
        let call = if self.seat.stop().is_cancelled() {
            std::future::ready(()).boxed_local()
        } else {
            match catch_unwind(AssertUnwindSafe(|| inside(&self.seat, || (self.callback)(notify)))) {
                Ok(future) => future,
                Err(panic) => {
                    count_panic(&self.seat, &key, &*panic);
                    std::future::ready(()).boxed_local()
                }
            }
        };
        let guarded = AssertUnwindSafe(CALLED.scope(self.seat.identity(), call)).catch_unwind();
        AtomicResponse::new(Box::pin(guarded.into_actor(self).map(move |ended, this, _ctx| {
            if let Err(panic) = ended {
                count_panic(&this.seat, &key, &*panic);
            }
        })))
    }
}

/// Counts and logs a panic of a callback.
pub(crate) fn count_panic(seat: &Seat, key: &ObjectKey, panic: &(dyn std::any::Any + Send)) {
    let subscription = seat.read().name;
    tracing::error!(%subscription, %key, panic = panic_text(panic), "a subscriber's callback panicked; event skipped");
    seat.update(|status| status.panics += 1);
}

impl<S: Body> fmt::Debug for CallbackHost<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackHost").field("seat", &self.seat).finish_non_exhaustive()
    }
}
