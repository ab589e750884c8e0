//! Deletes the children that nobody wants any more.
//!
//! 1. After a conflict the newest state is judged, at most five times.
//! 2. What a view does not show is read from the server. Each state of an object that is not ours is read
//!    once.
//! 3. An object that is gone or replaced is no error. All children are tried; the first error is returned.

use std::any::TypeId;
use std::fmt;

use crate::reconcile::machine::children::{Child, Verdict};
use informer_core::meta::ObjectKey;
use kube_core::ObjectMeta;
use kube_core::metadata::PartialObjectMetaExt;
use serde_json::json;

use super::{ChildBody, ChildError, ChildPass, State, kind_name};
use crate::reconcile::kubernetes::owner::controlling;
use crate::reconcile::kubernetes::subject::{WriteRecord, json_patch, record_written};
use informer_client::Error;
use informer_client::api::{Api, DeleteParams, Deleted, Patch, PatchParams, Preconditions};
use informer_client::inner::{ConflictPolicy, Conflicts, chance};
use informer_client::overlay::remains;

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

pub(super) enum Clearing {
    NotOurs,
    /// It was being deleted already.
    Ending,
    /// Or is gone.
    HasChanged,
    Deleted,
}

#[derive(Default)]
pub(super) struct Pruning {
    pruned: Vec<Pruned>,
    first_error: Option<ChildError>,
}

impl Pruning {
    pub(super) fn add(&mut self, one: Result<Option<Pruned>, ChildError>) {
        match one {
            Ok(pruned) => self.pruned.extend(pruned),
            Err(error) => drop(self.first_error.get_or_insert(error)),
        }
    }
}

