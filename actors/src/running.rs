//! A running informer, as its handles share it, and how it is shut down.
//!
//! A shutdown reads nothing more, applies what is queued, lets every listener deliver, then stops the actors.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all};

use crate::pipeline::callback_host::calling_subscription;
use crate::pipeline::ending::{EndNotice, Ending};
use crate::pipeline::messages::{Body, Drain, Flush};
use crate::pipeline::subscription_state::{SubscriptionState, Unfinished};
use crate::pipeline::wiring::Pipeline;
use crate::runtime::mailbox::ask;
use crate::runtime::within;

/// At least for the last step of an end: actors end within one turn.
pub(crate) const LEAST_PATIENCE: Duration = Duration::from_millis(100);

pub(crate) struct Running<S: Body> {
    pub(crate) pipeline: Pipeline<S>,
    pub(crate) ending: Arc<Ending>,
    next_listener: AtomicU64,
}

/// What a shutdown left undone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Subscriptions that had not handled everything by the deadline, streams that were not polled, and the
    /// subscription in whose callback the shutdown was awaited.
    pub unfinished: Vec<Unfinished>,
    /// Whether something that came from a source could not be applied: the pipeline was dead, or too slow.
    pub unapplied: bool,
    /// Whether something of the informer still ran at the end: an actor, or a callback that could not be cancelled.
    pub still_running: bool,
    /// Whether the shutdown was awaited inside a callback of one of the informer's own closures. It does not
    /// wait for that callback, which still runs.
    pub own_callback: bool,
}

impl ShutdownReport {
    /// Whether everything came back in time.
    pub fn is_clean(&self) -> bool {
        self.unfinished.is_empty() && !self.unapplied && !self.still_running
    }
}

impl fmt::Display for ShutdownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_clean() {
            return f.write_str("everything was delivered");
        }
        let mut left: Vec<_> = self.unfinished.iter().map(ToString::to_string).collect();
        if self.unapplied {
            left.push("what a source had brought was not all applied".to_owned());
        }
        if self.own_callback {
            left.push("the callback in which the shutdown was awaited still runs".to_owned());
        } else if self.still_running {
            left.push("a part of it still runs".to_owned());
        }
        f.write_str(&left.join("; "))
    }
}

impl<S: Body> Running<S> {
    pub(crate) fn new(pipeline: Pipeline<S>, ending: Arc<Ending>) -> Self {
        Self { pipeline, ending, next_listener: AtomicU64::new(0) }
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.next_listener.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn watch_for_stop(&self) {
        let registrant: Arc<Ending> = Arc::clone(&self.ending);
        self.ending.registration.list(registrant);
        if let Some(pass) = self.pipeline.pass.clone() {
            self.ending.at_end(move || pass.close());
        }
        let (end_notice, tasks) = (EndNotice(Arc::clone(&self.ending)), self.pipeline.parent.tasks.clone());
        self.pipeline.parent.arbiter.spawn(move || async move {
            end_notice.0.stop.cancelled().await;
            end_notice.0.end();
            tasks.close();
            tasks.wait().await;
            drop(end_notice);
        });
    }

    pub(crate) async fn shutdown(&self, limit: Duration) -> ShutdownReport {
        let pipeline = &self.pipeline;
        pipeline.shared.stop_reading.cancel();
        let clock = &pipeline.shared.runtime.0.clock;
        let deadline = clock.now().saturating_add(limit);
        // The caller's callback returns after this: nothing here may wait for it.
        let caller = calling_subscription(&pipeline.parent.name);
        let stopped = pipeline.parent.stop.is_cancelled();
        let drained = stopped || within(limit, self.drained(caller.clone())).await.is_some();
        let mut unfinished = self.ending.subscriptions.with_pending_events();
        unfinished.extend(caller.clone());
        let unapplied = pipeline
            .shared
            .handed_over
            .is_ahead_of(&pipeline.shared.published.snapshot(), &pipeline.shared.sources);
        self.ending.end();
        pipeline.parent.tasks.close();
        let mut others = self.ending.subscriptions.present();
        others.retain(|state| !caller.as_ref().is_some_and(|caller| caller.is(state)));
        // Guards end within one turn of the stop, unless the arbiter is blocked.
        let mut over =
            pin!(join(self.ending.over.cancelled(), join_all(others.iter().map(SubscriptionState::left))));
        let rest = deadline.saturating_sub(clock.now());
        let mut returned = drained && within(rest.max(LEAST_PATIENCE), &mut over).await.is_some();
        if !returned {
            unfinished.extend(others.iter().filter(|state| state.is_in_a_call()).cloned());
            others.iter().for_each(SubscriptionState::cancel_calls);
            returned = within(LEAST_PATIENCE, over).await.is_some();
        }
        ShutdownReport {
            unfinished: report(unfinished),
            unapplied,
            still_running: !returned || caller.is_some(),
            own_callback: caller.is_some(),
        }
    }

    async fn drained(&self, caller: Option<SubscriptionState>) {
        // An error: the actor died in between, and its successor has nothing to wait for.
        let _closed = ask(&self.pipeline.fifo, Flush).await;
        let listeners = self.pipeline.roster.all();
        join_all(listeners.into_iter().map(|listener| ask(&listener, Drain { inside: caller.clone() })))
            .await;
    }
}

fn report(subscriptions: Vec<SubscriptionState>) -> Vec<Unfinished> {
    let mut once: Vec<SubscriptionState> = Vec::new();
    for state in subscriptions {
        if !once.iter().any(|known| known.is(&state)) {
            once.push(state);
        }
    }
    once.iter().map(SubscriptionState::unfinished).collect()
}

impl<S: Body> Drop for Running<S> {
    fn drop(&mut self) {
        self.ending.end();
    }
}
