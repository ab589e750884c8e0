//! How an operator starts, and what follows when its actor fails.
//!
//! Answers "who restarts the actor, and what happens when it is given up?": the operator is the owner of one child. When
//! nothing of the actor exists any more, every part is dropped. Read next: `actor.rs`; `supervision/guard.rs`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use informer_core::operator::{Lifecycle, PartId};
use informer_core::restart::{OnFailure, RestartPolicy, Role};
use informer_core::words::Brief;
use tokio_util::sync::CancellationToken;

use super::actor::{OperatorActor, OperatorSpec};
use super::builder::{OperatorBuilder, StartOperatorError};
use super::content::Content;
use super::registered::RegisteredOperator;
use super::run::Executor;
use super::shared::Shared;
use super::{LastHandle, Operator, OperatorView};
use crate::runtime::Named;
use crate::supervision::group::Group;
use crate::supervision::owner::{ChildEvent, Ended, Mailbox, Owner};
use crate::supervision::parent::Parent;

const ALONE: Role = Role { on_failure: OnFailure::RestartAlone, follows_group: false, tells_owner: true };

/// An operator as the owner of its actor.
struct OperatorOwner(Arc<str>);

pub(super) fn start(builder: OperatorBuilder) -> Result<Operator, StartOperatorError> {
    let OperatorBuilder { runtime, name, mut parts, limits, policy } = builder;
    let Some(registration) = runtime.register(Named::Operator, &name) else {
        return Err(StartOperatorError::RuntimeStopped { operator: name });
    };
    // A stable sort: parts of one phase stay in the order in which they were given.
    parts.sort_by_key(|named| named.phase);
    let phases: Vec<_> = parts.iter().map(|named| named.phase).collect();
    let holding = parts.iter().enumerate().filter(|(_, named)| named.part.holds());
    let lifecycle = Lifecycle::new(&phases, limits, policy);
    let lifecycle = holding.fold(lifecycle, |lifecycle, (at, _)| lifecycle.holding(PartId(at)));
    let (name, stop) = (Arc::clone(registration.name()), CancellationToken::new());
    let owner = Arc::new(OperatorOwner(Arc::clone(&name)));
    let supervised = (RestartPolicy::default(), stop.clone());
    let parent = Parent::start(&name, owner, Group::none(), &runtime, supervised);
    let time = (parent.arbiter.clock().clone(), runtime.chance());
    let Mailbox(address, inbox) = Mailbox::<OperatorActor>::new();
    let shared = Arc::new(Shared {
        executor: Executor::here(&runtime),
        content: Content::new(lifecycle, time),
        over: CancellationToken::new(),
        is_told: AtomicBool::new(false),
        has_ended: AtomicBool::new(false),
        changed: Default::default(),
        name,
        runtime,
        parts,
        address,
        stop,
    });
    registration.list(Arc::new(RegisteredOperator::new(&shared)));
    let spec = OperatorSpec { shared: Arc::clone(&shared), faults: parent.faults.clone() };
    let ended = Arc::clone(&shared);
    parent.context("operator", ALONE).start(inbox, spec, move |_| {
        ended.end();
        drop(registration);
        ended.over.cancel();
    });
    let view = OperatorView(Arc::clone(&shared));
    Ok(Operator { view, _last: Arc::new(LastHandle(shared)) })
}

impl Owner for OperatorOwner {
    fn child_changed(&self, actor: &Arc<str>, _role: Role, event: ChildEvent<'_>) {
        let operator = &self.0;
        match event {
            ChildEvent::Restarts { exit, after } => {
                tracing::error!(target: "actix_informer::operator", %operator, %actor, "operator {operator}: its actor {}; it starts again in {}, and its parts run on", Ended(exit), Brief(after));
            }
            ChildEvent::Ended { exit } => {
                tracing::debug!(target: "actix_informer::operator", %operator, %actor, "operator {operator}: its actor {}", Ended(exit));
            }
            ChildEvent::GivenUp { reason } => {
                tracing::error!(target: "actix_informer::operator", %operator, %actor, "operator {operator}: its actor {reason}; it is not started again: every part is dropped");
            }
            ChildEvent::Revived => {}
        }
    }
}
