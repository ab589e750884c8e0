//! The Indexer: sole owner of the store, only writer of the published snapshot. `informer_core::indexer` decides.
//!
//! 1. It requests the next batch when the Processor has taken the changes of the last one.
//! 2. A Replace, or parts by key, are applied in slices of [`SLICE`] objects; other messages are handled in between.
//!    Readers see the state before a Replace or after it.
//! 3. It publishes in its own epoch only, and a snapshot before its changes are sent.
//!
//! A restarted group continues from what is published.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

use actix::{Actor, ActorFuture, Addr, AsyncContext, Context, Handler, Supervised};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use informer_core::chunks::Chunks;
use informer_core::delta::{Cause, Changes, WatchPart};
use informer_core::delta_fifo::Batch;
use informer_core::indexer::machine::{IndexerEffect, IndexerMachine, Step};
use informer_core::indexer::{IndexExists, Progress, Publish, Store};
use informer_core::meta::{Object, SourceId};
use informer_core::off_arbiter::{Freeing, OffArbiter};
use informer_core::path::Hop;
use informer_core::processor::ListenerId;
use informer_core::snapshot::Snapshot;

use crate::pipeline::delta_fifo::DeltaFifo;
use crate::pipeline::messages::{AddIndex, Body, Epoch, FanOut, Pop};
use crate::pipeline::processor::Processor;
use crate::pipeline::shared::PipelineShared;
use crate::runtime::faults::Site;
use crate::runtime::mailbox::{Asked, ask_with};
use crate::supervision::owner::Child;

/// Objects handled in one turn.
pub(crate) const SLICE: usize = 250;

pub(crate) struct IndexerSpec<S: Body> {
    pub(crate) shared: PipelineShared<S>,
    pub(crate) fifo: Addr<DeltaFifo<S>>,
    pub(crate) processor: Addr<Processor<S>>,
}

/// Kept until every listener has recorded the newer snapshot. Who still holds one of the objects then frees it.
struct Replaced<S> {
    before: Snapshot<S>,
    is_list: bool,
    objects: OffArbiter<Chunks<Object<S>>>,
    lone: Option<OffArbiter<Object<S>>>,
}

impl<S> Replaced<S> {
    fn count(&self) -> usize {
        self.objects.len() + usize::from(self.lone.is_some())
    }

    /// The objects, and the snapshot before a list, are freed off the arbiter. The snapshot before other changes is
    /// freed here: in the queue of the freeing thread it would keep every object replaced until its turn, beyond any
    /// bound.
    fn free(self) {
        if !self.is_list {
            self.before.free_here();
        }
        drop((self.objects, self.lone));
    }
}

pub(crate) struct Indexer<S: Body> {
    spec: IndexerSpec<S>,
    epoch: Epoch,
    store: OffArbiter<Store<S>>,
    is_synced: bool,
    machine: IndexerMachine<Batch<S>>,
    answers: Answers<S>,
    spare: Vec<(SourceId, WatchPart<S>)>,
    /// Of the last batch: only their versions change with its publish.
    touched: Vec<SourceId>,
    /// Which exchange the store knows of.
    seen_exchange: u64,
    /// When it began with the last batch.
    began: Duration,
}

/// One field for each kind: a spawned future for each wait would allocate.
struct Answers<S: Body> {
    batch: Option<Asked<Batch<S>>>,
    taken: Option<(Asked<()>, Option<Replaced<S>>)>,
    turn: Option<LocalBoxFuture<'static, ()>>,
}

struct Waits;

impl<S: Body> Actor for Indexer<S> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.spec.shared.fail_point(Site::IndexerStarted);
        ctx.spawn(Waits);
        self.drive();
    }
}

impl<S: Body> Supervised for Indexer<S> {
    fn restarting(&mut self, _ctx: &mut Context<Self>) {
        *self = Self::build(&self.spec.clone());
    }
}

impl<S: Body> Child for Indexer<S> {
    type Spec = IndexerSpec<S>;

