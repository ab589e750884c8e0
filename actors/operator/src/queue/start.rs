//! How a work queue starts.
//!
//! When nothing of the actor exists any more, adds are refused and what waits is discarded.

use std::sync::Arc;

use crate::queue::machine::QueueMachine;
use informer_core::restart::{RestartPolicy, Role};
use informer_core::words::Brief;
use tokio_util::sync::CancellationToken;

use super::content::{CaughtLimiter, Content, Inside, Limiter, Shared};
use super::report::RegisteredQueue;
use super::{QueueKey, QueueNote};
use informer_actors::inner::{
    ALONE, ChildEvent, Ended, Group, Locked, Mailbox, Named, Owner, Parent, Runner,
};
use informer_actors::runtime::Runtime;

struct QueueOwner(Arc<str>);

pub(super) fn start<K: QueueKey, P: QueueNote>(
    runtime: &Runtime,
    name: Arc<str>,
    queue: QueueMachine<K, P>,
    limiter: Limiter<K>,
) -> Shared<K, P> {
    // None: the runtime is shut down, the actor never starts, and the queue is over at once.
    let registration = runtime.register(Named::Queue, &name);
    let name = registration.as_ref().map_or(name, |registration| Arc::clone(registration.name()));
    let (owner, stop) = (Arc::new(QueueOwner(Arc::clone(&name))), CancellationToken::new());
    let parent =
        Parent::start(&name, owner, Group::none(), runtime, (RestartPolicy::default(), stop.clone()));
    let time = (parent.arbiter.clock().clone(), runtime.chance());
    let content = Content { queue, limiter: CaughtLimiter::new(limiter) };
    let (content, over) = (Locked::new(content, time), CancellationToken::new());
    let inside = Arc::new(Inside { name, content, over });
    let spec = (Arc::clone(&inside), parent.faults.clone());
    let Mailbox(address, inbox) = Mailbox::<Runner<Inside<K, P>>>::new();
    if let Some(registration) = &registration {
        registration.list(Arc::new(RegisteredQueue::new(&inside, stop.clone())));
    }
    let ended = Arc::clone(&inside);
    parent.context("work-queue", ALONE).start(inbox, spec, move |_| {
        // Ends the parent's other child, the supervisor.
        stop.cancel();
        drop(registration);
        ended.end();
    });
    Shared { inside, address }
}

impl Owner for QueueOwner {
    fn child_changed(&self, actor: &Arc<str>, _role: Role, event: ChildEvent<'_>) {
        let queue = &self.0;
        match event {
            ChildEvent::Restarts { exit, after } => {
                tracing::error!(target: "actix_informer::work_queue", %queue, %actor, "work queue {queue}: its actor {}; it starts again in {}, and no key is lost", Ended(exit), Brief(after));
            }
            ChildEvent::Ended { exit } => {
                tracing::debug!(target: "actix_informer::work_queue", %queue, %actor, "work queue {queue}: its actor {}", Ended(exit))
            }
            ChildEvent::GivenUp { reason } => {
                tracing::error!(target: "actix_informer::work_queue", %queue, %actor, "work queue {queue}: its actor {reason}; it is not started again: keys are refused, and workers get none");
            }
            ChildEvent::Revived => {}
        }
    }
}
