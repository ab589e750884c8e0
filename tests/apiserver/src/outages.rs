//! The faults that change what is stored: jumps and rewinds of versions, objects and definitions that are replaced
//! under their name.
//!
//! Answers: how does a test cause a restore from a backup, or a name that belongs to another object now?
//! 1. Each is one visit to the core: no client sees a part of it. The garbage collector acts afterwards.
//! 2. All but `jump_revision` and `restore_backup` go through the rules of the API and are sent to watches as usual.
//!
//! Next: `cluster/store.rs` does the work.
use crate::cluster::call::Call;
use crate::cluster::status::ApiError;
use crate::faults::Faults;
use crate::server::{namespace_for, served};

const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

impl Faults {
    /// Lets the next write take a version this much higher than it would.
    pub fn jump_revision(&self, by: u64) {
        self.world.with(|inner| inner.cluster.jump(by));
    }

    /// Keeps the whole store as it is now, in place of what was kept before. Costs almost nothing.
    pub fn keep_backup(&self) {
        self.world.with(|inner| inner.faults.backup = Some(inner.cluster.freeze()));
    }

    /// Puts the kept state back, as `ApiServer::restore` does: versions go back, open watches end, and a
    /// watch from the lost future stays silent. Returns whether there was a kept state; it can be restored again.
    pub fn restore_backup(&self) -> bool {
        let restored = self.world.with(|inner| {
            let backup = inner.faults.backup.clone();
            backup.is_some_and(|backup| {
                inner.cluster.restore(&backup);
                true
            })
        });
        self.world.settle();
        restored
    }

    /// Deletes an object, whatever finalizers it has, and creates it again under the same name with another
    /// uid, without its status.
    ///
    /// Watches receive DELETED and ADDED. With `unseen` they are ended first and the past events of the
    /// resource are dropped: a client finds another object under the name and never receives the deletion.
    ///
    /// # Errors 404 if it is not there, or the refusal of the creation.
    pub fn recreate(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        unseen: bool,
    ) -> Result<(), ApiError> {
        let now = self.world.now();
        self.world.with(|inner| {
            let kind = served(&inner.cluster, resource)?;
            let namespace = namespace_for(&kind, namespace);
            let call = Call::plain(&kind, namespace, name, now);
            inner.cluster.recreate(&call, unseen).map(drop)
        })?;
        // What follows from it is done before the method returns, as for a request.
        self.world.settle();
        Ok(())
    }

    /// Deletes a definition with all its objects: its resource answers 404 until `return_definition`.
    ///
    /// # Errors
    /// 404 if there is none of this name (`widgets.example.com`).
    pub fn withdraw_definition(&self, name: &str) -> Result<(), ApiError> {
        let now = self.world.now();
        self.world.with(|inner| {
            let kind = served(&inner.cluster, DEFINITIONS)?;
            let body = inner.cluster.withdraw(&Call::plain(&kind, "", name, now))?;
            inner.faults.withdrawn.insert(name.to_owned(), body);
            Ok::<_, ApiError>(())
        })?;
        self.world.settle();
        Ok(())
    }

    /// Creates the definition that `withdraw_definition` removed, with another uid and without objects.
    ///
    /// # Errors 404 if no definition of this name was removed, 409 if one is there again.
    pub fn return_definition(&self, name: &str) -> Result<(), ApiError> {
        let now = self.world.now();
        self.world.with(|inner| {
            let kind = served(&inner.cluster, DEFINITIONS)?;
            let call = Call::plain(&kind, "", name, now);
            let body = inner.faults.withdrawn.get(name).cloned();
            let body = body.ok_or_else(|| ApiError::not_found(kind.named(name)))?;
            inner.cluster.create(&call, body)?;
            inner.faults.withdrawn.remove(name);
            Ok::<_, ApiError>(())
        })?;
        self.world.settle();
        Ok(())
    }
}
