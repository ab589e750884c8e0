//! The actor of a recorder: it sends requests, and wakes when one is due.
//!
//! Answers "who sends, and what if it dies?". `events/machine.rs` decides what is sent and when. Invariants:
//! 1. After each turn every request that can be sent now is under way, and a timer runs for the next one.
//! 2. It holds nothing that is lost when it dies: the content is outside, requests under way are sent again after a
//!    restart, and whoever waits for a flush asks again.
//! 3. A panic of the sink is the answer to that one request.
//!
//! | message | sender | answer | bound |
//! |---|---|---|---|
//! | `Look` | whoever emits or closes | none | one |
//! | `Flushed` | who waits for a flush | when nothing waits to be sent | one a waiting caller |
//!
//! Its death answers the waiting asks with `Closed`; their senders ask again. It is restarted alone. If it is given up, or its
//! arbiter ends, the recorder is over: events are refused, and every wait ends. Read next: `content.rs`.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::events::machine::{Answer, Request};
use actix::dev::OneshotSender;
use actix::{
    Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, SpawnHandle, Supervised, WrapFuture,
};
use futures_util::FutureExt;
use informer_core::words::{QUOTED, one_line};

use super::content::Inside;
use informer_actors::inner::{Child, Faults, Site, drop_payload, sleep_until};
use informer_core::words::panic_text;

/// Something has changed: look whether there is a request to send.
pub(super) struct Look;

impl Message for Look {
    type Result = ();
}

/// Answered when nothing waits to be sent.
pub(super) struct Flushed(pub(super) OneshotSender<()>);

impl Message for Flushed {
    type Result = ();
}

/// What the actor is built from.
#[derive(Clone)]
pub(super) struct RecorderSpec {
    pub(super) inside: Arc<Inside>,
    pub(super) faults: Faults,
}

pub(super) struct RecorderActor {
    spec: RecorderSpec,
    flushes: Vec<OneshotSender<()>>,
    alarm: Option<(Duration, SpawnHandle)>,
}

impl Actor for RecorderActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.spec.faults.fail_point(Site::RecorderStarted);
        // A Look that the actor died over is lost.
        self.spec.inside.is_told.store(false, Ordering::Release);
        self.spec.inside.content.with(|recorder, at| recorder.reclaim(at));
        self.look(ctx);
    }
}

impl Supervised for RecorderActor {
    fn restarting(&mut self, _ctx: &mut Context<Self>) {
        *self = Self::build(&self.spec.clone());
    }
}

impl Child for RecorderActor {
    type Spec = RecorderSpec;

    fn build(spec: &RecorderSpec) -> Self {
        Self { spec: spec.clone(), flushes: Vec::new(), alarm: None }
    }
}

impl Handler<Look> for RecorderActor {
    type Result = ();

    fn handle(&mut self, _: Look, ctx: &mut Context<Self>) {
        self.spec.inside.is_told.store(false, Ordering::Release);
        self.look(ctx);
    }
}

impl Handler<Flushed> for RecorderActor {
    type Result = ();

    fn handle(&mut self, Flushed(caller): Flushed, ctx: &mut Context<Self>) {
        self.flushes.retain(|caller| !caller.is_closed());
        self.flushes.push(caller);
        self.look(ctx);
    }
}

impl RecorderActor {
    /// Sends what can be sent now; the machine bounds how much is under way.
    fn look(&mut self, ctx: &mut Context<Self>) {
        self.spec.faults.fail_point(Site::RecorderLook);
        let inside = Arc::clone(&self.spec.inside);
        while let Some(request) = inside.content.with(|recorder, at| recorder.next_request(at)) {
            self.send(request, ctx);
        }
        inside.warn();
        if inside.content.with(|recorder, _| recorder.unsent()) == 0 {
            for caller in self.flushes.drain(..) {
                // It is not a failure if the caller has gone.
                let _ = caller.send(());
            }
        }
        self.set_alarm(ctx);
    }

    fn send(&self, request: Request, ctx: &mut Context<Self>) {
        let (id, sink) = (request.id, Arc::clone(&self.spec.inside.sink));
        let sent = AssertUnwindSafe(async move { sink.send(request).await }).catch_unwind();
        let answered = sent.into_actor(self).map(move |answer, actor: &mut Self, ctx| {
            let answer = answer.unwrap_or_else(|panic| {
                let why = format!("the sink has panicked: {}", one_line(panic_text(&*panic), QUOTED));
                drop_payload(panic);
                Answer::Refused { word: "Panicked".to_owned(), why }
            });
            actor.spec.faults.fail_point(Site::RecorderAnswered);
            actor.spec.inside.content.with(|recorder, at| recorder.handle_answer(id, answer, at));
            actor.look(ctx);
        });
        ctx.spawn(answered);
    }

    /// Wakes when the next request is due without any event or answer before it.
    fn set_alarm(&mut self, ctx: &mut Context<Self>) {
        let content = &self.spec.inside.content;
        let due = content.with(|recorder, _| recorder.next_due());
        if due == self.alarm.map(|(at, _)| at) {
            return;
        }
        if let Some((_, alarm)) = self.alarm.take() {
            ctx.cancel_future(alarm);
        }
        let Some(due) = due else { return };
        let clock = content.clock().clone();
        let wait = async move {
            // What is due already waits for the turn of others.
            tokio::task::yield_now().await;
            sleep_until(&clock, due).await;
        };
        let woken = wait.into_actor(self).map(|(), actor: &mut Self, ctx| {
            actor.alarm = None;
            actor.look(ctx);
        });
        self.alarm = Some((due, ctx.spawn(woken)));
    }
}
