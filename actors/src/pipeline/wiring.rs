//! Builds one informer: who knows whom, who watches over whom, and what outlives them all.
//!
//! Answers "what is an informer made of?". The published cell, the status board, the roster of seats, the index
//! registry and the notes of what each source has handed over belong to wiring: actors come and go, these stay.
//!
//! ```text
//!   Supervisor ◀─Exited── guard(Reflector)… guard(DeltaFifo) guard(Indexer) guard(Processor) guard(Listener)…
//!                            Reflector ──▶ DeltaFifo ◀──Pop── Indexer ──▶ Processor ──▶ Listener
//!                                              ▲─────────Resync───────────────┘
//! ```
//! Invariants:
//! 1. Everything of one informer runs on one arbiter, but for callbacks; a hop there costs 70 ns.
//! 2. Addresses exist before their actors do; what is sent early waits in the mailbox.
//! 3. The locks here guard small maps, are never held over an await, and no actor reaches another through them.
//!
//! Read next: `informer.rs`, the handle; `guard.rs`, who keeps each actor alive.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix::Addr;
use actix::dev::channel::{AddressReceiver, channel};
use informer_core::delta_fifo::{Bounds, Discipline};
use informer_core::index::IndexSpec;
use informer_core::indexer::Reported;
use informer_core::meta::{ResourceVersion, SourceId};
use informer_core::processor::ListenerId;
use informer_core::reflector::ReflectorConfig;
use informer_core::restart::{RestartPolicy, Role, Verdict};
use informer_core::snapshot::Snapshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::list_watch::Connect;
use crate::pipeline::delta_fifo::{DeltaFifo, DeltaFifoSpec};
use crate::pipeline::ending::OnEnd;
use crate::pipeline::indexer::{Indexer, IndexerSpec};
use crate::pipeline::listener::Listener;
use crate::pipeline::messages::{Body, Epoch, IndexCall};
use crate::pipeline::odd_data;
use crate::pipeline::processor::{Processor, ProcessorSpec};
use crate::pipeline::published::Published;
use crate::pipeline::reflector::{Reflector, ReflectorSpec};
use crate::pipeline::status::{Figures, InformerStatus, StatusBoard};
use crate::runtime::faults::Site;
use crate::runtime::progress::Progress;
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

/// Parts of an informer that outlive its actors and that they share. Cloning copies a pointer.
pub(crate) struct PipelineShared<S: Body>(Arc<Common<S>>);

pub(crate) struct Common<S: Body> {
    pub(crate) name: Arc<str>,
    pub(crate) runtime: Runtime,
    pub(crate) published: Arc<Published<S>>,
    pub(crate) board: StatusBoard,
    pub(crate) progress: Arc<Progress>,
    pub(crate) handed: Handed,
    pub(crate) sources: Arc<[SourceId]>,
    pub(crate) indices: IndexRegistry<S>,
    pub(crate) roster: ListenerRoster<S>,
    /// Cancelled first at a stop: nothing new comes in, so that what is owed can be delivered.
    pub(crate) hush: CancellationToken,
}

impl<S: Body> Deref for PipelineShared<S> {
    type Target = Common<S>;

    fn deref(&self) -> &Common<S> {
        &self.0
    }
}

impl<S: Body> PipelineShared<S> {
    pub(crate) fn strike(&self, site: Site) {
        self.runtime.0.faults.strike(site);
    }

    /// Whether a test wants this left undone.
    pub(crate) fn stalls(&self, site: Site) -> bool {
        self.runtime.0.faults.stalls(site)
    }

    /// Publishes a snapshot and shows its figures in one step, unless a newer epoch has begun: whoever has seen the
    /// one sees the other, on any thread.
    pub(crate) fn publish(&self, epoch: Epoch, snapshot: Snapshot<S>, synced: bool) -> bool {
        let figures = Figures {
            objects: snapshot.len(),
            set_aside: snapshot.set_aside_len(),
            versions: &snapshot.clone(),
            synced,
        };
        let published = self.board.publish(&figures, || self.published.publish(epoch, snapshot));
        if published {
            self.published.wake();
        }
        published
    }

    pub(crate) fn count_stale_message(&self) {
        self.board.update(|status| status.data.stale_messages += 1);
    }

    /// Counts and logs what was odd in the data.
    pub(crate) fn report(&self, incidents: &[Reported]) {
        if incidents.is_empty() {
            return;
        }
        self.board.update(|status| incidents.iter().for_each(|odd| status.data.count(&odd.incident)));
        incidents.iter().for_each(|odd| odd_data::log(&self.name, odd));
    }
}

impl<S: Body> Clone for PipelineShared<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The newest version that each source has put into the queue, per epoch: where a new Reflector goes on.
#[derive(Debug, Default)]
pub(crate) struct Handed(Mutex<BTreeMap<SourceId, (Epoch, ResourceVersion)>>);

