//! Calls closures, one event at a time: async ones on the callbacks' arbiter, blocking ones on the callback pool.
//!
//! 1. A call starts after the last one has ended, in the order of the events.
//! 2. A panic in the closure, in its future or in that future's drop is counted and logged with the event's key, and
//!    the event is skipped. A batch is skipped as a whole, with the key of its first event.
//! 3. After the subscription's end no call starts. The closure is dropped where it runs, after its last call. An
//!    async call that still runs after `CALL_GRACE`, or at a shutdown's limit, is cancelled: its future is dropped.
//! 4. An async call that exceeds the subscription's limit is cancelled, counted and logged.
//! 5. A shutdown inside a callback of the same subscription or informer does not wait for that callback.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crate::pipeline::messages::{Body, Notify};
use crate::pipeline::subscription_state::{CallCheck, Presence, SubscriptionState};
use crate::runtime::{ArbiterHandle, Clock, Label, Runtime, drop_payload, panic_text, sleep_until, within};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use informer_core::meta::ObjectKey;
use informer_core::words::{QUOTED, one_line};

tokio::task_local! {
    static CALLED: SubscriptionState;
}

pub(crate) fn inside<T>(state: &SubscriptionState, call: impl FnOnce() -> T) -> T {
    CALLED.sync_scope(state.clone(), call)
}

pub(crate) fn is_inside(state: &SubscriptionState) -> bool {
    CALLED.try_with(|called| called.is(state)).unwrap_or(false)
}

/// Only a subscription of this informer.
pub(crate) fn calling_subscription(informer: &Arc<str>) -> Option<SubscriptionState> {
    CALLED
        .try_with(SubscriptionState::clone)
        .ok()
        .filter(|called| Arc::ptr_eq(&called.label().owner, informer))
}

pub(crate) trait Callback<S: Body>: Send {
    /// Allocates once for a window, and not for an event.
    fn call_each<'a>(
        &'a mut self,
        window: Vec<Notify<S>>,
        state: &'a SubscriptionState,
        calls: &'a Calls<'a>,
    ) -> LocalBoxFuture<'a, ()>;
}

pub(crate) struct Calls<'a> {
    clock: &'a Clock,
    /// The event of the running call; the first of a batch.
    current: RefCell<Option<ObjectKey>>,
}

impl Calls<'_> {
    async fn run(&self, state: &SubscriptionState, key: ObjectKey, call: impl Future<Output = ()>) {
        let began = self.clock.now();
        self.current.replace(Some(key));
        // Dropped inside the scope, too: its drop is the subscriber's code.
        let call = CALLED.scope(state.clone(), call);
        let mut call = pin!(Some(AssertUnwindSafe(call).catch_unwind()));
        let Some(running) = call.as_mut().as_pin_mut() else { return };
        let limit = state.times().callback_limit;
        let called = within(limit.unwrap_or(Duration::MAX), running).await;
        count_call(state, self.clock, began);
        let dropped = match called {
            Some(called) => called,
            None => {
                let dropped = catch_unwind(AssertUnwindSafe(|| call.set(None)));
                state.count_overrun();
                if let (Some(key), Some(limit)) = (&*self.current.borrow(), limit) {
                    let (informer, subscription) = (&state.label().owner, state.name());
                    tracing::warn!(target: "actix_informer::informer", %informer, %subscription, %key, "a callback of {subscription} has not ended within its limit of {limit:?}: cancelled on {key}, its future is dropped");
                }
                dropped
            }
        };
        if let (Err(panic), Some(key)) = (dropped, self.current.take()) {
            count_panic(state, &key, panic);
        }
    }
}

pub(crate) struct InBatches<F>(pub(crate) F);

impl<S, F, Fut> Callback<S> for InBatches<F>
where
    S: Body,
    F: FnMut(Vec<Notify<S>>) -> Fut + Send,
    Fut: Future<Output = ()>,
{
    fn call_each<'a>(
        &'a mut self,
        window: Vec<Notify<S>>,
        state: &'a SubscriptionState,
        calls: &'a Calls<'a>,
    ) -> LocalBoxFuture<'a, ()> {
        let all = async move {
            let Some(key) = window.first().map(|first| first.key().clone()) else { return };
            if !state.has_ended() {
                let callback = &mut self.0;
                calls.run(state, key, async move { callback(window).await }).await;
            }
        };
        all.boxed_local()
    }
}

