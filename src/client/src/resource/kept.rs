//! In which form a described resource is kept.

#[cfg(feature = "persist")]
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "persist")]
use informer_actors::runtime::DecodePool;
use informer_actors::runtime::PassTo;
use kube_core::discovery::ApiResource;
use kube_core::{DynamicObject, Resource};
use serde::de::DeserializeOwned;

use super::ResourceSource;
use super::named::Named;
use crate::Error;
#[cfg(feature = "packed")]
use crate::representation::Packed;
#[cfg(feature = "persist")]
use crate::representation::SavedTo;
use crate::representation::{Dynamic, Lazy, Passing, Projection, Representation};
#[cfg(feature = "persist")]
use crate::saved::Saved;

impl<K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static> ResourceSource<K> {
    /// Keeps the text of each object, and decodes it when it is read: see [`Lazy`].
    ///
    /// ```no_run
    /// # fn demo(client: actix_informer::client::Client) {
    /// use actix_informer::controller::{Controller, Outcome, ReconcileError, Request};
    /// use actix_informer::informer::Informer;
    /// use actix_informer::representation::LazyBody;
    /// use k8s_openapi::api::apps::v1::Deployment;
    ///
    /// async fn reconcile(request: Request<LazyBody<Deployment>>) -> Result<Outcome, ReconcileError> {
    ///     let Some(deployment) = request.object() else { return Ok(Outcome::Done) };
    ///     let deployment = deployment.decoded()?; // a `Deployment`, freed when this ends
    ///     println!("{:?}", deployment.spec.as_ref().and_then(|spec| spec.replicas));
    ///     Ok(Outcome::Done)
    /// }
    /// let deployments = client.resource::<Deployment>().lazy();
    /// # let _ = deployments;
    /// # }
    /// ```
    pub fn lazy(self) -> ResourceSource<K, Lazy<K>> {
        self.keep_as(Lazy::new())
    }

    /// Keeps the compressed text of each object: see [`Packed`].
    #[cfg(feature = "packed")]
    pub fn packed(self) -> ResourceSource<K, Packed<K>> {
        self.keep_as(Packed::new())
    }

    /// Keeps a struct of the fields that are read: see [`Projection`].
    ///
    /// ```no_run
    /// # fn demo(client: actix_informer::client::Client) {
    /// # use k8s_openapi::api::core::v1::Pod;
    /// #[derive(serde::Deserialize)]
    /// struct Placed {
    ///     spec: Option<Place>,
    /// }
    /// #[derive(serde::Deserialize)]
    /// #[serde(rename_all = "camelCase")]
    /// struct Place {
    ///     node_name: Option<String>,
    /// }
    /// let pods = client.resource::<Pod>().project::<Placed>(); // an informer of it is an `Informer<Placed>`
    /// # let _ = pods;
    /// # }
    /// ```
    pub fn project<T: DeserializeOwned + Send + Sync + 'static>(self) -> ResourceSource<K, Projection<K, T>> {
        self.keep_as(Projection::new())
    }
}

impl ResourceSource<DynamicObject, Dynamic> {
    /// Keeps the text of each object, and decodes it as a `DynamicObject` when it is read: see [`Lazy`].
    pub fn lazy(self) -> ResourceSource<DynamicObject, Lazy<DynamicObject>> {
        self.keep_as_of(Lazy::of)
    }

    /// Keeps the compressed text of each object: see [`Packed`].
    #[cfg(feature = "packed")]
    pub fn packed(self) -> ResourceSource<DynamicObject, Packed<DynamicObject>> {
        self.keep_as_of(Packed::of)
    }

    fn keep_as_of<R: Representation>(self, of: fn(&ApiResource) -> R) -> ResourceSource<DynamicObject, R> {
        let kept = of(&self.scope.resource);
        let finder = self.named.as_ref().map(Named::finder);
        let source = self.keep_as(kept);
        match finder {
            Some(finder) => source.followed_as(finder, Arc::new(of)),
            None => source,
        }
    }
}

