//! The guard around each actor: it survives the actor's panics and carries out the supervisor's verdict.
//!
//! Answers "what happens when this actor ends?" by asking the Supervisor, and does it. actix's own `Supervisor` does
//! not restart after a panic; this polls the actor's context under `catch_unwind` and restarts it in place, which
//! keeps its address and the messages queued there. Invariants:
//! 1. Nothing that an actor does, not even a panic while it is built or dropped, reaches beyond its guard.
//! 2. An actor is never reused after a panic: `restarting` replaces it by a fresh one.
//! 3. A member of the group is restarted exactly once for each epoch, whoever caused it.
//! 4. The guard ends at the stop, when no address of its actor is left, or when supervision gives up; nothing of the
//!    actor exists any more when that is told.
//!
//! ```text
//!  poll ──▶ ended / panicked ──▶ ask Supervisor ──▶ Restart{after} / RestartGroup{after} / GiveUp / Done
//!   ▲                                                   │
//!   └───────────── wait, rebuild, started ◀─────────────┘
//! ```
//! Read next: `supervisor.rs`, who answers; `informer_core::restart`, who decides; `start.rs`, who starts it.

use std::future::{Pending, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

use actix::Context;
use actix::dev::ContextFut;
use actix::dev::channel::AddressReceiver;
use futures_util::FutureExt;
use futures_util::future::{Either, LocalBoxFuture};
use informer_core::restart::{Exit, Verdict};
use informer_core::words::{Brief, QUOTED, one_line};

use crate::runtime::faults::{Faults, Site};
use crate::runtime::mailbox::ask;
use crate::runtime::{Labelled, panic_text, sleep};
use crate::supervision::child::Child;
use crate::supervision::group::Epoch;
use crate::supervision::messages::Exited;
use crate::supervision::owner::Ended;
use crate::supervision::parent::ChildContext;

/// One child under guard.
pub(crate) struct Guard<A: Child> {
    context: ChildContext,
    labelled: Labelled,
    life: Life<A>,
}

impl<A: Child> Guard<A> {
    pub(crate) fn new(
        inbox: AddressReceiver<A>,
        spec: A::Spec,
        context: ChildContext,
        labelled: Labelled,
    ) -> Self {
        let epoch = context.parent.group.epoch();
        let life = Life { state: LifeState::NotBuilt(inbox), spec, must_rebuild: false, epoch };
        Self { context, labelled, life }
    }

    /// Runs the child until it is not to be restarted again, drops it, and gives the last verdict.
    // An `async fn` would hold the guard twice, as its argument and as its own variable.
    #[expect(clippy::manual_async_fn, reason = "a block captures the guard once")]
    pub(crate) fn keep(mut self) -> impl Future<Output = (Verdict, ChildContext)> {
        async move {
            loop {
                let (context, life, labelled) = (&self.context, &mut self.life, &self.labelled);
                let Some(exit) = happens(context, life, labelled).await else {
                    life.epoch = context.parent.group.epoch();
                    life.must_rebuild = true;
                    continue;
                };
                // What follows is rare: it is boxed, so that a child that lives costs no memory for it.
                if let Some(end) = Box::pin(life.after(exit, context)).await {
                    life.end(context);
                    return (end, self.context);
                }
            }
        }
    }
}

/// Runs the child until it ends or is to end; `None` if its group restarts. One future and no `select!` over several:
/// each guard has room for it.
fn happens<A: Child>(
    context: &ChildContext,
    life: &mut Life<A>,
    labelled: &Labelled,
) -> impl Future<Output = Option<Exit>> {
    let (mut stopped, mut restarts) = (context.stopped(), group_restarts(context, life.epoch));
    poll_fn(move |cx| {
        if stopped.poll_unpin(cx).is_ready() {
            return Poll::Ready(Some(Exit::Asked));
        }
        if restarts.poll_unpin(cx).is_ready() {
            return Poll::Ready(None);
        }
        life.poll(context, labelled, cx).map(Some)
    })
}

/// Ends when the group of a member has moved on; never for a child that is no member.
fn group_restarts(context: &ChildContext, epoch: Epoch) -> Either<LocalBoxFuture<'_, ()>, Pending<()>> {
    if context.follows_group() {
        Either::Left(Box::pin(context.parent.group.changed_from(epoch)))
    } else {
        Either::Right(pending())
    }
}

/// Waits out a backoff, shorter if the whole group is restarted meanwhile; false at the stop.
async fn pause(context: &ChildContext, epoch: Epoch, after: Duration) -> bool {
    tokio::select! {
        biased;
        () = context.stopped() => false,
        () = group_restarts(context, epoch) => true,
        () = sleep(after) => true,
    }
}

