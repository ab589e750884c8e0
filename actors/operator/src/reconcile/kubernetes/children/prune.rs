//! What becomes of the children that nobody wants any more.
//!
//! Answers "may this object be deleted for this owner, and was it?" `reconcile/machine/children.rs` decides, on the state that is
//! deleted. Invariants:
//! 1. A deletion has uid and version of the state that was judged as preconditions; after a conflict the newest state is
//!    judged again, five times at most.
//! 2. What a view does not say is read from the server: most caches do not show who has applied an object. An object that was found
//!    not to be ours costs one request in each of its states.
//! 3. An object that is gone, or whose name belongs to another object, is no error.
//! 4. One error leaves no other child behind: all are tried, and the first error is returned.
//!
//! Read next: `kinds.rs`, where children are looked for; `managers.rs`, whose they are.

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

/// What becomes of an object that has to be made anew.
pub(super) enum Clearing {
    /// It is not ours: it stays.
    NotOurs,
    /// It is being deleted already.
    Ending,
    /// It was changed meanwhile, or is gone.
    HasChanged,
    /// Its deletion has begun.
    Deleted,
}

/// What a prune has come to so far.
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
    /// Deletes the children of this owner that this pass has not applied, of each kind that the [`Children`](super::Children)
    /// name, in the background. A child of this owner is what it controls, by uid, and what was applied under the name of these
    /// children: what others have made for the same owner stays. Those that are being deleted already are left alone; one that is
    /// gone is no error. Each deletion is logged.
    ///
    /// Nothing is deleted for an owner that is being deleted with `--cascade=orphan`. Where the cache does not follow the owner's
    /// source at present, the server is asked for the owner's metadata before each deletion.
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
            // A key here has no cluster.
            is_wanted: self.is_wanted(&(kind_name::<K>(), key)),
        };
        child.verdict(&self.owner.uid)
    }

    /// Deletes a child that is ours and that nobody wants; `None` if it stays, or is gone. `is_whole`: the metadata is the
    /// server's, and no cache has cut it.
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

    /// Deletes an object that is wanted in another form, if it is ours.
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

    /// Carries out what was decided about this state, or about a newer one.
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
                        // Wanted again, it is judged by what the server says: it is the other manager's now.
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

    /// Remembers a state that others have made for this owner: no other pass asks for it again.
    fn keep_in_mind(&self, meta: &ObjectMeta, state: &State) {
        let appliers = self.children.manager.appliers(meta, &self.owner.uid, true);
        if appliers.is_some_and(|appliers| !appliers.ours) {
            self.children.memory.note_foreign(state);
        }
    }

    /// The server has taken a deletion. `why`: what the owner has to do with it.
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

    /// The parameters of a patch that is no apply.
    pub(super) fn as_manager(&self) -> PatchParams {
        let field_manager = Some(self.children.manager.name().to_owned());
        PatchParams { field_manager, ..PatchParams::default() }
    }

    /// Takes our fields from an object that another manager applies for the same owner.
    async fn let_go<K: ChildBody>(&self, api: &Api<K>, meta: &ObjectMeta) -> Result<K, Error> {
        let name = meta.name.as_deref().unwrap_or_default();
        let nothing = json!({
            "apiVersion": K::api_version(&()), "kind": K::kind(&()),
            "metadata": {"name": name, "uid": meta.uid, "resourceVersion": meta.resource_version},
        });
        if let Some(patch) = self.children.manager.move_over(meta) {
            // Fields of former managers go with ours: the next attempt sees them as ours.
            let moved = api.patch(name, &self.as_manager(), &json_patch(patch)?).await?;
            return Box::pin(self.let_go(api, moved.meta())).await;
        }
        let params = PatchParams::apply(self.children.manager.name()).force();
        let left = match api.patch(name, &params, &Patch::Apply(nothing)).await {
            // Without our fields it would not be valid: they stay, and are ours no more.
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

/// Kind and key, for errors.
fn described_by<K: ChildBody>(meta: &ObjectMeta) -> String {
    let key = key_of(meta).map(|key| key.to_string()).unwrap_or_default();
    format!("{} {key}", K::kind(&()))
}

fn failed<K: ChildBody>(meta: &ObjectMeta, source: Error) -> ChildError {
    ChildError::Delete { child: described_by::<K>(meta), source: Box::new(source) }
}

/// Deletes this object if it is still in this state.
async fn delete_exactly<K: ChildBody>(api: &Api<K>, meta: &ObjectMeta) -> Result<Deleted<K>, Error> {
    let params = DeleteParams::background().preconditions(Preconditions {
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
    });
    api.delete(meta.name.as_deref().unwrap_or_default(), &params).await
}
