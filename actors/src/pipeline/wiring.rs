//! Builds one informer: actors, addresses, guards, and the parts that survive restarts.
//!
//! ```text
//!   Supervisor ◀─Exited── guard(Reflector)… guard(DeltaFifo) guard(Indexer) guard(Processor) guard(Listener)…
//!                            Reflector ──▶ DeltaFifo ◀──Pop── Indexer ──▶ Processor ──▶ Listener
//!                                              ▲─────────Resync───────────────┘
//! ```
//! 1. All actors of one informer run on one arbiter, where a message takes 70 ns; only callbacks do not.
//! 2. Addresses exist before their actors do; early messages wait in the mailbox.

use std::sync::Arc;
use std::time::Duration;

use actix::{Addr, Recipient};
use informer_core::delta_fifo::{Bounds, QueueOrder};
use informer_core::index::AnyIndex;
use informer_core::listener::Policy;
use informer_core::meta::SourceId;
use informer_core::restart::RestartPolicy;
use tokio_util::sync::CancellationToken;

use crate::pipeline::board::StatusBoard;
use crate::pipeline::delta_fifo::{DeltaFifo, DeltaFifoSpec};
use crate::pipeline::indexer::{Indexer, IndexerSpec};
use crate::pipeline::listener::Listener;
use crate::pipeline::listener_roster::ListenerRoster;
use crate::pipeline::messages::{Attach, Body};
use crate::pipeline::namespace_set::{NamespaceSet, NamespaceSets};
use crate::pipeline::owner::{InformerOwner, MEMBER, REFLECTOR, reflector_name};
use crate::pipeline::processor::{Processor, ProcessorSpec};
use crate::pipeline::published::Published;
use crate::pipeline::reflector::{Reflector, ReflectorSpec};
use crate::pipeline::shared::{Common, HandedOver, IndexRegistry, PipelineShared};
use crate::pipeline::source_spec::SourceSpec;
use crate::pipeline::sources::Sources;
use crate::pipeline::status::ResourceName;
use crate::runtime::{ArbiterHandle, PassesOn, Runtime, Watched};
use crate::supervision::children::Children;
use crate::supervision::owner::{Child, Mailbox};
use crate::supervision::parent::Parent;

pub(crate) struct InformerSpec<S> {
    /// Not empty. A number is added to a taken name: `pods-2`.
    pub(crate) name: Arc<str>,
    pub(crate) resource: Option<Arc<ResourceName>>,
    /// With distinct names; may be empty only with sets of namespaces.
    pub(crate) sources: Vec<SourceSpec<S>>,
    pub(crate) namespaces: Vec<Arc<NamespaceSet<S>>>,
    /// With distinct names.
    pub(crate) indices: Vec<AnyIndex<S>>,
    pub(crate) bounds: Bounds,
    pub(crate) queue_order: QueueOrder,
    /// Of subscriptions without their own.
    pub(crate) resync: Option<Duration>,
    /// Of subscriptions that choose none.
    pub(crate) policy: Policy,
    pub(crate) restarts: RestartPolicy,
}

pub(crate) struct Pipeline<S: Body> {
    pub(crate) shared: PipelineShared<S>,
    pub(crate) parent: Arc<Parent>,
    pub(crate) fifo: Addr<DeltaFifo<S>>,
    pub(crate) indexer: Addr<Indexer<S>>,
    pub(crate) processor: Arc<Addr<Processor<S>>>,
    pub(crate) attach: Arc<Recipient<Attach<Listener<S>>>>,
    pub(crate) roster: ListenerRoster<S>,
    pub(crate) reflectors: Children<SourceId, Reflector<S>>,
    pub(crate) pass: Option<Arc<dyn PassesOn<S>>>,
}

