//! Whether the owner is still there, where a cache may not know.
//!
//! Answers "may this child be applied?" by one request for the metadata of the owner, in three cases. The cache of the owner does
//! not follow its source: the owner may be long gone, as for a new leader whose watch is broken. Or this process has made the
//! child before, and it is gone: the garbage collector deletes what an owner leaves behind. Or nobody controls an object that
//! is to be the child: the owner may have been deleted with `--cascade=orphan`, which leaves its children behind, and a child
//! that gets its reference again is deleted with the owner. Invariants:
//! 1. Before the applies that it would send a pass asks once, and once more when a child that was there is gone. Before each
//!    object that nobody controls it asks anew, after it has read the object: the answer to an earlier question may be older
//!    than the owner's deletion.
//! 2. A process that may not ask applies the child, but takes no object that nobody controls.
//! 3. Nothing is applied for an owner that is being deleted, unless the pass is for its clean-up. That makes new children, and
//!    takes no object that nobody controls.
//! 4. Where the cache does not follow its source, the server is asked before each deletion: a child is
//!    deleted only if the server has the owner in the state of the pass.
//! 5. A child that outlives its owner says whose it is (`KEPT_FOR`): no other owner takes it while that one is there.

use crate::reconcile::machine::children::OwnerNow;
use kube_core::discovery::ApiResource;
use kube_core::{ObjectMeta, Resource};

use super::{ChildError, ChildPass};
use crate::reconcile::kubernetes::owner::KEPT_FOR;
use informer_client::Error;

/// The finalizer by which an owner's deletion leaves its children behind.
const ORPHAN: &str = "orphan";

/// What of an owner is needed to ask for it.
pub(super) struct OwnerCheck {
    kind: fn() -> ApiResource,
    name: String,
    /// The version of the state that the pass is about.
    version: Option<String>,
    /// Whether it was being deleted when it was read.
    is_ending: bool,
    /// Whether its children are to stay behind.
    is_orphaning: bool,
    /// Whether the pass is for its clean-up.
    pub(super) for_clean_up: bool,
    /// Whether the server has said that it is there, or that this process may not ask.
    pub(super) is_answered: bool,
}

impl OwnerCheck {
    /// Nothing was asked yet.
    pub(super) fn of<O: Resource<DynamicType = ()>>(owner: &O) -> Self {
        let meta = owner.meta();
        let is_ending = meta.deletion_timestamp.is_some();
        let is_orphaning = is_ending && meta.finalizers.iter().flatten().any(|one| one == ORPHAN);
        let (kind, name) = (|| ApiResource::erase::<O>(&()), meta.name.clone().unwrap_or_default());
        let version = meta.resource_version.clone();
        Self { kind, name, version, is_ending, is_orphaning, for_clean_up: false, is_answered: false }
    }

    /// Whether the owner's deletion leaves its children behind.
    pub(super) fn is_orphaning(&self) -> bool {
        self.is_orphaning
    }
}

impl ChildPass<'_> {
    /// Refuses what is not for the clean-up of an owner that is being deleted.
    pub(super) fn check_ending(&self, child: &str) -> Result<(), ChildError> {
        if !self.check.is_ending || self.check.for_clean_up {
            return Ok(());
        }
        Err(ChildError::OwnerIsEnding { owner: self.owner.described.clone(), child: child.to_owned() })
    }

    /// Asks whether the owner is there as the cache has it. Unless it `must_be_known` at this moment, an earlier answer counts,
    /// and a process that may not ask takes it for granted.
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
        // No clean-up gives a reference back: the collector may have taken it, for the child to stay.
        let may_end = self.check.for_clean_up && !must_be_known;
        if !OwnerNow::may_have_children(now, &self.owner.uid, may_end) {
            return Err(ChildError::OwnerIsGone { owner: self.owner.described.clone() });
        }
        self.check.is_answered = true;
        Ok(())
    }

    /// Refuses a deletion unless the server has the owner in the state that this pass is about.
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

    /// Refuses an object that is kept for another owner which is still there.
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

    /// The metadata of an owner of this kind.
    async fn read_owner(&self, namespace: Option<&str>, name: &str) -> Result<Option<ObjectMeta>, Error> {
        let api = self.children.client.dynamic_api(&(self.check.kind)()).in_namespace(namespace).metadata();
        Ok(api.get_opt(name).await?.map(|found| found.metadata))
    }

    fn not_answered(&self, source: Error) -> ChildError {
        ChildError::AskForOwner { owner: self.owner.described.clone(), source: Box::new(source) }
    }
}
