//! Every message between two actors: the single wiring table.
//!
//! | message | from | to | answer | bound |
//! |---|---|---|---|---|
//! | `Delta`, `Replace` | Reflector | DeltaFifo | when there is room | one ask in flight a source |
//! | `RemoveSource` | a removal's task | DeltaFifo | when the store has removed the source | one ask a removal |
//! | `Resync` | Processor | DeltaFifo | when there is room | one ask in flight |
//! | `Pop` | Indexer | DeltaFifo | a batch, when there is one | one ask in flight |
//! | `FanOut` | Indexer | Processor | when every listener has dropped its share | one ask in flight |
//! | `Distribute` | Processor | Listener | none; its share of the reply is dropped when it is recorded | one a listener |
//! | `Attach`, `Detach` | Listener, Subscription | Processor | at once | once an epoch; once |
//! | `Start`, `Reattach` | Processor | Listener | none | once an epoch |
//! | `Notify` | Listener | the subscriber | none; the last of a window is awaited | 63 and one awaited |
//! | `Touched` | Listener | a subscriber of keys | none; the last of a window is awaited | 63 and one awaited |
//! | `Batch` | Listener | a subscriber of batches | awaited | one awaited |
//! | `Take` | a subscription's stream | Listener | a window of events, when there are any | one ask in flight |
//! | `Flush` | the informer's handle | DeltaFifo | when all that was queued is applied and recorded | once |
//! | `Drain` | a handle's shutdown | Listener | when every event is delivered, or the stream is not polled | once |
//! | `AddIndex` | the informer's handle | Indexer | at once: taken or refused | callers |
//!
//! Every message of the pipeline carries the epoch it was sent in; messages of an older epoch are ignored and counted.
//! The question of a guard to its Supervisor is in `supervision/owner.rs`.
//! Read next: `wiring.rs`, which actor has which address; then any actor.

use std::sync::Arc;

use actix::dev::OneshotSender;
use actix::{Addr, Message};
use informer_core::delta::{Changes, Replacement, WatchPart};
use informer_core::delta_fifo::Batch;
use informer_core::index::AnyIndex;
use informer_core::indexer::{IndexExists, Successors};
use informer_core::meta::SourceId;
use informer_core::processor::ListenerId;
use informer_core::snapshot::Snapshot;

use crate::pipeline::subscription_state::SubscriptionState;
use crate::runtime::mailbox::Reply;
pub(crate) use crate::supervision::group::Epoch;

pub use crate::pipeline::notifications::{Body, Notify, Touched};

/// Parts that a watch brought.
#[derive(Debug)]
pub(crate) struct Delta<S: Body> {
    pub(crate) epoch: Epoch,
    pub(crate) source: SourceId,
    pub(crate) parts: Vec<WatchPart<S>>,
}

impl<S: Body> Message for Delta<S> {
    type Result = ();
}

/// A whole list of one source.
#[derive(Debug)]
pub(crate) struct Replace<S: Body> {
    pub(crate) epoch: Epoch,
    pub(crate) source: SourceId,
    pub(crate) replacement: Replacement<S>,
    /// Answered when it is published, if the sender wants to know.
    pub(crate) published: Option<OneshotSender<()>>,
}

impl<S: Body> Message for Replace<S> {
    type Result = ();
}

/// This source was removed, and these take over from it: remove all that only it brought. Comes after everything that it
/// has put into the queue.
#[derive(Debug)]
pub(crate) struct RemoveSource {
    pub(crate) epoch: Epoch,
    pub(crate) source: SourceId,
    pub(crate) successors: Successors,
}

impl Message for RemoveSource {
    type Result = ();
}

/// These listeners are due for a resync.
#[derive(Debug)]
pub(crate) struct Resync {
    pub(crate) epoch: Epoch,
    pub(crate) due: Arc<[ListenerId]>,
}

impl Message for Resync {
    type Result = ();
}

/// Asks for the next batch.
#[derive(Debug)]
pub(crate) struct Pop<S: Body> {
    pub(crate) epoch: Epoch,
    /// The emptied vector of an earlier batch, to be filled again.
    pub(crate) spare: Vec<(SourceId, WatchPart<S>)>,
    pub(crate) reply: OneshotSender<Batch<S>>,
}

impl<S: Body> Message for Pop<S> {
    type Result = ();
}

