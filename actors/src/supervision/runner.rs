//! The actor that carries out the decisions of a machine in a [`Locked`]. A [`Run`] says what it does.
//!
//! It looks when it is built, when it was told of a change, and at the machine's next due time. Its mailbox holds at
//! most one `Look`, plus one for each restart. If it dies, only pending answers are lost; their senders ask again. It
//! is restarted alone.

use std::sync::Arc;
use std::time::Duration;

use actix::fut::wrap_future;
use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, SpawnHandle, Supervised};
use informer_core::restart::{OnFailure, Role};

use crate::runtime::clock::sleep_until;
use crate::runtime::faults::{Faults, Site};
use crate::runtime::locked::{Locked, Machine};
use crate::supervision::owner::Child;

/// The role of an actor whose failures concern no other one.
pub const ALONE: Role = Role { on_failure: OnFailure::RestartAlone, follows_group: false, tells_owner: true };

/// Something has changed: look whether something must be done.
#[derive(Debug)]
pub struct Look;

impl Message for Look {
    type Result = ();
}

/// What a [`Runner`] runs.
pub trait Run: Sized + Send + Sync + 'static {
    /// What decides.
    type Machine: Machine;

    /// Receivers of answers from this actor. They are lost when it dies.
    type Waiting: Default + Unpin + 'static;

    /// Where a test may kill it: when it is built, and when it looks.
    const SITES: [Site; 2];

    /// The machine.
    fn locked(&self) -> &Locked<Self::Machine>;

    /// Called when the actor starts, at first and after each restart.
    fn begin(&self) {}

    /// Does a bounded part of what is due. Returns the time of the next look if nothing changes before.
    fn look(runner: &mut Runner<Self>, ctx: &mut Context<Runner<Self>>) -> Option<Duration>;

    /// Tells the actor that something has changed.
    #[expect(
        clippy::disallowed_methods,
        reason = "bounded: one Look is in the mailbox at most, and one more for each restart"
    )]
    fn tell(&self, actor: &Addr<Runner<Self>>) {
        if self.locked().must_tell() {
            actor.do_send(Look);
        }
    }
}

/// The actor of one machine.
pub struct Runner<R: Run> {
    /// What it runs.
    pub run: Arc<R>,
    /// The receivers of its answers.
    pub waiting: R::Waiting,
    /// Where a test may kill it.
    pub faults: Faults,
    alarm: Alarm,
}

impl<R: Run> Runner<R> {
    /// Looks now.
    pub fn look(&mut self, ctx: &mut Context<Self>) {
        self.faults.fail_point(R::SITES[1]);
        let due = R::look(self, ctx);
        let clock = self.run.locked().clock().clone();
        let wait = |due| async move {
            // A due time also waits for a turn of others: otherwise the actor could look again without a pause.
            tokio::task::yield_now().await;
            sleep_until(&clock, due).await;
        };
        self.alarm.set(due, wait, ctx, |runner, ctx| {
            runner.alarm.rang();
            runner.look(ctx);
        });
    }
}

impl<R: Run> Actor for Runner<R> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.faults.fail_point(R::SITES[0]);
        // The `Look` during which the actor died is lost.
        self.run.locked().begin_look();
        self.run.begin();
        self.look(ctx);
    }
}

impl<R: Run> Supervised for Runner<R> {
    fn restarting(&mut self, _ctx: &mut Context<Self>) {
        *self = Self::build(&(Arc::clone(&self.run), self.faults.clone()));
    }
}

impl<R: Run> Child for Runner<R> {
    type Spec = (Arc<R>, Faults);

    fn build((run, faults): &Self::Spec) -> Self {
        let (run, faults) = (Arc::clone(run), faults.clone());
        Self { run, waiting: R::Waiting::default(), faults, alarm: Alarm::default() }
    }
}

impl<R: Run> Handler<Look> for Runner<R> {
    type Result = ();

    fn handle(&mut self, _: Look, ctx: &mut Context<Self>) {
        self.run.locked().begin_look();
        self.look(ctx);
    }
}

informer_core::debug_as!([R: Run] Runner<R>, self);

/// Wakes an actor at one moment.
#[derive(Debug, Default)]
pub struct Alarm(Option<(Duration, SpawnHandle)>);

impl Alarm {
    /// Calls `wake`, which must call [`Self::rang`], when `wait` for `due` has ended. Replaces an earlier
    /// time; `None` removes it.
    pub fn set<A: Actor<Context = Context<A>>, W: Future<Output = ()> + 'static>(
        &mut self,
        due: Option<Duration>,
        wait: impl FnOnce(Duration) -> W,
        ctx: &mut Context<A>,
        wake: fn(&mut A, &mut Context<A>),
    ) {
        if due == self.0.map(|(at, _)| at) {
            return;
        }
        if let Some((_, set)) = self.0.take() {
            ctx.cancel_future(set);
        }
        let Some(due) = due else { return };
        let woken = wrap_future::<_, A>(wait(due)).map(move |(), actor, ctx| wake(actor, ctx));
        self.0 = Some((due, ctx.spawn(woken)));
    }

    /// The alarm has woken its actor.
    pub fn rang(&mut self) {
        self.0 = None;
    }
}
