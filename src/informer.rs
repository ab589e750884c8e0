//! Informers of Kubernetes resources: from a description to a builder.
//!
//! Answers "how does a `ResourceSource` become an informer?". The handle itself is `informer_actors`'s: it is the
//! same for sources that are not Kubernetes. Invariants:
//! 1. There is one way to an informer: a description, the builder that it gives, its `start`.
//! 2. An informer over several namespaces is one store and several sources, each named after its namespace; if one
//!    of them fails, the others are still followed.
//!
//! Read next: `client/resource.rs`, what is described; the example `embed_operator`.

pub use informer_actors::informer::{
    AddIndexError, AddSourceError, AnyInformer, Body, ClusterWide, DrainReport, HandOverError, Informer,
    InformerBuilder, InformerSync, Lister, NamespaceSources, NamespacesError, NotAllReached, NotAllSynced,
    NotMet, NotReached, NotSynced, OfCluster, OfNamespace, Overlay, OverlayError, RemoveSourceError,
    ReviveError, Selection, ShutdownReport, Snapshots, SourceFailure, StartError, Synced, UntilError,
    Versions, WaitError, WaitForError, WeakInformer,
};
pub use informer_core::delta_fifo::{Bounds, QueueOrder};
pub use informer_core::index::{AnyIndex, Index, IndexError, IndexExists, IndexFn, UnknownIndex};
pub use informer_core::overlay::{Laid, Overlaid, OverlayCounters, OverlayFull, OverlayLimits, Shown};
pub use informer_core::restart::RestartPolicy;
pub use informer_core::snapshot::Lookup;
pub use informer_core::until::{LastSeen, Verdict};

#[cfg(feature = "client")]
pub use crate::select::{LabelValue, by_label, by_owner};

#[cfg(feature = "client")]
mod kubernetes {
    use informer_actors::informer::{Informer, InformerBuilder};
    use informer_actors::list_watch::SourceSpec;
    use informer_actors::runtime::Runtime;

    use crate::client::{Error, ResourceSource};
    use crate::representation::Representation;

    impl<K, R: Representation> ResourceSource<K, R> {
        /// The builder of an informer of this description on `runtime`. Indices and settings can be added before its
        /// start.
        ///
        /// ```no_run
        /// # fn demo(client: actix_informer::client::Client) -> Result<(), actix_informer::Error> {
        /// use actix_informer::prelude::*;
        /// use k8s_openapi::api::core::v1::Pod;
        ///
        /// let runtime = Runtime::threads().start()?;
        /// let pods = client
        ///     .resource::<Pod>()
        ///     .namespaces(["shop", "web"])
        ///     .labels("app in (cart, pay)")
        ///     .informer(&runtime)?
        ///     .index("node", |pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone()))
        ///     .start()?;
        /// # drop(pods); Ok(()) }
        /// ```
        ///
        /// # Errors
        /// [`Error::Name`] when no path can be made of the resource or a namespace, such as an empty namespace;
        /// [`Error::Selector`] when a selector cannot be parsed. Nothing has been sent then.
        pub fn informer(self, runtime: &Runtime) -> Result<InformerBuilder<R::Body>, Error> {
            let builder = Informer::builder(runtime, self.informer_name());
            self.join(builder, runtime)
        }

        /// This description as one source of an informer: to be joined with others by
        /// [`InformerBuilder::source_with`], or to a running informer by [`Informer::add_source`]. One that certainly
        /// has objects in common with another source of the informer is refused there: the same namespace twice, or all
        /// namespaces and one of them.
        ///
        /// # Errors
        /// As [`Self::informer`]; and [`Error::Unsupported`] when it describes several namespaces, which are several
        /// sources.
        pub fn source(self, runtime: &Runtime) -> Result<SourceSpec<R::Body>, Error> {
            self.spec(runtime.decode_pool())
        }
    }
}
