//! The guard around each actor: it survives the actor's panics and carries out the supervisor's verdict.
//!
//! actix's own `Supervisor` does not restart after a panic. The guard polls the actor's context under `catch_unwind`
//! and restarts it in place, which keeps its address and queued messages. It ends at the stop, when its actor has no
//! address left, or when supervision gives up: then nothing of the actor exists. Each poll checks the stop, then the
//! epoch, then the actor: no actor is polled after its stop or in an older epoch.
//!
//! ```text
//!  poll ──▶ ended / panicked ──▶ ask Supervisor ──▶ Restart{after} / RestartGroup{after} / GiveUp / Done
//!   ▲                                                   │
//!   └───────────── wait, rebuild, started ◀─────────────┘
//! ```
//! States of `Life`:
//!
//! | `state` | `must_rebuild` | meaning | next poll |
//! |---|---|---|---|
//! | `NotBuilt` | any | not built yet, or the build panicked | builds it |
//! | `Built` | false | runs | polls it |
//! | `Built` | true | failed, or of an older epoch | replaces it, then polls |
//! | `Over` | any | dropped | reports `Finished` |

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
use informer_core::restart::{Exit, RestartHistory, RestartVerdict};
use informer_core::words::{Brief, QUOTED, one_line};

use crate::runtime::faults::{Faults, Site};
use crate::runtime::mailbox::ask;
use crate::runtime::{Labelled, panic_text, sleep};
use crate::supervision::group::Epoch;
use crate::supervision::owner::{Child, Decided, Ended, Exited};
use crate::supervision::parent::ChildContext;

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
        let state = LifeState::NotBuilt(inbox);
        let life = Life { state, spec, must_rebuild: false, epoch, history: None };
        Self { context, labelled, life }
    }

    /// Runs the child until a verdict ends it; returns that after the drop of the child.
    // An `async fn` would hold the guard twice: as its argument and as its variable.
    #[expect(clippy::manual_async_fn, reason = "a block captures the guard once")]
    pub(crate) fn keep(mut self) -> impl Future<Output = (RestartVerdict, ChildContext)> {
        async move {
            loop {
                let (context, life, labelled) = (&self.context, &mut self.life, &self.labelled);
                let Some(exit) = next_exit(context, life, labelled).await else {
                    life.epoch = context.parent.group.epoch();
                    life.must_rebuild = true;
                    continue;
                };
                // Boxed: an exit is rare, and running children need no memory for it.
                if let Some(end) = Box::pin(life.after(exit, context)).await {
                    life.end(context);
                    return (end, self.context);
                }
            }
        }
    }
}

/// `None` if the group restarts. Not a `select!`: every guard always holds the memory of this future.
fn next_exit<A: Child>(
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

/// Never ready for a child that does not follow the group.
fn group_restarts(context: &ChildContext, epoch: Epoch) -> Either<LocalBoxFuture<'_, ()>, Pending<()>> {
    if context.follows_group() {
        Either::Left(Box::pin(context.parent.group.changed_from(epoch)))
    } else {
        Either::Right(pending())
    }
}

/// Ends earlier if the group restarts; false at the stop.
async fn pause(context: &ChildContext, epoch: Epoch, after: Duration) -> bool {
    tokio::select! {
        biased;
        () = context.stopped() => false,
        () = group_restarts(context, epoch) => true,
        () = sleep(after) => true,
    }
}