    fn build(spec: &IndexerSpec<S>) -> Self {
        spec.shared.progress.set_step(Step::Idle);
        spec.shared.progress.group_is_up();
        let published = spec.shared.published.snapshot();
        Self {
            spec: spec.clone(),
            epoch: spec.shared.published.epoch(),
            is_synced: spec.shared.board.has_listed(),
            store: spec.shared.off_arbiter(Store::new(published, spec.shared.indices.all())),
            machine: IndexerMachine::new(),
            answers: Answers { batch: None, taken: None, turn: None },
            spare: Vec::new(),
            touched: Vec::new(),
            seen_exchange: 0,
            began: spec.shared.runtime.now(),
        }
    }
}

impl<S: Body> Indexer<S> {
    fn drive(&mut self) {
        while let Some(effect) = self.machine.poll_effect(self.store.under_way()) {
            match effect {
                IndexerEffect::Ask => self.ask_for_batch(),
                // A test-only fault: the batch is lost, and nothing more is requested.
                IndexerEffect::Apply(_) if self.spec.shared.stalls(Site::IndexerApply) => return,
                IndexerEffect::Apply(batch) => self.apply(batch),
                IndexerEffect::Advance => self.advance(),
            }
        }
        self.spec.shared.progress.set_step(self.machine.step());
    }

    fn take_answers(&mut self, cx: &mut task::Context<'_>) -> bool {
        let batch = self.answers.batch.as_mut().map(|batch| batch.poll_unpin(cx));
        if let Some(Poll::Ready(batch)) = batch {
            self.answers.batch = None;
            match batch {
                Ok(batch) => self.machine.handle_batch(batch),
                // The DeltaFifo has died: the group restarts, this actor too.
                Err(_) => self.machine.handle_end(),
            }
            return true;
        }
        let taken = self.answers.taken.as_mut().map(|(taken, _)| taken.poll_unpin(cx));
        if let Some(Poll::Ready(taken)) = taken {
            let replaced = self.answers.taken.take().and_then(|(_, replaced)| replaced);
            let count = replaced.as_ref().map_or(0, Replaced::count);
            replaced.into_iter().for_each(Replaced::free);
            self.spec.shared.published.free_given_back(count);
            if taken.is_ok() {
                self.spec.shared.progress.note();
                self.machine.handle_fanned_out();
            } else {
                // The Processor has died: likewise.
                self.machine.handle_end();
            }
            return true;
        }
        let turn = self.answers.turn.as_mut().map(|turn| turn.poll_unpin(cx));
        if let Some(Poll::Ready(())) = turn {
            self.answers.turn = None;
            self.machine.handle_turn();
            return true;
        }
        false
    }

    fn ask_for_batch(&mut self) {
        let (epoch, spare) = (self.epoch, std::mem::take(&mut self.spare));
        let asked = ask_with(&self.spec.fifo, |reply| Pop { epoch, spare, reply });
        self.answers.batch = Some(asked);
    }

    fn apply(&mut self, batch: Batch<S>) {
        self.spec.shared.fail_point(Site::IndexerApply);
        self.began = self.spec.shared.runtime.now();
        self.touched.clear();
        batch.for_each_source(|source| {
            if self.touched.last() != Some(source) {
                self.touched.push(source.clone());
            }
        });
        // Before each batch: one without this news was popped before the source requested its list.
        if let Some(exchanged) = self.spec.shared.sources.exchanged_since(&mut self.seen_exchange) {
            self.store.hand_over_among(exchanged);
        }
        match batch {
            Batch::Parts(mut parts) => {
                let applied = self.store.apply_parts(parts.drain(..));
                self.spare = parts;
                self.publish(applied);
            }
            Batch::PartsByKey { parts, reached } => self.store.begin_keyed(parts, reached),
            Batch::Replace { source, replacement } => self.store.begin_replace(source, replacement),
            Batch::RemoveSource { source, successors } => self.store.begin_remove_source(source, successors),
            Batch::Resync { due } => self.fan_out(None, Some(due), None),
        }
    }

    fn advance(&mut self) {
        self.spec.shared.fail_point(Site::IndexerReplace);
        match self.slice() {
            Progress::Done(applied) => self.publish(applied),
            Progress::More => self.answers.turn = Some(tokio::task::yield_now().boxed_local()),
            _ => self.machine.handle_turn(),
        }
    }

