//! Where the children of one kind are looked for, and how those that nobody wants are deleted.
//!
//! Answers "which objects of this kind does the owner control?" from a cache or by a list. Which of them may be deleted is
//! decided by `informer_core::children`. Invariants:
//! 1. A deletion has uid and version of the state that was judged as preconditions; after a conflict the newest state is
//!    judged again, five times at most.
//! 2. An object that is gone, or whose name belongs to another object, is no error.
//!
//! Read next: `informer_core::children`.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use informer_actors::informer::{Body, Lister};
use informer_core::children::Child;
use informer_core::conflict::{ConflictPolicy, Conflicts};
use informer_core::meta::{Object, ObjectKey};

use super::{ChildBody, ChildError, ChildPass};
use crate::client::Error;
use crate::client::api::chance::chance;
use crate::client::api::{Api, DeleteParams, Deleted, ListParams, Preconditions};
use crate::object::key_of;
use crate::overlay::remains;
use crate::reconcile::owner::{controller_of, described};
use crate::reconcile::subject::{record_removed, record_written};
use crate::representation::{Controlled, ControllerOf};

/// Group and kind.
pub(super) type KindName = (Cow<'static, str>, Cow<'static, str>);

pub(super) fn kind_name<K: ChildBody>() -> KindName {
    (K::group(&()), K::kind(&()))
}

/// The name of the index by which [`Children`](super::Children) find the children of an owner; its values are those of
/// [`controller_uid`].
pub const CONTROLLER_UID: &str = "controller-uid";

/// The uid of the object that controls this one: the function of the index [`CONTROLLER_UID`].
///
/// ```no_run
/// use actix_informer::prelude::*;
/// use actix_informer::reconcile::{CONTROLLER_UID, Children, controller_uid};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// # fn demo(client: Client, runtime: Runtime) -> Result<(), actix_informer::Error> {
/// let maps = client.resource::<ConfigMap>().informer(&runtime)?;
/// let maps = maps.index(CONTROLLER_UID, controller_uid).start()?;
/// let children = Children::new(&client, "example").cached(&maps.lister());
/// # drop(children); Ok(()) }
/// ```
pub fn controller_uid<K: Controlled>(child: &Object<K>) -> Option<String> {
    child.body().controller().and_then(|controller| controller.uid).map(|uid| uid.to_string())
}

/// A child that was deleted, as `ConfigMap shop/prices`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// Its kind.
    pub kind: String,
    /// Its key.
    pub key: ObjectKey,
}

impl fmt::Display for Pruned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.key)
    }
}

/// One kind of children, with its type erased.
pub(super) trait ChildKind: Send + Sync {
    fn as_any(&self) -> &dyn Any;

    fn name(&self) -> String;

    /// Deletes what the owner of this pass controls and does not want.
    fn prune<'a>(&'a self, pass: &'a ChildPass<'_>) -> BoxFuture<'a, Result<Vec<Pruned>, ChildError>>;
}

/// Children that an informer follows.
pub(super) struct Cached<K: ChildBody>(pub(super) Lister<K>);

/// Children of which an informer keeps their controllers alone.
pub(super) struct CachedControllers<K: ChildBody>(pub(super) Lister<ControllerOf<K>>);

/// Children that are listed each time.
pub(super) struct Listed<K> {
    labels: String,
    kind: PhantomData<fn() -> K>,
}

impl<K> Listed<K> {
    pub(super) fn new(labels: String) -> Self {
        Self { labels, kind: PhantomData }
    }
}

impl<K: ChildBody> ChildKind for Cached<K> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> String {
        K::kind(&()).into_owned()
    }

    fn prune<'a>(&'a self, pass: &'a ChildPass<'_>) -> BoxFuture<'a, Result<Vec<Pruned>, ChildError>> {
        let found = pass.found_in(&self.0).into_iter();
        let unwanted: Vec<Object<K>> = found.filter(|child| pass.is_unwanted(child.body())).collect();
        async move {
            let mut pruned = Vec::new();
            for child in unwanted {
                pruned.extend(pass.delete(child.body()).await?);
            }
            Ok(pruned)
        }
        .boxed()
    }
}

impl<K: ChildBody> ChildKind for CachedControllers<K> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> String {
        K::kind(&()).into_owned()
    }

    fn prune<'a>(&'a self, pass: &'a ChildPass<'_>) -> BoxFuture<'a, Result<Vec<Pruned>, ChildError>> {
        let is_ours = |child: &Object<ControllerOf<K>>| {
            let uid = child.body().controller().and_then(|controller| controller.uid);
            uid.as_ref() == Some(&pass.owner.uid) && !pass.is_wanted::<K>(child.key())
        };
        let unwanted: Vec<_> = pass.found_in(&self.0).into_iter().filter(is_ours).collect();
        async move {
            let mut pruned = Vec::new();
            for child in unwanted {
                // Whether it is being deleted already, the cache does not know: what the server has is judged.
                let api = pass.children.client.api::<K>().in_namespace(child.key().namespace());
                let failed = |source| ChildError::Delete {
                    child: format!("{} {}", K::kind(&()), child.key()),
                    source: Box::new(source),
                };
                let found = api.get_opt(child.key().name()).await.map_err(failed)?;
                if let Some(found) = found.filter(|found| pass.is_unwanted(found)) {
                    pruned.extend(pass.delete(&found).await?);
                }
            }
            Ok(pruned)
        }
        .boxed()
    }
}

