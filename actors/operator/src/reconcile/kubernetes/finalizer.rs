//! Work that must be undone before its object may go: a finalizer, added first and removed last.
//!
//! Answers "how does nothing stay behind when an object is deleted, wherever this process ends?" What is done next is decided
//! by `reconcile/machine/finalizer.rs`. Invariants:
//! 1. The server has the finalizer before `reconcile` is called with [`Finalize::Apply`].
//! 2. The finalizer is removed only after `reconcile` has succeeded with [`Finalize::CleanUp`].
//! 3. A list that the informer has cut from its cache costs requests, and no finalizer of anybody.
//! 4. Of an object that the informer has no more, the server is asked before anything is done.
//!
//! Read next: `finalizer/list.rs`, how the list is changed; `reconcile/machine/finalizer.rs`; `children.rs`.

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
    /// Make everything as the object wants it. The server has the finalizer.
    Apply(Object<K>),
    /// Undo what was made for the object, which is being deleted, or has left the selectors of its informer and lives on.
    /// Called again until it succeeds, so it must succeed where everything is undone already. No garbage collector takes the
    /// children of an object that lives on.
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
    /// Everything is cleaned up, and the finalizer was not removed.
    #[error("{object}: finalizer {name:?} was not removed: {source}")]
    Remove {
        /// Kind and key of the object.
        object: String,
        /// The finalizer.
        name: String,
        /// Why.
        source: Box<Error>,
    },
    /// The object is being deleted and the cache shows no finalizers of it, or it is not in the cache any more; and the server
    /// did not say which it has: nothing was done for it.
    #[error("{object}: its finalizers were not read: {source}")]
    Read {
        /// Kind and key of the object.
        object: String,
        /// Why.
        source: Box<Error>,
    },
    /// The object has no uid or no version: it does not come from a server, or the informer cuts these fields.
    #[error("{object} has no {field}: finalizers need it")]
    Unknown {
        /// Kind and key of the object.
        object: String,
        /// What is missing.
        field: &'static str,
    },
}

/// Reconciles an object that has something to be undone before it may go.
///
/// Adds the finalizer and then calls `reconcile` with [`Finalize::Apply`] and the newest state; for an object that is being
/// deleted calls it with [`Finalize::CleanUp`], and removes the finalizer if that has succeeded. A subject without an
/// object, and one that is being deleted without the finalizer, give `T::default()`: there is nothing to do.
///
/// An object that leaves the selectors of the controller's informer, by a change of its labels or fields, is cleaned up, too:
/// the operator does not care for it any more, so nothing may hold its deletion. The server tells the informer of that as of
/// a deletion ([`Request::left`](crate::controller::Request::left)), so it is asked for the object. If the object is gone, or
/// has no such finalizer, or is selected again, nothing is called and nothing is sent: for one that is selected again the next
/// reconcile follows. If not, `reconcile` is called with [`Finalize::CleanUp`] and the state that the server has, in which
/// [`deletion_timestamp`](kube_core::ObjectMeta::deletion_timestamp) is not set, and the finalizer is removed from the object,
/// which lives on. If it comes back later, it is applied as a new one. So three things are the program's:
/// - Where the informer follows the namespace or the cluster of the object no more, since the program has said so, nothing is
///   called and the finalizer stays. Else what was made in a whole namespace would go when a line of a configuration does.
/// - An object that leaves while no controller of the operator runs is not seen. Whoever takes labels away meanwhile removes the
///   finalizer, too.
/// - Where two operators share objects by labels under one finalizer, an object that moves from one to the other is cleaned up by
///   the one and applied by the other, in any order; it ends applied. Finalizers of their own keep them apart.
///
/// It costs one request in the life of an object before its first reconcile, and one at its end; with selectors that an object
/// can leave, one request more. Where `reconcile` or this process ends early, the next call goes on from what the server has:
/// both halves may be called more than once.
///
/// What a server notes as the field manager is the name of the controller, or without one the finalizer's own.
///
/// An informer that cuts `metadata.finalizers` makes it slower and not wrong: each call costs two requests more, since the
/// server is asked for the list. The informer must keep `metadata.deletionTimestamp`, by which a deletion is seen.
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
/// Those of `reconcile`, unchanged, and a [`FinalizerError`] where the list was not changed.
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
        // An object that is gone, or whose name belongs to another one by now, is left alone; also one that is back, whose
        // event leads to the next reconcile.
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

/// What a cache says of them.
fn observed<K: Resource<DynamicType = ()>>(object: &Object<K>) -> Result<Observed<'_>, FinalizerError> {
    let field = if object.meta().uid.is_none() { "uid" } else { "resourceVersion" };
    let seen = observe(object.body()).map(|seen| Observed { may_be_cut: true, ..seen });
    seen.ok_or_else(|| FinalizerError::Unknown { object: called(object), field })
}

/// Whether the object is followed in this state, which the server has.
fn selected<K: Resource>(subject: &impl Subject<K>, body: &K) -> Selected {
    subject.selected(body.meta().labels.as_ref().unwrap_or(&BTreeMap::new()))
}

/// Kind and key, for errors.
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
