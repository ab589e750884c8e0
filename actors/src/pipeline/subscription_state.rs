//! The state of a subscription. It survives the Listener.
//!
//! 1. A subscription ends once, with the first reason.
//! 2. `synced` stays true once it is.
//! 3. The lock is held only while a few numbers are copied, and no other is taken under it.

mod blocking_call;
mod status;

use std::ops::Deref;
use std::sync::Arc;
use std::task::{self, Poll, Waker};
use std::time::Duration;

use informer_core::listener::Policy;
use informer_core::timing::Timing;
use informer_core::words::{QUOTED, one_line};

use self::blocking_call::BlockingCall;
pub(crate) use self::blocking_call::CallCheck;
pub use self::status::{EndReason, ShutdownError, SubscriptionStatus, Unfinished};
use crate::runtime::locked::Guarded;
use crate::runtime::signal::Signal;
use crate::runtime::{Label, Runtime};
use crate::supervision::parent::StopSignal;

/// How long an async closure's call may go on after its subscription was dropped or its informer has stopped;
/// then its future is dropped. A shutdown cancels it at its limit.
pub const CALL_GRACE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub(crate) struct SubscriptionState(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    label: Arc<Label>,
    policy: Policy,
    // Boxed, to keep idle subscriptions small.
    times: Option<Box<Times>>,
    // An actor never waits here: see the header. A tokio watch channel takes three times the memory.
    figures: Guarded<SubscriptionFigures>,
    changed: Signal,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) resync: Option<Duration>,
    pub(crate) callback_limit: Option<Duration>,
}

#[derive(Debug, Default)]
pub(crate) struct SubscriptionFigures {
    pub(crate) synced: bool,
    pub(crate) in_flight: u32,
    present: u32,
    pub(crate) delivered: u64,
    pub(crate) depth: usize,
    pub(crate) oldest_since: Option<Duration>,
    pub(crate) coalesced: u64,
    // Boxed as the timings are.
    rare: Option<Box<Rare>>,
    // Boxed, once there is something to record.
    latency: Option<Box<Timing>>,
    calls: Option<Box<Timing>>,
    /// When the oldest event that is with the subscriber arrived, in nanoseconds; 0 if there is none.
    window_since: u64,
    /// In nanoseconds. Before the sync: when the subscription began. After it: how long the sync took.
    sync: u64,
    ended: Option<EndReason>,
    cancelled: bool,
    guard: Option<Waker>,
}

/// What most subscriptions never have.
#[derive(Debug, Default)]
struct Rare {
    dropped: u64,
    filtered: u64,
    panics: u32,
    filter_panics: u32,
    overran: u32,
    call: Option<BlockingCall>,
}

impl SubscriptionFigures {
    pub(crate) fn show_rare(&mut self, figures: &informer_core::listener::machine::Figures) {
        let is_needed = figures.filtered > 0 || figures.dropped > 0;
        if is_needed || self.rare.is_some() {
            let rare = self.rare.get_or_insert_default();
            (rare.dropped, rare.filtered) = (figures.dropped, figures.filtered);
        }
    }

    fn time_window(&mut self, was_synced: bool, handled: bool, oldest: Duration, runtime: &Runtime) {
        let since = if handled { std::mem::take(&mut self.window_since) } else { 0 };
        if since > 0 && was_synced {
            self.latency
                .get_or_insert_default()
                .record(runtime.now().saturating_sub(Duration::from_nanos(since)));
        }
        if self.in_flight > 0 && self.window_since == 0 {
            self.window_since = nanos(oldest).max(1);
        }
    }
}

/// Exists as long as the Listener or the closure of the subscription.
#[derive(Debug)]
pub(crate) struct Presence(SubscriptionState);

impl Deref for Presence {
    type Target = SubscriptionState;

    fn deref(&self) -> &SubscriptionState {
        &self.0
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.0.figures.with(|figures| figures.present -= 1);
        self.0.0.changed.raise();
    }
}

impl SubscriptionState {
    pub(crate) fn new(label: Arc<Label>, policy: Policy, times: Times, now: Duration) -> Self {
        let figures = SubscriptionFigures { sync: nanos(now), ..SubscriptionFigures::default() };
        let (figures, times) = (Guarded::new(figures), (times != Times::default()).then(|| Box::new(times)));
        Self(Arc::new(Inner { label, policy, times, figures, changed: Signal::default() }))
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.0.label.name
    }

    pub(crate) fn label(&self) -> &Arc<Label> {
        &self.0.label
    }

    pub(crate) fn policy(&self) -> Policy {
        self.0.policy
    }

    pub(crate) fn times(&self) -> Times {
        self.0.times.as_deref().copied().unwrap_or_default()
    }

    pub(crate) fn read(&self) -> SubscriptionStatus {
        self.0.figures.with(|figures| self.status(figures))
    }

    fn status(&self, figures: &SubscriptionFigures) -> SubscriptionStatus {
        let rare = figures.rare.as_deref();
        SubscriptionStatus {
            name: Arc::clone(self.name()),
            policy: self.policy(),
            resync: self.times().resync,
            synced: figures.synced,
            delivered: figures.delivered,
            depth: figures.depth,
            oldest_since: figures.oldest_since,
            in_flight: figures.in_flight > 0,
            coalesced: figures.coalesced,
            dropped: rare.map_or(0, |rare| rare.dropped),
            filtered: rare.map_or(0, |rare| rare.filtered),
            panics: rare.map_or(0, |rare| rare.panics.into()),
            filter_panics: rare.map_or(0, |rare| rare.filter_panics.into()),
            overran: rare.map_or(0, |rare| rare.overran.into()),
            stuck_on: rare.and_then(|rare| rare.call.as_ref()?.stuck_on().cloned()),
            sync_took: figures.synced.then(|| Duration::from_nanos(figures.sync)),
            latency: figures.latency.as_deref().copied().unwrap_or_default(),
            calls: figures.calls.as_deref().copied().unwrap_or_default(),
            ended: figures.ended.clone(),
        }
    }

