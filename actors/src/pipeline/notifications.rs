//! What subscribers receive: an event, a key, or several events at once.

use actix::{Context, Handler, Message};
use informer_core::delta::Cause;
use informer_core::meta::{Object, ObjectKey};

use crate::supervision::runner::{Run, Runner};

/// What a body must be: shareable between threads, and nothing else.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the body of cached objects",
    label = "it is not `Send + Sync + 'static`",
    note = "objects are read and dropped on any thread, so that their bodies must be `Send + Sync + 'static`"
)]
pub trait Body: Send + Sync + 'static {}
impl<S: Send + Sync + 'static> Body for S {}

/// Something happened to an object: the event that a subscriber receives.
///
/// ```
/// # use informer_actors::face as actix_informer;
/// use actix_informer::subscription::{Cause, Notify};
///
/// fn line(notify: &Notify<String>) -> String {
///     match notify {
///         Notify::Added { cause: Cause::InitialList, object } => format!("have {}", object.key()),
///         Notify::Deleted { exact: false, last, .. } => format!("missed the end of {}", last.key()),
///         other => format!("{} ({})", other.key(), other.cause()),
///     }
/// }
/// ```
#[derive(Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a subscriber must handle exactly these three; a fourth is a new contract"
)]
pub enum Notify<S> {
    /// An object that is new to the subscriber, or new since its deletion.
    Added {
        /// The object.
        object: Object<S>,
        /// Why this event is delivered.
        cause: Cause,
    },
    /// An object that the subscriber knows, in another state; with [`Cause::Resync`] in the same state.
    Updated {
        /// The state that was delivered last.
        old: Object<S>,
        /// The state now.
        object: Object<S>,
        /// Why this event is delivered.
        cause: Cause,
    },
    /// An object that the subscriber knows was deleted.
    Deleted {
        /// Its last known state.
        last: Object<S>,
        /// Whether `last` is the state at its deletion, as the server sent it; false for a tombstone: the
        /// deletion itself was missed, and `last` may be older.
        exact: bool,
        /// Why this event is delivered.
        cause: Cause,
    },
}

impl<S> Notify<S> {
    /// The object's key.
    pub fn key(&self) -> &ObjectKey {
        self.subject().key()
    }

    /// The object that it is about: the newest state, or the last known one.
    pub fn subject(&self) -> &Object<S> {
        match self {
            Self::Added { object, .. } | Self::Updated { object, .. } => object,
            Self::Deleted { last, .. } => last,
        }
    }

    /// Why this event is delivered.
    pub fn cause(&self) -> Cause {
        match self {
            Self::Added { cause, .. } | Self::Updated { cause, .. } | Self::Deleted { cause, .. } => *cause,
        }
    }
}

impl<S> Clone for Notify<S> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { object, cause } => Self::Added { object: object.clone(), cause: *cause },
            Self::Updated { old, object, cause } => {
                Self::Updated { old: old.clone(), object: object.clone(), cause: *cause }
            }
            Self::Deleted { last, exact, cause } => {
                Self::Deleted { last: last.clone(), exact: *exact, cause: *cause }
            }
        }
    }
}

impl<S: Body> Message for Notify<S> {
    type Result = ();
}

/// Something happened to the object of this key, or it was created and deleted. A subscriber of keys receives
/// this, and looks up what there is now. Cheap to clone.
///
/// ```
/// # use informer_actors::face as actix_informer;
/// use actix_informer::subscription::{Cause, Touched};
///
/// /// After a start everything has to be looked at, which may wait.
/// fn is_urgent(touched: &Touched) -> bool {
///     !matches!(touched.cause, Cause::InitialList | Cause::Resync)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "which key, and why: there is no more to it")]
pub struct Touched {
    /// The key.
    pub key: ObjectKey,
    /// Why it is delivered; of several reasons the last one, or [`Cause::Rewind`].
    pub cause: Cause,
}

impl Message for Touched {
    type Result = ();
}

/// What takes the keys of an informer by the actor that runs it.
pub trait Fed: Run {
    /// Something has happened to an object. The actor looks after that.
    fn feed(&self, touched: Touched);
}

impl<R: Fed> Handler<Touched> for Runner<R> {
    type Result = ();

    fn handle(&mut self, touched: Touched, ctx: &mut Context<Self>) {
        self.run.feed(touched);
        self.look(ctx);
    }
}

/// Several events at once, in order, at least one: what a subscriber of batches receives.
///
/// ```
/// # use informer_actors::face as actix_informer;
/// use actix::{Actor, Context, Handler};
/// use actix_informer::subscription::Batch;
///
/// /// Writes a page of rows in one statement.
/// struct Rows;
///
/// impl Actor for Rows {
///     type Context = Context<Self>;
/// }
///
/// impl Handler<Batch<String>> for Rows {
///     type Result = ();
///
///     fn handle(&mut self, Batch(events): Batch<String>, _ctx: &mut Context<Self>) {
///         let keys: Vec<_> = events.iter().map(|notify| notify.key().to_string()).collect();
///         println!("UPSERT {}", keys.join(", "));
///     }
/// }
/// ```
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "the events, and nothing else")]
pub struct Batch<S>(pub Vec<Notify<S>>);

impl<S: Body> Message for Batch<S> {
    type Result = ();
}
