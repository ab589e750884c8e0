//! What the children of one owner share, and what each of them has alone.
//!
//! Answers "on which thread does a child run, which supervisor does its guard ask, and what ends it?". Invariants:
//! 1. All children of one parent run on one arbiter.
//! 2. The end of each child is reported once, whatever ends first: with the last verdict, or with none when the arbiter
//!    ends, or has ended, before the child does. So every wait for it ends.
//! 3. `tasks` is empty when nothing of any child exists any more.
//!
//! Read next: `start.rs`, which makes a parent and starts children; `guard.rs`, which runs a child.

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
    /// The owner's name. It is a new allocation, so that its address identifies this owner.
    pub(crate) name: Arc<str>,
    pub(crate) owner: Arc<dyn Owner>,
    pub(crate) group: Group,
    /// Ends every child.
    pub(crate) stop: CancellationToken,
    /// Where all of them run.
    pub arbiter: ArbiterHandle,
    /// The tasks of the children that still run.
    pub(crate) tasks: TaskTracker,
    /// The fault hook of their runtime.
    pub faults: Faults,
    pub(crate) supervisor: Addr<Supervisor>,
}

/// A child's name, role and stop, for its guard.
pub struct ChildContext {
    pub(crate) parent: Arc<Parent>,
    pub(crate) label: Arc<Label>,
    /// None for the Supervisor: its guard decides by itself.
    pub(crate) role: Option<Role>,
    pub(crate) stop: StopOn,
}

/// What ends a child.
pub(crate) enum StopOn {
    /// A stop token: its parent's, or a child token of that.
    Token(CancellationToken),
    /// Something else with an end, such as a subscription.
    Signal(Arc<dyn StopSignal>),
}

/// Something with an end that also ends a child.
pub(crate) trait StopSignal: Send + Sync + 'static {
    /// Ready when it has ended; until then it wakes the task that polled last. Only one guard polls it.
    fn poll_ended(&self, cx: &mut task::Context<'_>) -> Poll<()>;
}

/// Waits for what ends a child.
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
        let label = Label { owner: Arc::clone(&self.name), kind: "", name: name.into() };
        let stop = StopOn::Token(self.stop.clone());
        ChildContext { parent: Arc::clone(self), label: Arc::new(label), role: Some(role), stop }
    }
}

impl ChildContext {
    /// Waits for what ends the child.
    pub(crate) fn stopped(&self) -> Stopped<'_> {
        match &self.stop {
            // Boxed: otherwise each of many children with a signal would need the memory for it.
            StopOn::Token(token) => Stopped::Token(Box::pin(token.cancelled())),
            StopOn::Signal(signal) => Stopped::Signal(&**signal),
        }
    }

    /// Notifies the owner, if the role says so.
    pub(crate) fn notify_owner(&self, event: ChildEvent<'_>) {
        if let Some(role) = self.role.filter(|role| role.tells_owner) {
            self.parent.owner.child_changed(&self.label.child(), role, event);
        }
    }

    /// Whether it is restarted with the group.
    pub(crate) fn follows_group(&self) -> bool {
        self.role.is_some_and(|role| role.follows_group)
    }
}

informer_core::debug_as!(Parent, self, name = self.name);
informer_core::debug_as!(ChildContext, self, label = self.label);
