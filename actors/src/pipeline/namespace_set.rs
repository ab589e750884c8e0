//! A set of namespaces that an informer follows, as it changes.
//!
//! Answers "which namespaces are wanted, how is a source for one made, and have the sources been exchanged since the
//! last change?" for the handle that changes the set, the actor that exchanges sources and whoever waits. Invariants:
//! 1. The newest set counts: of changes that come while sources are exchanged only the last one is carried out.
//! 2. Every change raises `changed`, and so does what `join` and `sync` report.
//! 3. Its lock guards a few words. No user's code runs under it.
//!
//! Read next: `informer/namespaces.rs`, what a handle does with it; `informer_core::namespaces`, which decides.

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
    makers: Mutex<Makers<S>>,
    state: Mutex<State>,
    pub(crate) changed: Signal,
}

/// How its sources are made. They are exchanged when a cluster that was removed is added again.
pub(crate) struct Makers<S> {
    pub(crate) each: OfNamespace<S>,
    pub(crate) all: Option<(ClusterWide, OfCluster<S>)>,
    /// Whether a source selects the namespaces, so that nobody else may change them.
    pub(crate) is_selected: bool,
}

informer_core::clone_of!([S] Makers<S> { each, all, is_selected });

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
    refused: Option<RefusedNamespace>,
    /// A namespace for which no source could be made, and why, once all others have listed.
    failed: Option<(Arc<str>, Arc<str>)>,
    /// The filter of the cluster-wide source, once there was one.
    filter: Option<Arc<NamespaceFilter>>,
    /// Its cluster was removed, and not added again since.
    is_removed: bool,
}

/// The last refusal of the cluster-wide source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusedNamespace {
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
    pub(crate) fn new(number: usize, cluster: Option<ClusterName>, makers: Makers<S>) -> Self {
        let (makers, state, changed) = (Mutex::new(makers), Mutex::default(), Signal::default());
        Self { number, cluster, makers, state, changed }
    }

    /// The source of a namespace, or why there is none: also if the user's function panics.
    pub(crate) fn source_of(&self, namespace: &str) -> Result<SourceSpec<S>, Arc<str>> {
        let each = Arc::clone(&locked(&self.makers).each);
        made(|| each(namespace))
    }

    /// The cluster-wide source, if the set can have one, or why there is none: also if the user's function panics.
    pub(crate) fn source_of_all(&self) -> Option<Result<SourceSpec<S>, Arc<str>>> {
        let all = locked(&self.makers).all.as_ref().map(|(_, make)| Arc::clone(make));
        all.map(|make| made(|| make()))
    }

    /// When a cluster-wide source follows it, if the set can have one.
    pub(crate) fn policy(&self) -> Option<ClusterWide> {
        locked(&self.makers).all.as_ref().map(|(policy, _)| *policy)
    }

    /// Whether a source selects the namespaces, so that nobody else may change them.
    pub(crate) fn is_selected(&self) -> bool {
        locked(&self.makers).is_selected
    }

    /// Its cluster is removed: its makers may be exchanged. Gives the number of this change.
    pub(crate) fn remove(&self) -> u64 {
        self.exchange(|_| Names::default(), true)
    }

    /// Exchanges how its sources are made, if its cluster was removed; gives what is not used.
    pub(crate) fn renew(&self, makers: Makers<S>) -> Result<Makers<S>, Makers<S>> {
        {
            let mut state = self.state();
            if !state.is_removed {
                return Err(makers);
            }
            (state.is_removed, state.refused, state.wanted) = (false, None, None);
        }
        Ok(std::mem::replace(&mut *locked(&self.makers), makers))
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

    /// Changes the set; gives the number of this change. A set that is equal to the last one is no change.
    pub(crate) fn change(&self, change: impl FnOnce(Option<&Names>) -> Names) -> u64 {
        self.exchange(change, false)
    }

    /// One lock for both: whoever is woken by the change sees that the cluster is removed.
    fn exchange(&self, change: impl FnOnce(Option<&Names>) -> Names, removes: bool) -> u64 {
        let mut state = self.state();
        let names = change(state.wanted.as_ref());
        state.is_removed = removes || (state.is_removed && names.is_empty());
        if state.wanted.as_ref() != Some(&names) {
            state.wanted = Some(names);
            state.generation += 1;
            state.failed = None;
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

    /// The number of the change that is carried out last: of the next one, if it is not known what is wanted.
    pub(crate) fn newest_change(&self) -> u64 {
        let state = self.state();
        state.generation + u64::from(state.wanted.is_none())
    }

    pub(crate) fn refused(&self) -> Option<RefusedNamespace> {
        self.state().refused.clone()
    }

    pub(crate) fn refuse(&self, refused: Option<RefusedNamespace>) {
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

    /// All of this change is exchanged and has listed but what could not be followed, such as this namespace. Nothing happens
    /// if there is a newer change: it may not want the namespace.
    pub(crate) fn fail(&self, generation: u64, failed: Option<(Arc<str>, Arc<str>)>) {
        let mut state = self.state();
        if state.generation != generation || state.failed == failed {
            return;
        }
        state.failed = failed;
        drop(state);
        self.changed.raise();
    }

    /// A namespace that could not be followed, and why.
    pub(crate) fn failed(&self) -> Option<(Arc<str>, Arc<str>)> {
        self.state().failed.clone()
    }

    /// Whether everything of this change is exchanged and has listed.
    pub(crate) fn is_synced(&self, generation: u64) -> bool {
        self.state().synced >= generation
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
pub(crate) struct NamespaceSets<S>(Mutex<Sets<S>>);

struct Sets<S> {
    sets: Vec<Arc<NamespaceSet<S>>>,
    /// The number of the next one: none is used twice.
    next: usize,
}

impl<S> NamespaceSets<S> {
    pub(crate) fn new(sets: Vec<Arc<NamespaceSet<S>>>) -> Self {
        let next = sets.len();
        Self(Mutex::new(Sets { sets, next }))
    }

    pub(crate) fn all(&self) -> Vec<Arc<NamespaceSet<S>>> {
        locked(&self.0).sets.clone()
    }

    /// The set of this cluster: the one that is there, if its cluster was removed, with these makers; or a new one, and
    /// true. `None` if there is one that is followed.
    pub(crate) fn renewed_or_new(
        &self,
        cluster: Option<ClusterName>,
        makers: Makers<S>,
    ) -> Option<(Arc<NamespaceSet<S>>, bool)> {
        let mut state = locked(&self.0);
        let former = match state.sets.iter().find(|set| set.cluster == cluster) {
            Some(set) => Some((set.renew(makers), Arc::clone(set))),
            None => {
                let set = Arc::new(NamespaceSet::new(state.next, cluster, makers));
                state.next += 1;
                state.sets.push(Arc::clone(&set));
                return Some((set, true));
            }
        };
        drop(state);
        // What the program captured is dropped after the lock.
        former.and_then(|(renewed, set)| renewed.is_ok().then_some((set, false)))
    }

    /// Forgets a set whose cluster was removed; false if it was not, or was added again.
    pub(crate) fn end(&self, set: &Arc<NamespaceSet<S>>) -> bool {
        let mut state = locked(&self.0);
        let is_removed = set.state().is_removed;
        let place = state.sets.iter().position(|other| Arc::ptr_eq(other, set)).filter(|_| is_removed);
        let ended = place.map(|place| state.sets.swap_remove(place));
        drop(state);
        ended.is_some()
    }
}

#[cfg(test)]
mod tests;
