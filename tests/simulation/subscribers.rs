//! The subscribers of a run: actors, closures and streams, fast, slow, panicking and leaving.
//!
//! Answers "who receives events, and how do they handle them?". Each records what it received. Invariants:
//! 1. A subscriber that has left receives nothing more.

use std::time::Duration;

use actix::{Actor, Addr, AtomicResponse, Context, Handler, ResponseFuture, WrapFuture};
use futures_util::StreamExt;
use informer_actors::informer::Informer;
use informer_actors::subscription;
use informer_actors::subscription::Notify;
use informer_actors::subscription::{EndReason, SubscriptionStatus};
use informer_actors::subscription::{SubscribeError, SubscribeOptions, Subscription, WhenFull};
use informer_actors::testing::{Recorder, RecorderHandle};
use tokio::sync::watch;

use crate::dice::Dice;

/// The text with which some closures panic.
pub(crate) const UNLUCKY: &str = "panics on purpose";

/// A subscriber, and what it received.
pub(crate) struct Subscriber {
    pub(crate) received: RecorderHandle<String>,
    pub(crate) handle: Handle,
    /// Keeps the actor of a weak subscription running.
    actor: Option<Addr<Slow>>,
    /// Whether that actor was dropped.
    pub(crate) abandoned: bool,
}

/// The handle of a subscription: itself, or the task that polls its stream.
pub(crate) enum Handle {
    Held(Subscription<String>),
    Polled(Polled),
}

/// A stream in a task, and the status that it shows after each event and at its end.
pub(crate) struct Polled {
    task: tokio::task::JoinHandle<()>,
    status: watch::Receiver<SubscriptionStatus>,
}

impl Polled {
    pub(crate) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An actor that takes some time for each event.
struct Slow {
    received: RecorderHandle<String>,
    pause: Duration,
}

impl Actor for Slow {
    type Context = Context<Self>;
}

impl Handler<Notify<String>> for Slow {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, notify: Notify<String>, _ctx: &mut Context<Self>) -> Self::Result {
        self.received.record(&notify);
        let pause = self.pause;
        AtomicResponse::new(Box::pin(async move { tokio::time::sleep(pause).await }.into_actor(self)))
    }
}

/// An actor whose futures would run at the same time; it asks for one event at a time.
struct Ordered {
    received: RecorderHandle<String>,
    pause: Duration,
}

impl Actor for Ordered {
    type Context = Context<Self>;
}

impl Handler<Notify<String>> for Ordered {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, notify: Notify<String>, _ctx: &mut Context<Self>) -> Self::Result {
        let (received, pause) = (self.received.clone(), self.pause);
        Box::pin(async move {
            tokio::time::sleep(pause).await;
            received.record(&notify);
        })
    }
}

fn options(dice: &mut Dice) -> SubscribeOptions<String> {
    let options = SubscribeOptions::new();
    // A resync of every object in each second is most of a run's work, so few subscribers ask for it.
    let options = match dice.below(120) {
        0..=29 => options.resync_every(Duration::from_secs(20 + dice.below(200) as u64)),
        30..=38 => options.resync_every(Duration::MAX),
        39 => options.resync_every(Duration::ZERO),
        _ => options,
    };
    match dice.below(4) {
        0 => options.every(dice.below(2_500), WhenFull::Restate),
        1 => options.every(dice.below(4_000), WhenFull::Disconnect),
        _ => options,
    }
}

impl Subscriber {
    /// Adds a subscriber.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub(crate) fn join(informer: &Informer<String>, dice: &mut Dice) -> Result<Self, SubscribeError> {
        let received: RecorderHandle<String> = Recorder::new().1;
        let recorded = received.clone();
        let options = options(dice);
        let pause = Duration::from_millis(dice.below(3000) as u64);
        let mut actor = None;
        let held = match dice.below(8) {
            0 => informer.subscribe_with(options, Slow { received: recorded, pause }.start()),
            1 => {
                let alive = Slow { received: recorded, pause: pause / 10 }.start();
                let weak = alive.downgrade();
                actor = Some(alive);
                informer.subscribe_with(options, weak)
            }
            2 => {
                let ordered = Ordered { received: recorded, pause: pause / 100 }.start();
                informer.subscribe_with(options.one_at_a_time(), ordered)
            }
            3 => informer.subscribe_with(
                options,
                subscription::Subscriber::blocking(move |notify| recorded.record(&notify)),
            ),
            4 => {
                let handle = Handle::Polled(poll(informer, options, recorded, pause / 100)?);
                return Ok(Self { received, handle, actor, abandoned: false });
            }
            5 => informer.subscribe_with(
                options,
                subscription::Subscriber::each(move |notify: Notify<String>| {
                    recorded.record(&notify);
                    let unlucky = notify.subject().body().ends_with('7');
                    async move { assert!(!unlucky, "{UNLUCKY}") }
                }),
            ),
            _ => informer.subscribe_with(
                options,
                subscription::Subscriber::each(move |notify| {
                    recorded.record(&notify);
                    tokio::task::yield_now()
                }),
            ),
        };
        Ok(Self { received, handle: Handle::Held(held?), actor, abandoned: false })
    }

    /// Drops the actor of a weak subscription, if this is one.
    pub(crate) fn abandon(&mut self) {
        self.abandoned |= self.actor.take().is_some();
    }

    pub(crate) fn status(&self) -> SubscriptionStatus {
        match &self.handle {
            Handle::Held(subscription) => subscription.status(),
            Handle::Polled(polled) => polled.status.borrow().clone(),
        }
    }

    /// Why it has ended, if it has.
    pub(crate) fn ended(&self) -> Option<EndReason> {
        self.status().ended
    }
}

/// Polls a stream in a task that takes some time for each event.
fn poll(
    informer: &Informer<String>,
    options: SubscribeOptions<String>,
    received: RecorderHandle<String>,
    pause: Duration,
) -> Result<Polled, SubscribeError> {
    let mut events = informer.events_with(options)?;
    let (show, status) = watch::channel(events.subscription().status());
    let task = actix_rt::spawn(async move {
        while let Some(notify) = events.next().await {
            received.record(&notify);
            show.send_replace(events.subscription().status());
            tokio::time::sleep(pause).await;
        }
        show.send_replace(events.subscription().status());
    });
    Ok(Polled { task, status })
}
