//! The finalizers of one object on its server. A change is a JSON patch that tests uid, version and what it
//! replaces: it overwrites nobody. After a conflict the newest state decides, at most five times, as in
//! client-go. An object that is gone is no error.

use crate::reconcile::machine::finalizer::{Observed, Refusal, Step};
use informer_core::meta::Object;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{FinalizerError, called};
use crate::reconcile::kubernetes::subject::{
    WriteLog, as_manager, json_patch, manager_of, record_removed, record_written,
};
use informer_client::Error;
use informer_client::api::{Api, PatchParams};
use informer_client::inner::{ConflictPolicy, Conflicts, chance};
use informer_client::object::meta_of;

pub(super) struct List<'a, K> {
    pub(super) api: Api<K>,
    pub(super) name: &'a str,
    pub(super) log: &'a dyn WriteLog,
    /// Whether the operator does not follow such an object.
    pub(super) has_left: &'a (dyn Fn(&K) -> bool + Sync),
}

enum Attempt<K> {
    Changed(Box<K>),
    /// The newest state.
    Conflict(Box<K>, Error),
    Gone,
}

impl<K> List<'_, K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + 'static,
{
    pub(super) async fn read(&self, object: &Object<K>) -> Result<Option<Object<K>>, FinalizerError> {
        let failed = |source| FinalizerError::Read { object: called(object), source: Box::new(source) };
        let newest = self.api.get_opt(object.key().name()).await.map_err(failed)?;
        newest
            .filter(|newest| newest.meta().uid == object.meta().uid)
            .map(|newest| here(object, newest))
            .transpose()
    }

    /// `None` if the object is gone or being deleted.
    pub(super) async fn add(&self, object: &Object<K>) -> Result<Option<Object<K>>, FinalizerError> {
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

    pub(super) async fn remove(&self, object: &Object<K>) -> Result<(), FinalizerError> {
        let failed = |source| FinalizerError::Remove {
            object: called(object),
            name: self.name.to_owned(),
            source: Box::new(source),
        };
        self.changed_until(object, Step::CleanUp).await.map_err(failed).map(drop)
    }

    /// Until another step is next; `None` if the object is gone.
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
            if self.observe(&newest).is_none_or(|seen| seen.step(self.name) != step) {
                // Perhaps by a write of ours whose answer was lost.
                self.report(&newest);
                return Ok(Some(*newest));
            }
            let Some(wait) = conflicts.handle_conflict(chance(self.api.client())) else { return Err(error) };
            self.api.client().sleep(wait).await?;
            attempt = self.attempt(&newest, observe(&*newest), step).await?;
        }
    }

    async fn attempt(
        &self,
        state: &K,
        tested: Option<Observed<'_>>,
        step: Step,
    ) -> Result<Attempt<K>, Error> {
        let name = state.meta().name.as_deref().unwrap_or_default();
        let Some(tested) = tested else { return Ok(Attempt::Gone) };
        let patch = json_patch(patch(&tested, self.name, step))?;
        let manager = manager_of(self.log).or_else(|| Some(as_manager(self.name)));
        let params = PatchParams { field_manager: manager, ..PatchParams::default() };
        let refused = match self.api.patch(name, &params, &patch).await {
            Ok(changed) => {
                self.report(&changed);
                return Ok(Attempt::Changed(Box::new(changed)));
            }
            Err(Error::Refused(refused)) if refused.is_object_not_found() => return Ok(Attempt::Gone),
            // A failed test is answered with 422, a write in between with 409.
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

    pub(super) fn observe<'k>(&self, body: &'k K) -> Option<Observed<'k>> {
        observe(body).map(|seen| Observed { has_left: (self.has_left)(body), ..seen })
    }

    /// Without finalizers an ending object is gone. No cache shows one that has left.
    fn report(&self, changed: &K) {
        if (self.has_left)(changed) {
            return;
        }
        let meta = changed.meta();
        let is_gone = meta.deletion_timestamp.is_some() && meta.finalizers.as_ref().is_none_or(Vec::is_empty);
        if is_gone { record_removed(self.log, changed) } else { record_written(self.log, changed) }
    }
}

/// The key has a cluster, which no body contains.
fn here<K: Resource<DynamicType = ()>>(object: &Object<K>, newer: K) -> Result<Object<K>, FinalizerError> {
    let unknown = |_| FinalizerError::Unknown { object: called(object), field: "resourceVersion" };
    let mut meta = meta_of(&newer).map_err(unknown)?;
    (meta.key, meta.source) = (object.key().clone(), object.source().clone());
    Ok(Object::new(meta, newer))
}

/// A test against null succeeds if there is no list.
fn patch(state: &Observed<'_>, name: &str, step: Step) -> Value {
    let mut operations = vec![
        json!({"op": "test", "path": "/metadata/uid", "value": state.uid}),
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": state.version}),
    ];
    match (step, state.position(name)) {
        (Step::CleanUp, Some(_)) => {
            // A server keeps duplicates. The last one goes first: the places of the others stay valid.
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

pub(super) fn observe<K: Resource>(body: &K) -> Option<Observed<'_>> {
    let meta = body.meta();
    Some(Observed {
        uid: meta.uid.as_deref()?,
        version: meta.resource_version.as_deref()?,
        finalizers: meta.finalizers.as_deref().unwrap_or_default(),
        is_ending: meta.deletion_timestamp.is_some(),
        has_left: false,
        may_be_cut: false,
    })
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
            let (uid, version, is_ending, has_left) = ("u", "7", false, false);
            let state = Observed { uid, version, finalizers: &finalizers, is_ending, has_left, may_be_cut };
            assert_eq!(patch(&state, "a/mine", step).to_string(), format!("{}{last}]", tests("7")));
        }
    }
}
