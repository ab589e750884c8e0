//! The guard around each actor: it survives the actor's panics and carries out the supervisor's verdict.
//!
//! Answers "what happens when this actor ends?" by asking the Supervisor, and does it. actix's own `Supervisor` does
//! not restart after a panic; this polls the actor's context under `catch_unwind` and restarts it in place, which
//! keeps its address and the messages queued there. Invariants:
//! 1. Nothing that an actor does, not even a panic while it is built or dropped, reaches beyond its guard.
//! 2. An actor is never reused after a panic: `restarting` replaces it by a fresh one.
//! 3. A member of the group is restarted exactly once for each epoch, whoever caused it.
//! 4. The guard ends at the stop, when no address of its actor is left, or when supervision gives up.
//!
//! ```text
//!  poll ──▶ ended / panicked ──▶ ask Supervisor ──▶ Restart{after} / RestartGroup{after} / GiveUp / Done
//!   ▲                                                   │
//!   └───────────── wait, rebuild, started ◀─────────────┘
//! ```
//! Read next: `supervisor.rs`, who answers; `informer_core::restart`, who decides.

use std::fmt;
use std::future::{Pending, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use actix::dev::ContextFut;
use actix::dev::channel::AddressReceiver;
use actix::{Actor, Addr, Context, Supervised};
use futures_util::future::{Either, LocalBoxFuture};
use informer_core::restart::{Exit, Role, Verdict};
use informer_core::words::{Brief, QUOTED, one_line};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::pipeline::messages::{Epoch, Exited};
use crate::pipeline::seat::Seat;
use crate::runtime::faults::{Faults, Site};
use crate::runtime::mailbox::ask;
use crate::runtime::{Label, Labelled, panic_text, sleep};
use crate::supervision::supervisor::{Ended, Supervisor};

/// An actor that can be built anew from its spec, at any time.
pub(crate) trait Child: Actor<Context = Context<Self>> + Supervised {
    /// All that it is built from; holds no state of a life.
    type Spec: Clone + Send + 'static;

    /// A fresh one.
    fn build(spec: &Self::Spec) -> Self;
}

/// What all children of one informer are tied to; shared, since a subscription is to cost little.
pub(crate) struct Kin {
    pub(crate) informer: Arc<str>,
    pub(crate) group: GroupEpoch,
    pub(crate) supervisor: Addr<Supervisor>,
    /// Ends the informer.
    pub(crate) stop: CancellationToken,
    pub(crate) faults: Faults,
}

/// What ties a child to its family.
pub(crate) struct Tether {
    pub(crate) kin: Arc<Kin>,
    pub(crate) label: Arc<Label>,
    pub(crate) role: Role,
    pub(crate) stop: Stop,
}

/// What ends a child: the stop of the informer, or the end of a subscription.
pub(crate) enum Stop {
    Informer,
    Subscription(Seat),
}

impl Tether {
    async fn stopped(&self) {
        match &self.stop {
            Stop::Informer => self.kin.stop.cancelled().await,
            Stop::Subscription(seat) => seat.over().await,
        }
    }
}

/// The epoch of the group, as guards see and move it. Guards are woken in the order in which they began to wait: the
/// receivers of a `watch` channel are woken in random order, and a simulation would not repeat.
#[derive(Clone)]
pub(crate) struct GroupEpoch {
    moved: Arc<Notify>,
    now: Arc<dyn Fn() -> Epoch + Send + Sync>,
    begin: Arc<dyn Fn(Epoch) -> bool + Send + Sync>,
}

impl GroupEpoch {
    /// `now` reads the published cell; `begin` moves it on from one epoch, and is false if it had moved on already.
    pub(crate) fn new(
        now: impl Fn() -> Epoch + Send + Sync + 'static,
        begin: impl Fn(Epoch) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { moved: Arc::default(), now: Arc::new(now), begin: Arc::new(begin) }
    }

    pub(crate) fn current(&self) -> Epoch {
        (self.now)()
    }

    fn begin_after(&self, epoch: Epoch) {
        if (self.begin)(epoch) {
            self.moved.notify_waiters();
        }
    }

    async fn changed_from(&self, epoch: Epoch) {
        loop {
            // It is woken by every move from here on, so none is missed after the look.
            let moved = self.moved.notified();
            if self.current() != epoch {
                return;
            }
            moved.await;
        }
    }
}

impl fmt::Debug for Tether {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tether").field("label", &self.label).field("role", &self.role).finish_non_exhaustive()
    }
}

