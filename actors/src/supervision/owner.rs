//! The owner of supervised children, and what guard, Supervisor and owner exchange.
//!
//! The owner learns of each failure once, and of a give-up only when nothing of the child exists. It is called on the
//! children's thread and must not block.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::dev::channel::{AddressReceiver, channel};
use actix::{Actor, Addr, Context, Message, Supervised};
use informer_core::restart::{Exit, RestartHistory, RestartVerdict, Role};
use informer_core::words::{QUOTED, one_line};

/// The owner of supervised children.
pub trait Owner: Send + Sync + 'static {
    /// The child of this name and role failed, ended, or was revived.
    fn child_changed(&self, child: &Arc<str>, role: Role, event: ChildEvent<'_>);
}

/// What has happened to a child.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "an owner of our own crates answers each")]
pub enum ChildEvent<'a> {
    /// It failed and starts again after this wait, with its group if its role says so.
    Restarts {
        /// How it ended.
        exit: &'a Exit,
        /// The wait.
        after: Duration,
    },
    /// It has ended and is no longer needed.
    Ended {
        /// How it ended.
        exit: &'a Exit,
    },
    /// It failed and is not started again.
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

// Here, so that guard and Supervisor do not depend on each other.

#[derive(Debug)]
pub(crate) struct Exited {
    pub(crate) child: Arc<str>,
    pub(crate) role: Role,
    /// `None` before the first restart, and for a child that restarts with its group.
    pub(crate) history: Option<Box<RestartHistory>>,
    pub(crate) exit: Exit,
}

#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) verdict: RestartVerdict,
    pub(crate) history: Option<Box<RestartHistory>>,
}

impl Message for Exited {
    type Result = Decided;
}

/// Messages in a mailbox before senders wait. Each of our senders has one ask in flight.
const MAILBOX: usize = 64;

/// An actor that can be rebuilt from its spec at any time.
pub trait Child: Actor<Context = Context<Self>> + Supervised {
    /// The input of [`Self::build`]: no state of the running actor.
    type Spec: Clone + Send + 'static;

    /// Builds a new actor.
    fn build(spec: &Self::Spec) -> Self;
}

/// Both exist before the actor does; early messages wait here.
pub struct Mailbox<A: Actor>(pub Addr<A>, pub AddressReceiver<A>);

impl<A: Actor> Mailbox<A> {
    /// A mailbox of the usual size.
    #[expect(clippy::new_without_default, reason = "it is made where its actor is")]
    pub fn new() -> Self {
        Self::with_room(MAILBOX)
    }

    pub(crate) fn with_room(messages: usize) -> Self {
        let (sender, inbox) = channel(messages);
        Self(Addr::new(sender), inbox)
    }
}

informer_core::debug_as!([A: Actor] Mailbox<A>, self);

/// Reports the last verdict, once; `None` if dropped before.
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
