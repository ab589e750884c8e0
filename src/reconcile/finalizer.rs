//! Work that must be undone before its object may go: a finalizer, added first and removed last.
//!
//! Answers "how does nothing stay behind when an object is deleted, wherever this process ends?" What is done next is decided
//! by `informer_core::finalizer`. Invariants:
//! 1. The server has the finalizer before `reconcile` is called with [`Finalize::Apply`].
//! 2. The finalizer is removed only after `reconcile` has succeeded with [`Finalize::CleanUp`].
//! 3. A change of the list is a JSON patch that tests uid, version and what it replaces: it overwrites nobody, and
//!    finalizers of others stay where they are. After a conflict the newest state decides; an object that is gone is no
//!    error.
//! 4. A list that the informer has cut from its cache costs requests, and no finalizer of anybody.
//! 5. No loop is without a bound: five attempts, as in client-go.
//!
//! Read next: `informer_core::finalizer`; `children.rs`.

use std::fmt;

use informer_core::conflict::{ConflictPolicy, Conflicts};
use informer_core::finalizer::{Observed, Refusal, Step};
use informer_core::meta::Object;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::subject::{Subject, WriteLog, manager_of, record_removed, record_written};
use crate::client::api::chance::chance;
use crate::client::api::{Api, Patch, PatchParams};
use crate::client::{Client, Error};
use crate::object::meta_of;

/// What is to be done for an object that has the finalizer.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "who matches both has handled the whole life of an object")]
pub enum Finalize<K> {
    /// Make everything as the object wants it. The server has the finalizer.
    Apply(Object<K>),
    /// Undo what was made for the object, which is being deleted. Called again until it succeeds, so it must succeed where
    /// everything is undone already.
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
    /// The object is being deleted, the cache shows no finalizers of it, and the server did not say which it has: nothing
    /// was done for it.
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
/// It costs one request in the life of an object before its first reconcile, and one at its end. Where `reconcile` or this
/// process ends early, the next call goes on from what the server has: both halves may be called more than once.
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
    let Some(object) = subject.object() else { return Ok(T::default()) };
    let list = List { api: client.api::<K>().in_namespace(object.key().namespace()), name, log: subject };
    let mut step = observed(object)?.step(name);
    let newest = if step == Step::Read { list.read(object).await? } else { None };
    let object = newest.as_ref().unwrap_or(object);
    if step == Step::Read {
        // An object that is gone, or whose name belongs to another one by now, is left alone.
        step = newest
            .as_ref()
            .and_then(|newest| observe(newest.body()))
            .map_or(Step::Leave, |seen| seen.step(name));
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

/// The finalizers of one object, on the server.
struct List<'a, K> {
    api: Api<K>,
    name: &'a str,
    log: &'a dyn WriteLog,
}

/// What one attempt to change the list came to.
enum Attempt<K> {
    Changed(Box<K>),
    /// Another writer was faster; this is the newest state.
    Conflict(Box<K>, Error),
    Gone,
}

impl<K> List<'_, K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + 'static,
{
    /// What the server has of this object; `None` if it is gone.
    async fn read(&self, object: &Object<K>) -> Result<Option<Object<K>>, FinalizerError> {
        let failed = |source| FinalizerError::Read { object: called(object), source: Box::new(source) };
        let newest = self.api.get_opt(object.key().name()).await.map_err(failed)?;
        newest
            .filter(|newest| newest.meta().uid == object.meta().uid)
            .map(|newest| here(object, newest))
            .transpose()
    }

    /// Adds the finalizer; gives the object that has it, or `None` if the object is gone or being deleted.
    async fn add(&self, object: &Object<K>) -> Result<Option<Object<K>>, FinalizerError> {
        let failed = |source| FinalizerError::Add {
            object: called(object),
            name: self.name.to_owned(),
            source: Box::new(source),
        };
        let held = self.changed_until(object, Step::Add).await.map_err(failed)?;
        let Some(held) = held.filter(|held| held.meta().deletion_timestamp.is_none()) else {
            return Ok(None);
        };
        here(object, held).map(Some)
    }

