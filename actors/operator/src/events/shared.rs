//! What the handles of a recorder share, and how it starts. When nothing of the actor exists any more, events
//! are refused and every wait ends.

use std::sync::Arc;

use crate::events::machine::{RecorderConfig, RecorderMachine};
use actix::Addr;
use informer_core::restart::{RestartPolicy, Role};
use informer_core::words::Brief;
use tokio_util::sync::CancellationToken;

use super::EventSink;
use super::content::{Inside, RegisteredRecorder};
use informer_actors::inner::{
    ALONE, ChildEvent, Ended, Group, Locked, Mailbox, Named, Owner, Parent, Run as _, Runner,
};
use informer_actors::runtime::Runtime;

pub(super) struct Shared {
    pub(super) inside: Arc<Inside>,
    pub(super) address: Addr<Runner<Inside>>,
}

impl Shared {
    pub(super) fn tell(&self) {
        self.inside.tell(&self.address);
    }

    pub(super) fn close(&self) {
        self.inside.with(|recorder, _| recorder.close());
        self.tell();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.close();
    }
}

struct RecorderOwner(Arc<str>);

pub(super) fn start(
    runtime: &Runtime,
    name: Arc<str>,
    config: RecorderConfig,
    sink: Arc<dyn EventSink>,
) -> Shared {
    let registration = runtime.register(Named::Recorder, &name);
    let name = registration.as_ref().map_or(name, |registration| Arc::clone(registration.name()));
    let (owner, stop) = (Arc::new(RecorderOwner(Arc::clone(&name))), CancellationToken::new());
    let parent =
        Parent::start(&name, owner, Group::none(), runtime, (RestartPolicy::default(), stop.clone()));
    let content =
        Locked::new(RecorderMachine::new(config), (parent.arbiter.clock().clone(), runtime.chance()));
    let inside = Arc::new(Inside { name, content, sink, over: CancellationToken::new() });
    let spec = (Arc::clone(&inside), parent.faults.clone());
    let Mailbox(address, inbox) = Mailbox::<Runner<Inside>>::new();
    // In simulation the arbiter outlives its runtime, which drops this task and so ends the actor.
    let (with_runtime, over) = (stop.clone().drop_guard(), inside.over.clone());
    runtime.spawn_local(move || async move {
        over.cancelled().await;
        drop(with_runtime);
    });
    match &registration {
        Some(registration) => {
            let (inside, stop) = (Arc::clone(&inside), stop.clone());
            registration.list(Arc::new(RegisteredRecorder { inside, stop }));
        }
        // The runtime is shut down.
        None => stop.cancel(),
    }
    let ended = Arc::clone(&inside);
    parent.context("event-recorder", ALONE).start(inbox, spec, move |_| {
        // Ends the parent's other child, the supervisor.
        stop.cancel();
        ended.with(|recorder, _| recorder.close());
        drop(registration);
        ended.over.cancel();
    });
    Shared { inside, address }
}

impl Owner for RecorderOwner {
    fn child_changed(&self, actor: &Arc<str>, _role: Role, event: ChildEvent<'_>) {
        let recorder = &self.0;
        match event {
            ChildEvent::Restarts { exit, after } => {
                tracing::error!(target: "actix_informer::events", %recorder, %actor, "recorder {recorder}: its actor {}; it starts again in {}, and no event is lost", Ended(exit), Brief(after));
            }
            ChildEvent::Ended { exit } => {
                tracing::debug!(target: "actix_informer::events", %recorder, %actor, "recorder {recorder}: its actor {}", Ended(exit));
            }
            ChildEvent::GivenUp { reason } => {
                tracing::error!(target: "actix_informer::events", %recorder, %actor, "recorder {recorder}: its actor {reason}; it is not started again: events are refused");
            }
            ChildEvent::Revived => {}
        }
    }
}