impl<S, F, Fut> Callback<S> for F
where
    S: Body,
    F: FnMut(Notify<S>) -> Fut + Send,
    Fut: Future<Output = ()>,
{
    fn call_each<'a>(
        &'a mut self,
        window: Vec<Notify<S>>,
        state: &'a SubscriptionState,
        calls: &'a Calls<'a>,
    ) -> LocalBoxFuture<'a, ()> {
        let each = async move {
            for notify in window {
                if state.has_ended() {
                    return;
                }
                let (key, callback) = (notify.key().clone(), &mut *self);
                calls.run(state, key, async move { callback(notify).await }).await;
            }
        };
        each.boxed_local()
    }
}

/// Fields are dropped in this order, so that a shutdown ends after the drop of the closure.
pub(crate) struct CallbackHost<S: Body> {
    callback: Box<dyn Callback<S>>,
    label: Arc<Label>,
    state: Presence,
}

impl<S: Body> CallbackHost<S> {
    pub(crate) fn new(callback: impl Callback<S> + 'static, state: &SubscriptionState) -> Self {
        let (owner, name) = (Arc::clone(&state.label().owner), Arc::clone(state.name()));
        let label = Arc::new(Label::closure(owner, name));
        Self { callback: Box::new(callback), label, state: state.enter() }
    }

    pub(crate) async fn handle(mut self, window: Vec<Notify<S>>, here: ArbiterHandle) -> Self {
        let Self { callback, label, state } = &mut self;
        let labelled = here.label(Arc::clone(label));
        let calls = Calls { clock: here.clock(), current: RefCell::new(None) };
        let mut running = callback.call_each(window, state, &calls);
        let is_overdue = tokio::select! {
            biased;
            () = labelled.run(&mut running) => false,
            () = state.overdue() => true,
        };
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(running)));
        if let Some(key) = calls.current.take().filter(|_| is_overdue) {
            let (informer, subscription) = (&state.label().owner, state.name());
            tracing::warn!(target: "actix_informer::informer", %informer, %subscription, %key, "a callback of {subscription} had not ended in time after the end of its subscription: cancelled on {key}, its future is dropped");
            if let Err(panic) = dropped {
                count_panic(state, &key, panic);
            }
        }
        self
    }
}

/// Returns when the next call begins.
pub(crate) fn count_call(state: &SubscriptionState, clock: &Clock, began: Duration) -> Duration {
    let now = clock.now();
    state.count_call(now.saturating_sub(began));
    now
}

pub(crate) fn count_panic(state: &SubscriptionState, key: &ObjectKey, panic: Box<dyn Any + Send>) {
    let (informer, subscription) = (&state.label().owner, state.name());
    let panicked = one_line(panic_text(&*panic), QUOTED);
    tracing::error!(target: "actix_informer::informer", %informer, %subscription, %key, "a callback of {subscription} has panicked on {key}, which is skipped: {panicked}");
    state.count_panic();
    drop_payload(panic);
}

/// The panic counts as "yes". Logs the first, second, fourth and so on: a filter may panic on every object.
pub(crate) fn count_filter_panic(state: &SubscriptionState, key: &ObjectKey, panic: Box<dyn Any + Send>) {
    let count = state.count_filter_panic();
    if count.is_power_of_two() {
        let (informer, subscription) = (&state.label().owner, state.name());
        let panicked = one_line(panic_text(&*panic), QUOTED);
        tracing::error!(target: "actix_informer::informer", %informer, %subscription, %key, count, "a filter of {subscription} has panicked on {key}, which counts as yes ({count} times so far): {panicked}");
    }
    drop_payload(panic);
}

/// The pool reports the drop of the closure: a shutdown waits for that.
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

/// Returns when the call ended. `key` is that of the first event.
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

const LEAST_LOOK: Duration = Duration::from_millis(10);

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
