//! The DeltaFifo: the queue between Reflectors and Indexer. Its death restarts the group.
//!
//! 1. A push is answered when the queue is below both its bounds; until then the Reflector reads nothing more.
//! 2. A pop is answered when there is a batch; nothing polls the queue.
//! 3. Entries that wait at its death, or come too late, are freed off the arbiter.
//! 4. `HandedOver` keeps the newest version that a source has put in: there a restarted Reflector continues.

use std::collections::VecDeque;

use actix::dev::OneshotSender;
use actix::{Actor, Context, Handler, Supervised};
use informer_core::delta::WatchPart;
use informer_core::delta_fifo::{Arrivals, Batch, Bounds, DeltaQueue, Depth, QueueOrder};
use informer_core::meta::SourceId;
use informer_core::off_arbiter::OffArbiter;

use crate::pipeline::messages::{Answer, Body, Delta, Epoch, Flush, Pop, RemoveSource, Replace, Resync};
use crate::pipeline::shared::PipelineShared;
use crate::runtime::faults::Site;
use crate::runtime::mailbox::{Reply, ReplySlot};
use crate::supervision::owner::Child;

pub(crate) struct DeltaFifoSpec<S: Body> {
    pub(crate) shared: PipelineShared<S>,
    pub(crate) bounds: Bounds,
    pub(crate) queue_order: QueueOrder,
}

pub(crate) struct DeltaFifo<S: Body> {
    spec: DeltaFifoSpec<S>,
    epoch: Epoch,
    queue: OffArbiter<DeltaQueue<S>>,
    arrivals: Arrivals,
    waiting_for_room: Vec<ReplySlot<()>>,
    waiting_for_batch: Option<OneshotSender<Batch<S>>>,
    waiting_for_idle: Vec<ReplySlot<()>>,
    /// Answered when the source is removed: its end is queued (`removals`) or being applied (`removing`).
    removals: Vec<(SourceId, ReplySlot<()>)>,
    removing: Vec<ReplySlot<()>>,
    /// Answered when the list is published: it is queued (`replaces`, in order) or being applied (`replacing`).
    replaces: VecDeque<(SourceId, OneshotSender<()>)>,
    replacing: Option<OneshotSender<()>>,
    handed_out: bool,
}

impl<S: Body> Actor for DeltaFifo<S> {
    type Context = Context<Self>;

    fn started(&mut self, _ctx: &mut Context<Self>) {
        self.spec.shared.fail_point(Site::DeltaFifoStarted);
    }
}

impl<S: Body> Supervised for DeltaFifo<S> {
    fn restarting(&mut self, _ctx: &mut Context<Self>) {
        *self = Self::build(&self.spec.clone());
    }
}

impl<S: Body> Child for DeltaFifo<S> {
    type Spec = DeltaFifoSpec<S>;

    fn build(spec: &DeltaFifoSpec<S>) -> Self {
        spec.shared.progress.set_queued(false);
        spec.shared.board.show_queue(Depth::default(), None);
        spec.shared.progress.group_is_up();
        Self {
            spec: spec.clone(),
            epoch: spec.shared.published.epoch(),
            queue: spec.shared.off_arbiter(DeltaQueue::new(spec.bounds, spec.queue_order)),
            arrivals: Arrivals::default(),
            waiting_for_room: Vec::new(),
            waiting_for_batch: None,
            waiting_for_idle: Vec::new(),
            removals: Vec::new(),
            removing: Vec::new(),
            replaces: VecDeque::new(),
            replacing: None,
            handed_out: false,
        }
    }
}

impl<S: Body> DeltaFifo<S> {
    fn is_stale(&self, epoch: Epoch) -> bool {
        let stale = epoch != self.epoch;
        if stale {
            self.spec.shared.count_stale_message();
        }
        stale
    }

    fn pushed(&mut self) -> Answer<()> {
        self.arrivals.handle_push(self.queue.depth().parts, self.spec.shared.runtime.now());
        self.serve();
        let bytes = self.queue.depth().bytes;
        self.queue.weigh(bytes);
        self.show_work();
        if self.queue.has_room() {
            return Reply::Now(());
        }
        let (slot, reply) = ReplySlot::new();
        self.waiting_for_room.push(slot);
        reply
    }

    fn serve(&mut self) {
        if self.waiting_for_batch.is_none() {
            return;
        }
        if let Some(batch) = self.pop()
            && let Some(reply) = self.waiting_for_batch.take()
        {
            self.handed_out = true;
            // If the Indexer has died, its group restarts.
            let _heard = reply.send(batch);
        }
    }