impl Handed {
    pub(crate) fn note(&self, epoch: Epoch, source: &SourceId, version: &ResourceVersion) {
        locked(&self.0).insert(source.clone(), (epoch, version.clone()));
    }

    /// Whether a source has handed over more than is published.
    pub(crate) fn is_ahead_of<S>(&self, published: &Snapshot<S>) -> bool {
        locked(&self.0).iter().any(|(source, (_, handed))| Some(handed) > published.version(source))
    }

    pub(crate) fn newest(&self, epoch: Epoch, source: &SourceId) -> Option<ResourceVersion> {
        locked(&self.0).get(source).filter(|(noted, _)| *noted == epoch).map(|(_, version)| version.clone())
    }
}

/// The indices that every life of the Indexer has, and by which call each was added later, if it was.
pub(crate) struct IndexRegistry<S>(Mutex<Vec<(IndexSpec<S>, Option<IndexCall>)>>);

impl<S> IndexRegistry<S> {
    fn new(specs: &[IndexSpec<S>]) -> Self {
        Self(Mutex::new(specs.iter().map(|spec| (spec.clone(), None)).collect()))
    }

    pub(crate) fn all(&self) -> Vec<IndexSpec<S>> {
        locked(&self.0).iter().map(|(spec, _)| spec.clone()).collect()
    }

    pub(crate) fn add(&self, spec: IndexSpec<S>, call: IndexCall) {
        locked(&self.0).push((spec, Some(call)));
    }

    /// Whether an earlier life of the Indexer took the index of this very call.
    pub(crate) fn was_added_by(&self, call: &IndexCall) -> bool {
        locked(&self.0).iter().any(|(_, by)| by.as_ref().is_some_and(|by| by.is(call)))
    }
}

/// The seats of all live listeners: whom a new Processor asks to attach again.
pub(crate) struct ListenerRoster<S: Body>(Mutex<BTreeMap<ListenerId, Arc<Addr<Listener<S>>>>>);

impl<S: Body> ListenerRoster<S> {
    pub(crate) fn join(&self, id: ListenerId, listener: Arc<Addr<Listener<S>>>) {
        let replaced = locked(&self.0).insert(id, listener);
        // With the last address go the messages of a mailbox, and the bodies in them: not under the lock.
        drop(replaced);
    }

    pub(crate) fn leave(&self, id: ListenerId) {
        let removed = locked(&self.0).remove(&id);
        drop(removed);
    }

    pub(crate) fn all(&self) -> Vec<Arc<Addr<Listener<S>>>> {
        locked(&self.0).values().cloned().collect()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The family: everything that is needed to add a child, talk to the actors, and stop them.
pub(crate) struct Family<S: Body> {
    pub(crate) shared: PipelineShared<S>,
    pub(crate) kin: Arc<Kin>,
    pub(crate) arbiter: ArbiterHandle,
    pub(crate) fifo: Addr<DeltaFifo<S>>,
    pub(crate) indexer: Addr<Indexer<S>>,
    pub(crate) processor: Arc<Addr<Processor<S>>>,
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
        running: arbiter.running(),
        faults: runtime.0.faults.clone(),
    });
    let nursery = Nursery { arbiter, tasks: TaskTracker::new(), kin: Arc::clone(&kin) };
    let board = shared.board.clone();
    let arbiters = [nursery.arbiter.clone(), runtime.callback_arbiter()];
    let (informer, progress) = (Arc::clone(&spec.name), Arc::clone(&shared.progress));
    let shown = Box::new(move |stuck: Option<&_>| board.update_stuck(stuck));
    runtime.0.watchdog.watch(Watched::new(informer, arbiters, progress, shown));
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
    let fan_out = ProcessorSpec { shared: shared.clone(), fifo: fifo.0.clone() };
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
        processor: Arc::new(processor.0),
        shared,
        kin,
    }
}

fn share<S: Body>(runtime: &Runtime, spec: &InformerSpec<S>) -> PipelineShared<S> {
    let sources: Arc<[SourceId]> = spec.sources.iter().map(|source| source.id.clone()).collect();
    PipelineShared(Arc::new(Common {
        name: Arc::clone(&spec.name),
        runtime: runtime.clone(),
        published: Arc::new(Published::new(spec.indices.iter().map(|index| Arc::clone(&index.name)))),
        board: StatusBoard::new(InformerStatus::new(Arc::clone(&spec.name), spec.discipline, &sources)),
        progress: Arc::default(),
        handed: Handed::default(),
        sources,
        indices: IndexRegistry::new(&spec.indices),
        roster: ListenerRoster(Mutex::default()),
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
    arbiter.spawn(move || {
        let guard = Box::pin(Guard::new(child.inbox, child.spec, tether).keep());
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
