//! Builds one informer: who knows whom, who watches over whom, and what outlives them all.
//!
//! Answers "what is an informer made of?". Actors come and go; what stays is `shared.rs` and the roster of Listeners.
//!
//! ```text
//!   Supervisor ◀─Exited── guard(Reflector)… guard(DeltaFifo) guard(Indexer) guard(Processor) guard(Listener)…
//!                            Reflector ──▶ DeltaFifo ◀──Pop── Indexer ──▶ Processor ──▶ Listener
//!                                              ▲─────────Resync───────────────┘
//! ```
//! Invariants:
//! 1. Everything of one informer runs on one arbiter, but for callbacks; a hop there costs 70 ns.
//! 2. Addresses exist before their actors do; what is sent early waits in the mailbox.
//!
//! Read next: `informer.rs`, the handle; `guard.rs`, who keeps each actor alive.

use std::fmt;
use std::sync::Arc;

use actix::dev::channel::{AddressReceiver, channel};
use actix::{Addr, Recipient};
use informer_core::delta_fifo::{Bounds, Discipline};
use informer_core::index::IndexSpec;
use informer_core::meta::SourceId;
use informer_core::reflector::ReflectorConfig;
use informer_core::restart::{RestartPolicy, Role, Verdict};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::list_watch::Connect;
use crate::pipeline::delta_fifo::{DeltaFifo, DeltaFifoSpec};
use crate::pipeline::ending::OnEnd;
use crate::pipeline::indexer::{Indexer, IndexerSpec};
use crate::pipeline::listener::Listener;
use crate::pipeline::listener_roster::ListenerRoster;
use crate::pipeline::messages::{Attach, Body};
use crate::pipeline::processor::{Processor, ProcessorSpec};
use crate::pipeline::published::Published;
use crate::pipeline::reflector::{Reflector, ReflectorSpec};
use crate::pipeline::shared::{Common, Handed, IndexRegistry, PipelineShared};
use crate::pipeline::status::{InformerStatus, StatusBoard};
use crate::runtime::{ArbiterHandle, Label, Runtime, Watched};
use crate::supervision::guard::{Child, GroupEpoch, Guard, Kin, Stop, Tether};
use crate::supervision::supervisor::{SupervisorSpec, reflector_name};

/// Messages that a mailbox of ours takes before its senders wait; each sender has one ask in flight.
const MAILBOX: usize = 64;

/// One source of an informer.
pub struct SourceSpec<S> {
    /// Its name.
    pub id: SourceId,
    /// Makes it, at the start and at each restart.
    pub connect: Connect<S>,
    /// How it is listed and watched.
    pub config: ReflectorConfig,
}

/// What an informer is made of.
pub struct InformerSpec<S> {
    /// Its name, not empty. If a live informer of the runtime has it, a number is put behind: `pods-2`.
    pub name: Arc<str>,
    /// At least one source, with distinct names.
    pub sources: Vec<SourceSpec<S>>,
    /// Secondary indices, with distinct names.
    pub indices: Vec<IndexSpec<S>>,
    /// The bounds of the queue between reflectors and store.
    pub bounds: Bounds,
    /// In which order parts leave that queue.
    pub discipline: Discipline,
    /// How often its actors may be restarted.
    pub restarts: RestartPolicy,
}

/// The family: everything that is needed to add a child, talk to the actors, and stop them.
pub(crate) struct Family<S: Body> {
    pub(crate) shared: PipelineShared<S>,
    pub(crate) kin: Arc<Kin>,
    pub(crate) arbiter: ArbiterHandle,
    pub(crate) fifo: Addr<DeltaFifo<S>>,
    pub(crate) indexer: Addr<Indexer<S>>,
    pub(crate) processor: Arc<Addr<Processor<S>>>,
    /// The same Processor, as Listeners know it.
    pub(crate) attach: Arc<Recipient<Attach<Listener<S>>>>,
    pub(crate) roster: ListenerRoster<S>,
    /// Kept so that a restart finds their mailboxes open.
    _reflectors: Vec<Addr<Reflector<S>>>,
    pub(crate) tasks: TaskTracker,
}

/// An address and the mailbox behind it.
struct Mailbox<A: actix::Actor>(Addr<A>, AddressReceiver<A>);

impl<A: actix::Actor> Mailbox<A> {
    fn new() -> Self {
        let (sender, inbox) = channel(MAILBOX);
        Self(Addr::new(sender), inbox)
    }
}