/// Asks until there is an answer: a Supervisor that dies over the question is restarted and asked again.
async fn decide(context: &ChildContext, exit: &Exit) -> Verdict {
    let Some(role) = context.role else { return about_the_supervisor(context, exit) };
    let (supervisor, child) = (&context.parent.supervisor, context.label.child());
    loop {
        let question =
            Exited { child: Arc::clone(&child), role, revivals: context.revivals, exit: exit.clone() };
        tokio::select! {
            biased;
            () = context.stopped() => return Verdict::Done,
            answer = ask(supervisor, question) => match answer {
                Ok(verdict) => return verdict,
                Err(_) if !supervisor.connected() => return Verdict::Done,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }
}

/// Nobody decides about the Supervisor: it restarts almost at once, because it holds nothing but restart histories.
fn about_the_supervisor(context: &ChildContext, exit: &Exit) -> Verdict {
    let Exit::Panicked(_) = exit else { return Verdict::Done };
    let (informer, ended, after) = (&context.parent.name, Ended(exit), Brief(SUPERVISOR_PAUSE));
    tracing::error!(%informer, actor = "supervisor", "supervisor {ended}; it starts again in {after}");
    Verdict::Restart { after: SUPERVISOR_PAUSE }
}

const SUPERVISOR_PAUSE: Duration = Duration::from_millis(10);

/// What the guard knows of the actor that it runs now.
struct Life<A: Child> {
    state: LifeState<A>,
    spec: A::Spec,
    /// The actor has failed or belongs to an older epoch: it must be built anew before it is polled again.
    must_rebuild: bool,
    epoch: Epoch,
}

enum LifeState<A: Child> {
    NotBuilt(AddressReceiver<A>),
    Built(Box<ContextFut<A, Context<A>>>),
    Over,
}

impl<A: Child> Life<A> {
    /// Carries out what is decided about an exit; a verdict if that was the end.
    async fn after(&mut self, exit: Exit, context: &ChildContext) -> Option<Verdict> {
        let verdict = if exit == Exit::Asked { Verdict::Done } else { decide(context, &exit).await };
        let after = match verdict {
            Verdict::Restart { after } | Verdict::RestartGroup { after } => after,
            end => return Some(end),
        };
        if !pause(context, self.epoch, after).await {
            return Some(Verdict::Done);
        }
        let group = &context.parent.group;
        if matches!(verdict, Verdict::RestartGroup { .. }) {
            group.begin_after(self.epoch);
        }
        self.epoch = group.epoch();
        self.must_rebuild = true;
        None
    }

    /// Polls the actor, built first if need be, until it ends, one way or another.
    fn poll(
        &mut self,
        context: &ChildContext,
        labelled: &Labelled,
        cx: &mut task::Context<'_>,
    ) -> Poll<Exit> {
        if let Err(exit) = self.build().and_then(|()| self.rebuild(&context.parent.faults)) {
            return Poll::Ready(exit);
        }
        let LifeState::Built(future) = &mut self.state else { return Poll::Ready(Exit::Finished) };
        let _entered = labelled.enter();
        match catch_unwind(AssertUnwindSafe(|| Pin::new(&mut **future).poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => Poll::Ready(Exit::Finished),
            Err(panic) => Poll::Ready(Exit::Panicked(panic_text(&*panic).into())),
        }
    }

    /// Builds the first one; later ones are built by `restarting`.
    fn build(&mut self) -> Result<(), Exit> {
        if !matches!(self.state, LifeState::NotBuilt(_)) {
            return Ok(());
        }
        let spec = self.spec.clone();
        let built = catch_unwind(AssertUnwindSafe(|| A::build(&spec)));
        let actor = built.map_err(|panic| Exit::Panicked(panic_text(&*panic).into()))?;
        if let LifeState::NotBuilt(inbox) = std::mem::replace(&mut self.state, LifeState::Over) {
            self.state = LifeState::Built(Box::new(Context::with_receiver(inbox).into_future(actor)));
        }
        Ok(())
    }

    /// Replaces an actor that must not be used any more by a fresh one; a panic in that is one more exit, after which
    /// the actor must be replaced as before.
    fn rebuild(&mut self, faults: &Faults) -> Result<(), Exit> {
        let LifeState::Built(future) = &mut self.state else { return Ok(()) };
        if !self.must_rebuild {
            return Ok(());
        }
        let restarted = catch_unwind(AssertUnwindSafe(|| {
            faults.strike(Site::Rebuild);
            future.restart()
        }));
        match restarted {
            Ok(true) => self.must_rebuild = false,
            Ok(false) => return Err(Exit::Finished),
            Err(panic) => return Err(Exit::Panicked(panic_text(&*panic).into())),
        }
        Ok(())
    }

    /// Drops the actor; a panic in that ends nothing else.
    fn end(&mut self, context: &ChildContext) {
        let state = std::mem::replace(&mut self.state, LifeState::Over);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(move || {
            let _dropped = state;
            context.parent.faults.strike(Site::Dropped);
        })) {
            let (informer, actor) = (&context.parent.name, context.label.child());
            let panic = one_line(&panic_text(&*panic), QUOTED);
            tracing::error!(%informer, %actor, "{actor} has panicked while it was dropped: {panic}");
        }
    }
}
