//! The actor of an operator: it starts and stops parts, and wakes when one is due.
//!
//! Answers "who carries out what is decided?". It holds nothing that is lost when it dies: what is known of the parts is
//! outside, and they run on. Invariants:
//! 1. After each turn nothing is left to be done, and a timer runs for what is due next.
//! 2. When everything has stopped, the actor ends.
//!
//! Mailbox: one `Look` at a time. It is restarted alone. If it is given up, or its arbiter ends, every part is dropped.
//! Read next: `run.rs`, how a part runs; `content.rs`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::lifecycle::machine::Stage;
use actix::{
    Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, SpawnHandle, Supervised, WrapFuture,
};

use super::content::Step;
use super::{Shared, run};
use informer_actors::inner::{Child, Faults, Site, sleep_until};

/// Something has changed: look whether something has to be done.
pub(super) struct Look;

impl Message for Look {
    type Result = ();
}

/// What the actor is built from.
#[derive(Clone)]
pub(super) struct OperatorSpec {
    pub(super) shared: Arc<Shared>,
    pub(super) faults: Faults,
}

pub(super) struct OperatorActor {
    spec: OperatorSpec,
    alarm: Option<(Duration, SpawnHandle)>,
}

impl Actor for OperatorActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.spec.faults.fail_point(Site::OperatorStarted);
        // A Look that the actor died over is lost.
        self.spec.shared.is_told.store(false, Ordering::Release);
        self.look(ctx);
    }
}

impl Supervised for OperatorActor {
    fn restarting(&mut self, _ctx: &mut Context<Self>) {
        *self = Self::build(&self.spec.clone());
    }
}

impl Child for OperatorActor {
    type Spec = OperatorSpec;

    fn build(spec: &OperatorSpec) -> Self {
        Self { spec: spec.clone(), alarm: None }
    }
}

impl Handler<Look> for OperatorActor {
    type Result = ();

    fn handle(&mut self, _: Look, ctx: &mut Context<Self>) {
        self.spec.shared.is_told.store(false, Ordering::Release);
        self.look(ctx);
    }
}

impl OperatorActor {
    fn look(&mut self, ctx: &mut Context<Self>) {
        self.spec.faults.fail_point(Site::OperatorLook);
        let shared = &self.spec.shared;
        let mut has_acted = false;
        while let Some(step) = shared.content.next() {
            has_acted = true;
            match step {
                Step::Start(life, tokens) => run::start(shared, life, tokens),
                Step::Cancel(token) => token.cancel(),
            }
        }
        let stage = shared.content.with(|lifecycle, _| lifecycle.stage());
        if has_acted || stage == Stage::Stopped {
            shared.changed.raise();
        }
        if stage == Stage::Stopped {
            return shared.stop.cancel();
        }
        self.set_alarm(ctx);
    }

    fn set_alarm(&mut self, ctx: &mut Context<Self>) {
        let content = &self.spec.shared.content;
        let due = content.with(|lifecycle, _| lifecycle.next_due());
        if due == self.alarm.map(|(at, _)| at) {
            return;
        }
        if let Some((_, alarm)) = self.alarm.take() {
            ctx.cancel_future(alarm);
        }
        let Some(due) = due else { return };
        let clock = content.clock().clone();
        let woken = async move { sleep_until(&clock, due).await };
        let woken = woken.into_actor(self).map(|(), actor: &mut Self, ctx| {
            actor.alarm = None;
            actor.look(ctx);
        });
        self.alarm = Some((due, ctx.spawn(woken)));
    }
}
