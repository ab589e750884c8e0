//! The owner of children: supervision notifies it of restarts and ends.
//!
//! Answers "who learns that an actor was restarted or given up?": its owner, through one method. The owner counts, logs
//! and shows the event, and decides whether it can go on. Invariants:
//! 1. Each failure of a child is reported once, with what follows.
//! 2. A child is reported as given up when nothing of it exists any more.
//! 3. The owner is called on the thread of the children and must not block it.
//!
//! Read next: `supervisor.rs` and `start.rs`, which call it; `pipeline/owner.rs`, the informer as an owner.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::dev::channel::{AddressReceiver, channel};
use actix::{Actor, Addr, Context, Message, Supervised};
use informer_core::restart::{Exit, RestartHistory, RestartVerdict, Role};
use informer_core::words::{QUOTED, one_line};

/// The owner of supervised children.
pub trait Owner: Send + Sync + 'static {
    /// The child of this name and role has failed, ended, or was revived.
    fn child_changed(&self, child: &Arc<str>, role: Role, event: ChildEvent<'_>);
}

/// What has happened to a child.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "an owner of our own crates answers each")]
pub enum ChildEvent<'a> {
    /// It has failed and starts again after this wait, with its group if its role says so.
    Restarts {
        /// How it has ended.
        exit: &'a Exit,
        /// The wait.
        after: Duration,
    },
    /// It has ended and is not needed any more.
    Ended {
        /// How.
        exit: &'a Exit,
    },
    /// It has failed and is not started again.
    GivenUp {
        /// Why not.
        reason: &'a Arc<str>,
    },
    /// It was given up, and starts again now.
    Revived,
}

/// The text for how a child has ended.
#[derive(Debug)]
pub struct Ended<'a>(pub &'a Exit);

impl fmt::Display for Ended<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Exit::Finished => f.write_str("has finished"),
            Exit::Asked => f.write_str("has ended, as it was asked to"),
            Exit::Failed(why) => write!(f, "has failed: {}", one_line(why, QUOTED)),
            Exit::Panicked(text) => write!(f, "has panicked: {}", one_line(text, QUOTED)),
            _ => f.write_str("has ended"),
        }
    }
}

// The question of a guard to its Supervisor: the only message of supervision.
//
// It has a file of its own, so that the guard and the Supervisor do not depend on each other. Each child has at most
// one ask in flight.

/// A child has ended; the answer is what follows.
#[derive(Debug)]
pub(crate) struct Exited {
    pub(crate) child: Arc<str>,
    pub(crate) role: Role,
    /// Its restarts so far; none before the first, and of a child that is restarted with its group.
    pub(crate) history: Option<Box<RestartHistory>>,
    pub(crate) exit: Exit,
}

/// What follows, and the history with it.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) verdict: RestartVerdict,
    pub(crate) history: Option<Box<RestartHistory>>,
}

impl Message for Exited {
    type Result = Decided;
}

// A supervised actor: how it is built anew, its mailbox, and how its end is reported.

/// How many messages a mailbox takes before its senders wait. Each of our senders has one ask in flight.
const MAILBOX: usize = 64;

/// An actor that can be built anew from its spec, at any time.
pub trait Child: Actor<Context = Context<Self>> + Supervised {
    /// All that it is built from. It holds no state of the running actor.
    type Spec: Clone + Send + 'static;

    /// Builds a new actor.
    fn build(spec: &Self::Spec) -> Self;
}

/// An address and its mailbox. Both exist before the actor does; messages sent early wait there.
pub struct Mailbox<A: Actor>(pub Addr<A>, pub AddressReceiver<A>);

impl<A: Actor> Mailbox<A> {
    /// A mailbox with the usual room.
    #[expect(clippy::new_without_default, reason = "it is made where its actor is")]
    pub fn new() -> Self {
        Self::with_room(MAILBOX)
    }

    /// A mailbox that takes so many messages before its senders wait.
    pub(crate) fn with_room(messages: usize) -> Self {
        let (sender, inbox) = channel(messages);
        Self(Addr::new(sender), inbox)
    }
}

informer_core::debug_as!([A: Actor] Mailbox<A>, self);

/// Reports the end of one child, once: with the last verdict, or with none if this is dropped before.
pub(crate) struct OnEnd<F: FnOnce(Option<RestartVerdict>)>(Option<F>);

impl<F: FnOnce(Option<RestartVerdict>)> OnEnd<F> {
    pub(crate) fn new(ended: F) -> Self {
        Self(Some(ended))
    }

    pub(crate) fn call(mut self, verdict: RestartVerdict) {
        if let Some(ended) = self.0.take() {
            ended(Some(verdict));
        }
    }
}

impl<F: FnOnce(Option<RestartVerdict>)> Drop for OnEnd<F> {
    fn drop(&mut self) {
        if let Some(ended) = self.0.take() {
            ended(None);
        }
    }
}
