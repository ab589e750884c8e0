//! Starts an owner's parent with its Supervisor, and children under guards.

use std::sync::Arc;

use actix::dev::channel::AddressReceiver;
use informer_core::restart::{RestartPolicy, RestartVerdict};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::runtime::{ArbiterHandle, Label, Runtime};
use crate::supervision::group::Group;
use crate::supervision::guard::Guard;
use crate::supervision::owner::{Child, ChildEvent, Mailbox, OnEnd, Owner};
use crate::supervision::parent::{ChildContext, Parent, StopOn};
use crate::supervision::supervisor::SupervisorSpec;

impl Parent {
    /// A parent on an arbiter of this runtime. Also starts the Supervisor, its first child.
    pub fn start(
        name: &str,
        owner: Arc<dyn Owner>,
        group: Group,
        runtime: &Runtime,
        ends: (RestartPolicy, CancellationToken),
    ) -> Arc<Self> {
        Self::start_on(runtime.pipeline_arbiter(), (name, owner, group), runtime, ends)
    }

    /// As [`Self::start`], on this arbiter.
    pub fn start_on(
        arbiter: ArbiterHandle,
        (name, owner, group): (&str, Arc<dyn Owner>, Group),
        runtime: &Runtime,
        (policy, stop): (RestartPolicy, CancellationToken),
    ) -> Arc<Self> {
        let Mailbox(supervisor, inbox) = Mailbox::new();
        let parent = Arc::new(Self {
            name: name.into(),
            owner: Arc::clone(&owner),
            group,
            stop: stop.clone(),
            arbiter,
            tasks: TaskTracker::new(),
            faults: runtime.0.faults.clone(),
            supervisor,
        });
        let label = Label::new(Arc::clone(&parent.name), "supervisor".into());
        let supervisor = ChildContext {
            parent: Arc::clone(&parent),
            label: Arc::new(label),
            role: None,
            stop: StopOn::Token(stop),
        };
        supervisor.start(inbox, SupervisorSpec { owner, runtime: runtime.clone(), policy }, |_| ());
        parent
    }
}

impl ChildContext {
    /// Starts a child under a guard on its parent's arbiter. `ended` is called exactly once: with the last
    /// verdict, or with `None` when the arbiter ends before the child.
    pub fn start<A: Child>(
        self,
        inbox: AddressReceiver<A>,
        spec: A::Spec,
        ended: impl FnOnce(Option<RestartVerdict>) + Send + 'static,
    ) {
        let parent = Arc::clone(&self.parent);
        let (token, labelled) = (parent.tasks.token(), parent.arbiter.label(Arc::clone(&self.label)));
        let ended = OnEnd::new(ended);
        parent.arbiter.spawn(move || {
            let guard = Box::pin(Guard::new(inbox, spec, self, labelled).keep());
            async move {
                let (verdict, context) = guard.await;
                ended.call(verdict.clone());
                if let RestartVerdict::GiveUp { reason } = &verdict {
                    context.notify_owner(ChildEvent::GivenUp { reason });
                }
                drop(token);
            }
        });
    }
}
