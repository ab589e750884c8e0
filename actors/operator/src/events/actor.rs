//! The actor of a recorder: it sends requests, and wakes when one is due.
//!
//! Requests under way when the actor dies are sent again. A panic of the sink counts as the answer to that
//! request. Callers of a dead actor get `Closed` and repeat their requests.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use crate::events::machine::{Answer, EventRequest, RecorderMachine};
use actix::dev::OneshotSender;
use actix::{ActorFutureExt, AsyncContext, Context, Handler, Message, WrapFuture};
use futures_util::FutureExt;
use informer_core::words::{QUOTED, one_line};

use super::content::Inside;
use informer_actors::inner::{Locked, Run, Runner, Site, drop_payload};
use informer_core::words::panic_text;

pub(super) struct Flushed(pub(super) OneshotSender<()>);

impl Message for Flushed {
    type Result = ();
}

impl Handler<Flushed> for Runner<Inside> {
    type Result = ();

    fn handle(&mut self, Flushed(caller): Flushed, ctx: &mut Context<Self>) {
        self.waiting.retain(|caller| !caller.is_closed());
        self.waiting.push(caller);
        self.look(ctx);
    }
}

impl Run for Inside {
    type Machine = RecorderMachine;
    /// For a flush.
    type Waiting = Vec<OneshotSender<()>>;

    const SITES: [Site; 2] = [Site::RecorderStarted, Site::RecorderLook];

    fn locked(&self) -> &Locked<RecorderMachine> {
        &self.content
    }

    fn begin(&self) {
        self.with(|recorder, at| recorder.reclaim(at));
    }

    fn look(runner: &mut Runner<Self>, ctx: &mut Context<Runner<Self>>) -> Option<Duration> {
        let inside = Arc::clone(&runner.run);
        while let Some(request) = inside.with(|recorder, at| recorder.next_request(at)) {
            send(runner, request, ctx);
        }
        inside.warn();
        if inside.with(|recorder, _| recorder.unsent()) == 0 {
            for caller in runner.waiting.drain(..) {
                let _ = caller.send(());
            }
        }
        inside.with(|recorder, _| recorder.next_due())
    }
}

fn send(runner: &Runner<Inside>, request: EventRequest, ctx: &mut Context<Runner<Inside>>) {
    let (id, sink) = (request.id, Arc::clone(&runner.run.sink));
    let sent = AssertUnwindSafe(async move { sink.send(request).await }).catch_unwind();
    let answered = sent.into_actor(runner).map(move |answer, runner: &mut Runner<Inside>, ctx| {
        let answer = answer.unwrap_or_else(|panic| {
            let why = format!("the sink has panicked: {}", one_line(panic_text(&*panic), QUOTED));
            drop_payload(panic);
            Answer::Refused { word: "Panicked".to_owned(), why }
        });
        runner.faults.fail_point(Site::RecorderAnswered);
        runner.run.with(|recorder, at| recorder.handle_answer(id, answer, at));
        runner.look(ctx);
    });
    ctx.spawn(answered);
}
