//! Every message between two actors: the single wiring table.
//!
//! | message | from | to | answer | bound |
//! |---|---|---|---|---|
//! | `Delta`, `Replace` | Reflector | DeltaFifo | when there is room | one ask in flight a source |
//! | `RemoveSource` | a removal's task | DeltaFifo | when the store has forgotten the source | one ask a removal |
//! | `Resync` | Processor | DeltaFifo | when there is room | one ask in flight |
//! | `Pop` | Indexer | DeltaFifo | a batch, when there is one | one ask in flight |
//! | `FanOut` | Indexer | Processor | when every listener has taken it | one ask in flight |
//! | `Owed` | Processor | Listener | when it is in the backlog | one ask in flight a listener |
//! | `Attach`, `Detach` | Listener, Subscription | Processor | at once | once an epoch; once |
//! | `Start`, `Reattach` | Processor | Listener | none | once an epoch |
//! | `Notify` | Listener | the subscriber | none; the last of a window is awaited | 63 and one awaited |
//! | `Take` | a subscription's stream | Listener | a batch, when something is owed | one ask in flight |
//! | `Flush` | the informer's handle | DeltaFifo | when all that was queued is applied and recorded | once |
//! | `Drain` | a handle's shutdown | Listener | when nothing is owed any more, or nobody takes it | once |
//! | `AddIndex` | the informer's handle | Indexer | at once: taken or refused | callers |
//!
//! Every message of the pipeline carries the epoch it was sent in; messages of an older epoch are ignored and counted.
//! What guards ask the Supervisor is `supervision/messages.rs`.
//! Read next: `wiring.rs`, who knows whom; then any actor.

use std::fmt;
use std::sync::Arc;

use actix::dev::OneshotSender;
use actix::{Addr, Message};
use informer_core::delta::{Cause, Changes, Replacement, WatchPart};
use informer_core::delta_fifo::Batch;
use informer_core::index::IndexSpec;
use informer_core::indexer::IndexExists;
use informer_core::meta::{Object, ObjectKey, SourceId};
use informer_core::processor::ListenerId;
use informer_core::snapshot::Snapshot;

use crate::pipeline::seat::Seat;
use crate::runtime::mailbox::Reply;
pub(crate) use crate::supervision::group::Epoch;

/// What a body must be to travel: nothing but shareable.
pub trait Body: Send + Sync + 'static {}
impl<S: Send + Sync + 'static> Body for S {}

/// What a watch brought.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Delta<S: Body> {
    pub(crate) epoch: Epoch,
    pub(crate) source: SourceId,
    pub(crate) parts: Vec<WatchPart<S>>,
}

/// A whole list of one source.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Replace<S: Body> {
    pub(crate) epoch: Epoch,
    pub(crate) source: SourceId,
    pub(crate) replacement: Replacement<S>,
}

/// This source has ended: forget all that it brought. Behind everything that it has put into the queue.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct RemoveSource {
    pub(crate) epoch: Epoch,
    pub(crate) source: SourceId,
}

/// These listeners are due to be told everything again.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Resync {
    pub(crate) epoch: Epoch,
    pub(crate) due: Arc<[ListenerId]>,
}

/// Give me the next batch.
#[derive(Debug)]
pub(crate) struct Pop<S>(pub(crate) Epoch, pub(crate) std::marker::PhantomData<fn() -> S>);

impl<S: Body> Message for Pop<S> {
    type Result = Batch<S>;
}

/// What one publish changed.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct FanOut<S: Body> {
    pub(crate) epoch: Epoch,
    pub(crate) snapshot: Snapshot<S>,
    /// What led to `snapshot`: nothing, parts, or a list; shared by all listeners.
    pub(crate) changes: Option<Changes<S>>,
    pub(crate) resync: Option<Arc<[ListenerId]>>,
}

/// What one listener owes its subscriber since the last one.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Owed<S: Body> {
    pub(crate) epoch: Epoch,
    pub(crate) snapshot: Snapshot<S>,
    pub(crate) changes: Option<Changes<S>>,
    pub(crate) resync: bool,
}

/// I listen: send me a Start, and from then on what changes. `L` is the Listener.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Attach<L: actix::Actor> {
    pub(crate) id: ListenerId,
    pub(crate) listener: Arc<Addr<L>>,
    pub(crate) resync: Option<std::time::Duration>,
}

/// This listener is no more.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Detach(pub(crate) ListenerId);

/// You are attached from this snapshot on.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Start<S: Body> {
    pub(crate) epoch: Epoch,
    pub(crate) snapshot: Snapshot<S>,
}

/// The processor has been built anew: attach again.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Reattach(pub(crate) Epoch);

/// Something happened to an object. This is what a subscriber is told.
///
/// ```
/// use informer_actors::messages::Notify;
/// use informer_core::delta::Cause;
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
    /// An object that the subscriber has not been told of, or not since its deletion.
    Added {
        /// The object.
        object: Object<S>,
        /// Why it is told.
        cause: Cause,
    },
    /// An object that the subscriber knows, in another state; with [`Cause::Resync`] in the same one.
    Updated {
        /// The state that was told last.
        old: Object<S>,
        /// The state now.
        object: Object<S>,
        /// Why it is told.
        cause: Cause,
    },
    /// An object that the subscriber knows is gone.
    Deleted {
        /// Its last known state.
        last: Object<S>,
        /// Whether `last` is the state at its deletion, as the server told it; false for a tombstone: the deletion
        /// itself was missed, and `last` may be older.
        exact: bool,
        /// Why it is told.
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

    /// Why it is told.
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

/// Give me what you owe, at most a window of it; what I took before has been handled.
#[derive(Debug)]
pub(crate) struct Take<S>(pub(crate) OneshotSender<Vec<Notify<S>>>);

impl<S: Body> Message for Take<S> {
    type Result = ();
}

/// Answer when nothing is queued and the Indexer has done all that it took.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Flush;

/// Deliver what is owed; answer when nothing is left, or when nobody is there to take it: to the callback that asks,
/// and to a stream that is not polled.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Drain {
    /// The subscription in whose callback the asker waits, if it does.
    pub(crate) inside: Option<Seat>,
}

/// Add a secondary index.
#[derive(Debug)]
pub(crate) struct AddIndex<S> {
    pub(crate) spec: IndexSpec<S>,
    /// Whose wish it is: the same one may be asked several times.
    pub(crate) call: IndexCall,
}

/// One call of `add_index`, told apart from all others.
#[derive(Debug, Clone)]
pub(crate) struct IndexCall(Arc<()>);

impl IndexCall {
    pub(crate) fn new() -> Self {
        Self(Arc::new(()))
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<S: Body> Message for AddIndex<S> {
    type Result = Result<(), IndexExists>;
}

impl<L: actix::Actor> fmt::Debug for Attach<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attach").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The response type of handlers that may answer later.
pub(crate) type Answer<T> = Reply<T>;
