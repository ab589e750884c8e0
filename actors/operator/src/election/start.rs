//! How an election starts. Its thread ends when nothing of the actor exists any more.

use std::sync::Arc;

use crate::election::machine::Settings;
use informer_core::restart::{RestartPolicy, Role};
use informer_core::words::Brief;
use tokio_util::sync::CancellationToken;

use super::actor::{ElectionActor, ElectionSpec};
use super::cell::{Cell, ElectionStatus};
use super::{Election, MakeLock, StartError};
use informer_actors::inner::{
    ALONE, ChildEvent, Ended, Group, Mailbox, Named, Owner, Parent, Registrant, Registration,
};
use informer_actors::runtime::Runtime;

struct ElectionOwner(Arc<Cell>);

pub(crate) struct RegisteredElection {
    cell: Arc<Cell>,
    over: CancellationToken,
    registration: Registration,
}

/// No request is sent before the election begins.
pub(super) fn declare(
    runtime: &Runtime,
    lease: Arc<str>,
    settings: Settings,
    lock: MakeLock,
) -> Result<Election, StartError> {
    settings.check().map_err(|source| StartError::Settings { lease: Arc::clone(&lease), source })?;
    let own = runtime.own_arbiter("election");
    let own = own.map_err(|source| StartError::Thread { lease: Arc::clone(&lease), source })?;
    let (arbiter, stop) = (own.handle(), CancellationToken::new());
    let time = (arbiter.clock().clone(), runtime.chance());
    let cell = Arc::new(Cell::new(Arc::clone(&lease), settings, time, stop.clone()));
    let owner = Arc::new(ElectionOwner(Arc::clone(&cell)));
    let policy = (RestartPolicy::default(), stop.clone());
    let parent = Parent::start_on(arbiter.clone(), (&lease, owner, Group::none()), runtime, policy);
    let spec = ElectionSpec { cell: Arc::clone(&cell), lock, faults: parent.faults.clone() };
    let Mailbox(address, inbox) = Mailbox::<ElectionActor>::new();
    let ending = registered(runtime, &cell);
    let ended = Arc::clone(&cell);
    parent.context("leader-election", ALONE).start(inbox, spec, move |_| {
        // Ends the parent's other child, the supervisor.
        stop.cancel();
        ended.set_over();
        if let Some(ending) = ending {
            ending.over.cancel();
            ending.registration.release_name();
            ending.registration.unlist();
        }
        drop(own);
    });
    let stop = Arc::new(cell.stop.clone().drop_guard());
    Ok(Election { cell, address, _stop: stop })
}

/// None after the shutdown of the runtime.
fn registered(runtime: &Runtime, cell: &Arc<Cell>) -> Option<Arc<RegisteredElection>> {
    let Some(registration) = runtime.register(Named::Election, &cell.lease) else {
        cell.stop.cancel();
        return None;
    };
    let ending =
        Arc::new(RegisteredElection { cell: Arc::clone(cell), over: CancellationToken::new(), registration });
    let registrant: Arc<dyn Registrant> = ending.clone();
    ending.registration.list(registrant);
    Some(ending)
}

impl RegisteredElection {
    pub(crate) fn report(&self) -> ElectionStatus {
        self.cell.status()
    }
}

impl Registrant for RegisteredElection {
    fn stop(&self) {
        self.cell.stop.cancel();
    }

    fn abandon(&self) {
        self.cell.set_over();
        self.over.cancel();
    }

    fn over(&self) -> CancellationToken {
        self.over.clone()
    }
}

impl Owner for ElectionOwner {
    fn child_changed(&self, actor: &Arc<str>, _role: Role, event: ChildEvent<'_>) {
        let lease = &self.0.lease;
        match event {
            ChildEvent::Restarts { exit, after } => {
                self.0.end_life();
                tracing::error!(target: "actix_informer::leader_election", %lease, %actor, "leader election {lease}: its actor {}; it starts again in {}, and this process does not lead until then", Ended(exit), Brief(after));
            }
            ChildEvent::Ended { exit } => {
                tracing::debug!(target: "actix_informer::leader_election", %lease, %actor, "leader election {lease}: its actor {}", Ended(exit));
            }
            ChildEvent::GivenUp { reason } => {
                tracing::error!(target: "actix_informer::leader_election", %lease, %actor, "leader election {lease}: its actor {reason}; it is not started again: this process will not lead");
            }
            ChildEvent::Revived => {}
        }
    }
}
