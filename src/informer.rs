//! Informers of Kubernetes resources: joins a described resource with the machinery.
//!
//! Answers "how does a `ResourceSource` become an informer?". The handle itself is `informer_actors`'s: it is the
//! same for sources that are not Kubernetes. Invariants:
//! 1. An informer over several namespaces is one store and several sources, each named after its namespace; one of
//!    them failing leaves the others followed.
//!
//! Read next: `client/resource.rs`, what is described; the example `embed_operator`.

pub use informer_actors::any_informer::AnyInformer;
pub use informer_actors::informer::{
    AddIndexError, Informer, NotSynced, ShutdownReport, StartError, WaitError,
};
pub use informer_actors::weak_informer::WeakInformer;

#[cfg(feature = "client")]
mod kubernetes {
    use informer_actors::builder::InformerBuilder;
    use informer_actors::informer::Informer;
    use informer_actors::runtime::Runtime;
    use informer_actors::wiring::SourceSpec;
    use informer_core::meta::SourceId;
    use informer_core::reflector::ReflectorConfig;

    use crate::client::{Error, ResourceSource};
    use crate::representation::Representation;

    impl<R: Representation + Clone> ResourceSource<R> {
        /// An informer of this resource on `runtime`, named after it; more can be said before it is started.
        ///
        /// ```no_run
        /// # fn demo(client: actix_informer::client::Client) -> Result<(), Box<dyn std::error::Error>> {
        /// use actix_informer::prelude::*;
        /// use k8s_openapi::api::core::v1::Pod;
        ///
        /// let runtime = Runtime::threads().start()?;
        /// let pods = client
        ///     .resource::<Pod>()
        ///     .namespace("default")
        ///     .informer(&runtime)?
        ///     .index("node", |pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()))
        ///     .start()?;
        /// # drop(pods); Ok(()) }
        /// ```
        ///
        /// # Errors
        /// When the description makes no path.
        pub fn informer(self, runtime: &Runtime) -> Result<InformerBuilder<R::Body>, Error> {
            self.informer_with(runtime, |config| config)
        }

        /// As [`Self::informer`], with other settings of its reflector: page size, watch-list on or off, waits.
        ///
        /// # Errors
        /// When the description makes no path.
        pub fn informer_with(
            self,
            runtime: &Runtime,
            configure: impl FnOnce(ReflectorConfig) -> ReflectorConfig,
        ) -> Result<InformerBuilder<R::Body>, Error> {
            let name = self.name();
            let config = configure(ReflectorConfig::new(&*name));
            let source = self.source(runtime, config)?;
            Ok(Informer::builder(runtime, name).source_with(source))
        }

        /// One informer over these namespaces: one store, one source each.
        ///
        /// # Errors
        /// When a namespace makes no path.
        pub fn informer_of_namespaces<'a>(
            self,
            runtime: &Runtime,
            namespaces: impl IntoIterator<Item = &'a str>,
        ) -> Result<InformerBuilder<R::Body>, Error> {
            let name = self.name();
            let builder = Informer::builder(runtime, &*name);
            namespaces.into_iter().try_fold(builder, |builder, namespace| {
                let part = self.clone().namespace(namespace).source_id(SourceId::new(namespace));
                Ok(builder.source_with(part.source(runtime, ReflectorConfig::new(&*name))?))
            })
        }

        /// This resource as one source of an informer. One that surely has objects in common with another source of
        /// the informer is refused there: the same namespace twice, or all namespaces and one of them.
        ///
        /// # Errors
        /// When the description makes no path.
        pub fn source(
            self,
            runtime: &Runtime,
            config: ReflectorConfig,
        ) -> Result<SourceSpec<R::Body>, Error> {
            self.spec(runtime.decode_pool(), config)
        }
    }
}
