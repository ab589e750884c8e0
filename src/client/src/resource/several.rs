//! What makes a description several sources, and how it is narrowed to one of them.

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

#[derive(Clone)]
pub(crate) enum SelectedBy {
    /// A label selector for Namespaces.
    Labels(String),
    /// Makes a source with this id, whose objects are named after the namespaces.
    Informer(Arc<dyn Fn(SourceId) -> SourceSpec<()> + Send + Sync>),
}

impl<K, R: Representation> ResourceSource<K, R> {
    /// Without any: all namespaces.
    pub(crate) fn restrict(
        &mut self,
        namespace: Option<String>,
        several: Option<Vec<String>>,
        selected_by: Option<SelectedBy>,
    ) {
        (self.scope.namespace, self.namespaces, self.selected_by) = (namespace, several, selected_by);
    }

    pub(crate) fn cluster_wide_policy(&mut self) -> &mut Option<ClusterWide> {
        &mut self.cluster_wide
    }

    pub(crate) fn is_of_several(&self) -> bool {
        self.namespaces.is_some() || self.selected_by.is_some()
    }

    pub(crate) fn several(&self) -> (Option<&Vec<String>>, Option<&SelectedBy>) {
        (self.namespaces.as_ref(), self.selected_by.as_ref())
    }

    pub(crate) fn cluster_name(&self) -> Option<&ClusterName> {
        self.cluster.as_ref()
    }

    pub(crate) fn asked_of(mut self, backend: Arc<Backend>) -> Self {
        self.backend = backend;
        self
    }

    pub(crate) fn erased(mut self) -> ResourceSource<(), R> {
        let (representation, named) = (Arc::clone(&self.representation), self.named.take());
        self.made_of(representation, named)
    }

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
            protobuf: self.protobuf,
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
