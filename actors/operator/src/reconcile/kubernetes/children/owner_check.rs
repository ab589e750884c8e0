//! Reads the metadata of the owner where a cache may not know whether it still exists:
//! - Its cache does not follow its source, as for a new leader whose watch is broken.
//! - A child that this process has made is gone: perhaps by garbage collection with its owner.
//! - Nobody controls the object that is to become the child: the owner may have been deleted with
//!   `--cascade=orphan`, and a child that gets its reference again is deleted.
//!
//! 1. One answer serves a pass until a child is gone. For an object that nobody controls the owner is read
//!    after each read of it: an earlier answer may be older than the owner's deletion.
//! 2. Without the right to read the owner a child is applied, but no object that nobody controls is taken.
//! 3. For an owner that is being deleted only a clean-up pass applies, and takes no such object.
//! 4. While the cache does not follow its source, a child is deleted only if the server has the owner in the
//!    state of the pass.
//! 5. A child that outlives its owner names it (`KEPT_FOR`): no other owner takes it while that one exists.

use crate::reconcile::machine::children::OwnerNow;
use kube_core::discovery::ApiResource;
use kube_core::{ObjectMeta, Resource};

use super::{ChildError, ChildPass};
use crate::reconcile::kubernetes::owner::KEPT_FOR;
use informer_client::Error;

/// The finalizer of a deletion without the children.
const ORPHAN: &str = "orphan";

pub(super) struct OwnerCheck {
    kind: fn() -> ApiResource,
    name: String,
    version: Option<String>,
    is_ending: bool,
    is_orphaning: bool,
    pub(super) for_clean_up: bool,
    /// It exists, or this process may not ask.
    pub(super) is_answered: bool,
}

impl OwnerCheck {
    pub(super) fn of<O: Resource<DynamicType = ()>>(owner: &O) -> Self {
        let meta = owner.meta();
        let is_ending = meta.deletion_timestamp.is_some();
        let is_orphaning = is_ending && meta.finalizers.iter().flatten().any(|one| one == ORPHAN);
        let (kind, name) = (|| ApiResource::erase::<O>(&()), meta.name.clone().unwrap_or_default());
        let version = meta.resource_version.clone();
        Self { kind, name, version, is_ending, is_orphaning, for_clean_up: false, is_answered: false }
    }

    pub(super) fn is_orphaning(&self) -> bool {
        self.is_orphaning
    }
}

impl ChildPass<'_> {
    pub(super) fn check_ending(&self, child: &str) -> Result<(), ChildError> {
        if !self.check.is_ending || self.check.for_clean_up {
            return Ok(());
        }
        Err(ChildError::OwnerIsEnding { owner: self.owner.described.clone(), child: child.to_owned() })
    }

    /// Unless it `must_be_known` now, an earlier answer or missing rights suffice.
    pub(super) async fn check_owner(&mut self, must_be_known: bool) -> Result<(), ChildError> {
        if self.check.is_answered && !must_be_known {
            return Ok(());
        }
        let found = match self.read_owner(self.owner.namespace.as_deref(), &self.check.name).await {
            Ok(found) => found,
            Err(error) if error.is_forbidden() && !must_be_known => {
                self.check.is_answered = true;
                return Ok(());
            }
            Err(source) => return Err(self.not_answered(source)),
        };
        let now = found
            .as_ref()
            .map(|meta| OwnerNow { uid: meta.uid.as_deref(), is_ending: meta.deletion_timestamp.is_some() });
        // No clean-up gives a reference back: the collector may have removed it to keep the child.
        let may_end = self.check.for_clean_up && !must_be_known;
        if !OwnerNow::may_have_children(now, &self.owner.uid, may_end) {
            return Err(ChildError::OwnerIsGone { owner: self.owner.described.clone() });
        }
        self.check.is_answered = true;
        Ok(())
    }

    pub(super) async fn check_unchanged(&self) -> Result<(), ChildError> {
        let found = self.read_owner(self.owner.namespace.as_deref(), &self.check.name).await;
        let found = found.map_err(|source| self.not_answered(source))?;
        let is_the_same = |now: &ObjectMeta| {
            now.uid.as_deref().is_some_and(|uid| self.owner.uid == uid)
                && now.resource_version == self.check.version
        };
        if found.as_ref().is_some_and(is_the_same) {
            return Ok(());
        }
        Err(ChildError::OwnerHasChanged { owner: self.owner.described.clone() })
    }

    pub(super) async fn check_keeper(&self, child: &str, meta: &ObjectMeta) -> Result<(), ChildError> {
        let mark = meta.annotations.iter().flatten().find(|(name, _)| *name == KEPT_FOR);
        let Some((_, mark)) = mark.filter(|(_, mark)| **mark != self.owner.mark()) else { return Ok(()) };
        let parts: Vec<&str> = mark.split(' ').collect();
        if let [kind, key, uid] = parts[..]
            && kind == self.owner.kind()
        {
            let (namespace, name) =
                key.split_once('/').map_or((None, key), |(space, name)| (Some(space), name));
            let found = self.read_owner(namespace, name).await.map_err(|source| self.not_answered(source))?;
            if found.is_none_or(|found| found.uid.as_deref() != Some(uid)) {
                return Ok(());
            }
        }
        Err(ChildError::KeptForAnother {
            child: child.to_owned(),
            keeper: mark.clone(),
            owner: self.owner.described.clone(),
        })
    }

    async fn read_owner(&self, namespace: Option<&str>, name: &str) -> Result<Option<ObjectMeta>, Error> {
        let api = self.children.client.dynamic_api(&(self.check.kind)()).in_namespace(namespace).metadata();
        Ok(api.get_opt(name).await?.map(|found| found.metadata))
    }

    fn not_answered(&self, source: Error) -> ChildError {
        ChildError::AskForOwner { owner: self.owner.described.clone(), source: Box::new(source) }
    }
}
