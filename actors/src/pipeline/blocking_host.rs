//! Calls blocking closures: subscribers that may sleep, wait for a lock or do file IO in their callback.
//!
//! A closure runs on the runtime's callback pool, for one window of events at a time.
//! 1. Events come in order, one call at a time, on at most one thread.
//! 2. A panic is counted and logged with the event's key, and the event is skipped. A batch is skipped as a
//!    whole; the key is that of its first event.
//! 3. After the subscription's end no further call starts. The closure is dropped on the pool, after its last
//!    call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::time::Duration;

use informer_core::meta::ObjectKey;

use crate::pipeline::callback_host::{count_call, count_panic, inside};
use crate::pipeline::messages::{Body, Notify};
use crate::pipeline::subscription_state::{CallCheck, SubscriptionState};
use crate::runtime::{Clock, Runtime, sleep_until};

/// Its strand reports the drop of the closure: a shutdown waits for that.
pub(crate) struct BlockingHost<S: Body> {
    closure: BlockingClosure<S>,
    state: SubscriptionState,
    clock: Clock,
}

pub(crate) enum BlockingClosure<S> {
    Each(Box<dyn FnMut(Notify<S>) + Send>),
    Batches(Box<dyn FnMut(Vec<Notify<S>>) + Send>),
}

impl<S: Body> BlockingHost<S> {
    pub(crate) fn new(closure: BlockingClosure<S>, state: SubscriptionState, clock: Clock) -> Self {
        Self { closure, state, clock }
    }

    pub(crate) fn handle(&mut self, window: Vec<Notify<S>>) {
        let Self { closure, state, clock } = self;
        let mut began = clock.now();
        match closure {
            BlockingClosure::Each(closure) => {
                for notify in window {
                    let key = notify.key().clone();
                    began = call((state, clock), &key, began, || closure(notify));
                }
            }
            BlockingClosure::Batches(closure) => {
                let Some(key) = window.first().map(|first| first.key().clone()) else { return };
                call((state, clock), &key, began, || closure(window));
            }
        }
    }
}

/// Returns when the call ended. `key` is that of the event, or of the first one.
fn call(
    (state, clock): (&SubscriptionState, &Clock),
    key: &ObjectKey,
    began: Duration,
    call: impl FnOnce(),
) -> Duration {
    if state.has_ended() {
        return began;
    }
    let limit = state.times().callback_limit;
    if limit.is_some() {
        state.begin_call(key, began);
    }
    let called = catch_unwind(AssertUnwindSafe(|| inside(state, call)));
    if let Some(limit) = limit
        && let Some(key) = state.end_call(limit, clock.now())
    {
        let (informer, subscription) = (&state.label().owner, state.name());
        tracing::warn!(target: "actix_informer::informer", %informer, %subscription, %key, "a blocking callback of {subscription} took longer than its limit of {limit:?} on {key}");
    }
    let ended = count_call(state, clock, began);
    if let Err(panic) = called {
        count_panic(state, key, panic);
    }
    ended
}

/// The least time between two looks at a running call.
const LEAST_LOOK: Duration = Duration::from_millis(10);

/// Reports each call that exceeds the limit.
pub(crate) async fn watched<T>(
    called: impl Future<Output = T>,
    state: SubscriptionState,
    runtime: Runtime,
) -> T {
    let mut called = pin!(called);
    let Some(limit) = state.times().callback_limit else { return called.await };
    loop {
        let until = match state.check_call(limit, runtime.now()) {
            CallCheck::DueAt(until) => until,
            CallCheck::Overdue(key) => {
                let (informer, subscription) = (&state.label().owner, state.name());
                tracing::warn!(target: "actix_informer::informer", %informer, %subscription, %key, "a blocking callback of {subscription} takes longer than its limit of {limit:?} on {key}: it cannot be cancelled, and later events wait for it");
                continue;
            }
        };
        tokio::select! {
            biased;
            done = &mut called => return done,
            () = sleep_until(&runtime.0.clock, until.max(runtime.now() + LEAST_LOOK)) => {}
        }
    }
}