    async fn remove(&self, object: &Object<K>) -> Result<(), FinalizerError> {
        let failed = |source| FinalizerError::Remove {
            object: called(object),
            name: self.name.to_owned(),
            source: Box::new(source),
        };
        self.changed_until(object, Step::CleanUp).await.map_err(failed).map(drop)
    }

    /// Changes the list until the step is no longer the next one; gives the newest state, `None` if the object is gone.
    async fn changed_until(&self, object: &Object<K>, step: Step) -> Result<Option<K>, Error> {
        let mut conflicts = Conflicts::new(ConflictPolicy::default());
        let cached = observe(object.body()).map(|seen| Observed { may_be_cut: true, ..seen });
        let mut attempt = self.attempt(object.body(), cached, step).await?;
        loop {
            let (newest, error) = match attempt {
                Attempt::Gone => return Ok(None),
                Attempt::Changed(newest) => return Ok(Some(*newest)),
                Attempt::Conflict(newest, error) => (newest, error),
            };
            if observe(&*newest).is_none_or(|seen| seen.step(self.name) != step) {
                return Ok(Some(*newest));
            }
            let Some(wait) = conflicts.handle_conflict(chance(self.api.client())) else { return Err(error) };
            self.api.client().sleep(wait).await?;
            attempt = self.attempt(&newest, observe(&*newest), step).await?;
        }
    }

    /// Sends the patch for this state once.
    async fn attempt(
        &self,
        state: &K,
        tested: Option<Observed<'_>>,
        step: Step,
    ) -> Result<Attempt<K>, Error> {
        let name = state.meta().name.as_deref().unwrap_or_default();
        let Some(tested) = tested else { return Ok(Attempt::Gone) };
        let patch = serde_json::from_value(patch(&tested, self.name, step));
        let patch = Patch::<()>::Json(patch.map_err(|error| Error::Request(error.to_string()))?);
        let manager = manager_of(self.log).or_else(|| Some(self.name.to_owned()));
        let params = PatchParams { field_manager: manager, ..PatchParams::default() };
        let refused = match self.api.patch(name, &params, &patch).await {
            Ok(changed) => {
                self.report(&changed);
                return Ok(Attempt::Changed(Box::new(changed)));
            }
            Err(Error::Refused(refused)) if refused.is_object_not_found() => return Ok(Attempt::Gone),
            // A test that fails is answered with 422, a write in between with 409.
            Err(Error::Refused(refused)) if matches!(refused.code, 409 | 422) => Error::Refused(refused),
            Err(error) => return Err(error),
        };
        let newest = self.api.get_opt(name).await?;
        Ok(match (tested.refused(newest.as_ref().and_then(observe).as_ref()), newest) {
            (Refusal::Conflict, Some(newest)) => Attempt::Conflict(Box::new(newest), refused),
            (Refusal::Gone, _) | (Refusal::Conflict, None) => Attempt::Gone,
            (Refusal::Other, _) => return Err(refused),
        })
    }

