//! The subscription of a controller to one informer, made again when its Listener has failed.
//!
//! 1. The next Listener delivers all changes after those that were taken, deletions too.
//! 2. Waits grow. After five failures within ten minutes no new Listener is made: the status shows why, and
//!    [`Shared::lost`] is cancelled.
//! 3. The drop unsubscribes at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use informer_core::reflector::Moment;
use informer_core::restart::{Exit, OnFailure, RestartHistory, RestartPolicy, RestartVerdict};
use informer_core::words::{Brief, QUOTED, one_line};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::shared::Shared;
use super::watched::Follows;
use super::watched::SubscriptionCell;
use informer_actors::informer::{Body, Informer};
use informer_actors::inner::{Feed, Followed, sleep};
use informer_actors::subscription::{EndReason, SubscribeError, SubscribeOptions, Subscription};

struct Following<T: Body> {
    inner: Arc<Inner<T>>,
    _stop: DropGuard,
}

struct Inner<T: Body> {
    informer: Informer<T>,
    options: SubscribeOptions<T>,
    feed: Arc<Feed<T>>,
    subscription: SubscriptionCell<T>,
    is_given_up: AtomicBool,
}

pub(super) fn follow<S: Body, T: Body>(
    shared: &Arc<Shared<S>>,
    informer: &Informer<T>,
    options: SubscribeOptions<T>,
    feed: Feed<T>,
) -> Result<Box<dyn Follows>, SubscribeError> {
    let options = options.name(format!("controller {}", shared.name));
    let subscription = SubscriptionCell::new();
    let (informer, feed, is_given_up) = (informer.clone(), Arc::new(feed), AtomicBool::new(false));
    let inner = Arc::new(Inner { informer, options, feed, subscription, is_given_up });
    inner.subscribe()?;
    let stop = CancellationToken::new();
    let (kept, to, stopped) = (Arc::clone(&inner), Arc::clone(shared), stop.clone());
    shared.runtime.spawn_local(move || async move {
        let _ended = stopped.run_until_cancelled(kept.keep(&to)).await;
    });
    Ok(Box::new(Following { inner, _stop: stop.drop_guard() }))
}

impl<T: Body> Inner<T> {
    fn subscribe(&self) -> Result<(), SubscribeError> {
        let feed = Arc::clone(&self.feed);
        let options = self.options.clone();
        let subscription = self.informer.feed(options, feed)?;
        self.subscription.set(subscription);
        Ok(())
    }

    async fn keep<S: Body>(&self, shared: &Shared<S>) {
        let mut history = RestartHistory::new(RestartPolicy::default());
        let mut chance = shared.runtime.chance();
        loop {
            let Some(end) = self.subscription.read(Subscription::end_of) else { return };
            let EndReason::ListenerFailed(why) = end.await else { return };
            let (controller, informer) = (&shared.name, self.informer.name());
            let moment = Moment { now: shared.runtime.now(), chance: chance.draw() };
            let verdict = history.decide(OnFailure::RestartAlone, &Exit::Failed(Arc::clone(&why)), moment);
            let why = one_line(&why, QUOTED);
            let RestartVerdict::Restart { after } = verdict else {
                tracing::error!(target: "actix_informer::controller", %controller, informer, "controller {controller}: its listener to informer {informer:?} has failed too often, and is not started again: {why}; changes of these objects lead to no reconcile");
                self.is_given_up.store(true, Ordering::Relaxed);
                shared.lost.cancel();
                drop(self.feed.forget());
                return;
            };
            tracing::error!(target: "actix_informer::controller", %controller, informer, "controller {controller}: its listener to informer {informer:?} has failed: {why}; it starts again in {}, and no key is lost", Brief(after));
            sleep(after).await;
            if self.subscribe().is_err() {
                // The informer has stopped, which the status shows.
                return;
            }
            shared.counters.listeners_restarted.add(1);
        }
    }
}

impl<T: Body> Follows for Following<T> {
    fn ended(&self) -> Option<String> {
        let status = self.inner.subscription.read(Subscription::status)?;
        let restarts = |reason: &EndReason| {
            matches!(reason, EndReason::ListenerFailed(_)) && !self.inner.is_given_up.load(Ordering::Relaxed)
        };
        status.ended.filter(|reason| !restarts(reason)).map(|reason| format!("{}: {reason}", status.name))
    }
}

impl<T: Body> Drop for Following<T> {
    fn drop(&mut self) {
        self.inner.subscription.clear();
    }
}
