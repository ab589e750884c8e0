//! A set of namespaces that an informer follows, as it changes.
//!
//! Answers "which namespaces are wanted, how is a source for one made, and have the sources been exchanged since the
//! last change?" for the handle that changes the set, the actor that exchanges sources and whoever waits. Invariants:
//! 1. The newest set counts: of changes that come while sources are exchanged only the last one is carried out.
//! 2. Every change raises `changed`, and so does what `join` and `sync` report.
//! 3. Its lock guards a few words. No user's code runs under it.
//!
//! Read next: `informer/namespaces.rs`, what a handle does with it; `informer_core::namespaces`, which decides.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use informer_core::meta::ClusterName;
use informer_core::namespaces::{ClusterWide, Names};
use informer_core::words::panic_text;

use crate::pipeline::namespace_filter::NamespaceFilter;
use crate::pipeline::signal::Signal;
use crate::pipeline::source_spec::SourceSpec;
use crate::runtime::drop_payload;
use crate::runtime::locked::locked;

/// Makes the source of one namespace, or says why it cannot be followed.
pub type OfNamespace<S> = Arc<dyn Fn(&str) -> Result<SourceSpec<S>, Arc<str>> + Send + Sync>;
/// Makes the cluster-wide source, or says why it cannot be followed.
pub type OfCluster<S> = Arc<dyn Fn() -> Result<SourceSpec<S>, Arc<str>> + Send + Sync>;

/// One set of namespaces of an informer.
pub(crate) struct NamespaceSet<S> {
    /// The number of the set in its informer.
    pub(crate) number: usize,
    pub(crate) cluster: Option<ClusterName>,
    each: OfNamespace<S>,
    pub(crate) all: Option<(ClusterWide, OfCluster<S>)>,
    /// Whether a source selects the namespaces, so that nobody else may change them.
    pub(crate) is_selected: bool,
    state: Mutex<State>,
    pub(crate) changed: Signal,
}

#[derive(Debug, Default)]
struct State {
    /// `None` until it is known.
    wanted: Option<Names>,
    /// How often the set has changed.
    generation: u64,
    /// Up to which change every new namespace has its source.
    joined: u64,
    /// Up to which change everything is exchanged and has listed.
    synced: u64,
    refused: Option<Refused>,
    /// The filter of the cluster-wide source, once there was one.
    filter: Option<Arc<NamespaceFilter>>,
}

/// The last refusal of the cluster-wide source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) reason: Arc<str>,
    /// When it is asked for again.
    pub(crate) until: Duration,
}

/// What is wanted, and the number of the change that wanted it.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) names: Names,
    pub(crate) generation: u64,
}

impl<S> NamespaceSet<S> {
    /// A set that is not known yet.
    pub(crate) fn new(number: usize, cluster: Option<ClusterName>, each: OfNamespace<S>) -> Self {
        let (state, changed) = (Mutex::default(), Signal::default());
        Self { number, cluster, each, all: None, is_selected: false, state, changed }
    }

    /// The same set, which a cluster-wide source may follow.
    pub(crate) fn cluster_wide(self, policy: ClusterWide, all: OfCluster<S>) -> Self {
        Self { all: Some((policy, all)), ..self }
    }

    /// The source of a namespace, or why there is none: also if the user's function panics.
    pub(crate) fn source_of(&self, namespace: &str) -> Result<SourceSpec<S>, Arc<str>> {
        made(|| (self.each)(namespace))
    }

    /// The cluster-wide source, if the set can have one, or why there is none: also if the user's function panics.
    pub(crate) fn source_of_all(&self) -> Option<Result<SourceSpec<S>, Arc<str>>> {
        self.all.as_ref().map(|(_, make)| made(|| make()))
    }

    pub(crate) fn filter(&self) -> Option<Arc<NamespaceFilter>> {
        self.state().filter.clone()
    }

    /// The source with the filter of a new cluster-wide source, which keeps these.
    pub(crate) fn filtered(&self, source: SourceSpec<S>, names: &Names) -> SourceSpec<S> {
        let filter = Arc::new(NamespaceFilter::new(Names::clone(names)));
        self.state().filter = Some(Arc::clone(&filter));
        SourceSpec { filter: Some(filter), ..source }
    }

    /// The same set, which a source selects.
    pub(crate) fn selected(self) -> Self {
        Self { is_selected: true, ..self }
    }

    /// Changes the set; gives the number of this change. A set that is equal to the last one is no change.
    pub(crate) fn change(&self, change: impl FnOnce(Option<&Names>) -> Names) -> u64 {
        let mut state = self.state();
        let names = change(state.wanted.as_ref());
        if state.wanted.as_ref() != Some(&names) {
            state.wanted = Some(names);
            state.generation += 1;
        }
        let generation = state.generation;
        drop(state);
        self.changed.raise();
        generation
    }

    pub(crate) fn wanted(&self) -> Option<Wanted> {
        let state = self.state();
        let generation = state.generation;
        state.wanted.clone().map(|names| Wanted { names, generation })
    }

    pub(crate) fn refused(&self) -> Option<Refused> {
        self.state().refused.clone()
    }

    pub(crate) fn refuse(&self, refused: Option<Refused>) {
        self.state().refused = refused;
    }

    /// Every new namespace of this change has its source.
    pub(crate) fn join(&self, generation: u64) {
        self.advance(|state| &mut state.joined, generation);
    }

    /// Everything of this change is exchanged and has listed.
    pub(crate) fn sync(&self, generation: u64) {
        self.advance(|state| &mut state.synced, generation);
    }

    /// Waits until every new namespace of this change has its source.
    pub(crate) async fn joined(&self, generation: u64) {
        self.reached(|state| state.joined, generation).await;
    }

    /// Waits until everything of this change is exchanged and has listed.
    pub(crate) async fn synced(&self, generation: u64) {
        self.reached(|state| state.synced, generation).await;
    }

    fn advance(&self, mark: impl FnOnce(&mut State) -> &mut u64, generation: u64) {
        let mut state = self.state();
        let mark = mark(&mut state);
        let is_news = *mark < generation;
        *mark = generation.max(*mark);
        drop(state);
        if is_news {
            self.changed.raise();
        }
    }

    async fn reached(&self, mark: impl Fn(&State) -> u64, generation: u64) {
        loop {
            let seen = self.changed.count();
            if mark(&self.state()) >= generation {
                return;
            }
            self.changed.since(seen).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

fn made<T>(make: impl FnOnce() -> Result<T, Arc<str>>) -> Result<T, Arc<str>> {
    catch_unwind(AssertUnwindSafe(make)).unwrap_or_else(|panic| {
        let why = format!("making its source panicked: {}", panic_text(&*panic));
        drop_payload(panic);
        Err(why.into())
    })
}

/// The sets of one informer: none, or one for each cluster.
#[derive(Debug)]
pub(crate) struct NamespaceSets<S>(Mutex<Vec<Arc<NamespaceSet<S>>>>);

impl<S> NamespaceSets<S> {
    pub(crate) fn new(sets: Vec<Arc<NamespaceSet<S>>>) -> Self {
        Self(Mutex::new(sets))
    }

    pub(crate) fn all(&self) -> Vec<Arc<NamespaceSet<S>>> {
        locked(&self.0).clone()
    }
}

impl<S> fmt::Debug for NamespaceSet<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespaceSet").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}
