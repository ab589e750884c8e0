//! Informers: the handle, its builder, and what they tell. Also for sources that are not Kubernetes.

pub use informer_actors::informer::{
    AddIndexError, AddSourceError, AnyInformer, Body, ClusterWide, DrainReport, HandOverError, Informer,
    InformerBuilder, InformerSync, Lister, NamespaceSources, NamespacesError, NotAllReached, NotAllSynced,
    NotMet, NotReached, NotSynced, OfCluster, OfNamespace, RemoveSourceError, ReviveError, Selection,
    ShutdownReport, Snapshots, SourceFailure, StartError, Synced, UntilError, Versions, WaitError,
    WaitForError, WeakInformer,
};
pub use informer_core::delta_fifo::{Bounds, QueueOrder};
pub use informer_core::index::{AnyIndex, Index, IndexError, IndexExists, IndexFn, UnknownIndex};
pub use informer_core::restart::RestartPolicy;
pub use informer_core::snapshot::Lookup;
pub use informer_core::until::{LastSeen, Verdict};

#[cfg(feature = "client")]
pub use self::kubernetes::AddTo;
#[cfg(feature = "client")]
pub use informer_client::select::{by_label, by_owner};

#[cfg(feature = "client")]
mod kubernetes {
    use informer_actors::informer::{Body, Informer};
    use informer_client::inner::Sources;

    use crate::client::ResourceSource;
    use crate::representation::Representation;

    /// Adds what a description describes to an informer that runs. In the prelude.
    pub trait AddTo<S: Body> {
        /// Adds the sources of this description to an informer that runs: one ([`Informer::add_source`]), or
        /// one for each of its namespaces ([`Informer::add_namespaces`]). To add a cluster of which only some
        /// namespaces are followed:
        ///
        /// ```no_run
        /// # use actix_informer::prelude::*;
        /// # use k8s_openapi::api::core::v1::Pod;
        /// # async fn demo(af: Client, pods: Informer<Pod>) -> Result<(), actix_informer::Error> {
        /// let shops = af.resource::<Pod>().namespaces(["shop", "web"]);
        /// shops.in_cluster("af", &af)?.add_to(&pods)?; // two sources: af|shop and af|web
        /// pods.namespaces_synced().await?;
        /// pods.remove_cluster(&"af".parse()?).await?;
        /// # Ok(()) }
        /// ```
        ///
        /// # Errors
        /// As [`ResourceSource::informer`], and as [`Informer::add_source`] and [`Informer::add_namespaces`].
        /// Nothing changes then.
        fn add_to(self, informer: &Informer<S>) -> Result<(), crate::Error>;
    }

    impl<K, R: Representation> AddTo<R::Body> for ResourceSource<K, R> {
        fn add_to(self, informer: &Informer<R::Body>) -> Result<(), crate::Error> {
            match self.sources(informer.runtime())? {
                Sources::One(source) => informer.add_source(*source)?,
                Sources::Namespaces(sources) => informer.add_namespaces(sources)?,
            }
            Ok(())
        }
    }
}