/// The sources are followed after `Pipeline::begin`.
pub(crate) fn start<S: Body>(runtime: &Runtime, spec: InformerSpec<S>, sources: Sources) -> Pipeline<S> {
    let shared = share(runtime, &spec, sources);
    let stop = CancellationToken::new();
    let owner = InformerOwner {
        informer: Arc::clone(&shared.name),
        board: shared.board.clone(),
        progress: Arc::clone(&shared.progress),
        clock: runtime.0.clock.clone(),
        stop: stop.clone(),
    };
    let group = shared.published.group().clone();
    let parent = Parent::start(&spec.name, Arc::new(owner), group, runtime, (spec.restarts, stop));
    watch(&shared, &parent.arbiter);
    let (fifo, indexer, processor) = (Mailbox::new(), Mailbox::new(), Mailbox::new());
    let queue = DeltaFifoSpec { shared: shared.clone(), bounds: spec.bounds, queue_order: spec.queue_order };
    let store = IndexerSpec { shared: shared.clone(), fifo: fifo.0.clone(), processor: processor.0.clone() };
    let roster = ListenerRoster::new();
    let fan_out = ProcessorSpec { shared: shared.clone(), fifo: fifo.0.clone(), roster: roster.clone() };
    let (fifo, indexer, processor) = (
        start_member(&parent, "delta-fifo", fifo, queue),
        start_member(&parent, "indexer", indexer, store),
        start_member(&parent, "processor", processor, fan_out),
    );
    let reflectors = Children::new(Arc::clone(&parent), REFLECTOR);
    let attach = Arc::new(processor.clone().recipient());
    let processor = Arc::new(processor);
    let pass = spec.sources.iter().find_map(|source| source.pass.clone());
    let pipeline = Pipeline { shared, parent, fifo, indexer, processor, attach, roster, reflectors, pass };
    spec.sources.into_iter().for_each(|source| pipeline.follow(source));
    pipeline
}

informer_core::clone_of!([S: Body] Pipeline<S> {
    shared, parent, fifo, indexer, processor, attach, roster, reflectors, pass
});

impl<S: Body> Pipeline<S> {
    /// False if the sources are followed already, or the informer has stopped.
    pub(crate) fn begin(&self) -> bool {
        let shared = &self.shared;
        let first = shared.board.begin(shared.runtime.now());
        if first {
            shared.begun.cancel();
            if shared.sources.is_empty() {
                shared.board.show_synced();
            }
        }
        first
    }

    pub(crate) fn follow(&self, source: SourceSpec<S>) {
        let name = reflector_name(&source.id);
        let follow = ReflectorSpec {
            shared: self.shared.clone(),
            source: source.id.clone(),
            cluster: source.cluster,
            connect: source.connect,
            config: source.config,
            filter: source.filter,
            pass: source.pass,
            fifo: self.fifo.clone(),
        };
        self.reflectors.add(source.id, &name, follow);
    }
}

fn start_member<A: Child>(
    parent: &Arc<Parent>,
    name: &str,
    Mailbox(address, inbox): Mailbox<A>,
    spec: A::Spec,
) -> Addr<A> {
    parent.context(name, MEMBER).start(inbox, spec, |_| ());
    address
}

fn watch<S: Body>(shared: &PipelineShared<S>, arbiter: &ArbiterHandle) {
    let board = shared.board.clone();
    let arbiters = [arbiter.clone(), shared.runtime.callback_arbiter()];
    let (informer, progress) = (Arc::clone(&shared.name), Arc::clone(&shared.progress));
    let shown = Box::new(move |stuck: Option<&_>| board.update_stuck(stuck));
    shared.runtime.0.watchdog.watch(Watched::new(informer, arbiters, progress, shown));
}

fn share<S: Body>(runtime: &Runtime, spec: &InformerSpec<S>, sources: Sources) -> PipelineShared<S> {
    let ids = sources.ids();
    let indices = spec.indices.iter().cloned();
    PipelineShared(Arc::new(Common {
        name: Arc::clone(&spec.name),
        runtime: runtime.clone(),
        published: Arc::new(Published::new(indices, runtime.0.freeing.as_release())),
        board: StatusBoard::new((Arc::clone(&spec.name), spec.resource.clone()), spec.queue_order, &ids),
        progress: Arc::default(),
        handed_over: HandedOver::default(),
        sources,
        namespaces: NamespaceSets::new(spec.namespaces.clone()),
        indices: IndexRegistry::new(&spec.indices),
        resync: spec.resync,
        policy: spec.policy,
        listener_turns: Arc::default(),
        begun: CancellationToken::new(),
        stop_reading: CancellationToken::new(),
    }))
}

#[cfg(test)]
mod tests;
