//! Informers of namespaces that come and go.
//!
//! A change is delivered as exactly the difference: objects of a new namespace as `Added`, those of a removed one as
//! `Deleted { exact: false, cause: Relist }`. Of waiting changes only the newest is carried out.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use informer_core::meta::ClusterName;
use informer_core::namespaces::{ClusterWide, Followed, Names, plan};

use super::sources::{begin_all, not_added};
use super::{AddSourceError, Informer};
use crate::pipeline::messages::Body;
use crate::pipeline::namespace_set::{Makers, NamespaceSet};
use crate::pipeline::source_spec::{Member, SourceSpec};
use crate::pipeline::wiring::{InformerSpec, Pipeline};
use follower::Follower;

pub use crate::pipeline::namespace_set::{OfCluster, OfNamespace};
pub use selection::Selection;

mod follower;
mod of_informer;
mod selection;

/// The error of changing an informer's namespaces.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NamespacesError {
    /// The informer was not started with namespaces that may change.
    #[error("informer {informer:?} was started without a set of namespaces{}", of_cluster(.cluster.as_ref()))]
    NoSet {
        /// The informer's name.
        informer: Arc<str>,
        /// The cluster that was named.
        cluster: Option<ClusterName>,
    },
    /// They are selected: only the selection changes them.
    #[error("the namespaces of informer {informer:?} are selected")]
    Selected {
        /// The informer's name.
        informer: Arc<str>,
    },
    /// The informer already follows namespaces of this cluster.
    #[error("informer {informer:?} follows namespaces{} already", of_cluster(.cluster.as_ref()))]
    Exists {
        /// The informer's name.
        informer: Arc<str>,
        /// The cluster; `None` in an informer of one.
        cluster: Option<ClusterName>,
    },
    /// One of the sources was refused.
    #[error(transparent)]
    Source(#[from] AddSourceError),
    /// A namespace that cannot be followed, for example because its name is not valid.
    #[error("informer {informer:?} cannot follow the namespace {namespace:?}: {reason}")]
    Refused {
        /// The informer's name.
        informer: Arc<str>,
        /// The namespace.
        namespace: Arc<str>,
        /// Why.
        reason: Arc<str>,
    },
    /// The informer has stopped.
    #[error("informer {informer:?} has stopped")]
    Stopped {
        /// Its name.
        informer: Arc<str>,
    },
}

fn of_cluster(cluster: Option<&ClusterName>) -> String {
    cluster.map_or_else(String::new, |cluster| format!(" of cluster {cluster}"))
}

/// The changing namespaces that an informer follows, and how the source of each is made. Each has its own
/// source.
#[must_use = "it does nothing until a builder takes it"]
pub struct NamespaceSources<S: Body> {
    each: OfNamespace<S>,
    all: Option<(ClusterWide, OfCluster<S>)>,
    cluster: Option<ClusterName>,
    names: Wanted<S>,
}

enum Wanted<S: Body> {
    Given(Vec<Arc<str>>),
    Selected(Selection<S>),
}

impl<S: Body> NamespaceSources<S> {
    /// These namespaces, until [`Informer::set_namespaces`] names others. `each` makes the source of a
    /// namespace, or returns why there can be none; it is called on any thread.
    pub fn given<N: Into<Arc<str>>>(each: OfNamespace<S>, names: impl IntoIterator<Item = N>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self { each, all: None, cluster: None, names: Wanted::Given(names) }
    }

    /// The namespaces that this selection selects, as they come and go. There may be none.
    pub fn selected(each: OfNamespace<S>, selection: Selection<S>) -> Self {
        Self { each, all: None, cluster: None, names: Wanted::Selected(selection) }
    }

    /// Above the number of namespaces that `policy` sets, one source that `all` makes follows them all. It
    /// should bring the objects of every namespace; those of other namespaces are dropped. When it has
    /// listed, the sources of single namespaces are removed. When the number falls a quarter below, they come
    /// back before it is removed. Subscribers receive nothing of either change. If the server refuses it
    /// ([`ListWatchError::Denied`](informer_core::list_watch_error::ListWatchError::Denied)), the single
    /// sources stay, the status shows the reason ([`InformerStatus::namespaces`]), and it is tried again
    /// later.
    ///
    /// [`InformerStatus::namespaces`]: crate::status::InformerStatus::namespaces
    pub fn cluster_wide(mut self, policy: ClusterWide, all: OfCluster<S>) -> Self {
        self.all = Some((policy, all));
        self
    }

    /// The namespaces belong to this cluster. An informer of several clusters has one set for each.
    pub fn in_cluster(mut self, cluster: ClusterName) -> Self {
        self.cluster = Some(cluster);
        self
    }

    fn parts(self) -> (Option<ClusterName>, Makers<S>, Wanted<S>) {
        let Self { each, all, cluster, names } = self;
        let is_selected = matches!(names, Wanted::Selected(_));
        (cluster, Makers { each, all, is_selected }, names)
    }
}

