//! Applies the settings of a factory to a description and to a builder. Namespaces are set only for kinds that have them, as far
//! as that is known without a request.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use informer_actors::informer::{Body, InformerBuilder};
use informer_core::listener::Policy;
use informer_core::reflector::ReflectorConfig;
use kube_core::{ClusterResourceScope, DynamicObject, Resource};

use crate::client::ResourceSource;
use crate::representation::{Prune, Representation};

type Change<T> = Arc<dyn Fn(T) -> T + Send + Sync>;
type ChangeSettings = Arc<dyn Fn(&mut ReflectorConfig) + Send + Sync>;

#[derive(Default)]
pub(super) struct Defaults {
    pub(super) namespaces: Option<Vec<String>>,
    pub(super) prune: Option<Prune>,
    pub(super) settings: Option<ChangeSettings>,
    pub(super) resync: Option<Duration>,
    pub(super) policy: Policy,
    /// By the type of the kind.
    pub(super) descriptions: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
    /// By the type of the body.
    pub(super) configurations: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
}

impl Defaults {
    pub(super) fn describe<K, R>(&self, description: ResourceSource<K, R>) -> ResourceSource<K, R>
    where
        K: Resource + 'static,
        R: Representation,
    {
        let is_cluster_scoped = TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>();
        let description = match &self.namespaces {
            Some(namespaces) if !is_cluster_scoped => description.in_namespaces_if_it_has_some(namespaces),
            _ => description,
        };
        let description = match &self.prune {
            Some(prune) => description.prune(prune.clone()),
            None => description,
        };
        match &self.settings {
            Some(change) => description.settings(|settings| change(settings)),
            None => description,
        }
    }

    /// With what discovery says.
    pub(super) fn describe_named<R: Representation>(
        &self,
        description: ResourceSource<DynamicObject, R>,
        is_namespaced: Option<bool>,
    ) -> ResourceSource<DynamicObject, R> {
        let description = self.describe::<DynamicObject, _>(description);
        if is_namespaced == Some(false) { description.all_namespaces() } else { description }
    }

    pub(super) fn describe_typed<K>(&self, description: ResourceSource<K>) -> ResourceSource<K>
    where
        K: Resource<DynamicType = ()> + serde::de::DeserializeOwned + Send + Sync + 'static,
    {
        let description = self.describe::<K, _>(description);
        let own = self.descriptions.get(&TypeId::of::<K>());
        match own.and_then(|own| own.downcast_ref::<Change<ResourceSource<K>>>()) {
            Some(describe) => describe(description),
            None => description,
        }
    }

    pub(super) fn configured<S: Body>(&self, builder: InformerBuilder<S>) -> InformerBuilder<S> {
        let builder = match self.resync {
            Some(period) => builder.resync_every(period),
            None => builder,
        };
        let builder = match self.policy {
            Policy::Every { bytes, when_full } => builder.deliver_every(bytes, when_full),
            _ => builder,
        };
        let own = self.configurations.get(&TypeId::of::<S>());
        match own.and_then(|own| own.downcast_ref::<Change<InformerBuilder<S>>>()) {
            Some(configure) => configure(builder),
            None => builder,
        }
    }
}
