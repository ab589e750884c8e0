//! Descriptions of several sources: of namespaces, and of clusters.
//!
//! Answers "which parts of a description say how many sources it is, and how is it narrowed to one of them?". It decides
//! nothing. Read next: `../namespaces.rs`, which uses it.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use informer_actors::list_watch::SourceSpec;
use informer_core::meta::{ClusterName, SourceId};
use informer_core::namespaces::ClusterWide;

use super::{Named, ResourceSource};
use crate::backend::Backend;
use crate::representation::Representation;
use crate::selector;

/// Who selects the namespaces of a description.
#[derive(Clone)]
pub(crate) enum SelectedBy {
    /// This label selector on the Namespaces.
    Labels(String),
    /// An informer of the program: makes a source of this name, whose objects are named after the namespaces.
    Informer(Arc<dyn Fn(SourceId) -> SourceSpec<()> + Send + Sync>),
}

impl<K, R: Representation> ResourceSource<K, R> {
    /// Restricts it to one namespace, to several, or to those that somebody selects; to none of these: all.
    pub(crate) fn restrict(
        &mut self,
        namespace: Option<String>,
        several: Option<Vec<String>>,
        selected_by: Option<SelectedBy>,
    ) {
        (self.scope.namespace, self.namespaces, self.selected_by) = (namespace, several, selected_by);
    }

    /// One cluster-wide source above a number of namespaces, if that is wanted.
    pub(crate) fn cluster_wide_policy(&mut self) -> &mut Option<ClusterWide> {
        &mut self.cluster_wide
    }

    /// Whether it is several sources: one for each namespace.
    pub(crate) fn is_of_several(&self) -> bool {
        self.namespaces.is_some() || self.selected_by.is_some()
    }

    pub(crate) fn several(&self) -> (Option<&Vec<String>>, Option<&SelectedBy>) {
        (self.namespaces.as_ref(), self.selected_by.as_ref())
    }

    pub(crate) fn cluster_name(&self) -> Option<&ClusterName> {
        self.cluster.as_ref()
    }

    /// The same, asked of the server behind this backend.
    pub(crate) fn asked_of(mut self, backend: Arc<Backend>) -> Self {
        self.backend = backend;
        self
    }

    /// The same without the type that its objects are made of.
    pub(crate) fn erased(mut self) -> ResourceSource<(), R> {
        let (representation, named) = (Arc::clone(&self.representation), self.named.take());
        self.made_of(representation, named)
    }

    /// The same for objects of another type, or kept in another way.
    pub(super) fn made_of<J, T>(
        self,
        representation: Arc<T>,
        named: Option<Named<T>>,
    ) -> ResourceSource<J, T> {
        ResourceSource {
            representation,
            named,
            backend: self.backend,
            scope: self.scope,
            namespaces: self.namespaces,
            kept_as: self.kept_as,
            selected_by: self.selected_by,
            cluster_wide: self.cluster_wide,
            prune: self.prune,
            settings: self.settings,
            name: self.name,
            source: self.source,
            cluster: self.cluster,
            frame_limit: self.frame_limit,
            kind: PhantomData,
        }
    }

    pub(crate) fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }
}

impl fmt::Display for SelectedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Labels(text) => {
                write!(f, "({})", selector::normal_labels(text).unwrap_or_else(|_| text.clone()))
            }
            Self::Informer(_) => f.write_str("(of an informer)"),
        }
    }
}