    /// The oldest part of the last batch arrived at `arrived`.
    pub(crate) fn show(
        &self,
        arrived: Duration,
        runtime: &Runtime,
        change: impl FnOnce(&mut SubscriptionFigures),
    ) {
        let synced_now = self.0.figures.with(|figures| {
            let (was_synced, handled, oldest) = (figures.synced, figures.delivered, figures.oldest_since);
            change(figures);
            let is_handled = figures.delivered > handled;
            figures.time_window(was_synced, is_handled, oldest.unwrap_or(arrived), runtime);
            let synced_now = figures.synced && !was_synced;
            if synced_now {
                figures.sync = nanos(runtime.now()).saturating_sub(figures.sync);
            }
            synced_now
        });
        if synced_now {
            self.0.changed.raise();
        }
    }

    pub(crate) fn count_call(&self, took: Duration) {
        self.0.figures.with(|figures| {
            if figures.synced {
                figures.calls.get_or_insert_default().record(took);
            }
        });
    }

    pub(crate) fn count_panic(&self) {
        self.0.figures.with(|figures| figures.rare.get_or_insert_default().panics += 1);
    }

    pub(crate) fn count_overrun(&self) {
        self.0.figures.with(|figures| figures.rare.get_or_insert_default().overran += 1);
    }

    pub(crate) fn count_filter_panic(&self) -> u32 {
        self.0.figures.with(|figures| {
            let rare = figures.rare.get_or_insert_default();
            rare.filter_panics = rare.filter_panics.saturating_add(1);
            rare.filter_panics
        })
    }

    /// The first reason is kept and logged.
    pub(crate) fn end_with(&self, reason: EndReason) {
        let (is_first, guard) = self.0.figures.with(|figures| {
            let is_first = figures.ended.is_none();
            figures.ended.get_or_insert_with(|| reason.clone());
            (is_first, figures.guard.take())
        });
        if let Some(guard) = guard {
            guard.wake();
        }
        self.0.changed.raise();
        if is_first {
            self.log_end(&reason);
        }
    }

    /// A warning, unless the user ended it or the informer stopped, which has its own line.
    fn log_end(&self, reason: &EndReason) {
        let (informer, subscription) = (&self.0.label.owner, self.name());
        let why = one_line(&reason.to_string(), QUOTED);
        if matches!(reason, EndReason::Unsubscribed | EndReason::InformerStopped) {
            tracing::info!(target: "actix_informer::informer", %informer, %subscription, "the subscription {subscription} has ended: {why}");
        } else {
            tracing::warn!(target: "actix_informer::informer", %informer, %subscription, "the subscription {subscription} has ended: {why}");
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.0.figures.with(|figures| figures.ended.is_some())
    }

    pub(crate) fn enter(&self) -> Presence {
        self.0.figures.with(|figures| figures.present += 1);
        Presence(self.clone())
    }

    pub(crate) fn has_pending(&self) -> bool {
        self.0.figures.with(|figures| figures.depth > 0 || figures.in_flight > 0)
    }

    /// Whether events are with the subscriber, or were when its Listener ended.
    pub(crate) fn is_in_a_call(&self) -> bool {
        self.0.figures.with(|figures| figures.present > 0 && figures.in_flight > 0)
    }

    pub(crate) fn unfinished(&self) -> Unfinished {
        self.0.figures.with(|figures| Unfinished {
            name: Arc::clone(self.name()),
            dropped: figures.depth,
            in_flight: figures.in_flight as usize,
            still_running: figures.present > 0,
        })
    }

    /// The limit of a shutdown has passed.
    pub(crate) fn cancel_calls(&self) {
        self.0.figures.with(|figures| figures.cancelled = true);
        self.0.changed.raise();
    }

    /// Ends when a running async call must be cancelled: at a shutdown's limit, or [`CALL_GRACE`] after the end.
    pub(crate) async fn overdue(&self) {
        let late = async {
            self.over().await;
            tokio::time::sleep(CALL_GRACE).await;
        };
        tokio::select! {
            biased;
            () = self.until(|figures| figures.cancelled.then_some(())) => {}
            () = late => {}
        }
    }

    pub(crate) fn has_left(&self) -> bool {
        self.0.figures.with(|figures| figures.ended.is_some() && figures.present == 0)
    }

    pub(crate) fn end(&self) -> impl Future<Output = EndReason> {
        self.until(|figures| figures.ended.clone())
    }

    pub(crate) fn over(&self) -> impl Future<Output = ()> {
        self.until(|figures| figures.ended.as_ref().map(drop))
    }

    pub(crate) fn left(&self) -> impl Future<Output = ()> {
        self.until(|figures| (figures.present == 0).then_some(()))
    }

    async fn until<T>(&self, outcome: impl Fn(&SubscriptionFigures) -> Option<T>) -> T {
        self.0.changed.until(|| self.0.figures.with(|figures| outcome(figures))).await
    }

    pub(crate) fn as_stop(&self) -> Arc<dyn StopSignal> {
        Arc::clone(&self.0) as Arc<dyn StopSignal>
    }
}

impl StopSignal for Inner {
    fn poll_ended(&self, cx: &mut task::Context<'_>) -> Poll<()> {
        self.figures.with(|figures| {
            if figures.ended.is_some() {
                return Poll::Ready(());
            }
            if !figures.guard.as_ref().is_some_and(|guard| guard.will_wake(cx.waker())) {
                figures.guard = Some(cx.waker().clone());
            }
            Poll::Pending
        })
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