impl<S: Body> fmt::Debug for NamespaceSources<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: &dyn fmt::Debug = match &self.names {
            Wanted::Given(names) => names,
            Wanted::Selected(selection) => selection,
        };
        f.debug_struct("NamespaceSources").field("cluster", &self.cluster).field("names", names).finish()
    }
}

pub(crate) fn describe<S: Body>(
    spec: &mut InformerSpec<S>,
    sources: NamespaceSources<S>,
) -> Result<(), NamespacesError> {
    let (cluster, makers, names) = sources.parts();
    let set = Arc::new(NamespaceSet::new(spec.namespaces.len(), cluster, makers));
    match names {
        Wanted::Selected(selection) => spec.sources.push(selection.source(Arc::clone(&set))),
        Wanted::Given(given) => {
            let begun = begin(&set, &given, &spec.name)?;
            spec.sources.extend(begun);
            set.change(|_| Arc::new(given.into_iter().collect()));
        }
    }
    spec.namespaces.push(set);
    Ok(())
}

fn begin<S: Body>(
    set: &NamespaceSet<S>,
    given: &[Arc<str>],
    informer: &Arc<str>,
) -> Result<Vec<SourceSpec<S>>, NamespacesError> {
    let each = sources_of_each(set, given, informer)?;
    let names: Names = Arc::new(given.iter().cloned().collect());
    let first = plan(&names, &Followed::default(), set.policy(), true);
    let is_of_all = first.all.is_some() && names.len() == given.len();
    match is_of_all.then(|| set.source_of_all()).flatten() {
        Some(Ok(all)) => {
            let member = Some(Member { set: set.number, namespace: None });
            Ok(vec![SourceSpec { member, ..set.filtered(all, &names) }])
        }
        _ => Ok(each),
    }
}

fn sources_of_each<S: Body>(
    set: &NamespaceSet<S>,
    given: &[Arc<str>],
    informer: &Arc<str>,
) -> Result<Vec<SourceSpec<S>>, NamespacesError> {
    let refused = |namespace: &Arc<str>, reason| {
        let (informer, namespace) = (Arc::clone(informer), Arc::clone(namespace));
        NamespacesError::Refused { informer, namespace, reason }
    };
    let each = given.iter().map(|namespace| {
        let made = set.source_of(namespace).map_err(|reason| refused(namespace, reason))?;
        let member = Some(Member { set: set.number, namespace: Some(Arc::clone(namespace)) });
        Ok(SourceSpec { member, ..made })
    });
    each.collect()
}

pub(super) fn start<S: Body>(pipeline: &Pipeline<S>) {
    pipeline.shared.namespaces.all().into_iter().for_each(|set| Follower::start(pipeline, set));
}