/// One child under guard.
pub(crate) struct Guard<A: Child> {
    tether: Tether,
    labelled: Labelled,
    life: Life<A>,
}

impl<A: Child> Guard<A> {
    pub(crate) fn new(inbox: AddressReceiver<A>, spec: A::Spec, tether: Tether, labelled: Labelled) -> Self {
        let life =
            Life { state: LifeState::Unborn(inbox), spec, worn: false, epoch: tether.kin.group.current() };
        Self { tether, labelled, life }
    }

    /// Runs the child until it is not to be restarted again, and gives the last verdict.
    // An `async fn` would hold the guard twice, as its argument and as its own variable.
    #[expect(clippy::manual_async_fn, reason = "a block captures the guard once")]
    pub(crate) fn keep(mut self) -> impl Future<Output = Verdict> {
        async move {
            let grouped = matches!(self.tether.role, Role::Group | Role::Reflector);
            loop {
                let (tether, life) = (&self.tether, &mut self.life);
                let exit = tokio::select! {
                    biased;
                    () = tether.stopped() => Exit::Asked,
                    () = changed(tether, life.epoch, grouped) => {
                        life.epoch = tether.kin.group.current();
                        life.worn = true;
                        continue;
                    }
                    exit = life.live(tether, &self.labelled) => exit,
                };
                // What follows is rare: it is boxed, so that a child that lives costs no memory for it.
                if let Some(end) = Box::pin(life.after(exit, tether, grouped)).await {
                    life.end(tether);
                    return end;
                }
            }
        }
    }
}

/// Ends when the group of a member has moved on; never for a child that is no member.
fn changed(tether: &Tether, epoch: Epoch, grouped: bool) -> Either<LocalBoxFuture<'_, ()>, Pending<()>> {
    if grouped {
        Either::Left(Box::pin(tether.kin.group.changed_from(epoch)))
    } else {
        Either::Right(pending())
    }
}

/// Waits out a backoff, shorter if the whole group is restarted meanwhile; false at the stop.
async fn pause(tether: &Tether, epoch: Epoch, after: Duration, grouped: bool) -> bool {
    tokio::select! {
        biased;
        () = tether.stopped() => false,
        () = tether.kin.group.changed_from(epoch), if grouped => true,
        () = sleep(after) => true,
    }
}