impl<K: ChildBody> ChildKind for Listed<K> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self) -> String {
        K::kind(&()).into_owned()
    }

    fn prune<'a>(&'a self, pass: &'a ChildPass<'_>) -> BoxFuture<'a, Result<Vec<Pruned>, ChildError>> {
        async move {
            let api = pass.children.client.api::<K>().in_namespace(pass.owner.namespace.as_deref());
            let failed = |source| ChildError::List {
                kind: self.name(),
                owner: pass.owner.described.clone(),
                source: Box::new(source),
            };
            let children = api.list_all(&ListParams::default().labels(&self.labels)).await.map_err(failed)?;
            let mut pruned = Vec::new();
            for child in children.items.iter().filter(|child| pass.is_unwanted(*child)) {
                pruned.extend(pass.delete(child).await?);
            }
            Ok(pruned)
        }
        .boxed()
    }
}

impl ChildPass<'_> {
    /// What may be a child of this owner: by the index if there is one, otherwise everything in its namespace.
    fn found_in<B: Body>(&self, cache: &Lister<B>) -> Vec<Object<B>> {
        let indexed = cache.by_index(CONTROLLER_UID, &self.owner.uid.to_string());
        let mut found = indexed.unwrap_or_else(|_| match &self.owner.namespace {
            Some(namespace) => cache.list_namespace(namespace),
            None => cache.list(),
        });
        found.retain(|child| child.key().cluster_name() == self.cluster.as_ref());
        found
    }

    /// Whether this pass has applied it, or tried to. A key here has no cluster: a cache's may.
    fn is_wanted<K: ChildBody>(&self, key: &ObjectKey) -> bool {
        let key = match key.namespace() {
            Some(namespace) => ObjectKey::namespaced(namespace, key.name()),
            None => ObjectKey::cluster(key.name()),
        };
        self.wanted.contains(&(kind_name::<K>(), key))
    }

    fn is_unwanted<K: ChildBody>(&self, child: &K) -> bool {
        // An object without a name comes from no server.
        let Ok(key) = key_of(child) else { return false };
        let state = Child {
            controller: controller_of(child).map(|reference| &*reference.uid),
            is_ending: child.meta().deletion_timestamp.is_some(),
            is_wanted: self.is_wanted::<K>(&key),
        };
        state.is_unwanted_by(&self.owner.uid)
    }

    /// Deletes a child in the state in which it was found unwanted; `None` if it is gone or wanted by then.
    async fn delete<K: ChildBody>(&self, child: &K) -> Result<Option<Pruned>, ChildError> {
        let failed = |source| ChildError::Delete { child: described(child), source: Box::new(source) };
        let api = self.children.client.api::<K>().in_namespace(child.meta().namespace.as_deref());
        let mut conflicts = Conflicts::new(ConflictPolicy::default());
        let mut newest: Option<K> = None;
        loop {
            let state = newest.as_ref().unwrap_or(child);
            let error = match delete_exactly(&api, state).await {
                Ok(answer) => {
                    match answer {
                        Deleted::Object(rest) if remains(&rest) => record_written(self.log, &rest),
                        _ => record_removed(self.log, state),
                    }
                    let kind = K::kind(&()).into_owned();
                    return Ok(key_of(state).ok().map(|key| Pruned { kind, key }));
                }
                Err(Error::Refused(refused)) if refused.is_object_not_found() => return Ok(None),
                Err(error) if error.is_conflict() => error,
                Err(error) => return Err(failed(error)),
            };
            let name = state.meta().name.as_deref().unwrap_or_default();
            let found = api.get_opt(name).await.map_err(failed)?;
            let Some(found) = found.filter(|found| self.is_unwanted(found)) else { return Ok(None) };
            let Some(wait) = conflicts.handle_conflict(chance(api.client())) else {
                return Err(failed(error));
            };
            api.client().sleep(wait).await.map_err(failed)?;
            newest = Some(found);
        }
    }
}

/// Deletes this object if it is still in this state.
async fn delete_exactly<K: ChildBody>(api: &Api<K>, state: &K) -> Result<Deleted<K>, Error> {
    let meta = state.meta();
    let params = DeleteParams::background().preconditions(Preconditions {
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
    });
    api.delete(meta.name.as_deref().unwrap_or_default(), &params).await
}
