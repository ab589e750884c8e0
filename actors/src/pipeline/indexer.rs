//! The Indexer: sole owner of the store, and the only writer of the published snapshot.
//!
//! Answers "what has changed, and who must know?": it asks the DeltaFifo for a batch, lets its core twin,
//! `informer_core::indexer`, apply it, publishes the result and hands the changes to the Processor. Invariants:
//! 1. One step at a time, as `informer_core::indexer::machine` says: the next batch is asked for when the Processor has
//!    taken the changes of the last one.
//! 2. A Replace, or parts by key, are applied in slices of [`SLICE`] objects, other messages are handled in between,
//!    and readers see the state before them or after them.
//! 3. It publishes in its own epoch only; a snapshot is published before its changes are sent.
//!
//! Mailbox: the handle's `AddIndex` only; it asks for everything else. Stopped with the informer; its death restarts
//! the group, and the store goes on from the published snapshot. Read next: `processor.rs`.

use std::marker::PhantomData;
use std::sync::Arc;

use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Supervised, WrapFuture};
use informer_core::delta::Changes;
use informer_core::delta_fifo::Batch;
use informer_core::indexer::machine::{Effect, IndexerMachine, Step};
use informer_core::indexer::{Applied, IndexExists, Progress, Store};
use informer_core::meta::Object;
use informer_core::off_arbiter::OffArbiter;
use informer_core::processor::ListenerId;
use informer_core::snapshot::Snapshot;

use crate::pipeline::delta_fifo::DeltaFifo;
use crate::pipeline::messages::{AddIndex, Body, Epoch, FanOut, Pop};
use crate::pipeline::processor::Processor;
use crate::pipeline::shared::PipelineShared;
use crate::runtime::faults::Site;
use crate::runtime::mailbox::ask;
use crate::supervision::child::Child;

/// Objects handled in one turn.
pub(crate) const SLICE: usize = 250;

/// What an Indexer is built from.
pub(crate) struct IndexerSpec<S: Body> {
    pub(crate) shared: PipelineShared<S>,
    pub(crate) fifo: Addr<DeltaFifo<S>>,
    pub(crate) processor: Addr<Processor<S>>,
}

/// The frame before a publish, and the objects that left with it: held until everybody has the newer frame, since
/// whoever lets go of an object last frees it. Freed off the arbiter.
type Replaced<S> = OffArbiter<(Snapshot<S>, Vec<Vec<Object<S>>>)>;

/// The store's actor.
pub(crate) struct Indexer<S: Body> {
    spec: IndexerSpec<S>,
    epoch: Epoch,
    store: OffArbiter<Store<S>>,
    /// Whether every source has published its first list; for ever, once it has.
    is_synced: bool,
    machine: IndexerMachine<Batch<S>>,
}

impl<S: Body> Actor for Indexer<S> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.spec.shared.strike(Site::IndexerStarted);
        self.drive(ctx);
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
            is_synced: spec.shared.board.is_synced(),
            store: spec.shared.off_arbiter(Store::new(published, spec.shared.indices.all())),
            machine: IndexerMachine::new(),
        }
    }
}

impl<S: Body> Indexer<S> {
    /// Does what is to be done now. Called after everything that happened: it ends when the next thing must be awaited.
    fn drive(&mut self, ctx: &mut Context<Self>) {
        while let Some(effect) = self.machine.poll_effect(self.store.is_busy()) {
            match effect {
                Effect::Ask => self.ask_for_batch(ctx),
                // A test-only fault: the batch is lost, and nothing is asked for again.
                Effect::Apply(_) if self.spec.shared.stalls(Site::IndexerApply) => return,
                Effect::Apply(batch) => self.apply(batch, ctx),
                Effect::Advance => self.advance(ctx),
            }
        }
        self.spec.shared.progress.set_step(self.machine.step());
    }