impl<K, R: Representation> ResourceSource<K, R> {
    /// Passes each object on to one receiver, and keeps only its key, uid and version: for programs that store objects
    /// elsewhere, such as a database, a search index or a queue.
    ///
    /// The receiver gets what came in parts of at most a hundred changes, in the order in which the informer gets it, and
    /// before it does. While it does not read, nothing more is requested of the server: two parts wait, and a page of a list
    /// (500 objects, or the page size of the settings). Lists come in pages, and a watch-list is not asked for. Each state comes at least once:
    /// after the restart of an actor some may come again. After a gap the receiver gets what has changed, and what is gone. A
    /// list that is not taken within the time for which the server keeps its version (five minutes by default) begins
    /// again, after a wait, and goes on with what was not passed on. If the receiver is dropped, the status says so, and the
    /// source tries again as after any failure.
    ///
    /// The informer is one as ever: its lister has the keys, and its subscribers are told the changes, without bodies. It
    /// is synced when the receiver has the first list: so read from the start, in a task that waits for nothing of this
    /// informer. It is of one source: several namespaces or clusters, and a resource that is known by its name
    /// alone, are refused.
    ///
    /// ```no_run
    /// use actix_informer::prelude::*;
    /// use actix_informer::source::{PassedPart, passing};
    /// use futures_util::StreamExt;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// # async fn demo(client: Client, runtime: Runtime) -> Result<(), Box<dyn std::error::Error>> {
    /// let (to, mut parts) = passing();
    /// let pods = client.resource::<Pod>().pass_to(to).informer(&runtime)?.start()?;
    /// while let Some(part) = parts.next().await {
    ///     for change in part {
    ///         match change {
    ///             PassedPart::Applied(pod) => println!("{} is {:?}", pod.key(), pod.body().body().map(|pod| &pod.status)),
    ///             PassedPart::Deleted(pod) => println!("{} is gone", pod.key()),
    ///             PassedPart::Listed(version) => println!("all of version {version} has come"),
    ///             other => println!("{other:?}"),
    ///         }
    ///     }
    /// }
    /// # drop(pods); Ok(()) }
    /// ```
    pub fn pass_to(self, to: PassTo<R::Body>) -> ResourceSource<K, Passing<R>> {
        let of = Arc::clone(&self.representation);
        self.keep_as(Passing::new(of, to))
    }

    /// The setting that allows only one source.
    fn of_one_source(&self) -> Option<&'static str> {
        #[cfg(feature = "persist")]
        if self.representation.saves().is_some() {
            return Some("persist");
        }
        self.representation.passes().map(|_| "pass_to")
    }

    /// The file or the receiver would lack the objects of the other sources.
    pub(crate) fn check_alone(&self) -> Result<(), Error> {
        match self.of_one_source() {
            Some(word) => Err(Error::Unsupported(format!("`{word}` of one source among others"))),
            None => Ok(()),
        }
    }

    pub(crate) fn check_one_source(&self) -> Result<(), Error> {
        if let Some(what) = self.representation.refusal() {
            return Err(Error::Unsupported(what.to_owned()));
        }
        let is_one = !self.is_of_several() && self.cluster.is_none() && self.named.is_none();
        match self.of_one_source().filter(|_| !is_one) {
            Some(word) => Err(Error::Unsupported(format!(
                "`{word}` of several namespaces or clusters, or of a resource known by its name alone"
            ))),
            None => Ok(()),
        }
    }
}

