//! Work that must be undone before its object may go: a finalizer, added first and removed last.
//!
//! Answers "how does nothing stay behind when an object is deleted, wherever this process ends?" What is done next is decided
//! by `informer_core::finalizer`. Invariants:
//! 1. The server has the finalizer before `reconcile` is called with [`Finalize::Apply`].
//! 2. The finalizer is removed only after `reconcile` has succeeded with [`Finalize::CleanUp`].
//! 3. A change of the list is a JSON patch that tests uid and version: it overwrites nobody, and finalizers of others stay
//!    where they are. After a conflict the newest state decides; an object that is gone is no error.
//! 4. No loop is without a bound: five attempts, as in client-go.
//!
//! Read next: `informer_core::finalizer`; `children.rs`.

use std::fmt;

use informer_core::conflict::{ConflictPolicy, Conflicts};
use informer_core::finalizer::{Observed, Refusal, Step};
use informer_core::meta::Object;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::subject::{Subject, WriteLog, record_removed, record_written};
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
/// The informer must keep `metadata.finalizers`: a list that is cut from the cache looks empty, and the finalizers of others
/// would be replaced.
///
/// It costs one request in the life of an object before its first reconcile, and one at its end. Where `reconcile` or this
/// process ends early, the next call goes on from what the server has: both halves may be called more than once.
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
/// # let server = informer_apiserver::ApiServer::builder().start().await?;
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
    match observed(object.body(), object)?.step(name) {
        Step::Leave => Ok(T::default()),
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
        let unknown = |_| FinalizerError::Unknown { object: called(object), field: "resourceVersion" };
        let mut meta = meta_of(&held).map_err(unknown)?;
        // The key may have a cluster's name, which no body knows.
        (meta.key, meta.source) = (object.key().clone(), object.source().clone());
        Ok(Some(Object::new(meta, held)))
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
        let mut attempt = self.attempt(object.body(), step).await?;
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
            attempt = self.attempt(&newest, step).await?;
        }
    }

    /// Sends the patch for this state once.
    async fn attempt(&self, state: &K, step: Step) -> Result<Attempt<K>, Error> {
        let name = state.meta().name.as_deref().unwrap_or_default();
        let Some(tested) = observe(state) else { return Ok(Attempt::Gone) };
        let patch = serde_json::from_value(patch(&tested, self.name, step));
        let patch = Patch::<()>::Json(patch.map_err(|error| Error::Request(error.to_string()))?);
        let refused = match self.api.patch(name, &PatchParams::default(), &patch).await {
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

/// The JSON patch of one step; it tests that the object is still in this state.
fn patch(state: &Observed<'_>, name: &str, step: Step) -> Value {
    let mut operations = vec![
        json!({"op": "test", "path": "/metadata/uid", "value": state.uid}),
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": state.version}),
    ];
    match (step, state.position(name)) {
        (Step::CleanUp, Some(at)) => {
            operations.push(json!({"op": "remove", "path": format!("/metadata/finalizers/{at}")}));
        }
        (Step::Add, None) if state.finalizers.is_empty() => {
            operations.push(json!({"op": "add", "path": "/metadata/finalizers", "value": [name]}));
        }
        (Step::Add, None) => {
            operations.push(json!({"op": "add", "path": "/metadata/finalizers/-", "value": name}));
        }
        _ => {}
    }
    Value::Array(operations)
}

/// What a body says of its finalizers; `None` without a uid or a version.
fn observe<K: Resource>(body: &K) -> Option<Observed<'_>> {
    let meta = body.meta();
    Some(Observed {
        uid: meta.uid.as_deref()?,
        version: meta.resource_version.as_deref()?,
        finalizers: meta.finalizers.as_deref().unwrap_or_default(),
        is_ending: meta.deletion_timestamp.is_some(),
    })
}

fn observed<'a, K: Resource<DynamicType = ()>>(
    body: &'a K,
    object: &Object<K>,
) -> Result<Observed<'a>, FinalizerError> {
    let field = if body.meta().uid.is_none() { "uid" } else { "resourceVersion" };
    observe(body).ok_or_else(|| FinalizerError::Unknown { object: called(object), field })
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
        for (finalizers, step, last) in [
            (&[][..], Step::Add, r#"{"op":"add","path":"/metadata/finalizers","value":["a/mine"]}"#),
            (
                std::slice::from_ref(&foreign),
                Step::Add,
                r#"{"op":"add","path":"/metadata/finalizers/-","value":"a/mine"}"#,
            ),
            (&[foreign.clone(), mine], Step::CleanUp, r#"{"op":"remove","path":"/metadata/finalizers/1"}"#),
        ] {
            let state = Observed { uid: "u", version: "7", finalizers, is_ending: false };
            assert_eq!(patch(&state, "a/mine", step).to_string(), format!("{}{last}]", tests("7")));
        }
    }
}
