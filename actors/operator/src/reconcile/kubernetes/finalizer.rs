//! Runs a reconcile under a finalizer: its work is undone before the object goes.
//!
//! 1. The server has the finalizer before `reconcile` is called with [`Finalize::Apply`].
//! 2. The finalizer is removed only after [`Finalize::CleanUp`] has succeeded.
//! 3. An informer that cuts the list costs requests, but never loses a finalizer.
//! 4. For an object that the informer no longer has, the server is asked first.

use std::collections::BTreeMap;
use std::fmt;

use crate::controller::Selected;
use crate::reconcile::machine::finalizer::{Observed, Step};
use informer_core::meta::Object;
use kube_core::Resource;
use serde::de::DeserializeOwned;

use self::list::{List, observe};
use super::subject::Subject;
use informer_client::{Client, Error};

mod list;

/// What is to be done for an object that has the finalizer.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "who matches both has handled the whole life of an object")]
pub enum Finalize<K> {
    /// Make everything that the object wants. The server has the finalizer.
    Apply(Object<K>),
    /// Undo what was made for the object, which is being deleted, or has left the selectors of its informer
    /// and lives on. Called again until it succeeds, so it must succeed when everything is undone already. No
    /// garbage collector deletes the children of an object that lives on.
    CleanUp(Object<K>),
}

/// Why the list of finalizers was not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FinalizerError {
    /// The finalizer was not added, so nothing was done for the object.
    #[error("{object}: finalizer {name:?} was not added: {source}")]
    Add {
        /// Kind and key of the object.
        object: String,
        /// The finalizer.
        name: String,
        /// Why.
        source: Box<Error>,
    },
    /// The clean-up has succeeded, but the finalizer was not removed.
    #[error("{object}: finalizer {name:?} was not removed: {source}")]
    Remove {
        /// Kind and key of the object.
        object: String,
        /// The finalizer.
        name: String,
        /// Why.
        source: Box<Error>,
    },
    /// The finalizers of the object are not known: it is being deleted and the cache shows none, or it is not
    /// in the cache any more, and the server did not return them. Nothing was done for the object.
    #[error("{object}: its finalizers were not read: {source}")]
    Read {
        /// Kind and key of the object.
        object: String,
        /// Why.
        source: Box<Error>,
    },
    /// The object has no uid or no version: it does not come from a server, or the informer cuts these
    /// fields.
    #[error("{object} has no {field}: finalizers need it")]
    Unknown {
        /// Kind and key of the object.
        object: String,
        /// What is missing.
        field: &'static str,
    },
}

