//! The Supervisor: who decides what follows when a child of its owner fails.
//!
//! Answers "a child has ended: what now?" with the verdict of its core twin, `informer_core::restart`, and tells the
//! owner of restarts. It touches no child; the child's guard carries the verdict out. Invariants:
//! 1. One history for each child; children that are restarted as a group have one between them. A revived child has a
//!    new one.
//! 2. The owner is told of each restart, once.
//! 3. A history is kept only while it says something.
//!
//! Mailbox: one ask in flight a child. Its own death loses the histories, nothing else: its guard starts it again.
//! Read next: `guard.rs`, who asks; `owner.rs`, who is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix::{Actor, Context, Handler, Supervised};
use informer_core::restart::{OnFailure, RestartHistory, RestartPolicy, Verdict};

use crate::runtime::faults::Site;
use crate::runtime::mailbox::Reply;
use crate::runtime::{Chance, Runtime};
use crate::supervision::child::Child;
use crate::supervision::messages::Exited;
use crate::supervision::owner::{News, Owner};

/// What a Supervisor is built from.
#[derive(Clone)]
pub(crate) struct SupervisorSpec {
    /// Whose children they are.
    pub(crate) owner: Arc<dyn Owner>,
    pub(crate) runtime: Runtime,
    pub(crate) policy: RestartPolicy,
}

/// The Supervisor of one owner's children.
pub(crate) struct Supervisor {
    spec: SupervisorSpec,
    group: RestartHistory,
    /// Those of children that are restarted alone, and how often each was revived.
    alone: BTreeMap<Arc<str>, (u32, RestartHistory)>,
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
        let (group, alone) = (RestartHistory::new(spec.policy), BTreeMap::new());
        Self { spec: spec.clone(), group, alone, chance: spec.runtime.chance() }
    }
}

impl Handler<Exited> for Supervisor {
    type Result = Reply<Verdict>;

    fn handle(&mut self, exited: Exited, _ctx: &mut Context<Self>) -> Reply<Verdict> {
        self.spec.runtime.0.faults.strike(Site::SupervisorExited);
        let verdict = self.decide(&exited);
        let exit = &exited.exit;
        let news = match verdict {
            Verdict::Restart { after } | Verdict::RestartGroup { after } => News::Restarts { exit, after },
            _ => News::Ended { exit },
        };
        self.spec.owner.told(&exited.child, exited.role, news);
        Reply::Now(verdict)
    }
}

impl Supervisor {
    fn decide(&mut self, exited: &Exited) -> Verdict {
        let at = self.chance.moment(&self.spec.runtime.0.clock);
        let on_failure = exited.role.on_failure;
        if on_failure == OnFailure::RestartGroup {
            return self.group.decide(on_failure, &exited.exit, at);
        }
        let now = self.spec.runtime.now();
        self.alone.retain(|_, (_, history)| !history.is_blank(now));
        let (revivals, mut history) = self
            .alone
            .remove(&exited.child)
            .filter(|(revivals, _)| *revivals == exited.revivals)
            .unwrap_or_else(|| (exited.revivals, RestartHistory::new(self.spec.policy)));
        let verdict = history.decide(on_failure, &exited.exit, at);
        // Nobody asks again about a child that is done or given up, unless it was revived.
        if matches!(verdict, Verdict::Restart { .. }) {
            self.alone.insert(Arc::clone(&exited.child), (revivals, history));
        }
        verdict
    }
}