    /// A wait for the end of a source is answered by the Indexer's next request.
    fn pop(&mut self) -> Option<Batch<S>> {
        let batch = self.queue.pop_batch()?;
        let arrived = self.arrivals.handle_pop(self.queue.depth().parts);
        self.spec.shared.board.hand_out(arrived.unwrap_or_else(|| self.spec.shared.runtime.now()));
        if let Batch::RemoveSource { source, .. } = &batch {
            let (of_source, others) =
                self.removals.drain(..).partition::<Vec<_>, _>(|(waits_for, _)| waits_for == source);
            self.removals = others;
            self.removing.extend(of_source.into_iter().map(|(_, slot)| slot));
        }
        if let Batch::Replace { source, .. } = &batch
            && let Some(place) = self.replaces.iter().position(|(of, _)| of == source)
        {
            self.replacing = self.replaces.remove(place).map(|(_, published)| published);
        }
        Some(batch)
    }

    fn show_work(&self) {
        let depth = self.queue.depth();
        self.spec.shared.board.show_queue(depth, self.arrivals.oldest());
        self.spec.shared.progress.set_queued(self.handed_out || depth.parts > 0);
    }

    fn admit(&mut self) {
        if self.queue.has_room() {
            self.waiting_for_room.drain(..).for_each(|slot| slot.answer(()));
        }
    }
}

impl<S: Body> Handler<Delta<S>> for DeltaFifo<S> {
    type Result = Answer<()>;

    fn handle(&mut self, delta: Delta<S>, _ctx: &mut Context<Self>) -> Answer<()> {
        if self.is_stale(delta.epoch) {
            drop(self.spec.shared.off_arbiter(delta.parts));
            return Reply::Now(());
        }
        self.spec.shared.fail_point(Site::DeltaFifoPush);
        if let Some(reached) = delta.parts.iter().rev().find_map(WatchPart::reached) {
            self.spec.shared.handed_over.note(self.epoch, &delta.source, reached);
        }
        self.spec.shared.mark_queued(&delta.parts);
        self.queue.push_delta(delta.source, delta.parts);
        self.pushed()
    }
}

impl<S: Body> Handler<Replace<S>> for DeltaFifo<S> {
    type Result = Answer<()>;

    fn handle(&mut self, replace: Replace<S>, _ctx: &mut Context<Self>) -> Answer<()> {
        if self.is_stale(replace.epoch) {
            return Reply::Now(());
        }
        self.spec.shared.fail_point(Site::DeltaFifoPush);
        self.spec.shared.handed_over.note(self.epoch, &replace.source, &replace.replacement.version);
        self.replaces.extend(replace.published.map(|published| (replace.source.clone(), published)));
        self.queue.push_replace(replace.source, replace.replacement);
        self.pushed()
    }
}

impl<S: Body> Handler<RemoveSource> for DeltaFifo<S> {
    type Result = Answer<()>;

    fn handle(&mut self, end: RemoveSource, _ctx: &mut Context<Self>) -> Answer<()> {
        let (slot, reply) = ReplySlot::new();
        // In an older epoch the dropped slot answers `Closed`: the sender tries again.
        if !self.is_stale(end.epoch) {
            self.spec.shared.fail_point(Site::DeltaFifoPush);
            self.removals.push((end.source.clone(), slot));
            self.queue.push_remove_source(end.source, end.successors);
            self.arrivals.handle_push(self.queue.depth().parts, self.spec.shared.runtime.now());
            self.serve();
            self.show_work();
        }
        reply
    }
}

impl<S: Body> Handler<Resync> for DeltaFifo<S> {
    type Result = Answer<()>;

    fn handle(&mut self, resync: Resync, _ctx: &mut Context<Self>) -> Answer<()> {
        if self.is_stale(resync.epoch) {
            return Reply::Now(());
        }
        self.queue.push_resync(resync.due);
        self.pushed()
    }
}

impl<S: Body> Handler<Pop<S>> for DeltaFifo<S> {
    type Result = ();

    fn handle(&mut self, Pop { epoch, spare, reply }: Pop<S>, _ctx: &mut Context<Self>) {
        if self.is_stale(epoch) {
            // A batch for an Indexer of an older epoch would be lost.
            return;
        }
        self.spec.shared.fail_point(Site::DeltaFifoPop);
        self.spec.shared.progress.note();
        // The Indexer has applied and published its last batch.
        self.removing.drain(..).for_each(|slot| slot.answer(()));
        if let Some(published) = self.replacing.take() {
            let _heard = published.send(());
        }
        self.queue.reuse(spare);
        let batch = self.pop();
        self.handed_out = batch.is_some();
        self.show_work();
        if let Some(batch) = batch {
            self.admit();
            let _heard = reply.send(batch);
            return;
        }
        self.waiting_for_batch = Some(reply);
        self.waiting_for_idle.drain(..).for_each(|slot| slot.answer(()));
    }
}

impl<S: Body> Handler<Flush> for DeltaFifo<S> {
    type Result = Answer<()>;

    fn handle(&mut self, _flush: Flush, _ctx: &mut Context<Self>) -> Answer<()> {
        // The Indexer has finished its last batch.
        if self.waiting_for_batch.is_some() {
            return Reply::Now(());
        }
        let (slot, reply) = ReplySlot::new();
        self.waiting_for_idle.push(slot);
        reply
    }
}

informer_core::clone_of!([S: Body] DeltaFifoSpec<S> { shared, bounds, queue_order });
