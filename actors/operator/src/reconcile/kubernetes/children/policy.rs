//! The policy of one child. By default an object that another made is left alone, with an error.

use std::collections::BTreeMap;

use informer_client::LabelSelector;

/// What happens to an object with the child's name that no other object controls, and that this field manager
/// has not applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Adopt {
    /// It stays as it is, and the apply fails with [`ChildError::NotOurs`](super::ChildError::NotOurs). This
    /// is the default: a child is deleted with its owner, which must not happen to somebody's own object.
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
    pub(super) is_kept: bool,
    pub(super) is_created_only: bool,
    pub(super) is_recreated: bool,
}

impl ChildPolicy {
    /// A child like most others.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether an existing object that no other object controls becomes the child.
    pub fn adopt(mut self, adopt: Adopt) -> Self {
        self.adopt = adopt;
        self
    }

    /// The child outlives its owner and is never pruned. It is applied without a reference to the owner, with
    /// the annotation `actix-informer/kept-for`. Another owner does not get it while this owner exists
    /// ([`ChildError::KeptForAnother`](super::ChildError::KeptForAnother)). A controller's `owns` does not
    /// lead from it to the owner; `maps` can.
    pub fn keep(mut self) -> Self {
        self.is_kept = true;
        self
    }

    /// The child is created if it does not exist, and never changed afterwards. It is pruned like others.
    pub fn create_only(mut self) -> Self {
        self.is_created_only = true;
        self
    }

    /// If the server says that a field of the child cannot be changed, the child is deleted and made again,
    /// if it is ours. In between it does not exist. A child that is kept ([`Self::keep`]) is not deleted: the
    /// apply fails.
    pub fn recreate(mut self) -> Self {
        self.is_recreated = true;
        self
    }

    /// For an object that we have not made.
    pub(super) fn takes(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        match &self.adopt {
            Adopt::Never => false,
            Adopt::IfLabelled(selector) => labels.is_some_and(|labels| selector.matches(labels)),
            Adopt::Always => true,
        }
    }
}
