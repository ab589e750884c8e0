//! A set of namespaces that an informer follows, as it changes.
//!
//! 1. Of changes that come while sources are exchanged, only the last one is carried out.
//! 2. Every change raises `changed`, and so do `join` and `sync`.
//! 3. No user's code runs under the lock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use informer_core::meta::ClusterName;
use informer_core::namespaces::{ClusterWide, Names};
use informer_core::words::panic_text;

use crate::pipeline::namespace_filter::NamespaceFilter;
use crate::pipeline::source_spec::SourceSpec;
use crate::runtime::drop_payload;
use crate::runtime::locked::Guarded;
use crate::runtime::signal::Signal;

/// Makes the source of one namespace, or says why it cannot be followed.
pub type OfNamespace<S> = Arc<dyn Fn(&str) -> Result<SourceSpec<S>, Arc<str>> + Send + Sync>;
/// Makes the cluster-wide source, or says why it cannot be followed.
pub type OfCluster<S> = Arc<dyn Fn() -> Result<SourceSpec<S>, Arc<str>> + Send + Sync>;

pub(crate) struct NamespaceSet<S> {
    pub(crate) number: usize,
    pub(crate) cluster: Option<ClusterName>,
    makers: Guarded<Makers<S>>,
    state: Guarded<State>,
    pub(crate) changed: Signal,
}

/// Replaced when a removed cluster is added again.
pub(crate) struct Makers<S> {
    pub(crate) each: OfNamespace<S>,
    pub(crate) all: Option<(ClusterWide, OfCluster<S>)>,
    /// A source selects the namespaces, so nobody else may change them.
    pub(crate) is_selected: bool,
}

informer_core::clone_of!([S] Makers<S> { each, all, is_selected });

#[derive(Debug, Default)]
struct State {
    /// `None` until it is known.
    wanted: Option<Names>,
    generation: u64,
    /// The last change whose new namespaces all have a source.
    joined: u64,
    /// The last change that is exchanged and listed.
    synced: u64,
    refused: Option<ClusterWideRefusal>,
    /// A namespace without a source, and why, once all others have listed.
    failed: Option<(Arc<str>, Arc<str>)>,
    filter: Option<Arc<NamespaceFilter>>,
    is_removed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClusterWideRefusal {
    pub(crate) reason: Arc<str>,
    pub(crate) until: Duration,
}

#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) names: Names,
    pub(crate) generation: u64,
}

impl<S> NamespaceSet<S> {
    pub(crate) fn new(number: usize, cluster: Option<ClusterName>, makers: Makers<S>) -> Self {
        let (makers, state, changed) = (Guarded::new(makers), Guarded::default(), Signal::default());
        Self { number, cluster, makers, state, changed }
    }

    /// An error also if the user's function panics.
    pub(crate) fn source_of(&self, namespace: &str) -> Result<SourceSpec<S>, Arc<str>> {
        let each = self.makers.with(|makers| Arc::clone(&makers.each));
        made(|| each(namespace))
    }

    /// `None` if the set can have none.
    pub(crate) fn source_of_all(&self) -> Option<Result<SourceSpec<S>, Arc<str>>> {
        let all = self.makers.with(|makers| makers.all.as_ref().map(|(_, make)| Arc::clone(make)));
        all.map(|make| made(|| make()))
    }

    pub(crate) fn policy(&self) -> Option<ClusterWide> {
        self.makers.with(|makers| makers.all.as_ref().map(|(policy, _)| *policy))
    }

    pub(crate) fn is_selected(&self) -> bool {
        self.makers.with(|makers| makers.is_selected)
    }

    /// Its cluster is removed: its makers may be replaced. Returns this change's number.
    pub(crate) fn remove(&self) -> u64 {
        self.exchange(|_| Names::default(), true)
    }

    /// If the cluster was removed. Returns the makers that are not used.
    pub(crate) fn renew(&self, makers: Makers<S>) -> Result<Makers<S>, Makers<S>> {
        let was_removed = self.state.with(|state| {
            let was_removed = std::mem::take(&mut state.is_removed);
            if was_removed {
                (state.refused, state.wanted) = (None, None);
            }
            was_removed
        });
        if !was_removed {
            return Err(makers);
        }
        Ok(self.makers.with(|former| std::mem::replace(former, makers)))
    }

    pub(crate) fn filter(&self) -> Option<Arc<NamespaceFilter>> {
        self.state.with(|state| state.filter.clone())
    }

    pub(crate) fn filtered(&self, source: SourceSpec<S>, names: &Names) -> SourceSpec<S> {
        let filter = Arc::new(NamespaceFilter::new(Names::clone(names)));
        self.state.with(|state| state.filter = Some(Arc::clone(&filter)));
        SourceSpec { filter: Some(filter), ..source }
    }

    /// Returns this change's number. An equal set is no change.
    pub(crate) fn change(&self, change: impl FnOnce(Option<&Names>) -> Names) -> u64 {
        self.exchange(change, false)
    }

