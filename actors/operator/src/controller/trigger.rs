//! Keys from triggers, streams and the period of the controller. Nothing waits for room: a key that waits
//! takes no more. A stream that panics or ends is counted; the controller goes on.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use crate::controller::machine::{Arrival, Reason};
use crate::queue::machine::Priority;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use informer_core::meta::ObjectKey;
use informer_core::words::{QUOTED, one_line};

use super::Task;
use super::shared::Shared;
use crate::queue::Added;
use informer_actors::informer::Body;
use informer_actors::inner::{drop_payload, sleep};
use informer_core::words::panic_text;

/// Then the thread runs others.
const KEYS_A_TURN: usize = 250;

/// Requests reconciles, from any thread. Cloning copies a pointer. It keeps neither the controller nor its
/// informers alive.
#[derive(Clone)]
pub struct Trigger(Arc<dyn Fn(ObjectKey) -> Added + Send + Sync>);

impl Trigger {
    pub(super) fn new<S: Body>(shared: &Arc<Shared<S>>) -> Self {
        let shared = Arc::downgrade(shared);
        let why = || (Reason::Triggered, Priority::Normal, Duration::ZERO);
        let arrive = move |key| {
            shared.upgrade().map_or(Added::Refused, |shared| shared.arrive(&key, Arrival::Input, why()))
        };
        Self(Arc::new(arrive))
    }

    /// Requests a reconcile of this key, even if it rests until its object changes. Returns at once; refused
    /// after the stop.
    pub fn trigger(&self, key: ObjectKey) -> Added {
        (self.0)(key)
    }
}

informer_core::debug_as!(Trigger, self);

pub(super) async fn follow<S: Body>(
    (shared, _task): (Arc<Shared<S>>, Task),
    stream: BoxStream<'static, ObjectKey>,
) {
    let trigger = Trigger::new(&shared);
    let triggered = async {
        let mut chunks = stream.ready_chunks(KEYS_A_TURN);
        while let Some(keys) = chunks.next().await {
            for key in keys {
                trigger.trigger(key);
            }
            tokio::task::yield_now().await;
        }
    };
    let ended = shared.no_intake.run_until_cancelled(AssertUnwindSafe(triggered).catch_unwind()).await;
    let Some(ended) = ended else { return };
    shared.counters.streams_ended.add(1);
    if let Err(panic) = ended {
        let (controller, panicked) = (&shared.name, one_line(panic_text(&*panic), QUOTED).to_string());
        tracing::error!(target: "actix_informer::controller", %controller, "controller {controller}: a stream of keys has panicked, nothing more comes from it: {panicked}");
        drop_payload(panic);
    }
}

pub(super) async fn repeat<S: Body>((shared, _task): (Arc<Shared<S>>, Task), period: Duration) {
    loop {
        if shared.no_intake.run_until_cancelled(sleep(period)).await.is_none() {
            return;
        }
        let snapshot = shared.primary.snapshot();
        for (at, key) in snapshot.keys().enumerate() {
            shared.arrive(key, Arrival::Output, (Reason::Timer, Priority::Low, Duration::ZERO));
            if at % KEYS_A_TURN == KEYS_A_TURN - 1 {
                tokio::task::yield_now().await;
            }
        }
    }
}
