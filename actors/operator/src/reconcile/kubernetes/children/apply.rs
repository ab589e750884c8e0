//! Applies one child, only in the state that was judged: the apply carries its uid and version, or a version
//! that no object has. The server refuses any other state, which is then read and judged.
//!
//! 1. An object is ours if this process has applied it, or our manager by its managed fields.
//! 2. Fields of former managers are moved to the present one and applied again, to remove what is no longer
//!    given.
//! 3. At most five attempts, as in client-go.

use std::any::TypeId;

use crate::reconcile::machine::children::{Adoption, Child, Claim};
use informer_core::meta::{Object, ObjectKey};
use kube_core::ObjectMeta;
use serde_json::Value;

use super::error::{is_immutable, is_lost_race, is_of_managers};
use super::memory::Place;
use super::policy::ChildPolicy;
use super::prune::Clearing;
use super::shown::{Cache, Shown};
use super::{Applied, ChildBody, ChildError, ChildPass, State, kind_name};
use crate::reconcile::kubernetes::owner::{controlling, described};
use crate::reconcile::kubernetes::subject::{json_patch, record_written};
use informer_client::Error;
use informer_client::api::{Api, Patch, PatchParams};
use informer_client::inner::{ConflictPolicy, Conflicts, chance, key_of};
use informer_client::object::meta_of;
use informer_client::representation::ControllerRef;

/// A server refuses it for an existing object, and ignores it in a create.
const NO_OBJECT: &str = "1";

const MOST_MOVES: u32 = 2;

enum Present<K> {
    Unknown,
    Nothing,
    Own(State),
    Read(Box<K>),
}

struct Wish<'p, K> {
    api: Api<K>,
    key: ObjectKey,
    place: Place,
    body: Value,
    called: String,
    policy: &'p ChildPolicy,
    is_cached: bool,
    /// Whether the cache shows whole objects; true without a cache.
    is_shown: bool,
}