impl ChildPass<'_> {
    /// Deletes the children of this owner that this pass has not applied, in the background, of each kind
    /// that the [`Children`](super::Children) name. A child of this owner is an object that the owner
    /// controls, by uid, and that was applied under the name of these children: what others have made for the
    /// same owner stays. Children that are being deleted already are left alone; one that is gone is no
    /// error. Each deletion is logged.
    ///
    /// Nothing is deleted for an owner that is being deleted with `--cascade=orphan`. While the cache does
    /// not follow the owner's source, the owner's metadata is read from the server before each deletion.
    ///
    /// # Errors
    /// The first [`ChildError`], after everything else was tried.
    pub async fn prune(self) -> Result<Vec<Pruned>, ChildError> {
        self.begin_prune();
        let mut pruning = Pruning::default();
        if self.check.is_orphaning() {
            tracing::debug!(target: "actix_informer::reconcile", owner = %self.owner.described, "its deletion leaves its children behind: none is pruned");
            return Ok(pruning.pruned);
        }
        for kind in &self.children.kinds {
            kind.prune(&self, &mut pruning).await;
        }
        match pruning.first_error {
            Some(error) => Err(error),
            None => Ok(pruning.pruned),
        }
    }

    fn verdict<K: ChildBody>(&self, meta: &ObjectMeta, is_whole: bool) -> Verdict {
        // An object without a name comes from no server.
        let Some(key) = key_of(meta) else { return Verdict::Keep };
        let child = Child {
            controller: controlling(meta).map(|controller| &*controller.uid),
            appliers: self.children.manager.appliers(meta, &self.owner.uid, is_whole),
            is_ending: meta.deletion_timestamp.is_some(),
            // This key has no cluster.
            is_wanted: self.is_wanted(&(kind_name::<K>(), key)),
        };
        child.verdict(&self.owner.uid)
    }

    /// `None` if it stays or is gone. `is_whole`: uncut, from the server.
    pub(super) async fn prune_one<K: ChildBody>(
        &self,
        meta: &ObjectMeta,
        is_whole: bool,
    ) -> Result<Option<Pruned>, ChildError> {
        let state = State::of(meta);
        let verdict = self.verdict::<K>(meta, is_whole);
        if verdict == Verdict::Keep || state.is_some_and(|state| self.children.memory.is_foreign(&state)) {
            return Ok(None);
        }
        self.clear::<K>(meta.clone(), verdict).await
    }

    /// For an object that is made again.
    pub(super) async fn delete_ours<K: ChildBody>(&self, meta: &ObjectMeta) -> Result<Clearing, ChildError> {
        let ours = self.children.manager.appliers(meta, &self.owner.uid, true);
        let controller = controlling(meta).map(|controller| &*controller.uid);
        let child = Child { controller, appliers: ours, is_ending: false, is_wanted: false };
        if child.verdict(&self.owner.uid) != Verdict::Delete {
            return Ok(Clearing::NotOurs);
        }
        if meta.deletion_timestamp.is_some() {
            return Ok(Clearing::Ending);
        }
        if self.log.may_be_behind() {
            self.check_unchanged().await?;
        }
        let api = self.children.client.api::<K>().in_namespace(meta.namespace.as_deref());
        match delete_exactly(&api, meta).await {
            Ok(answer) => {
                self.deleted::<K>(meta, &answer, "wants in a form that it cannot be changed to");
                Ok(Clearing::Deleted)
            }
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(Clearing::HasChanged),
            Err(error) => Err(failed::<K>(meta, error)),
        }
    }

    async fn clear<K: ChildBody>(
        &self,
        mut meta: ObjectMeta,
        mut verdict: Verdict,
    ) -> Result<Option<Pruned>, ChildError> {
        let api = self.children.client.api::<K>().in_namespace(meta.namespace.as_deref());
        let mut conflicts = Conflicts::new(ConflictPolicy::default());
        loop {
            if matches!(verdict, Verdict::LetGo | Verdict::Delete) && self.log.may_be_behind() {
                self.check_unchanged().await?;
            }
            let answer = match verdict {
                Verdict::Keep => return Ok(None),
                Verdict::Ask => None,
                Verdict::LetGo => match self.let_go(&api, &meta).await {
                    Ok(left) => {
                        // If the object is wanted again, the server's state decides.
                        let place = key_of(&meta).map(|key| (TypeId::of::<K>(), key, self.owner.uid.clone()));
                        place.iter().for_each(|place| self.children.memory.forget(place));
                        record_written(self.log, &left);
                        return Ok(None);
                    }
                    Err(error) => Some(error),
                },
                Verdict::Delete => match delete_exactly(&api, &meta).await {
                    Ok(answer) => return Ok(self.deleted::<K>(&meta, &answer, "does not want any more")),
                    Err(error) => Some(error),
                },
            };
            match answer {
                Some(Error::Refused(refused)) if refused.is_object_not_found() => return Ok(None),
                Some(error) if error.is_conflict() => {
                    let Some(wait) = conflicts.handle_conflict(chance(api.client())) else {
                        return Err(failed::<K>(&meta, error));
                    };
                    api.client().sleep(wait).await.map_err(|error| failed::<K>(&meta, error))?;
                }
                Some(error) => return Err(failed::<K>(&meta, error)),
                None => {}
            }
            let found = api.clone().metadata().get_opt(meta.name.as_deref().unwrap_or_default()).await;
            let found = found.map_err(|error| failed::<K>(&meta, error))?;
            let Some(found) = found else { return Ok(None) };
            meta = found.metadata;
            verdict = self.verdict::<K>(&meta, true);
            if let (Verdict::Keep, Some(state)) = (verdict, State::of(&meta)) {
                self.keep_in_mind(&meta, &state);
            }
        }
    }

    /// No other pass then reads a state that others have made.
    fn keep_in_mind(&self, meta: &ObjectMeta, state: &State) {
        let appliers = self.children.manager.appliers(meta, &self.owner.uid, true);
        if appliers.is_some_and(|appliers| !appliers.ours) {
            self.children.memory.note_foreign(state);
        }
    }

    /// `why` ends the log line.
    fn deleted<K: ChildBody>(&self, meta: &ObjectMeta, answer: &Deleted<K>, why: &str) -> Option<Pruned> {
        let is_held = matches!(answer, Deleted::Object(rest) if remains(rest));
        match answer {
            Deleted::Object(rest) if is_held => record_written(self.log, rest),
            _ => {
                let last = meta.clone().into_response_partial::<K>();
                let record =
                    WriteRecord::of::<K>(&last).map(|record| WriteRecord { is_removed: true, ..record });
                record.into_iter().for_each(|record| self.log.record(record));
            }
        }
        let pruned = Pruned { kind: K::kind(&()).into_owned(), key: key_of(meta)? };
        let (owner, manager) = (&self.owner.described, self.children.manager.name());
        let done = if is_held { "began to delete (its finalizers hold it)" } else { "deleted" };
        tracing::info!(target: "actix_informer::reconcile", %owner, child = %pruned, manager, "{done} {pruned}, which {owner} {why}");
        Some(pruned)
    }

    pub(super) fn as_manager(&self) -> PatchParams {
        let field_manager = Some(self.children.manager.name().to_owned());
        PatchParams { field_manager, ..PatchParams::default() }
    }

    /// Another manager applies the object for the same owner.
    async fn let_go<K: ChildBody>(&self, api: &Api<K>, meta: &ObjectMeta) -> Result<K, Error> {
        let name = meta.name.as_deref().unwrap_or_default();
        let nothing = json!({
            "apiVersion": K::api_version(&()), "kind": K::kind(&()),
            "metadata": {"name": name, "uid": meta.uid, "resourceVersion": meta.resource_version},
        });
        if let Some(patch) = self.children.manager.move_over(meta) {
            // Fields of former managers go with ours.
            let moved = api.patch(name, &self.as_manager(), &json_patch(patch)?).await?;
            return Box::pin(self.let_go(api, moved.meta())).await;
        }
        let params = PatchParams::apply(self.children.manager.name()).force();
        let left = match api.patch(name, &params, &Patch::Apply(nothing)).await {
            // It is invalid without our fields: give up only their ownership.
            Err(error) if error.is_invalid() => {
                api.patch(name, &self.as_manager(), &json_patch(self.children.manager.give_up(meta))?).await?
            }
            answer => answer?,
        };
        let child = described_by::<K>(meta);
        tracing::info!(target: "actix_informer::reconcile", %child, "{child} is not wanted any more by {}, and stays for another manager that applies it", self.owner.described);
        Ok(left)
    }
}

fn key_of(meta: &ObjectMeta) -> Option<ObjectKey> {
    let name = meta.name.as_deref().filter(|name| !name.is_empty())?;
    Some(match meta.namespace.as_deref() {
        Some(namespace) => ObjectKey::namespaced(namespace, name),
        None => ObjectKey::cluster(name),
    })
}

fn described_by<K: ChildBody>(meta: &ObjectMeta) -> String {
    let key = key_of(meta).map(|key| key.to_string()).unwrap_or_default();
    format!("{} {key}", K::kind(&()))
}

fn failed<K: ChildBody>(meta: &ObjectMeta, source: Error) -> ChildError {
    ChildError::Delete { child: described_by::<K>(meta), source: Box::new(source) }
}

async fn delete_exactly<K: ChildBody>(api: &Api<K>, meta: &ObjectMeta) -> Result<Deleted<K>, Error> {
    let params = DeleteParams::background().preconditions(Preconditions {
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
    });
    api.delete(meta.name.as_deref().unwrap_or_default(), &params).await
}
