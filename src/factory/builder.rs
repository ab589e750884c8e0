//! The settings of a factory. Those of a kind come after those of all kinds; what a description says comes last.

use std::any::TypeId;
use std::sync::Arc;
use std::time::Duration;

use informer_actors::informer::{Body, InformerBuilder};
use informer_actors::runtime::Runtime;
use informer_core::listener::{Policy, WhenFull};
use informer_core::reflector::ReflectorConfig;
use kube_core::Resource;

use super::InformerFactory;
use super::defaults::Defaults;
use super::shared::Shared;
use crate::client::{Client, ResourceSource};
use crate::representation::Prune;

/// The settings of a factory that has not been built.
#[must_use = "a builder does nothing until `build`"]
pub struct InformerFactoryBuilder {
    runtime: Runtime,
    client: Client,
    defaults: Defaults,
}

impl InformerFactoryBuilder {
    pub(super) fn new(runtime: &Runtime, client: &Client) -> Self {
        Self { runtime: runtime.clone(), client: client.clone(), defaults: Defaults::default() }
    }

    /// Only objects of these namespaces, of all kinds that have namespaces. Default: all.
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.defaults.namespaces = Some(namespaces.into_iter().map(Into::into).collect());
        self
    }

    /// Cuts these fields from every object of every kind instead of `metadata.managedFields`.
    pub fn prune(mut self, prune: Prune) -> Self {
        self.defaults.prune = Some(prune);
        self
    }

    /// Changes how every kind is listed and watched, as [`ResourceSource::settings`] does for one.
    pub fn settings(mut self, change: impl Fn(&mut ReflectorConfig) + Send + Sync + 'static) -> Self {
        self.defaults.settings = Some(Arc::new(change));
        self
    }

    /// Every subscription receives every object again once in each such period, unless it has a period of its
    /// own, or its kind has one by [`Self::configure`]. Default: never.
    pub fn resync_every(mut self, period: Duration) -> Self {
        self.defaults.resync = Some(period);
        self
    }

    /// Every subscription receives every event, one by one, as
    /// [`SubscribeOptions::every`](crate::subscription::SubscribeOptions::every) says, unless it chooses
    /// otherwise, or its kind does by [`Self::configure`]:
    ///
    /// ```no_run
    /// # fn demo(runtime: actix_informer::runtime::Runtime, client: actix_informer::client::Client) {
    /// use actix_informer::prelude::*;
    /// use actix_informer::subscription::WhenFull;
    /// use k8s_openapi::api::core::v1::{Event, Pod};
    ///
    /// let factory = InformerFactory::builder(&runtime, &client)
    ///     .deliver_every(1 << 20, WhenFull::Restate) // of all kinds
    ///     .configure::<Pod>(|pods| pods.deliver_newest()) // but pods
    ///     .configure::<Event>(|events| events.deliver_every(8 << 20, WhenFull::Disconnect))
    ///     .build();
    /// # }
    /// ```
    ///
    /// Default: a subscriber that lags receives the newest state of each object.
    pub fn deliver_every(mut self, bytes: usize, when_full: WhenFull) -> Self {
        self.defaults.policy = Policy::Every { bytes, when_full };
        self
    }

    /// Describes this kind further, in [`InformerFactory::resource`] and [`InformerFactory::informer`]: its
    /// namespaces, selectors, fields to cut, list settings, or a named representation with the same body. The
    /// last one given for a kind counts.
    ///
    /// ```no_run
    /// # fn demo(runtime: actix_informer::runtime::Runtime, client: actix_informer::client::Client) {
    /// use actix_informer::prelude::*;
    /// use actix_informer::representation::Typed;
    /// use k8s_openapi::api::core::v1::{Node, Pod};
    ///
    /// let factory = InformerFactory::builder(&runtime, &client)
    ///     .describe::<Pod>(|pods| {
    ///         let without_status = Typed::new().transform(|pod: Pod| Ok(Pod { status: None, ..pod }));
    ///         pods.labels("app=shop").keep_as_named("without-status", without_status)
    ///     })
    ///     .describe::<Node>(|nodes| nodes.settings(|settings| settings.page_size = Some(100)))
    ///     .build();
    /// # }
    /// ```
    pub fn describe<K>(
        mut self,
        describe: impl Fn(ResourceSource<K>) -> ResourceSource<K> + Send + Sync + 'static,
    ) -> Self
    where
        K: Resource<DynamicType = ()> + 'static,
    {
        let describe: Arc<dyn Fn(ResourceSource<K>) -> ResourceSource<K> + Send + Sync> = Arc::new(describe);
        self.defaults.descriptions.insert(TypeId::of::<K>(), Box::new(describe));
        self
    }

    /// Configures each informer whose objects are kept as `S` before it is declared: its indices, queue,
    /// restarts, and the resync and delivery of its subscriptions. The last one given for a type counts.
    ///
    /// ```no_run
    /// # fn demo(runtime: actix_informer::runtime::Runtime, client: actix_informer::client::Client) {
    /// use actix_informer::prelude::*;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let factory = InformerFactory::builder(&runtime, &client)
    ///     .configure::<Pod>(|pods| {
    ///         pods.index("node", |pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()))
    ///     })
    ///     .build();
    /// # }
    /// ```
    pub fn configure<S: Body>(
        mut self,
        configure: impl Fn(InformerBuilder<S>) -> InformerBuilder<S> + Send + Sync + 'static,
    ) -> Self {
        let configure: Arc<dyn Fn(InformerBuilder<S>) -> InformerBuilder<S> + Send + Sync> =
            Arc::new(configure);
        self.defaults.configurations.insert(TypeId::of::<S>(), Box::new(configure));
        self
    }

    /// The factory. It sends no request.
    pub fn build(self) -> InformerFactory {
        let Self { runtime, client, defaults } = self;
        InformerFactory { shared: Arc::new(Shared::new(runtime)), defaults: Arc::new(defaults), client }
    }
}

informer_core::debug_as!(InformerFactoryBuilder, self, client = self.client);
