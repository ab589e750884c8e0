//! What the children of one owner share, and what each has for itself.
//!
//! All children are on one arbiter. The end of each is reported once, also when the arbiter ends first, so every wait
//! for it ends. `tasks` is empty when nothing of any child exists.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use actix::Addr;
use informer_core::restart::Role;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};
use tokio_util::task::TaskTracker;

use crate::runtime::faults::Faults;
use crate::runtime::{ArbiterHandle, Label};
use crate::supervision::group::Group;
use crate::supervision::owner::{ChildEvent, Owner};
use crate::supervision::supervisor::Supervisor;

/// What all children of one owner share.
pub struct Parent {
    /// A new allocation, whose address identifies this owner.
    pub(crate) name: Arc<str>,
    pub(crate) owner: Arc<dyn Owner>,
    pub(crate) group: Group,
    pub(crate) stop: CancellationToken,
    /// The arbiter of all children.
    pub arbiter: ArbiterHandle,
    pub(crate) tasks: TaskTracker,
    /// The fault hook of their runtime.
    pub faults: Faults,
    pub(crate) supervisor: Addr<Supervisor>,
}

/// A child's name, role and stop, for its guard.
pub struct ChildContext {
    pub(crate) parent: Arc<Parent>,
    pub(crate) label: Arc<Label>,
    /// `None` for the Supervisor, whose guard decides itself.
    pub(crate) role: Option<Role>,
    pub(crate) stop: StopOn,
}

pub(crate) enum StopOn {
    Token(CancellationToken),
    Signal(Arc<dyn StopSignal>),
}

pub(crate) trait StopSignal: Send + Sync + 'static {
    /// Ready when it has ended; before that it wakes the task that polled last. Only one guard polls it.
    fn poll_ended(&self, cx: &mut task::Context<'_>) -> Poll<()>;
}

pub(crate) enum Stopped<'a> {
    Token(Pin<Box<WaitForCancellationFuture<'a>>>),
    Signal(&'a dyn StopSignal),
}

impl Future for Stopped<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<()> {
        match self.get_mut() {
            Stopped::Token(cancelled) => cancelled.as_mut().poll(cx),
            Stopped::Signal(signal) => signal.poll_ended(cx),
        }
    }
}

impl Parent {
    /// The context of a child of this name and role, which ends with its parent.
    pub fn context(self: &Arc<Self>, name: &str, role: Role) -> ChildContext {
        let label = Label::new(Arc::clone(&self.name), name.into());
        let stop = StopOn::Token(self.stop.clone());
        ChildContext { parent: Arc::clone(self), label: Arc::new(label), role: Some(role), stop }
    }
}

impl ChildContext {
    pub(crate) fn stopped(&self) -> Stopped<'_> {
        match &self.stop {
            // Boxed: each of many children with a signal would need the memory.
            StopOn::Token(token) => Stopped::Token(Box::pin(token.cancelled())),
            StopOn::Signal(signal) => Stopped::Signal(&**signal),
        }
    }

    pub(crate) fn notify_owner(&self, event: ChildEvent<'_>) {
        if let Some(role) = self.role.filter(|role| role.tells_owner) {
            self.parent.owner.child_changed(&self.label.child(), role, event);
        }
    }

    pub(crate) fn follows_group(&self) -> bool {
        self.role.is_some_and(|role| role.follows_group)
    }
}

informer_core::debug_as!(Parent, self, name = self.name);
informer_core::debug_as!(ChildContext, self, label = self.label);