/// What one publish changed.
#[derive(Debug)]
pub(crate) struct FanOut<S: Body> {
    pub(crate) epoch: Epoch,
    pub(crate) snapshot: Snapshot<S>,
    /// What led to `snapshot`: nothing, parts, or a list; shared by all listeners.
    pub(crate) changes: Option<Changes<S>>,
    pub(crate) resync: Option<Arc<[ListenerId]>>,
    pub(crate) reply: OneshotSender<()>,
}

impl<S: Body> Message for FanOut<S> {
    type Result = ();
}

/// The reply to a [`FanOut`]. Each [`Distribute`] holds a share of it. When the last share is dropped, the Indexer is
/// answered: then every listener has recorded the changes, or has died.
#[derive(Debug)]
pub(crate) struct FanOutReply(Option<OneshotSender<()>>);

impl FanOutReply {
    pub(crate) fn new(reply: OneshotSender<()>) -> Self {
        Self(Some(reply))
    }
}

impl Drop for FanOutReply {
    fn drop(&mut self) {
        if let Some(reply) = self.0.take() {
            // If the Indexer is gone, its group is being restarted.
            let _sent = reply.send(());
        }
    }
}

/// One publish for one listener, which records it for its subscriber.
#[derive(Debug)]
pub(crate) struct Distribute<S: Body> {
    pub(crate) epoch: Epoch,
    pub(crate) snapshot: Snapshot<S>,
    pub(crate) changes: Option<Changes<S>>,
    pub(crate) resync: bool,
    /// Its share: dropped when the listener has recorded it.
    pub(crate) reply: Arc<FanOutReply>,
}

impl<S: Body> Message for Distribute<S> {
    type Result = ();
}

/// Attaches a listener: the Processor sends it a Start, and from then on every change. `L` is the Listener.
pub(crate) struct Attach<L: actix::Actor> {
    pub(crate) id: ListenerId,
    pub(crate) listener: Arc<Addr<L>>,
    pub(crate) resync: Option<std::time::Duration>,
}

impl<L: actix::Actor> Message for Attach<L> {
    type Result = ();
}

/// This listener has ended.
#[derive(Debug)]
pub(crate) struct Detach(pub(crate) ListenerId);

impl Message for Detach {
    type Result = ();
}

/// The listener is attached from this snapshot on.
#[derive(Debug)]
pub(crate) struct Start<S: Body> {
    pub(crate) epoch: Epoch,
    pub(crate) snapshot: Snapshot<S>,
}

impl<S: Body> Message for Start<S> {
    type Result = ();
}

/// The Processor was rebuilt: the listener attaches again.
#[derive(Debug)]
pub(crate) struct Reattach(pub(crate) Epoch);

impl Message for Reattach {
    type Result = ();
}

/// Asks for the next window of events; the window taken before has been handled.
#[derive(Debug)]
pub(crate) struct Take<S> {
    /// Whether the end of the initial events is to be marked.
    pub(crate) is_marked: bool,
    pub(crate) reply: OneshotSender<Taken<S>>,
}

/// The answer to a [`Take`].
#[derive(Debug)]
pub(crate) enum Taken<S> {
    Events(Vec<Notify<S>>),
    /// Everything that the subscription began with has been handled. Given once.
    InitDone,
}

impl<S: Body> Message for Take<S> {
    type Result = ();
}

/// Answered when nothing is queued and the Indexer has finished all that it took.
#[derive(Debug)]
pub(crate) struct Flush;

impl Message for Flush {
    type Result = ();
}

/// Waits until every event is delivered. Answered early if waiting is useless: to the callback that asks, and to a
/// stream that is not polled.
#[derive(Debug)]
pub(crate) struct Drain {
    /// The subscription in whose callback the asker waits, if it does.
    pub(crate) inside: Option<SubscriptionState>,
}

impl Message for Drain {
    type Result = ();
}

/// Add a secondary index.
#[derive(Debug)]
pub(crate) struct AddIndex<S> {
    pub(crate) index: AnyIndex<S>,
    /// The call that asks for it; one call may be asked several times.
    pub(crate) call: IndexCall,
}

/// Identifies one call of `add_index`.
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

/// The response type of handlers that may answer later.
pub(crate) type Answer<T> = Reply<T>;