#[cfg(feature = "persist")]
impl<K, R: Representation> ResourceSource<K, R> {
    /// All restarts share the file.
    pub(super) fn saved(&self, pool: &DecodePool) -> Result<Option<Arc<Saved<R::Body>>>, Error> {
        let Some(saves) = self.representation.saves() else { return Ok(None) };
        self.check_one_source()?;
        let is_secret = self.scope.resource.group.is_empty()
            && [&*self.scope.resource.kind, &self.scope.resource.plural]
                .iter()
                .any(|word| ["Secret", "secrets"].contains(word));
        if is_secret && !saves.may_be_secrets() {
            return Err(Error::Unsupported(
                "`persist` of Secrets: `persist_secrets` writes their values".to_owned(),
            ));
        }
        let of = (&self.scope, &self.prune, self.wire());
        Ok(Some(Saved::new(saves, of, &self.settings.absent_name, pool.clone())))
    }
}

#[cfg(feature = "persist")]
impl<K: Send + Sync + 'static> ResourceSource<K, Packed<K>> {
    /// Saves the cache to this file while the informer runs, and begins with it after a restart: the objects are
    /// there at once, and the watch goes on at the saved version. What the server has forgotten since is found by a
    /// list, as ever. `InformerStatus::saved` says how old the objects were at the start, and why a file is not used.
    ///
    /// The file is written once a second, off the arbiter, so a crash loses what came since. It is used only with
    /// the same cluster, resource, selectors and cut fields. To know the cluster, the informer gets the namespace
    /// `kube-system`; without that right nothing is saved. One process uses a file at a time. On Unix only its owner can
    /// read it. The objects can be read at once; the informer is synced when it has caught up with the server. It is
    /// listed by pages, also after a 410: a watch-list would not come from the file.
    ///
    /// Secrets are refused: see [`Self::persist_secrets`]. An informer of several namespaces or clusters, and a
    /// resource that is known by its name alone, are refused, too.
    ///
    /// ```no_run
    /// # fn demo(client: actix_informer::client::Client) {
    /// # use k8s_openapi::api::core::v1::Pod;
    /// let pods = client.resource::<Pod>().packed().persist("/var/cache/my-operator/pods.redb");
    /// # let _ = pods;
    /// # }
    /// ```
    pub fn persist(self, file: impl Into<PathBuf>) -> Self {
        self.saved_to(SavedTo { path: file.into(), may_be_secrets: false })
    }

    /// As [`Self::persist`], of Secrets, too: the file then holds their values, and whoever can read the file can read them.
    pub fn persist_secrets(self, file: impl Into<PathBuf>) -> Self {
        self.saved_to(SavedTo { path: file.into(), may_be_secrets: true })
    }

    fn saved_to(self, file: SavedTo) -> Self {
        let packed = self.representation.as_ref().clone().saved_to(file);
        Self { representation: Arc::new(packed), ..self }
    }
}

// Which encoding is requested. The Content-Type of each answer decides how it is read.

#[cfg(feature = "protobuf")]
impl<K, R: Representation> ResourceSource<K, R> {
    /// Asks for protobuf where it can be read: of built-in kinds, and of the metadata of every kind. Its lists are
    /// split by lengths, without a look at each byte, and what is cut is passed by its length.
    ///
    /// Everything else stays as it is. The server decides for each answer: one that has no protobuf of a kind, such as
    /// that of a custom kind, answers JSON. A lazy or packed cache keeps what came, and `text` gives JSON. It is for lazy
    /// and packed caches, for metadata, and for representations that say so
    /// ([`Representation::reads_protobuf`]), which are all of this crate; for any other it changes nothing.
    ///
    /// A field that is newer than Kubernetes 1.36 is passed, also in `text` and in trees: a program that writes whole
    /// objects back to a newer server reads them as JSON. A struct with a `serde_json::value::RawValue` decodes from JSON
    /// alone.
    ///
    /// ```no_run
    /// # fn demo(client: actix_informer::client::Client) {
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = client.resource::<Pod>().lazy().protobuf();
    /// let names = client.metadata::<Pod>().protobuf();
    /// # let _ = (pods, names);
    /// # }
    /// ```
    pub fn protobuf(mut self) -> Self {
        self.protobuf = true;
        self
    }
}
