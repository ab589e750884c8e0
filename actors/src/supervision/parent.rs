//! What children of one owner share, and what each of them has of its own.
//!
//! Answers "on which thread does a child run, whom does its guard ask, and what ends it?". Invariants:
//! 1. All children of one parent run on one arbiter.
//! 2. The end of each child is told once, whatever ends first: with the last verdict, or with none when the arbiter
//!    ends, or has ended, before the child does. So nothing that waits for it waits for ever.
//! 3. `tasks` is empty when nothing of any child exists any more.
//!
//! Read next: `start.rs`, who makes a parent and starts children; `guard.rs`, what a started child is wrapped in.

use std::fmt;
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
use crate::supervision::owner::{News, Owner};
use crate::supervision::supervisor::Supervisor;

/// What all children of one owner share.
pub(crate) struct Parent {
    /// The owner's name. A text of its own, so that its address tells this owner from every other one.
    pub(crate) name: Arc<str>,
    pub(crate) owner: Arc<dyn Owner>,
    pub(crate) group: Group,
    /// Ends every child.
    pub(crate) stop: CancellationToken,
    pub(crate) arbiter: ArbiterHandle,
    /// What of the children is left.
    pub(crate) tasks: TaskTracker,
    pub(crate) faults: Faults,
    pub(crate) supervisor: Addr<Supervisor>,
}

/// What a guard knows of its child.
pub(crate) struct ChildContext {
    pub(crate) parent: Arc<Parent>,
    pub(crate) label: Arc<Label>,
    /// None for the Supervisor, about which nobody is asked.
    pub(crate) role: Option<Role>,
    pub(crate) stop: StopOn,
    /// How often it was revived.
    pub(crate) revivals: u32,
}

/// What ends a child.
pub(crate) enum StopOn {
    /// A stop scope: its parent's, or one within that.
    Token(CancellationToken),
    /// Something else that ends, as a subscription does.
    Signal(Arc<dyn StopSignal>),
}

/// Something with an end that also ends a child.
pub(crate) trait StopSignal: Send + Sync + 'static {
    /// Ready when it has ended; until then it wakes the task that asked last. One guard asks.
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
    /// What a child of this name and role has, that ends with its parent.
    pub(crate) fn context(self: &Arc<Self>, name: &str, role: Role) -> ChildContext {
        let label = Label { owner: Arc::clone(&self.name), kind: "", name: name.into() };
        let stop = StopOn::Token(self.stop.clone());
        ChildContext { parent: Arc::clone(self), label: Arc::new(label), role: Some(role), stop, revivals: 0 }
    }
}

impl ChildContext {
    /// Waits for what ends the child.
    pub(crate) fn stopped(&self) -> Stopped<'_> {
        match &self.stop {
            // Boxed, since each of many children with a signal would have room for it otherwise.
            StopOn::Token(token) => Stopped::Token(Box::pin(token.cancelled())),
            StopOn::Signal(signal) => Stopped::Signal(&**signal),
        }
    }

    /// Tells the owner, if it is to be told of this child.
    pub(crate) fn tell_owner(&self, news: News<'_>) {
        if let Some(role) = self.role.filter(|role| role.tells_owner) {
            self.parent.owner.told(&self.label.child(), role, news);
        }
    }

    /// Whether it is restarted with the group.
    pub(crate) fn follows_group(&self) -> bool {
        self.role.is_some_and(|role| role.follows_group)
    }
}

impl fmt::Debug for ChildContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildContext")
            .field("label", &self.label)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}