impl<S: Body> Informer<S> {
    /// Follows exactly these namespaces from now on. Returns at once: sources of new namespaces begin to
    /// list, and those of other namespaces are removed. [`Self::namespaces_synced`] waits for both. The set
    /// may be empty; the informer then waits for the next change.
    ///
    /// For an informer that was started with a set of namespaces, which may have been empty. Costs one
    /// comparison of the two sets on the informer's thread. New sources are added in slices; a source that
    /// stays is not affected.
    ///
    /// # Errors
    /// When the informer has no such set, its namespaces are selected, a name is not valid, or it has
    /// stopped. Nothing changes then.
    pub fn set_namespaces<N: Into<Arc<str>>>(
        &self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<(), NamespacesError> {
        let names: Names = Arc::new(names.into_iter().map(Into::into).collect());
        self.change_namespaces(None, Arc::clone(&names), |_| names)
    }

    /// Follows one more namespace. Following it already is no error. As [`Self::set_namespaces`].
    ///
    /// # Errors
    /// As [`Self::set_namespaces`].
    pub fn add_namespace(&self, name: impl Into<Arc<str>>) -> Result<(), NamespacesError> {
        let name: Arc<str> = name.into();
        let new = Arc::new(BTreeSet::from([Arc::clone(&name)]));
        self.change_namespaces(None, new, |names| with(names, name))
    }

    /// Stops following a namespace. Not following it is no error. As [`Self::set_namespaces`].
    ///
    /// # Errors
    /// As [`Self::set_namespaces`].
    pub fn remove_namespace(&self, name: &str) -> Result<(), NamespacesError> {
        self.change_namespaces(None, Names::default(), |names| without(names, name))
    }

    /// As [`Self::set_namespaces`], for one cluster of an informer of several clusters.
    ///
    /// # Errors
    /// As [`Self::set_namespaces`].
    pub fn set_namespaces_in<N: Into<Arc<str>>>(
        &self,
        cluster: &ClusterName,
        names: impl IntoIterator<Item = N>,
    ) -> Result<(), NamespacesError> {
        let names: Names = Arc::new(names.into_iter().map(Into::into).collect());
        self.change_namespaces(Some(cluster), Arc::clone(&names), |_| names)
    }

    /// The namespaces that are followed, or are about to be: those that were set, or are selected. Empty if
    /// the informer has no set of namespaces, or the selection is not known yet. With several clusters, the
    /// namespaces of all of them.
    pub fn namespaces(&self) -> Vec<Arc<str>> {
        let sets = self.0.pipeline.shared.namespaces.all();
        let wanted = sets.iter().filter_map(|set| set.wanted());
        wanted.flat_map(|wanted| wanted.names.iter().cloned().collect::<Vec<_>>()).collect()
    }

    fn change_namespaces(
        &self,
        cluster: Option<&ClusterName>,
        new: Names,
        change: impl FnOnce(&Names) -> Names,
    ) -> Result<(), NamespacesError> {
        let pipeline = &self.0.pipeline;
        let informer = Arc::clone(&pipeline.parent.name);
        if self.0.ending.stop.is_cancelled() {
            return Err(NamespacesError::Stopped { informer });
        }
        let sets = pipeline.shared.namespaces.all();
        let Some(set) = sets.iter().find(|set| set.cluster.as_ref() == cluster) else {
            return Err(NamespacesError::NoSet { informer, cluster: cluster.cloned() });
        };
        if set.is_selected() {
            return Err(NamespacesError::Selected { informer });
        }
        let known = set.wanted().map(|wanted| wanted.names).unwrap_or_default();
        for namespace in new.difference(&known) {
            if let Err(reason) = set.source_of(namespace) {
                let namespace = Arc::clone(namespace);
                return Err(NamespacesError::Refused { informer, namespace, reason });
            }
        }
        set.change(|names| change(names.unwrap_or(&known)));
        Ok(())
    }
}

fn with(names: &Names, name: Arc<str>) -> Names {
    Arc::new(names.iter().cloned().chain([name]).collect())
}

fn without(names: &Names, name: &str) -> Names {
    Arc::new(names.iter().filter(|known| ***known != *name).cloned().collect())
}

// Checks come before any change. The set of a removed cluster stays, and is used when the cluster is added again.
// While a source of the cluster is being removed, the cluster is refused.

impl<S: Body> Informer<S> {
    /// Follows the namespaces of one more cluster: the given ones, each with its own source, or those that
    /// are selected. Returns at once. [`Self::namespaces_synced`] waits until each has listed;
    /// [`Self::remove_cluster`] ends it. Then the cluster may be added again, with other namespaces or other
    /// credentials.
    ///
    /// An informer of one cluster whose sources are not namespaces of a set may also call this: it then
    /// follows these namespaces in addition.
    ///
    /// # Errors
    /// When namespaces of this cluster are already followed or still being removed, a namespace cannot be
    /// followed, a source is refused as by [`Self::add_source`], or the informer has stopped. Nothing changes
    /// then.
    pub fn add_namespaces(&self, sources: NamespaceSources<S>) -> Result<(), NamespacesError> {
        let (pipeline, shared) = (&self.0.pipeline, &self.0.pipeline.shared);
        let informer = Arc::clone(&pipeline.parent.name);
        if self.0.ending.stop.is_cancelled() {
            return Err(NamespacesError::Stopped { informer });
        }
        let (cluster, makers, names) = sources.parts();
        let of_cluster = |set: &&Arc<NamespaceSet<S>>| set.cluster == cluster;
        let exists = || NamespacesError::Exists { informer: Arc::clone(&informer), cluster: cluster.clone() };
        if shared
            .namespaces
            .all()
            .iter()
            .filter(of_cluster)
            .any(|set| !shared.sources.of_set(set.number).is_empty())
        {
            return Err(exists());
        }
        if let Wanted::Given(given) = &names {
            // Checked before the set exists: its follower would only log a refusal.
            let asked = NamespaceSet::new(usize::MAX, cluster.clone(), makers.clone());
            let each = sources_of_each(&asked, given, &informer)?;
            if let Some(refusal) = shared.sources.refusal(&each) {
                return Err(not_added(refusal, informer).into());
            }
        }
        let Some((set, is_new)) = shared.namespaces.renewed_or_new(cluster.clone(), makers) else {
            return Err(exists());
        };
        if is_new {
            Follower::start(pipeline, Arc::clone(&set));
        }
        match names {
            Wanted::Given(given) => {
                set.change(|_| Arc::new(given.into_iter().collect()));
            }
            Wanted::Selected(selection) => {
                let selected = selection.source(Arc::clone(&set));
                if let Err(refusal) = begin_all(pipeline, vec![selected], false) {
                    set.remove();
                    return Err(not_added(refusal, informer).into());
                }
            }
        }
        Ok(())
    }
}
