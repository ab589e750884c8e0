//! How one child is treated that is not like most others.
//!
//! Answers "may an object that is there already become the child, does it outlive its owner, is it changed once it is there, and
//! is it made anew where a field cannot be changed?" Invariants:
//! 1. The default is the one that deletes and takes over least: what another made is left alone, and an error says so.
//!
//! Read next: `apply.rs`.

use std::collections::BTreeMap;

use informer_client::LabelSelector;

/// What becomes of an object of the child's name that no other object controls, and that this field manager has not applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Adopt {
    /// It stays as it is, and the apply is an error, [`ChildError::NotOurs`](super::ChildError::NotOurs). This is the default: a
    /// child is deleted with its owner, and somebody's own object must not be.
    #[default]
    Never,
    /// It becomes the child if it has these labels.
    IfLabelled(LabelSelector),
    /// It becomes the child.
    Always,
}

/// How one child is treated; the default is what [`ChildPass::apply`](super::ChildPass::apply) does.
///
/// ```
/// use actix_informer::prelude::*;
/// use actix_informer::reconcile::{Adopt, ChildPass, ChildPolicy};
/// use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret, Service};
///
/// # async fn demo(mut pass: ChildPass<'_>, password: Secret, data: PersistentVolumeClaim, service: Service) -> Result<(), Box<dyn std::error::Error>> {
/// pass.apply_with(password, &ChildPolicy::new().create_only()).await?; // who changes it afterwards keeps the change
/// pass.apply_with(data, &ChildPolicy::new().keep()).await?; // it outlives its owner
/// pass.apply_with(service, &ChildPolicy::new().adopt(Adopt::IfLabelled("adopt=yes".parse()?))).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "it does nothing until a child is applied with it"]
pub struct ChildPolicy {
    adopt: Adopt,
    is_kept: bool,
    is_created_only: bool,
    is_recreated: bool,
}

impl ChildPolicy {
    /// A child like most others.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether an object that is there already, and that no other object controls, becomes the child.
    pub fn adopt(mut self, adopt: Adopt) -> Self {
        self.adopt = adopt;
        self
    }

    /// It outlives its owner, and is never pruned: it is applied without a reference to the owner, with the annotation
    /// `actix-informer/kept-for`. Another owner does not get it as long as this one is there
    /// ([`ChildError::KeptForAnother`](super::ChildError::KeptForAnother)). A controller's `owns` does not lead from it to the
    /// owner; `maps` can.
    pub fn keep(mut self) -> Self {
        self.is_kept = true;
        self
    }

    /// It is made if it is not there, and left as it is afterwards. It is pruned like others.
    pub fn create_only(mut self) -> Self {
        self.is_created_only = true;
        self
    }

    /// Where the server says that a field of it cannot be changed, it is deleted and made anew, if it is ours. In between it
    /// is not there. One that is kept ([`Self::keep`]) is not deleted: the apply is an error.
    pub fn recreate(mut self) -> Self {
        self.is_recreated = true;
        self
    }

    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    pub(super) fn is_created_only(&self) -> bool {
        self.is_created_only
    }

    pub(super) fn is_recreated(&self) -> bool {
        self.is_recreated
    }

    /// Whether an object with these labels may be taken that we have not made.
    pub(super) fn takes(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        match &self.adopt {
            Adopt::Never => false,
            Adopt::IfLabelled(selector) => labels.is_some_and(|labels| selector.matches(labels)),
            Adopt::Always => true,
        }
    }
}
