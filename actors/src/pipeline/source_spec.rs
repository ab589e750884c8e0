//! The declaration of one source of an informer: a value.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use informer_core::indexer::Scope;
use informer_core::meta::{ClusterName, ObjectKey, SourceId};
use informer_core::reflector::ReflectorConfig;

use crate::list_watch::Connect;
use crate::pipeline::namespace_filter::NamespaceFilter;
use crate::runtime::PassesOn;

/// One source of an informer.
#[non_exhaustive]
pub struct SourceSpec<S> {
    /// Its name.
    pub id: SourceId,
    /// Makes it, at the start and at each restart.
    pub connect: Connect<S>,
    /// How it is listed and watched.
    pub config: ReflectorConfig,
    /// The cluster whose objects it brings: their keys name it. `None` in an informer of one cluster.
    pub cluster: Option<ClusterName>,
    /// The objects that it covers, if that is known.
    pub coverage: Option<Coverage>,
    /// Set if the informer exchanges the source by itself.
    pub(crate) member: Option<Member>,
    /// `None` keeps everything.
    pub(crate) filter: Option<Arc<NamespaceFilter>>,
    /// Set if what it brings is passed on, not kept.
    pub(crate) pass: Option<Arc<dyn PassesOn<S>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) set: usize,
    /// `None` for the cluster-wide source.
    pub(crate) namespace: Option<Arc<str>>,
}

/// Which objects of its cluster a source covers: those of a namespace, or all, narrowed by selectors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Coverage {
    /// The namespace; `None` for all of them.
    pub namespace: Option<Arc<str>>,
    /// The selectors as a text in any form: equal selectors must give equal texts; empty for none.
    pub selectors: Arc<str>,
    /// As far as key and labels say it.
    pub(crate) selects: Selects,
    pub(crate) reads: SelectorInput,
}

/// What of an object a selector reads, at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum SelectorInput {
    /// Its name and its namespace, which never change: no object leaves the selector.
    Key,
    /// Its labels, too.
    Labels,
    /// Other fields, too.
    #[default]
    Fields,
}

/// `None` if it is not known.
#[derive(Clone, Default)]
pub(crate) struct Selects(Option<Arc<SelectsObject>>);

type SelectsObject = dyn Fn(&ObjectKey, &BTreeMap<String, String>) -> bool + Send + Sync;

impl Selects {
    const fn is_known(&self) -> bool {
        self.0.is_some()
    }

    /// False if the object is surely left out.
    pub(crate) fn may_pass(&self, key: &ObjectKey, labels: &BTreeMap<String, String>) -> bool {
        self.0.as_ref().is_none_or(|selects| selects(key, labels))
    }
}

/// Functions cannot be compared: the text of the selectors stands for them.
impl PartialEq for Selects {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Selects {}

impl fmt::Debug for Selects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "known" } else { "not known" })
    }
}

impl Coverage {
    /// All objects.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Only those of this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<Arc<str>>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only those that these selectors let through.
    #[must_use]
    pub fn selectors(mut self, selectors: impl Into<Arc<str>>) -> Self {
        self.selectors = selectors.into();
        self
    }

    /// What the selectors let through, as far as the key and the labels of an object say it. Return false
    /// only for an object that is surely left out: a controller does not wait for the event of such a write.
    #[must_use]
    pub fn selecting(
        mut self,
        selects: impl Fn(&ObjectKey, &BTreeMap<String, String>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.selects = Selects(Some(Arc::new(selects)));
        self
    }

    /// What the selectors read of an object; any field, unless set.
    #[must_use]
    pub const fn reading(mut self, input: SelectorInput) -> Self {
        self.reads = input;
        self
    }

    /// Whether an object can leave the selectors later.
    pub(crate) fn can_be_left(&self) -> bool {
        !self.selectors.is_empty() && self.reads > SelectorInput::Key
    }

    pub(crate) fn surely_selects(&self, key: &ObjectKey, labels: &BTreeMap<String, String>) -> bool {
        let is_told =
            self.selectors.is_empty() || self.selects.is_known() && self.reads < SelectorInput::Fields;
        is_told && self.selects.may_pass(key, labels)
    }

    /// Different selectors may exclude each other (shards do), so only equal ones and none count.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let namespace =
            self.namespace.is_none() || other.namespace.is_none() || self.namespace == other.namespace;
        let selectors =
            self.selectors.is_empty() || other.selectors.is_empty() || self.selectors == other.selectors;
        namespace && selectors
    }
}

impl<S> SourceSpec<S> {
    /// A source of this name, without a cluster. Its coverage is not known, so it is not checked against
    /// other sources.
    pub fn new(id: SourceId, connect: Connect<S>, config: ReflectorConfig) -> Self {
        Self { id, connect, config, cluster: None, coverage: None, member: None, filter: None, pass: None }
    }

    /// The objects that it brings are of this cluster, and their keys say so ([`ObjectKey::in_cluster`]); an
    /// answer with another key is refused as a whole and requested again. All sources of an informer name a
    /// cluster, or none does.
    ///
    /// [`ObjectKey::in_cluster`]: informer_core::meta::ObjectKey::in_cluster
    #[must_use]
    pub fn in_cluster(mut self, cluster: ClusterName) -> Self {
        self.cluster = Some(cluster);
        self
    }

    /// What it brings goes to one receiver; the store keeps it without bodies. For a source that is the only one of its
    /// informer.
    #[doc(hidden)]
    #[must_use]
    pub fn passing_on(mut self, pass: Arc<dyn PassesOn<S>>) -> Self {
        self.pass = Some(pass);
        self
    }

    /// Everything of its cluster, if the coverage is not known.
    pub(crate) fn scope(&self) -> Scope {
        let namespace = self.coverage.as_ref().and_then(|coverage| coverage.namespace.clone());
        let of_member = || self.member.as_ref().and_then(|member| member.namespace.clone());
        Scope { cluster: self.cluster.clone(), namespace: namespace.or_else(of_member) }
    }

    /// What it covers: another source of the informer that surely has objects in common is refused.
    #[must_use]
    pub fn covering(mut self, coverage: Coverage) -> Self {
        self.coverage = Some(coverage);
        self
    }
}

informer_core::debug_as!([S] SourceSpec<S>, self,
    id = self.id,
    cluster = self.cluster,
    coverage = self.coverage
);
