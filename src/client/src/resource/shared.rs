//! Whether descriptions can share an informer. Each setting is part of the key or of [`OutsideKey`]: none is ignored.

use std::any::TypeId;
use std::collections::BTreeSet;

use informer_core::meta::SourceId;
use informer_core::namespaces::ClusterWide;
use informer_core::reflector::ReflectorConfig;

use super::{ResourceSource, SelectedBy};
use crate::error::Error;
use crate::informer_key::{InformerKey, KeyParts, ServerIdentity};
use crate::representation::Representation;

/// What a description says besides its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideKey {
    name: Option<String>,
    settings: ReflectorConfig,
    frame_limit: usize,
    cluster_wide: Option<ClusterWide>,
}

impl OutsideKey {
    /// In which setting a request differs from the one that made the informer. A request without a name takes
    /// any.
    pub fn difference(&self, request: &Self) -> Option<&'static str> {
        if request.name.is_some() && request.name != self.name {
            return Some("name");
        }
        if request.frame_limit != self.frame_limit {
            return Some("size limit");
        }
        if request.cluster_wide != self.cluster_wide {
            return Some("setting for one cluster-wide watch");
        }
        (request.settings != self.settings).then_some("list settings")
    }
}

impl<K, R: Representation> ResourceSource<K, R> {
    /// The objects of all namespaces, whatever was named before.
    pub fn all_namespaces(mut self) -> Self {
        self.restrict(None, None, None);
        self
    }

    /// What it follows as a value, equal for descriptions that can share one informer. List settings, the
    /// limit of an object's size and the name are not part of it.
    ///
    /// # Errors
    /// [`Error::Unnamed`] when it is not known what the representation keeps: [`Self::keep_as_named`] names
    /// it. [`Error::Unsupported`] when an informer selects the namespaces: closures cannot be compared.
    pub fn key(&self) -> Result<InformerKey, Error> {
        if matches!(self.selected_by, Some(SelectedBy::Informer(_))) {
            let shared = "a shared informer of namespaces that another informer selects: start it by itself";
            return Err(Error::Unsupported(shared.to_owned()));
        }
        let kept_as = self.kept_as.clone().or_else(|| self.representation.identity());
        let kept_as = kept_as.ok_or_else(|| Error::Unnamed { resource: self.resource_name() })?;
        Ok(self.key_of(kept_as))
    }

    pub(super) fn key_of(&self, kept_as: String) -> InformerKey {
        let single = self.scope.namespace.clone().map(|namespace| BTreeSet::from([namespace]));
        let several = self.namespaces.as_ref().map(|several| several.iter().cloned().collect());
        let selected = self.selected_by.as_ref().map(|by| BTreeSet::from([by.to_string()]));
        InformerKey::new(KeyParts {
            server: ServerIdentity::of(&self.backend),
            cluster: self.cluster.clone(),
            resource: self.scope.name(),
            version: self.scope.resource.version.clone(),
            kind: self.scope.resource.kind.clone(),
            namespaces: single.or(several).or(selected),
            selectors: self.scope.selectors(),
            source: Some(&self.source).filter(|source| **source != SourceId::default()).cloned(),
            protobuf: self.protobuf,
            content: self.representation.requested_content(),
            representation: TypeId::of::<R>(),
            kept_as,
            prune: self.prune.paths(),
        })
    }

    #[doc(hidden)]
    pub fn outside_key(&self) -> OutsideKey {
        let (name, settings) = (self.name.clone(), self.settings.clone());
        OutsideKey { name, settings, frame_limit: self.frame_limit, cluster_wide: self.cluster_wide }
    }

    /// The same with a source that is named after its namespace, if it has one namespace and no name was
    /// given. Then both ways to request a single namespace are equal.
    #[doc(hidden)]
    pub fn with_named_sources(mut self) -> Self {
        if self.source == SourceId::default()
            && let Some(namespace) = self.scope.namespace.take()
        {
            self.namespaces = Some(vec![namespace]);
        }
        self
    }

    /// Only objects of these namespaces, unless it is known that its objects are in none.
    #[doc(hidden)]
    pub fn in_namespaces_if_it_has_some(mut self, namespaces: &[String]) -> Self {
        if !self.scope.is_cluster_scoped {
            self.restrict(None, Some(namespaces.to_vec()), None);
        }
        self
    }
}
