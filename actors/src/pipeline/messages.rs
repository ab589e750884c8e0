//! Every message between two actors: the single wiring table.
//!
//! message | from | to | answered | in flight
//! ---|---|---|---|---
//! `Delta`, `Replace` | Reflector | DeltaFifo | when there is room | one per source
//! `RemoveSource` | removal | DeltaFifo | when the store has removed the source | one per removal
//! `Resync` | Processor | DeltaFifo | when there is room | one
//! `Pop` | Indexer | DeltaFifo | with a batch | one
//! `FanOut` | Indexer | Processor | when every listener has dropped its share | one
//! `Distribute` | Processor | Listener | no; the share is dropped when recorded | one per listener
//! `Attach` | Listener | Processor | at once | one per epoch
//! `Detach` | Subscription | Processor | at once | one
//! `Start`, `Reattach` | Processor | Listener | no | one per epoch
//! `Notify`, `Touched` | Listener | subscriber | the last of a window | 63 and one awaited
//! `Batch` | Listener | subscriber | when handled | one
//! `Take` | stream | Listener | with a window | one
//! `Flush` | handle | DeltaFifo | when all is applied and recorded | one per call
//! `Drain` | shutdown | Listener | when all is delivered, or waiting is useless | one per call
//! `AddIndex` | handle | Indexer | at once | one per call
//!
//! A message of another epoch is ignored and counted.

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

#[derive(Debug)]
pub(crate) struct Delta<S: Body> {
    pub(crate) epoch: Epoch,
    pub(crate) source: SourceId,
    pub(crate) parts: Vec<WatchPart<S>>,
}

impl<S: Body> Message for Delta<S> {
    type Result = ();
}

#[derive(Debug)]
pub(crate) struct Replace<S: Body> {
    pub(crate) epoch: Epoch,
    pub(crate) source: SourceId,
    pub(crate) replacement: Replacement<S>,
    pub(crate) published: Option<OneshotSender<()>>,
}

impl<S: Body> Message for Replace<S> {
    type Result = ();
}

/// Queued after all that the source has put in.
#[derive(Debug)]
pub(crate) struct RemoveSource {
    pub(crate) epoch: Epoch,
    pub(crate) source: SourceId,
    pub(crate) successors: Successors,
}

impl Message for RemoveSource {
    type Result = ();
}

#[derive(Debug)]
pub(crate) struct Resync {
    pub(crate) epoch: Epoch,
    pub(crate) due: Arc<[ListenerId]>,
}

impl Message for Resync {
    type Result = ();
}

#[derive(Debug)]
pub(crate) struct Pop<S: Body> {
    pub(crate) epoch: Epoch,
    /// An emptied vector, for reuse.
    pub(crate) spare: Vec<(SourceId, WatchPart<S>)>,
    pub(crate) reply: OneshotSender<Batch<S>>,
}

impl<S: Body> Message for Pop<S> {
    type Result = ();
}

#[derive(Debug)]
pub(crate) struct FanOut<S: Body> {
    pub(crate) epoch: Epoch,
    pub(crate) snapshot: Snapshot<S>,
    pub(crate) changes: Option<Changes<S>>,
    pub(crate) resync: Option<Arc<[ListenerId]>>,
    pub(crate) reply: OneshotSender<()>,
}

impl<S: Body> Message for FanOut<S> {
    type Result = ();
}

/// Each [`Distribute`] holds a share. The drop of the last one answers the Indexer: every listener has recorded the
/// changes, or has died.
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
            // If the Indexer is gone, its group restarts.
            let _sent = reply.send(());
        }
    }
}

#[derive(Debug)]
pub(crate) struct Distribute<S: Body> {
    pub(crate) epoch: Epoch,
    pub(crate) snapshot: Snapshot<S>,
    pub(crate) changes: Option<Changes<S>>,
    pub(crate) resync: bool,
    pub(crate) reply: Arc<FanOutReply>,
}

impl<S: Body> Message for Distribute<S> {
    type Result = ();
}

/// `L` is the Listener.
pub(crate) struct Attach<L: actix::Actor> {
    pub(crate) id: ListenerId,
    pub(crate) listener: Arc<Addr<L>>,
    pub(crate) resync: Option<std::time::Duration>,
}

impl<L: actix::Actor> Message for Attach<L> {
    type Result = ();
}

#[derive(Debug)]
pub(crate) struct Detach(pub(crate) ListenerId);

impl Message for Detach {
    type Result = ();
}

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

/// The last window has been handled.
#[derive(Debug)]
pub(crate) struct Take<S> {
    pub(crate) is_marked: bool,
    pub(crate) reply: OneshotSender<Taken<S>>,
}

#[derive(Debug)]
pub(crate) enum Taken<S> {
    Events(Vec<Notify<S>>),
    /// Sent once, when all initial events have been handled.
    InitDone,
}

impl<S: Body> Message for Take<S> {
    type Result = ();
}

#[derive(Debug)]
pub(crate) struct Flush;

impl Message for Flush {
    type Result = ();
}

#[derive(Debug)]
pub(crate) struct Drain {
    /// The subscription in whose callback the caller waits.
    pub(crate) inside: Option<SubscriptionState>,
}

impl Message for Drain {
    type Result = ();
}

#[derive(Debug)]
pub(crate) struct AddIndex<S> {
    pub(crate) index: AnyIndex<S>,
    /// One call may send several messages.
    pub(crate) call: IndexCall,
}

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

pub(crate) type Answer<T> = Reply<T>;