    fn ask_for_batch(&mut self, ctx: &mut Context<Self>) {
        let pop = ask(&self.spec.fifo, Pop(self.epoch, PhantomData));
        ctx.spawn(pop.into_actor(self).map(|batch, this, ctx| {
            match batch {
                Ok(batch) => this.machine.handle_batch(batch),
                // The DeltaFifo has died: the whole group is restarted, this actor too.
                Err(_) => this.machine.handle_end(),
            }
            this.drive(ctx);
        }));
    }

    fn apply(&mut self, batch: Batch<S>, ctx: &mut Context<Self>) {
        self.spec.shared.strike(Site::IndexerApply);
        match batch {
            Batch::Parts(parts) => {
                let applied = self.store.apply_parts(parts);
                self.publish(applied, ctx);
            }
            Batch::Keyed { parts, reached } => self.store.begin_keyed(parts, reached),
            Batch::Replace { source, replacement } => self.store.begin_replace(source, replacement),
            Batch::RemoveSource { source } => self.store.begin_remove_source(source),
            Batch::Resync { due } => self.tell(None, Some(due), None, ctx),
        }
    }

    /// One slice of what is under way, then room for other messages.
    fn advance(&mut self, ctx: &mut Context<Self>) {
        self.spec.shared.strike(Site::IndexerReplace);
        match self.slice() {
            Progress::Done(applied) => self.publish(applied, ctx),
            Progress::More => {
                ctx.spawn(tokio::task::yield_now().into_actor(self).map(|(), this, ctx| {
                    this.machine.handle_turn();
                    this.drive(ctx);
                }));
            }
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

    fn publish(&mut self, applied: Applied<S>, ctx: &mut Context<Self>) {
        let Applied { snapshot, before, changes, replaced, reported, .. } = applied;
        self.spec.shared.report(&reported);
        self.is_synced = self.is_synced || self.spec.shared.sources.have_all_listed(&snapshot);
        if !self.spec.shared.publish(self.epoch, snapshot, self.is_synced) {
            return self.machine.handle_end();
        }
        let replaced = self.spec.shared.off_arbiter((before, replaced));
        self.spec.shared.strike(Site::IndexerPublished);
        self.tell(changes, None, Some(replaced), ctx);
    }

    /// Hands changes to the Processor, and goes on when it has taken them.
    fn tell(
        &mut self,
        changes: Option<Changes<S>>,
        resync: Option<Arc<[ListenerId]>>,
        replaced: Option<Replaced<S>>,
        ctx: &mut Context<Self>,
    ) {
        let snapshot = self.spec.shared.published.snapshot();
        let message = FanOut { epoch: self.epoch, snapshot, changes, resync };
        let told = ask(&self.spec.processor, message);
        self.machine.handle_published();
        ctx.spawn(told.into_actor(self).map(move |told, this, ctx| {
            drop(replaced);
            if told.is_ok() {
                this.spec.shared.progress.note();
                this.machine.handle_told();
            } else {
                // The Processor has died: the whole group is restarted, this actor too.
                this.machine.handle_end();
            }
            this.drive(ctx);
        }));
    }
}

impl<S: Body> Handler<AddIndex<S>> for Indexer<S> {
    type Result = Result<(), IndexExists>;

    fn handle(&mut self, add: AddIndex<S>, ctx: &mut Context<Self>) -> Self::Result {
        self.add_index(add)?;
        self.drive(ctx);
        Ok(())
    }
}

impl<S: Body> Indexer<S> {
    /// Remembers the index for later lives; it is built by the next steps and appears in one later snapshot. A call
    /// that is asked again, since an earlier life took it and died before it could answer, has succeeded.
    fn add_index(&mut self, AddIndex { spec, call }: AddIndex<S>) -> Result<(), IndexExists> {
        let indices = &self.spec.shared.indices;
        match self.store.begin_index(spec.clone()) {
            Ok(()) => indices.add(spec, call),
            Err(_) if indices.was_added_by(&call) => {}
            Err(exists) => return Err(exists),
        }
        Ok(())
    }
}

impl<S: Body> Clone for IndexerSpec<S> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), fifo: self.fifo.clone(), processor: self.processor.clone() }
    }
}
