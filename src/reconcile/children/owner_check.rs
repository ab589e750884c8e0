//! Whether the owner is still there, where a cache may not know.
//!
//! Answers "may this child be applied?" by one request for the metadata of the owner, in two cases. The cache of the owner does
//! not follow its source: the owner may be long gone, as for a new leader whose watch is broken. Or this process has made the
//! child before, and it is gone: the garbage collector deletes what an owner leaves behind. Without the question, a
//! reconciler and the garbage collector would make and delete such a child in turns until the cache has caught up. Invariants:
//! 1. A pass asks at most once, and only before an apply that it would send.
//! 2. A process that may not ask applies the child.

use informer_core::children::OwnerNow;
use kube_core::Resource;
use kube_core::discovery::ApiResource;

use super::{ChildError, ChildPass};

/// What of an owner is needed to ask for it.
pub(super) struct OwnerCheck {
    kind: fn() -> ApiResource,
    name: String,
    /// Whether it was being deleted when it was read.
    is_ending: bool,
    is_done: bool,
}

impl OwnerCheck {
    /// Nothing was asked yet.
    pub(super) fn of<O: Resource<DynamicType = ()>>(owner: &O) -> Self {
        let meta = owner.meta();
        Self {
            kind: || ApiResource::erase::<O>(&()),
            name: meta.name.clone().unwrap_or_default(),
            is_ending: meta.deletion_timestamp.is_some(),
            is_done: false,
        }
    }
}

impl ChildPass<'_> {
    /// Asks once whether the owner is there as the cache has it.
    pub(super) async fn check_owner(&mut self) -> Result<(), ChildError> {
        if self.check.is_done {
            return Ok(());
        }
        let api = self.children.client.dynamic_api(&(self.check.kind)());
        let api = api.in_namespace(self.owner.namespace.as_deref()).metadata();
        let found = match api.get_opt(&self.check.name).await {
            Ok(found) => found.map(|found| found.metadata),
            Err(error) if error.is_forbidden() => {
                self.check.is_done = true;
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
        if !OwnerNow::may_have_children(now, &self.owner.uid, self.check.is_ending) {
            return Err(ChildError::OwnerIsGone { owner: self.owner.described.clone() });
        }
        self.check.is_done = true;
        Ok(())
    }
}