    fn slice(&mut self) -> Progress<S> {
        if self.spec.shared.stalls(Site::IndexerReplace) {
            return Progress::More;
        }
        let progress = self.store.advance(SLICE);
        if !matches!(progress, Progress::Idle) {
            self.spec.shared.progress.note();
        }
        progress
    }

    fn publish(&mut self, applied: Publish<S>) {
        self.spec.shared.report(&applied.reported);
        let sources = &self.spec.shared.sources;
        self.is_synced = self.is_synced || sources.have_all_listed(&applied.first);
        let synced = (self.is_synced, self.began);
        if !self.spec.shared.publish(self.epoch, &applied, &self.touched, synced) {
            return self.machine.handle_end();
        }
        self.spec.shared.mark_changes(Hop::Published, applied.changes.as_ref());
        sources.note_listed(&applied.snapshot, &applied.first);
        self.note_rewind(&applied);
        let Publish { before, changes, replaced, lone, replaced_bytes, .. } = applied;
        let release = self.spec.shared.runtime.0.freeing.as_release();
        let lone = lone.map(|lone| Freeing::whole(Arc::clone(&release)).keep(lone));
        let objects = Freeing::by_chunks(release).keep(replaced);
        match &lone {
            Some(lone) => lone.weigh(replaced_bytes),
            None => objects.weigh(replaced_bytes),
        }
        self.spec.shared.fail_point(Site::IndexerPublished);
        let is_list = matches!(changes, Some(Changes::Listed { .. }));
        self.fan_out(changes, None, Some(Replaced { before, is_list, objects, lone }));
    }

    /// After a published list for a rewind, only what the source has delivered since counts.
    fn note_rewind(&self, applied: &Publish<S>) {
        let Some(Changes::Listed { source, cause: Cause::Rewind, .. }) = &applied.changes else { return };
        let newest = self.spec.shared.handed_over.newest(self.epoch, source);
        if let Some(version) = newest.as_ref().or_else(|| applied.snapshot.version(source)) {
            self.spec.shared.sources.note_rewind(source, version, self.seen_exchange);
        }
    }

    fn fan_out(
        &mut self,
        changes: Option<Changes<S>>,
        resync: Option<Arc<[ListenerId]>>,
        replaced: Option<Replaced<S>>,
    ) {
        let snapshot = self.spec.shared.published.snapshot();
        let epoch = self.epoch;
        let taken =
            ask_with(&self.spec.processor, |reply| FanOut { epoch, snapshot, changes, resync, reply });
        self.machine.handle_published();
        self.answers.taken = Some((taken, replaced));
    }
}

impl<S: Body> ActorFuture<Indexer<S>> for Waits {
    type Output = ();

    /// Never ready. Each ask is polled in the call that makes it, or after a message.
    fn poll(
        self: Pin<&mut Self>,
        indexer: &mut Indexer<S>,
        _ctx: &mut Context<Indexer<S>>,
        cx: &mut task::Context<'_>,
    ) -> Poll<()> {
        while indexer.take_answers(cx) {
            indexer.drive();
        }
        Poll::Pending
    }
}

impl<S: Body> Handler<AddIndex<S>> for Indexer<S> {
    type Result = Result<(), IndexExists>;

    fn handle(&mut self, add: AddIndex<S>, _ctx: &mut Context<Self>) -> Self::Result {
        self.add_index(add)?;
        self.drive();
        Ok(())
    }
}

impl<S: Body> Indexer<S> {
    /// So that the index survives restarts. A call repeated after a restart of the Indexer succeeds.
    fn add_index(&mut self, AddIndex { index, call }: AddIndex<S>) -> Result<(), IndexExists> {
        let indices = &self.spec.shared.indices;
        match self.store.begin_index(index.clone()) {
            Ok(()) => indices.add(index, call),
            Err(_) if indices.was_added_by(&call) => {}
            Err(exists) => return Err(exists),
        }
        Ok(())
    }
}

informer_core::clone_of!([S: Body] IndexerSpec<S> { shared, fifo, processor });