    /// An object that was being deleted and has no finalizer left is gone with this write.
    fn report(&self, changed: &K) {
        let meta = changed.meta();
        let is_gone = meta.deletion_timestamp.is_some() && meta.finalizers.as_ref().is_none_or(Vec::is_empty);
        if is_gone { record_removed(self.log, changed) } else { record_written(self.log, changed) }
    }
}

/// A newer state of an object: the key may have a cluster's name, which no body knows.
fn here<K: Resource<DynamicType = ()>>(object: &Object<K>, newer: K) -> Result<Object<K>, FinalizerError> {
    let unknown = |_| FinalizerError::Unknown { object: called(object), field: "resourceVersion" };
    let mut meta = meta_of(&newer).map_err(unknown)?;
    (meta.key, meta.source) = (object.key().clone(), object.source().clone());
    Ok(Object::new(meta, newer))
}

/// The JSON patch of one step; it tests that the object is still in this state, and that no entry of others is in its
/// place. A test against null succeeds where there is no list.
fn patch(state: &Observed<'_>, name: &str, step: Step) -> Value {
    let mut operations = vec![
        json!({"op": "test", "path": "/metadata/uid", "value": state.uid}),
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": state.version}),
    ];
    match (step, state.position(name)) {
        (Step::CleanUp, Some(_)) => {
            // A server keeps a name that is there twice. The last one goes first, so that the places of the others stay.
            let places =
                state.finalizers.iter().enumerate().filter(|(_, found)| *found == name).map(|(at, _)| at);
            for at in places.rev() {
                let path = format!("/metadata/finalizers/{at}");
                operations.push(json!({"op": "test", "path": path, "value": name}));
                operations.push(json!({"op": "remove", "path": path}));
            }
        }
        (Step::Add, None) if state.finalizers.is_empty() => {
            if state.is_unknown() {
                operations.push(json!({"op": "test", "path": "/metadata/finalizers", "value": null}));
            }
            operations.push(json!({"op": "add", "path": "/metadata/finalizers", "value": [name]}));
        }
        (Step::Add, None) => {
            operations.push(json!({"op": "add", "path": "/metadata/finalizers/-", "value": name}));
        }
        _ => {}
    }
    Value::Array(operations)
}

/// What a body of the server says of its finalizers; `None` without a uid or a version.
fn observe<K: Resource>(body: &K) -> Option<Observed<'_>> {
    let meta = body.meta();
    Some(Observed {
        uid: meta.uid.as_deref()?,
        version: meta.resource_version.as_deref()?,
        finalizers: meta.finalizers.as_deref().unwrap_or_default(),
        is_ending: meta.deletion_timestamp.is_some(),
        may_be_cut: false,
    })
}

/// What a cache says of them.
fn observed<K: Resource<DynamicType = ()>>(object: &Object<K>) -> Result<Observed<'_>, FinalizerError> {
    let field = if object.meta().uid.is_none() { "uid" } else { "resourceVersion" };
    let seen = observe(object.body()).map(|seen| Observed { may_be_cut: true, ..seen });
    seen.ok_or_else(|| FinalizerError::Unknown { object: called(object), field })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opr_04_a_patch_touches_the_own_entry_only_and_tests_uid_and_version() {
        let (foreign, mine) = ("a/other".to_owned(), "a/mine".to_owned());
        let tests = |version: &str| {
            format!(
                r#"[{{"op":"test","path":"/metadata/uid","value":"u"}},{{"op":"test","path":"/metadata/resourceVersion","value":"{version}"}},"#
            )
        };
        let list = |known: &[String]| known.to_vec();
        for (finalizers, may_be_cut, step, last) in [
            (list(&[]), false, Step::Add, r#"{"op":"add","path":"/metadata/finalizers","value":["a/mine"]}"#),
            (
                list(&[]),
                true,
                Step::Add,
                r#"{"op":"test","path":"/metadata/finalizers","value":null},{"op":"add","path":"/metadata/finalizers","value":["a/mine"]}"#,
            ),
            (
                list(std::slice::from_ref(&foreign)),
                true,
                Step::Add,
                r#"{"op":"add","path":"/metadata/finalizers/-","value":"a/mine"}"#,
            ),
            (
                list(&[foreign.clone(), mine]),
                true,
                Step::CleanUp,
                r#"{"op":"test","path":"/metadata/finalizers/1","value":"a/mine"},{"op":"remove","path":"/metadata/finalizers/1"}"#,
            ),
        ] {
            let state =
                Observed { uid: "u", version: "7", finalizers: &finalizers, is_ending: false, may_be_cut };
            assert_eq!(patch(&state, "a/mine", step).to_string(), format!("{}{last}]", tests("7")));
        }
    }
}