/// Asks until there is an answer: a Supervisor that dies over the question is restarted and asked again.
async fn decide(tether: &Tether, exit: &Exit) -> Verdict {
    if tether.role == Role::Supervisor {
        // The Supervisor itself has no parent: it starts again at once, its state is only books.
        return if matches!(exit, Exit::Panicked(_)) {
            let (informer, ended, after) = (&tether.kin.informer, Ended(exit), Brief(SUPERVISOR_PAUSE));
            tracing::error!(%informer, actor = "supervisor", "supervisor {ended}; it starts again in {after}");
            Verdict::Restart { after: SUPERVISOR_PAUSE }
        } else {
            Verdict::Done
        };
    }
    let (supervisor, child) = (&tether.kin.supervisor, tether.label.child());
    loop {
        let question = Exited { child: Arc::clone(&child), role: tether.role, exit: exit.clone() };
        tokio::select! {
            biased;
            () = tether.stopped() => return Verdict::Done,
            answer = ask(supervisor, question) => match answer {
                Ok(verdict) => return verdict,
                Err(_) if !supervisor.connected() => return Verdict::Done,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }
}

const SUPERVISOR_PAUSE: Duration = Duration::from_millis(10);

struct Life<A: Child> {
    state: LifeState<A>,
    spec: A::Spec,
    /// The actor has died or belongs to an older epoch: it must be replaced before it is polled again.
    worn: bool,
    epoch: Epoch,
}

enum LifeState<A: Child> {
    Unborn(AddressReceiver<A>),
    Alive(Box<ContextFut<A, Context<A>>>),
    Over,
}

impl<A: Child> Life<A> {
    /// Carries out what is decided about an exit; a verdict if that was the end.
    async fn after(&mut self, exit: Exit, tether: &Tether, grouped: bool) -> Option<Verdict> {
        let verdict = if exit == Exit::Asked { Verdict::Done } else { decide(tether, &exit).await };
        let after = match verdict {
            Verdict::Restart { after } | Verdict::RestartGroup { after } => after,
            end => return Some(end),
        };
        if !pause(tether, self.epoch, after, grouped).await {
            return Some(Verdict::Done);
        }
        if matches!(verdict, Verdict::RestartGroup { .. }) {
            tether.kin.group.begin_after(self.epoch);
        }
        self.epoch = tether.kin.group.current();
        self.worn = true;
        None
    }

    /// Polls the actor until it ends, one way or another.
    async fn live(&mut self, tether: &Tether, labelled: &Labelled) -> Exit {
        if let Err(exit) = self.birth().and_then(|()| self.rebirth(&tether.kin.faults)) {
            return exit;
        }
        let LifeState::Alive(future) = &mut self.state else { return Exit::Finished };
        poll_fn(|cx| {
            let _entered = labelled.enter();
            match catch_unwind(AssertUnwindSafe(|| Pin::new(&mut **future).poll(cx))) {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(())) => Poll::Ready(Exit::Finished),
                Err(panic) => Poll::Ready(Exit::Panicked(panic_text(&*panic).into())),
            }
        })
        .await
    }

    /// Builds the first one; later ones are built by `restarting`.
    fn birth(&mut self) -> Result<(), Exit> {
        if !matches!(self.state, LifeState::Unborn(_)) {
            return Ok(());
        }
        let spec = self.spec.clone();
        let built = catch_unwind(AssertUnwindSafe(|| A::build(&spec)));
        let actor = built.map_err(|panic| Exit::Panicked(panic_text(&*panic).into()))?;
        if let LifeState::Unborn(inbox) = std::mem::replace(&mut self.state, LifeState::Over) {
            self.state = LifeState::Alive(Box::new(Context::with_receiver(inbox).into_future(actor)));
        }
        Ok(())
    }

    /// Replaces a worn actor by a fresh one; a panic in that is one more exit, and the actor stays worn.
    fn rebirth(&mut self, faults: &Faults) -> Result<(), Exit> {
        let LifeState::Alive(future) = &mut self.state else { return Ok(()) };
        if !self.worn {
            return Ok(());
        }
        let restarted = catch_unwind(AssertUnwindSafe(|| {
            faults.strike(Site::Rebuild);
            future.restart()
        }));
        match restarted {
            Ok(true) => self.worn = false,
            Ok(false) => return Err(Exit::Finished),
            Err(panic) => return Err(Exit::Panicked(panic_text(&*panic).into())),
        }
        Ok(())
    }

    /// Drops the actor; a panic in that ends nothing else.
    fn end(&mut self, tether: &Tether) {
        let state = std::mem::replace(&mut self.state, LifeState::Over);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(move || {
            let _dropped = state;
            tether.kin.faults.strike(Site::Dropped);
        })) {
            let (informer, actor) = (&tether.kin.informer, tether.label.child());
            let panic = one_line(&panic_text(&*panic), QUOTED);
            tracing::error!(%informer, %actor, "{actor} has panicked while it was dropped: {panic}");
        }
    }
}

#[cfg(test)]
mod tests;
