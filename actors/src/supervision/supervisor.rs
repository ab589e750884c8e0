//! The Supervisor: decides, by `informer_core::restart`, what follows when a child of its owner ends.
//!
//! The child's guard carries the verdict out. It keeps the child's restart history and sends it with each ask; the
//! Supervisor keeps only that of a group, which is lost if it dies. The owner is notified of each decision once.

use std::sync::Arc;

use actix::{Actor, Context, Handler, Supervised};
use informer_core::restart::{Exit, OnFailure, RestartHistory, RestartPolicy, RestartVerdict};

use crate::runtime::faults::Site;
use crate::runtime::mailbox::Reply;
use crate::runtime::{RandomNumbers, Runtime};
use crate::supervision::owner::{Child, ChildEvent, Decided, Exited, Owner};

#[derive(Clone)]
pub(crate) struct SupervisorSpec {
    pub(crate) owner: Arc<dyn Owner>,
    pub(crate) runtime: Runtime,
    pub(crate) policy: RestartPolicy,
}

pub(crate) struct Supervisor {
    spec: SupervisorSpec,
    group: RestartHistory,
    chance: RandomNumbers,
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
        Self { spec: spec.clone(), group: RestartHistory::new(spec.policy), chance: spec.runtime.chance() }
    }
}

impl Handler<Exited> for Supervisor {
    type Result = Reply<Decided>;

    fn handle(&mut self, exited: Exited, _ctx: &mut Context<Self>) -> Reply<Decided> {
        self.spec.runtime.0.faults.fail_point(Site::SupervisorExited);
        let Exited { child, role, history, exit } = exited;
        let decided = self.decide(role.on_failure, &exit, history);
        let exit = &exit;
        let event = match decided.verdict {
            RestartVerdict::Restart { after } | RestartVerdict::RestartGroup { after } => {
                ChildEvent::Restarts { exit, after }
            }
            _ => ChildEvent::Ended { exit },
        };
        self.spec.owner.child_changed(&child, role, event);
        Reply::Now(decided)
    }
}

impl Supervisor {
    fn decide(
        &mut self,
        on_failure: OnFailure,
        exit: &Exit,
        history: Option<Box<RestartHistory>>,
    ) -> Decided {
        let at = self.chance.moment(&self.spec.runtime.0.clock);
        if on_failure == OnFailure::RestartGroup {
            return Decided { verdict: self.group.decide(on_failure, exit, at), history: None };
        }
        let mut history = history.unwrap_or_else(|| Box::new(RestartHistory::new(self.spec.policy)));
        let verdict = history.decide(on_failure, exit, at);
        Decided { verdict, history: Some(history) }
    }
}
