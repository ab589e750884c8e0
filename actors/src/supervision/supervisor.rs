//! The Supervisor: the parent of one informer's actors.
//!
//! Answers "a child has ended: what now?" with the verdict of its core twin, `informer_core::restart`, and keeps the
//! books: restarts are counted in the informer's status, and when it gives up, the failure is shown there. It touches
//! no child; the child's guard carries the verdict out. Invariants:
//! 1. One history per child; the group of DeltaFifo, Indexer and Processor has one between them.
//! 2. Each exit is one log line, which names the informer: what ended, why, and what follows.
//! 3. Giving up on the group, which nothing can go on without, stops the informer; giving up on a reflector leaves
//!    the store served, and the source shown as GivenUp; a listener that ends ends only its subscription.
//!
//! Mailbox: one ask in flight a child. Its own death loses the histories, nothing else: its guard starts it again.
//! Read next: `guard.rs`, who asks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use actix::{Actor, Context, Handler, Supervised};
use informer_core::reflector::SourceState;
use informer_core::restart::{Exit, RestartHistory, RestartPolicy, Role, Verdict};
use informer_core::words::{Brief, QUOTED, one_line};
use tokio_util::sync::CancellationToken;

use crate::pipeline::messages::Exited;
use crate::pipeline::status::{InformerStatus, SourceStatus, StatusBoard};
use crate::runtime::faults::Site;
use crate::runtime::mailbox::Reply;
use crate::runtime::progress::Progress;
use crate::runtime::{Chance, Runtime};
use crate::supervision::guard::Child;

/// What a Supervisor is built from.
#[derive(Clone)]
pub(crate) struct SupervisorSpec {
    /// Whose actors they are.
    pub(crate) informer: Arc<str>,
    pub(crate) runtime: Runtime,
    pub(crate) board: StatusBoard,
    pub(crate) progress: Arc<Progress>,
    pub(crate) policy: RestartPolicy,
    /// Ends the informer when the group cannot go on.
    pub(crate) stop: CancellationToken,
}

/// The parent of one informer's actors.
pub(crate) struct Supervisor {
    spec: SupervisorSpec,
    histories: BTreeMap<Arc<str>, RestartHistory>,
    chance: Chance,
}

impl Actor for Supervisor {
    type Context = Context<Self>;
}

impl Supervised for Supervisor {
    fn restarting(&mut self, _ctx: &mut Context<Self>) {
        *self = Self::build(&self.spec.clone());
    }
}

impl Child for Supervisor {
    type Spec = SupervisorSpec;

    fn build(spec: &SupervisorSpec) -> Self {
        Self { spec: spec.clone(), histories: BTreeMap::new(), chance: spec.runtime.chance() }
    }
}

impl Handler<Exited> for Supervisor {
    type Result = Reply<Verdict>;

    fn handle(&mut self, exited: Exited, _ctx: &mut Context<Self>) -> Reply<Verdict> {
        self.spec.runtime.0.faults.strike(Site::SupervisorExited);
        let book: Arc<str> =
            if exited.role == Role::Group { "group".into() } else { Arc::clone(&exited.child) };
        let policy = self.spec.policy;
        let history = self.histories.entry(book).or_insert_with(|| RestartHistory::new(policy));
        let at = self.chance.moment(&self.spec.runtime.0.clock);
        let verdict = history.decide(exited.role, &exited.exit, at);
        self.record(&exited, &verdict);
        Reply::Now(verdict)
    }
}

impl Supervisor {
    fn log(&self, exited: &Exited, verdict: &Verdict) {
        let (informer, actor, ended) = (&self.spec.informer, &exited.child, Ended(&exited.exit));
        match verdict {
            Verdict::Restart { after } => {
                let after = Brief(*after);
                tracing::error!(%informer, %actor, "{actor} {ended}; it starts again in {after}");
            }
            Verdict::RestartGroup { after } => {
                let after = Brief(*after);
                tracing::error!(%informer, %actor, "{actor} {ended}; delta-fifo, indexer and processor start again in {after}");
            }
            Verdict::GiveUp { reason } if exited.role == Role::Group => {
                let reason = one_line(reason, QUOTED);
                tracing::error!(%informer, %actor, "{actor} is not started again: {reason}; the informer stops");
            }
            Verdict::GiveUp { reason } if exited.role != Role::Listener => {
                let reason = one_line(reason, QUOTED);
                tracing::error!(%informer, %actor, "{actor} is not started again: {reason}; its source is followed no more");
            }
            _ => tracing::debug!(%informer, %actor, "{actor} {ended}"),
        }
    }

    fn record(&mut self, exited: &Exited, verdict: &Verdict) {
        let child = &exited.child;
        if matches!(verdict, Verdict::RestartGroup { .. }) {
            self.spec.progress.group_is_down();
        }
        self.log(exited, verdict);
        match verdict {
            Verdict::Restart { .. } | Verdict::RestartGroup { .. } => {
                self.spec.board.update(|status| {
                    status.restarts += 1;
                    if let Some(source) = followed_by(child, status) {
                        source.restarts += 1;
                    }
                });
            }
            Verdict::GiveUp { reason } if exited.role != Role::Listener => {
                let failure: Arc<str> = format!("{child}: {reason}").into();
                self.spec.board.update(|status| {
                    status.failed = Some(failure);
                    if let Some(source) = followed_by(child, status) {
                        source.state = SourceState::GivenUp { reason: Arc::clone(reason) };
                    }
                });
                if exited.role == Role::Group {
                    self.spec.stop.cancel();
                }
            }
            _ => {}
        }
        if matches!(verdict, Verdict::Done | Verdict::GiveUp { .. }) && exited.role == Role::Listener {
            self.histories.remove(child);
        }
    }
}

/// The name of the reflector of a source, as its guard gives it.
pub(crate) fn reflector_name(source: &informer_core::meta::SourceId) -> String {
    format!("reflector/{source}")
}

/// The source whose reflector this child is, if it is one.
fn followed_by<'a>(child: &str, status: &'a mut InformerStatus) -> Option<&'a mut SourceStatus> {
    status.sources.iter_mut().find(|source| *child == *reflector_name(&source.source))
}

/// How an actor has ended, in words.
pub(crate) struct Ended<'a>(pub(crate) &'a Exit);

impl fmt::Display for Ended<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Exit::Finished => f.write_str("has finished"),
            Exit::Asked => f.write_str("has ended, as it was asked to"),
            Exit::Failed(why) => write!(f, "has failed: {}", one_line(why, QUOTED)),
            Exit::Panicked(text) => write!(f, "has panicked: {}", one_line(text, QUOTED)),
            _ => f.write_str("has ended"),
        }
    }
}
