//! Whether the owner is still there, where a cache may not know.
//!
//! Answers "may this child be applied?" by one request for the metadata of the owner, in three cases. The cache of the owner does
//! not follow its source: the owner may be long gone, as for a new leader whose watch is broken. Or this process has made the
//! child before, and it is gone: the garbage collector deletes what an owner leaves behind. Or nobody controls an object that
//! is to be the child: the owner may have been deleted with `--cascade=orphan`, which leaves its children behind, and a child
//! that gets its reference again is deleted with the owner. Invariants:
//! 1. A pass asks once, and only before an apply that it would send. Before each object that nobody controls it asks anew,
//!    after it has read the object: the answer to an earlier question may be older than the owner's deletion.
//! 2. A process that may not ask applies the child, but takes no object that nobody controls.
//! 3. Nothing is applied for an owner that is being deleted, unless the pass is for its clean-up.

use informer_core::children::OwnerNow;
use kube_core::Resource;
use kube_core::discovery::ApiResource;

use super::{ChildError, ChildPass};

/// The finalizer by which an owner's deletion leaves its children behind.
const ORPHAN: &str = "orphan";

/// What of an owner is needed to ask for it.
pub(super) struct OwnerCheck {
    kind: fn() -> ApiResource,
    name: String,
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
        Self { kind, name, is_ending, is_orphaning, for_clean_up: false, is_answered: false }
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
        let api = self.children.client.dynamic_api(&(self.check.kind)());
        let api = api.in_namespace(self.owner.namespace.as_deref()).metadata();
        let found = match api.get_opt(&self.check.name).await {
            Ok(found) => found.map(|found| found.metadata),
            Err(error) if error.is_forbidden() && !must_be_known => {
                self.check.is_answered = true;
                return Ok(());
            }
            Err(source) => {
                let (owner, source) = (self.owner.described.clone(), Box::new(source));
                return Err(ChildError::AskForOwner { owner, source });
            }
        };
        let now = found
            .as_ref()
            .map(|meta| OwnerNow { uid: meta.uid.as_deref(), is_ending: meta.deletion_timestamp.is_some() });
        if !OwnerNow::may_have_children(now, &self.owner.uid, self.check.for_clean_up) {
            return Err(ChildError::OwnerIsGone { owner: self.owner.described.clone() });
        }
        self.check.is_answered = true;
        Ok(())
    }
}