impl ChildPass<'_> {
    /// Makes the server have this child as given, with the owner as its controller. Fields that are not given
    /// belong to others; a field that was given before and is not given now is removed. Set a name: a name
    /// that the server generates would make another child in each pass.
    ///
    /// Sends one server-side apply. Sends nothing if this process has applied the same before and the cache
    /// still shows what the server returned then, apart from the status. So one apply is sent for each child
    /// in the first pass after a start, and after somebody has changed the child. The first apply of a child
    /// after a start reads the child first (which needs the right to `get` it), unless the cache shows the
    /// managed fields: they show who has made it.
    ///
    /// If an object of its name exists that this field manager has not applied, it is not changed, whether
    /// the owner or nobody controls it ([`ChildError::NotOurs`]); see [`Self::apply_with`] to change this.
    ///
    /// The metadata of the owner is read once in a pass before an apply for an owner whose cache does not
    /// follow its source at present, and before a child that this process has made before is made again. It
    /// is read each time before the owner's reference is set on an object that nobody controls. These reads
    /// need the right to `get` the owner; without it the child is applied without the read, but no such
    /// object is taken.
    ///
    /// # Errors
    /// [`ChildError`]. Even then this pass does not prune the child.
    pub async fn apply<K: ChildBody>(&mut self, child: K) -> Result<Applied<K>, ChildError> {
        self.apply_with(child, &ChildPolicy::default()).await
    }

    /// As [`Self::apply`], with a policy for this child.
    ///
    /// # Errors
    /// As there.
    pub async fn apply_with<K: ChildBody>(
        &mut self,
        mut child: K,
        policy: &ChildPolicy,
    ) -> Result<Applied<K>, ChildError> {
        let owned = self.owner.own(&mut child, policy.is_kept);
        let key = key_of(&child)?;
        let one = (kind_name::<K>(), key.clone());
        let may_be_made = self.want(one);
        owned?;
        let called = described(&child);
        if !may_be_made {
            return Err(ChildError::SecondPass { child: called, owner: self.owner.described.clone() });
        }
        let body = encoded(&child);
        let body = body.map_err(|source| ChildError::Encode { child: called.clone(), source })?;
        let children = self.children;
        let labels = child.meta().labels.clone().unwrap_or_default();
        let seen_as = self.in_caches(key.clone());
        let cache = Cache::<K>::of_child(&children.kinds, &seen_as, &labels, &called);
        let wish = Wish {
            api: children.client.api::<K>().in_namespace(key.namespace()),
            place: (TypeId::of::<K>(), key.clone(), self.owner.uid.clone()),
            is_cached: cache.is_some(),
            is_shown: cache.as_ref().is_none_or(Cache::is_whole),
            key,
            body,
            called,
            policy,
        };
        let shown = cache.and_then(|cache| cache.get(&seen_as));
        let mut present = Present::Nothing;
        let known = children.memory.state(&wish.place);
        if let Some(shown) = shown {
            self.owner.may_control(shown.controller(), || wish.called.clone())?;
            let is_own = shown.controller().is_some();
            if children.memory.is_applied(&wish.place, &wish.body, &shown)
                || (is_own && policy.is_created_only)
            {
                return Ok(shown.unchanged(child));
            }
            let is_applied = known.as_ref().is_some_and(|known| known.is_of(shown.uid()));
            let is_proved = is_own && (is_applied || self.has_applied(&shown));
            present = if is_proved { Present::Own(shown.state(known)) } else { Present::Unknown };
        } else if !wish.is_cached {
            present = known.filter(|_| !policy.is_created_only).map_or(Present::Unknown, Present::Own);
        } else if known.is_some() {
            self.check_ending(&wish.called)?;
            self.check_owner(false).await?;
        }
        self.check_ending(&wish.called)?;
        if self.log.may_be_behind() {
            self.check_owner(false).await?;
        }
        self.make(&wish, present).await
    }

    async fn make<K: ChildBody>(
        &mut self,
        wish: &Wish<'_, K>,
        mut present: Present<K>,
    ) -> Result<Applied<K>, ChildError> {
        let mut conflicts = Conflicts::new(ConflictPolicy::default());
        let mut moves = 0;
        loop {
            if matches!(present, Present::Unknown) {
                present = self.read(wish).await?;
                if matches!(present, Present::Nothing) && self.children.memory.state(&wish.place).is_some() {
                    // It is gone: perhaps with its owner.
                    self.check_owner(false).await?;
                }
            }
            let state = match present {
                Present::Unknown | Present::Nothing => None,
                Present::Own(state) => Some(state),
                Present::Read(object) => {
                    let state = self.claim(wish, object.meta()).await?;
                    if wish.policy.is_created_only {
                        return self.left_alone(wish, *object).map(Applied::Unchanged);
                    }
                    Some(state)
                }
            };
            present = match self.send(wish, state.as_ref()).await {
                // A process of a former release would bring its manager back for ever.
                Ok(answer) if moves < MOST_MOVES && self.children.manager.has_former(answer.meta()) => {
                    moves += 1;
                    self.moved_over(wish, answer).await?
                }
                Ok(answer) => {
                    self.children.memory.remember(&wish.place, &wish.body, &answer, wish.is_shown);
                    record_written(self.log, &answer);
                    return Ok(Applied::Written(Box::new(answer)));
                }
                Err(error) => self.after_refusal(wish, (state, error), &mut conflicts).await?,
            };
        }
    }

    /// An error if another attempt cannot help.
    async fn after_refusal<K: ChildBody>(
        &mut self,
        wish: &Wish<'_, K>,
        (state, error): (Option<State>, Error),
        conflicts: &mut Conflicts,
    ) -> Result<Present<K>, ChildError> {
        let is_recreated = wish.policy.is_recreated && is_immutable(&error);
        if !is_recreated && !is_lost_race(&error) {
            return Err(wish.failed(error));
        }
        let found = self.read(wish).await?;
        match found {
            Present::Read(object) if is_recreated => {
                return self.cleared(wish, &object, error, conflicts).await;
            }
            Present::Read(object) if is_of_managers(&error) => {
                let has_former = self.children.manager.has_former(object.meta());
                let moved = if has_former { self.moved_over(wish, *object).await? } else { Present::Nothing };
                return if has_former { Ok(moved) } else { Err(wish.failed(error)) };
            }
            _ => {}
        }
        let newest = if let Present::Read(object) = &found { State::of(object.meta()) } else { None };
        let client = &self.children.client;
        // In the same state the refusal has another reason. A child that is gone may be made.
        let is_other = newest != state || newest.is_none();
        let wait = if is_other { conflicts.handle_conflict(chance(client)) } else { None };
        let Some(wait) = wait else { return Err(wish.failed(error)) };
        client.sleep(wait).await.map_err(|source| wish.failed(source))?;
        if newest.is_none() && state.is_some() {
            self.children.memory.forget(&wish.place);
            self.check.is_answered = false;
            self.check_owner(false).await?;
        }
        Ok(found)
    }

    async fn claim<K: ChildBody>(
        &mut self,
        wish: &Wish<'_, K>,
        meta: &ObjectMeta,
    ) -> Result<State, ChildError> {
        let owner = self.owner.uid.clone();
        let controller = controlling(meta);
        self.owner.may_control(controller.and_then(ControllerRef::controlling), || wish.called.clone())?;
        let child = Child {
            controller: controller.map(|controller| &*controller.uid),
            appliers: self.children.manager.appliers(meta, &owner, true),
            is_ending: meta.deletion_timestamp.is_some(),
            is_wanted: true,
        };
        let is_owners = child.controller.is_some_and(|uid| owner == uid);
        let known = self.children.memory.state(&wish.place).filter(|_| is_owners);
        let is_applied = known.is_some_and(|known| meta.uid.as_deref() == Some(&*known.uid));
        // A created-only child is not changed, whoever made it for this owner.
        let is_left_alone = is_owners && wish.policy.is_created_only;
        let takes = is_applied || is_left_alone || wish.policy.takes(meta.labels.as_ref());
        self.check_keeper(&wish.called, meta).await?;
        let is_taken = match child.claim(&owner, if takes { Adoption::Any } else { Adoption::OwnOnly }) {
            Claim::Own => true,
            // Without a reference it stays when the owner goes.
            Claim::AskForOwner if wish.policy.is_kept => true,
            Claim::AskForOwner => {
                self.check_owner(true).await?;
                true
            }
            Claim::Controlled | Claim::Foreign => false,
        };
        let state = State::of(meta).filter(|_| is_taken);
        state.ok_or_else(|| ChildError::NotOurs {
            child: wish.called.clone(),
            manager: self.children.manager.name().to_owned(),
            owner: self.owner.described.clone(),
        })
    }

    /// Without a state nothing may exist.
    async fn send<K: ChildBody>(&self, wish: &Wish<'_, K>, state: Option<&State>) -> Result<K, Error> {
        let mut body = wish.body.clone();
        let metadata = &mut body["metadata"];
        match state {
            Some(state) => {
                metadata["uid"] = (*state.uid).into();
                metadata["resourceVersion"] = (*state.version).into();
            }
            None => metadata["resourceVersion"] = NO_OBJECT.into(),
        }
        let mut params = PatchParams::apply(self.children.manager.name());
        params.force = self.children.is_forced;
        wish.api.patch(wish.key.name(), &params, &Patch::Apply(&body)).await
    }

    async fn read<K: ChildBody>(&self, wish: &Wish<'_, K>) -> Result<Present<K>, ChildError> {
        let found = wish.api.get_opt(wish.key.name()).await;
        let failed = |source| ChildError::Read { child: wish.called.clone(), source: Box::new(source) };
        Ok(found.map_err(failed)?.map_or(Present::Nothing, |object| Present::Read(Box::new(object))))
    }

    async fn moved_over<K: ChildBody>(
        &self,
        wish: &Wish<'_, K>,
        object: K,
    ) -> Result<Present<K>, ChildError> {
        let Some(patch) = self.children.manager.move_over(object.meta()) else {
            return Ok(Present::Read(Box::new(object)));
        };
        let patch = json_patch(patch).map_err(|error| wish.failed(error))?;
        match wish.api.patch(wish.key.name(), &self.as_manager(), &patch).await {
            Ok(object) => Ok(Present::Read(Box::new(object))),
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(Present::Unknown),
            Err(error) => Err(wish.failed(error)),
        }
    }

    /// Returns what exists after the deletion.
    async fn cleared<K: ChildBody>(
        &self,
        wish: &Wish<'_, K>,
        object: &K,
        error: Error,
        conflicts: &mut Conflicts,
    ) -> Result<Present<K>, ChildError> {
        let still_ending = || ChildError::StillEnding { child: wish.called.clone() };
        match self.delete_ours::<K>(object.meta()).await? {
            Clearing::NotOurs => return Err(wish.failed(error)),
            Clearing::Ending => return Err(still_ending()),
            Clearing::Deleted | Clearing::HasChanged => {}
        }
        let found = self.read(wish).await?;
        let Present::Read(left) = &found else { return Ok(found) };
        let left = left.meta();
        if left.uid == object.meta().uid && left.deletion_timestamp.is_some() {
            return Err(still_ending());
        }
        // Others have changed or replaced it: judge again.
        let client = &self.children.client;
        let Some(wait) = conflicts.handle_conflict(chance(client)) else { return Err(wish.failed(error)) };
        client.sleep(wait).await.map_err(|source| wish.failed(source))?;
        Ok(found)
    }

    fn has_applied<K: ChildBody>(&self, shown: &Shown<K>) -> bool {
        let appliers = |meta| self.children.manager.appliers(meta, &self.owner.uid, false);
        shown.meta().and_then(appliers).is_some_and(|appliers| appliers.ours)
    }

    fn left_alone<K: ChildBody>(&self, wish: &Wish<'_, K>, object: K) -> Result<Object<K>, ChildError> {
        let mut meta = meta_of(&object)?;
        meta.key = self.in_caches(wish.key.clone());
        Ok(Object::new(meta, object))
    }
}

impl<K> Wish<'_, K> {
    fn failed(&self, source: Error) -> ChildError {
        ChildError::Apply { child: self.called.clone(), source: Box::new(source) }
    }
}

/// Removes what only a server sets.
fn encoded<K: ChildBody>(child: &K) -> serde_json::Result<Value> {
    let mut body = serde_json::to_value(child)?;
    body["apiVersion"] = K::api_version(&()).into();
    body["kind"] = K::kind(&()).into();
    if let Some(metadata) = body["metadata"].as_object_mut() {
        for field in ["managedFields", "resourceVersion", "uid", "generation", "creationTimestamp"] {
            metadata.remove(field);
        }
    }
    Ok(body)
}