/// Builds the informer of `spec` and starts its actors.
pub(crate) fn start<S: Body>(runtime: &Runtime, spec: InformerSpec<S>) -> Family<S> {
    let shared = share(runtime, &spec);
    let (now, published) = (Arc::clone(&shared.published), Arc::clone(&shared.published));
    let group = GroupEpoch::new(move || now.epoch(), move |epoch| published.begin_epoch_after(epoch));
    let stop = CancellationToken::new();
    let (supervisor, fifo, indexer, processor) =
        (Mailbox::new(), Mailbox::new(), Mailbox::new(), Mailbox::new());
    let arbiter = runtime.pipeline_arbiter();
    let kin = Arc::new(Kin {
        // A text of its own, so that its address tells this informer from every other one.
        informer: Arc::from(&*spec.name),
        group,
        supervisor: supervisor.0,
        stop: stop.clone(),
        faults: runtime.0.faults.clone(),
    });
    let nursery = Nursery { arbiter, tasks: TaskTracker::new(), kin: Arc::clone(&kin) };
    watch(&shared, &nursery.arbiter);
    let books = SupervisorSpec {
        informer: Arc::clone(&shared.name),
        runtime: runtime.clone(),
        board: shared.board.clone(),
        progress: Arc::clone(&shared.progress),
        policy: spec.restarts,
        stop,
    };
    nursery.raise("supervisor", Role::Supervisor, supervisor.1, books);
    let queue = DeltaFifoSpec { shared: shared.clone(), bounds: spec.bounds, discipline: spec.discipline };
    nursery.raise("delta-fifo", Role::Group, fifo.1, queue);
    let store = IndexerSpec { shared: shared.clone(), fifo: fifo.0.clone(), processor: processor.0.clone() };
    nursery.raise("indexer", Role::Group, indexer.1, store);
    let roster = ListenerRoster::new();
    let fan_out = ProcessorSpec { shared: shared.clone(), fifo: fifo.0.clone(), roster: roster.clone() };
    nursery.raise("processor", Role::Group, processor.1, fan_out);
    let reflectors = spec.sources.into_iter().map(|source| {
        let Mailbox(address, inbox) = Mailbox::new();
        let name = reflector_name(&source.id);
        let follow = ReflectorSpec {
            shared: shared.clone(),
            source: source.id,
            connect: source.connect,
            config: source.config,
            fifo: fifo.0.clone(),
        };
        nursery.raise(&name, Role::Reflector, inbox, follow);
        address
    });
    Family {
        _reflectors: reflectors.collect(),
        arbiter: nursery.arbiter,
        tasks: nursery.tasks,
        fifo: fifo.0,
        indexer: indexer.0,
        attach: Arc::new(processor.0.clone().recipient()),
        processor: Arc::new(processor.0),
        roster,
        shared,
        kin,
    }
}

/// Has the watchdog show in the status what blocks a thread of this informer.
fn watch<S: Body>(shared: &PipelineShared<S>, arbiter: &ArbiterHandle) {
    let board = shared.board.clone();
    let arbiters = [arbiter.clone(), shared.runtime.callback_arbiter()];
    let (informer, progress) = (Arc::clone(&shared.name), Arc::clone(&shared.progress));
    let shown = Box::new(move |stuck: Option<&_>| board.update_stuck(stuck));
    shared.runtime.0.watchdog.watch(Watched::new(informer, arbiters, progress, shown));
}

fn share<S: Body>(runtime: &Runtime, spec: &InformerSpec<S>) -> PipelineShared<S> {
    let sources: Arc<[SourceId]> = spec.sources.iter().map(|source| source.id.clone()).collect();
    let indices = spec.indices.iter().map(|index| Arc::clone(&index.name));
    PipelineShared(Arc::new(Common {
        name: Arc::clone(&spec.name),
        runtime: runtime.clone(),
        published: Arc::new(Published::new(indices, runtime.0.freeing.release())),
        board: StatusBoard::new(InformerStatus::new(Arc::clone(&spec.name), spec.discipline, &sources)),
        progress: Arc::default(),
        handed: Handed::default(),
        sources,
        indices: IndexRegistry::new(&spec.indices),
        hush: CancellationToken::new(),
    }))
}

/// Where children are put under guard.
struct Nursery {
    arbiter: ArbiterHandle,
    tasks: TaskTracker,
    kin: Arc<Kin>,
}

impl Nursery {
    fn tether(&self, name: &str, role: Role) -> Tether {
        let label = Label { informer: Arc::clone(&self.kin.informer), kind: "", name: name.into() };
        Tether { kin: Arc::clone(&self.kin), label: Arc::new(label), role, stop: Stop::Informer }
    }

    fn raise<A: Child>(&self, name: &str, role: Role, inbox: AddressReceiver<A>, spec: A::Spec) {
        raise(&self.arbiter, &self.tasks, self.tether(name, role), Raised { inbox, spec }, |_| ());
    }
}

/// A child to be: its mailbox and what it is built from.
pub(crate) struct Raised<A: Child> {
    pub(crate) inbox: AddressReceiver<A>,
    pub(crate) spec: A::Spec,
}

/// Puts a child under guard on its arbiter. `ended` is called once, whatever ends first: with the last verdict, or
/// with none when the arbiter ends, or has ended, before the child does.
pub(crate) fn raise<A: Child>(
    arbiter: &ArbiterHandle,
    tasks: &TaskTracker,
    tether: Tether,
    child: Raised<A>,
    ended: impl FnOnce(Option<Verdict>) + Send + 'static,
) {
    let token = tasks.token();
    let ended = OnEnd::new(ended);
    let labelled = arbiter.label((*tether.label).clone());
    arbiter.spawn(move || {
        let guard = Box::pin(Guard::new(child.inbox, child.spec, tether, labelled).keep());
        async move {
            let verdict = guard.await;
            ended.call(verdict);
            drop(token);
        }
    });
}

impl<S> fmt::Debug for SourceSpec<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceSpec").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for InformerSpec<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerSpec")
            .field("name", &self.name)
            .field("sources", &self.sources)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