/// Reconciles an object whose work must be undone before the object may go.
///
/// Adds the finalizer and then calls `reconcile` with [`Finalize::Apply`] and the newest state. For an object
/// that is being deleted, calls it with [`Finalize::CleanUp`], and removes the finalizer if that succeeds.
/// Returns `T::default()` where nothing is to be done: for a subject without an object, and for an object
/// that is being deleted without the finalizer.
///
/// An object that leaves the selectors of the controller's informer, by a change of its labels or fields, is
/// cleaned up, too: the operator does not follow it any more, so nothing may hold its deletion. The server
/// tells the informer of this as of a deletion ([`Request::left`](crate::controller::Request::left)), so the
/// object is read from the server. If it is gone, has no such finalizer, or is selected again, nothing is
/// called and nothing is sent; an object that is selected again gets its next reconcile from its own event.
/// Otherwise `reconcile` is called with [`Finalize::CleanUp`] and the state that the server has, in which
/// [`deletion_timestamp`](kube_core::ObjectMeta::deletion_timestamp) is not set. Then the finalizer is
/// removed from the object, which lives on. If the object comes back later, it is applied as a new one. Three
/// cases are left to the program:
/// - If the program has stopped following the namespace or the cluster of the object, nothing is called and
///   the finalizer stays. Otherwise a changed line of a configuration would remove what was made in a whole
///   namespace.
/// - An object that leaves while no controller of the operator runs is not seen. If you remove labels during
///   such a time, remove the finalizer, too.
/// - If two operators share objects by labels under one finalizer, an object that moves from one to the other
///   is cleaned up by the first and applied by the second, in any order; it ends applied. Give each operator
///   its own finalizer to keep them apart.
///
/// Costs one request in the life of an object before its first reconcile, and one at its end; with selectors
/// that an object can leave, one more. If `reconcile` or this process ends early, the next call continues
/// from what the server has: both halves may be called more than once.
///
/// The field manager is the name of the controller, or without a controller the name of the finalizer.
///
/// An informer that cuts `metadata.finalizers` makes this slower, not wrong: each call costs two more
/// requests, since the list is read from the server. The informer must keep `metadata.deletionTimestamp`,
/// which shows a deletion.
///
/// ```
/// use actix_informer::object::from_body;
/// use actix_informer::prelude::*;
/// use actix_informer::reconcile::{Finalize, FinalizerError, finalizer};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// const CLEANUP: &str = "example.org/cleanup";
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = actix_informer::testing::ApiServer::builder().start().await?;
/// # let client = Client::new(Config::new(server.url())?)?;
/// # let maps = client.api::<ConfigMap>().namespaced("default");
/// # let metadata = kube_core::ObjectMeta { name: Some("prices".into()), ..Default::default() };
/// # let made = maps.create(&PostParams::default(), &ConfigMap { metadata, ..Default::default() }).await?;
/// let map = from_body(made)?; // in a controller: the request
/// let reconcile = async |event: Finalize<ConfigMap>| match event {
///     Finalize::Apply(map) => Ok::<_, FinalizerError>(format!("apply {}", map.key())),
///     Finalize::CleanUp(map) => Ok(format!("clean up {}", map.key())),
/// };
/// assert_eq!(finalizer(&client, &map, CLEANUP, reconcile).await?, "apply default/prices");
/// maps.delete("prices", &DeleteParams::default()).await?;
///
/// let ending = from_body(maps.get("prices").await?)?; // the finalizer holds it
/// assert_eq!(finalizer(&client, &ending, CLEANUP, reconcile).await?, "clean up default/prices");
/// assert!(maps.get_opt("prices").await?.is_none());
/// # Ok(()) }
/// ```
///
/// # Errors
/// Returns the errors of `reconcile` unchanged, and a [`FinalizerError`] if the list was not changed.
pub async fn finalizer<K, S, F, T, E>(
    client: &Client,
    subject: &S,
    name: &str,
    reconcile: impl FnOnce(Finalize<K>) -> F,
) -> Result<T, E>
where
    K: Resource<DynamicType = (), Scope: 'static> + DeserializeOwned + 'static,
    S: Subject<K>,
    F: Future<Output = Result<T, E>>,
    T: Default,
    E: From<FinalizerError>,
{
    let left = subject.left().filter(|left| selected(subject, left.body()) != Selected::NotFollowed);
    let Some(object) = subject.object().or(left) else { return Ok(T::default()) };
    let is_cached = subject.object().is_some();
    let has_left = |body: &K| !is_cached && selected(subject, body) == Selected::LeftOut;
    let api = client.api::<K>().in_namespace(object.key().namespace());
    let list = List { api, name, log: subject, has_left: &has_left };
    let mut step = if is_cached { observed(object)?.step(name) } else { Step::Read };
    let newest = if step == Step::Read { list.read(object).await? } else { None };
    let object = newest.as_ref().unwrap_or(object);
    if step == Step::Read {
        // An object that is gone or replaced is left alone. So is one that is selected again: its event leads
        // to the next reconcile.
        let newest = newest.as_ref().map(Object::body).filter(|newest| is_cached || has_left(newest));
        step = newest.and_then(|newest| list.observe(newest)).map_or(Step::Leave, |seen| seen.step(name));
    }
    match step {
        Step::Leave | Step::Read => Ok(T::default()),
        Step::Apply => reconcile(Finalize::Apply(object.clone())).await,
        Step::Add => match list.add(object).await? {
            Some(held) => reconcile(Finalize::Apply(held)).await,
            None => Ok(T::default()),
        },
        Step::CleanUp => {
            let done = reconcile(Finalize::CleanUp(object.clone())).await?;
            list.remove(object).await?;
            Ok(done)
        }
    }
}

fn observed<K: Resource<DynamicType = ()>>(object: &Object<K>) -> Result<Observed<'_>, FinalizerError> {
    let field = if object.meta().uid.is_none() { "uid" } else { "resourceVersion" };
    let seen = observe(object.body()).map(|seen| Observed { may_be_cut: true, ..seen });
    seen.ok_or_else(|| FinalizerError::Unknown { object: called(object), field })
}

fn selected<K: Resource>(subject: &impl Subject<K>, body: &K) -> Selected {
    subject.selected(body.meta().labels.as_ref().unwrap_or(&BTreeMap::new()))
}

fn called<K: Resource<DynamicType = ()>>(object: &Object<K>) -> String {
    format!("{} {}", K::kind(&()), object.key())
}

impl<K> fmt::Display for Finalize<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apply(object) => write!(f, "apply {}", object.key()),
            Self::CleanUp(object) => write!(f, "clean up {}", object.key()),
        }
    }
}