    /// One lock for both: who is woken sees that the cluster is removed.
    fn exchange(&self, change: impl FnOnce(Option<&Names>) -> Names, removes: bool) -> u64 {
        let (generation, _equal) = self.state.with(|state| {
            let names = change(state.wanted.as_ref());
            state.is_removed = removes || (state.is_removed && names.is_empty());
            if state.wanted.as_ref() == Some(&names) {
                return (state.generation, Some(names));
            }
            state.wanted = Some(names);
            state.generation += 1;
            state.failed = None;
            (state.generation, None)
        });
        self.changed.raise();
        generation
    }

    pub(crate) fn wanted(&self) -> Option<Wanted> {
        self.state.with(|state| {
            let generation = state.generation;
            state.wanted.clone().map(|names| Wanted { names, generation })
        })
    }

    /// The number of the last change; of the next one, if the wanted set is not known.
    pub(crate) fn newest_change(&self) -> u64 {
        self.state.with(|state| state.generation + u64::from(state.wanted.is_none()))
    }

    pub(crate) fn refused(&self) -> Option<ClusterWideRefusal> {
        self.state.with(|state| state.refused.clone())
    }

    pub(crate) fn refuse(&self, refused: Option<ClusterWideRefusal>) {
        self.state.with(|state| state.refused = refused);
    }

    pub(crate) fn join(&self, generation: u64) {
        self.advance(|state| &mut state.joined, generation);
    }

    pub(crate) fn sync(&self, generation: u64) {
        self.advance(|state| &mut state.synced, generation);
    }

    pub(crate) async fn joined(&self, generation: u64) {
        self.reached(|state| state.joined, generation).await;
    }

    /// As [`Self::sync`], but this namespace could not be followed. Ignored after a newer change.
    pub(crate) fn fail(&self, generation: u64, failed: Option<(Arc<str>, Arc<str>)>) {
        let is_news = self.state.with(|state| {
            let is_news = state.generation == generation && state.failed != failed;
            if is_news {
                state.failed = failed;
            }
            is_news
        });
        if is_news {
            self.changed.raise();
        }
    }

    pub(crate) fn failed(&self) -> Option<(Arc<str>, Arc<str>)> {
        self.state.with(|state| state.failed.clone())
    }

    pub(crate) fn is_synced(&self, generation: u64) -> bool {
        self.state.with(|state| state.synced >= generation)
    }

    fn advance(&self, mark: impl FnOnce(&mut State) -> &mut u64, generation: u64) {
        let is_news = self.state.with(|state| {
            let mark = mark(state);
            let is_news = *mark < generation;
            *mark = generation.max(*mark);
            is_news
        });
        if is_news {
            self.changed.raise();
        }
    }

    async fn reached(&self, mark: impl Fn(&State) -> u64, generation: u64) {
        self.changed.until(|| (self.state.with(|state| mark(state)) >= generation).then_some(())).await;
    }
}

fn made<T>(make: impl FnOnce() -> Result<T, Arc<str>>) -> Result<T, Arc<str>> {
    catch_unwind(AssertUnwindSafe(make)).unwrap_or_else(|panic| {
        let why = format!("making its source panicked: {}", panic_text(&*panic));
        drop_payload(panic);
        Err(why.into())
    })
}

pub(crate) struct NamespaceSets<S>(Guarded<Sets<S>>);

struct Sets<S> {
    sets: Vec<Arc<NamespaceSet<S>>>,
    /// No number is used twice.
    next: usize,
}

impl<S> NamespaceSets<S> {
    pub(crate) fn new(sets: Vec<Arc<NamespaceSet<S>>>) -> Self {
        let next = sets.len();
        Self(Guarded::new(Sets { sets, next }))
    }

    pub(crate) fn all(&self) -> Vec<Arc<NamespaceSet<S>>> {
        self.0.with(|state| state.sets.clone())
    }

    /// Of this cluster, with these makers: renewed if the cluster was removed, or new (`true`). `None` if it is
    /// followed.
    pub(crate) fn renewed_or_new(
        &self,
        cluster: Option<ClusterName>,
        makers: Makers<S>,
    ) -> Option<(Arc<NamespaceSet<S>>, bool)> {
        let (renewed, set) = self.0.with(|state| {
            if let Some(set) = state.sets.iter().find(|set| set.cluster == cluster) {
                return (Some(set.renew(makers)), Arc::clone(set));
            }
            let set = Arc::new(NamespaceSet::new(state.next, cluster, makers));
            state.next += 1;
            state.sets.push(Arc::clone(&set));
            (None, set)
        });
        // After the lock: drops what the program captured.
        match renewed {
            Some(renewed) => renewed.is_ok().then_some((set, false)),
            None => Some((set, true)),
        }
    }

    /// False unless its cluster was removed.
    pub(crate) fn end(&self, set: &Arc<NamespaceSet<S>>) -> bool {
        let ended = self.0.with(|state| {
            let is_removed = set.state.with(|state| state.is_removed);
            let place = state.sets.iter().position(|other| Arc::ptr_eq(other, set)).filter(|_| is_removed);
            place.map(|place| state.sets.swap_remove(place))
        });
        ended.is_some()
    }
}

#[cfg(test)]
mod tests;