async fn decide(
    context: &ChildContext,
    exit: &Exit,
    history: &mut Option<Box<RestartHistory>>,
) -> RestartVerdict {
    let Some(role) = context.role else { return decide_for_supervisor(context, exit) };
    let (supervisor, child) = (&context.parent.supervisor, context.label.child());
    let ask_anew = |history| Exited { child: Arc::clone(&child), role, history, exit: exit.clone() };
    loop {
        let question = ask_anew(history.clone());
        tokio::select! {
            biased;
            () = context.stopped() => return RestartVerdict::Done,
            answer = ask(supervisor, question) => match answer {
                Ok(Decided { verdict, history: now }) => {
                    *history = now;
                    return verdict;
                }
                Err(_) if !supervisor.connected() => return RestartVerdict::Done,
                // The Supervisor died before its answer: its guard restarts it.
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }
}

/// The Supervisor has no supervisor. A restart loses only the history of the group.
fn decide_for_supervisor(context: &ChildContext, exit: &Exit) -> RestartVerdict {
    let Exit::Panicked(_) = exit else { return RestartVerdict::Done };
    let (informer, ended, after) = (&context.parent.name, Ended(exit), Brief(SUPERVISOR_PAUSE));
    tracing::error!(target: "actix_informer::informer", %informer, actor = "supervisor", "supervisor {ended}; it starts again in {after}");
    RestartVerdict::Restart { after: SUPERVISOR_PAUSE }
}

const SUPERVISOR_PAUSE: Duration = Duration::from_millis(10);

struct Life<A: Child> {
    state: LifeState<A>,
    spec: A::Spec,
    must_rebuild: bool,
    epoch: Epoch,
    /// `None` unless the child was restarted alone.
    history: Option<Box<RestartHistory>>,
}

enum LifeState<A: Child> {
    NotBuilt(AddressReceiver<A>),
    Built(Box<ContextFut<A, Context<A>>>),
    Over,
}

impl<A: Child> Life<A> {
    /// Returns the verdict if it ends the child.
    async fn after(&mut self, exit: Exit, context: &ChildContext) -> Option<RestartVerdict> {
        let verdict = match exit {
            Exit::Asked => RestartVerdict::Done,
            exit => decide(context, &exit, &mut self.history).await,
        };
        let after = match verdict {
            RestartVerdict::Restart { after } | RestartVerdict::RestartGroup { after } => after,
            end => return Some(end),
        };
        if !pause(context, self.epoch, after).await {
            return Some(RestartVerdict::Done);
        }
        let group = &context.parent.group;
        if matches!(verdict, RestartVerdict::RestartGroup { .. }) {
            group.begin_after(self.epoch);
        }
        self.epoch = group.epoch();
        self.must_rebuild = true;
        None
    }

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
        let polled = catch_unwind(AssertUnwindSafe(|| {
            context.parent.faults.fail_point(Site::TurnBegun);
            let polled = Pin::new(&mut **future).poll(cx);
            context.parent.faults.fail_point(Site::TurnEnded);
            polled
        }));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => Poll::Ready(Exit::Finished),
            Err(panic) => Poll::Ready(Exit::Panicked(panic_text(&*panic).into())),
        }
    }

    /// `restarting` builds all later actors.
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

    /// A panic here is one more exit and leaves the mark set.
    fn rebuild(&mut self, faults: &Faults) -> Result<(), Exit> {
        let LifeState::Built(future) = &mut self.state else { return Ok(()) };
        if !self.must_rebuild {
            return Ok(());
        }
        let restarted = catch_unwind(AssertUnwindSafe(|| {
            faults.fail_point(Site::Rebuild);
            future.restart()
        }));
        match restarted {
            Ok(true) => self.must_rebuild = false,
            Ok(false) => return Err(Exit::Finished),
            Err(panic) => return Err(Exit::Panicked(panic_text(&*panic).into())),
        }
        Ok(())
    }

    fn end(&mut self, context: &ChildContext) {
        let state = std::mem::replace(&mut self.state, LifeState::Over);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(move || {
            let _dropped = state;
            context.parent.faults.fail_point(Site::Dropped);
        })) {
            let (informer, actor) = (&context.parent.name, context.label.child());
            let panic = one_line(panic_text(&*panic), QUOTED);
            tracing::error!(target: "actix_informer::informer", %informer, %actor, "{actor} has panicked while it was dropped: {panic}");
        }
    }
}
