//! The owner reference of a child, with the rules of controller-runtime's `SetControllerReference`.
//!
//! 1. An owner is in the namespace of its child or in none: the garbage collector deletes children of an
//!    owner elsewhere.
//! 2. A child has at most one controller: two would undo each other's work.
//! 3. The same owner again changes nothing.

use std::any::TypeId;

use informer_core::meta::{ObjectKey, Uid};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_core::{ClusterResourceScope, ObjectMeta, Resource};

use informer_client::representation::{Controlled, ControllerRef};

/// On a child that outlives its owner.
pub(super) const KEPT_FOR: &str = "actix-informer/kept-for";

/// Why an object cannot be the controller of a child.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// The owner has no name or no uid: no server has stored it.
    #[error("the owner, a {kind}, has no {field}: no server has stored it")]
    NotStored {
        /// Its kind.
        kind: String,
        /// What is missing.
        field: &'static str,
    },
    /// The owner is in another namespace, or the owner has a namespace and the child has none.
    #[error("{child} cannot be owned by {owner}: an owner is in the namespace of its child, or in none")]
    Namespace {
        /// Kind and key of the child.
        child: String,
        /// Kind and key of the owner.
        owner: String,
    },
    /// The kind of the child is namespaced, but neither the child nor its owner has a namespace.
    #[error(
        "{child} has no namespace, and {owner}, which is in none, has none to give: set metadata.namespace of the child"
    )]
    NoNamespace {
        /// Kind and key of the child.
        child: String,
        /// Kind and key of the owner.
        owner: String,
    },
    /// Another object controls the child.
    #[error("{child} is controlled by {controller} (uid {uid}), and not by {owner}")]
    Controlled {
        /// Kind and key of the child.
        child: String,
        /// Kind and name of the object that controls it.
        controller: String,
        /// The uid of that object.
        uid: String,
        /// Kind and key of the owner that was to control it.
        owner: String,
    },
}

/// Children that name their controller.
pub trait OwnedBy: Resource<DynamicType = (), Scope: 'static> + Sized {
    /// Returns the object with `owner` as its controller, and `blockOwnerDeletion`. A child without a
    /// namespace gets that of its owner, if its kind is namespaced. Costs a few string copies.
    ///
    /// ```
    /// use actix_informer::reconcile::{OwnedBy, OwnerError};
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// let mut owner = Deployment::default(); // in a reconcile function: &*object
    /// owner.metadata.name = Some("web".to_owned());
    /// owner.metadata.namespace = Some("shop".to_owned());
    /// owner.metadata.uid = Some("d-1".to_owned());
    ///
    /// let child = ConfigMap::default().owned_by(&owner)?;
    /// assert_eq!(child.metadata.namespace.as_deref(), Some("shop"));
    /// assert_eq!(child.metadata.owner_references.unwrap_or_default()[0].uid, "d-1");
    ///
    /// let mut elsewhere = ConfigMap::default();
    /// elsewhere.metadata.namespace = Some("blog".to_owned());
    /// assert!(matches!(elsewhere.owned_by(&owner), Err(OwnerError::Namespace { .. })));
    /// # Ok::<(), OwnerError>(())
    /// ```
    ///
    /// # Errors
    /// [`OwnerError`]: an owner without a uid, of another namespace, or a child that another object controls.
    fn owned_by<O: Resource<DynamicType = ()>>(self, owner: &O) -> Result<Self, OwnerError> {
        let mut child = self;
        Owner::of(owner)?.own(&mut child, false)?;
        Ok(child)
    }
}

impl<K: Resource<DynamicType = (), Scope: 'static>> OwnedBy for K {}

pub(super) struct Owner {
    reference: OwnerReference,
    pub(super) uid: Uid,
    pub(super) namespace: Option<String>,
    pub(super) described: String,
}

impl Owner {
    pub(super) fn of<O: Resource<DynamicType = ()>>(owner: &O) -> Result<Self, OwnerError> {
        let missing = |field| OwnerError::NotStored { kind: O::kind(&()).into_owned(), field };
        let meta = owner.meta();
        let name = meta.name.clone().filter(|name| !name.is_empty()).ok_or_else(|| missing("name"))?;
        let uid = meta.uid.as_deref().and_then(Uid::new).ok_or_else(|| missing("uid"))?;
        let reference = OwnerReference {
            api_version: O::api_version(&()).into_owned(),
            kind: O::kind(&()).into_owned(),
            name,
            uid: uid.to_string(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        Ok(Self { reference, uid, namespace: meta.namespace.clone(), described: described(owner) })
    }

    pub(super) fn kind(&self) -> String {
        let group = self.reference.api_version.split_once('/').map(|(group, _)| group);
        group.map_or_else(|| self.reference.kind.clone(), |group| format!("{}.{group}", self.reference.kind))
    }

    pub(super) fn mark(&self) -> String {
        let name = &self.reference.name;
        let key = self.namespace.as_ref().map_or_else(|| name.clone(), |space| format!("{space}/{name}"));
        format!("{} {key} {}", self.kind(), self.uid)
    }

    /// A kept child gets the annotation instead of a reference.
    pub(super) fn own<C>(&self, child: &mut C, is_kept: bool) -> Result<(), OwnerError>
    where
        C: Resource<DynamicType = (), Scope: 'static>,
    {
        let is_in_namespaces = TypeId::of::<C::Scope>() != TypeId::of::<ClusterResourceScope>();
        if let (Some(namespace), true, None) = (&self.namespace, is_in_namespaces, &child.meta().namespace) {
            child.meta_mut().namespace = Some(namespace.clone());
        }
        if is_in_namespaces && child.meta().namespace.is_none() {
            return Err(OwnerError::NoNamespace { child: described(child), owner: self.described.clone() });
        }
        if is_kept {
            let annotations = child.meta_mut().annotations.get_or_insert_default();
            annotations.insert(KEPT_FOR.to_owned(), self.mark());
            return Ok(());
        }
        if self.namespace.is_some() && self.namespace != child.meta().namespace {
            return Err(OwnerError::Namespace { child: described(child), owner: self.described.clone() });
        }
        self.may_control(child.controller(), || described(child))?;
        let references = child.meta_mut().owner_references.get_or_insert_default();
        references.retain(|found| found.uid != self.reference.uid);
        references.push(self.reference.clone());
        Ok(())
    }

    pub(super) fn may_control(
        &self,
        controller: Option<ControllerRef<'_>>,
        child: impl FnOnce() -> String,
    ) -> Result<(), OwnerError> {
        match controller.filter(|found| found.uid.as_ref() != Some(&self.uid)) {
            None => Ok(()),
            Some(other) => Err(OwnerError::Controlled {
                child: child(),
                controller: format!("{} {}", other.kind, other.name),
                uid: other.uid.map_or_else(String::new, |uid| uid.to_string()),
                owner: self.described.clone(),
            }),
        }
    }
}

pub(super) fn controlling(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|found| found.controller == Some(true))
}

pub(super) fn described<K: Resource<DynamicType = ()>>(object: &K) -> String {
    let meta = object.meta();
    let name = meta.name.clone().unwrap_or_default();
    let key = match &meta.namespace {
        Some(namespace) => ObjectKey::namespaced(namespace.clone(), name),
        None => ObjectKey::cluster(name),
    };
    format!("{} {key}", K::kind(&()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};

    fn map(name: &str, namespace: Option<&str>) -> ConfigMap {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.to_owned());
        map.metadata.uid = Some(format!("uid-of-{name}"));
        map.metadata.namespace = namespace.map(str::to_owned);
        map
    }

    // OPR-06: given an owner and a child, when the child is owned, then it names its controller with
    // `blockOwnerDeletion`, the same owner again changes nothing, and an owner without a uid is an error.
    // - a it names its controller with blockOwnerDeletion
    // - b the same owner again changes nothing
    // - c an owner without a uid is an error: `opr_06_an_owner_that_no_server_has_stored_is_refused`
    #[test]
    fn opr_06_a_child_names_its_controller_which_blocks_its_own_deletion() {
        let owner = map("owner", Some("a"));
        let child = map("child", None).owned_by(&owner).unwrap();
        let reference = controlling(child.meta()).unwrap();
        assert_eq!((&*reference.api_version, &*reference.kind), ("v1", "ConfigMap"));
        assert_eq!((&*reference.name, &*reference.uid), ("owner", "uid-of-owner"));
        assert_eq!((reference.controller, reference.block_owner_deletion), (Some(true), Some(true)));
        let again = child.clone().owned_by(&owner).unwrap();
        assert_eq!(again, child, "the same owner again changes nothing");
    }

    // OPR-07: given an owner in one namespace and a child in another or in none, when the child is owned,
    // then it is a typed error that names both.
    // - a another namespace
    // - b a child without a namespace
    // - c an owner without a namespace owns in each
    #[test]
    fn opr_07_an_owner_of_another_namespace_is_refused() {
        let owner = map("owner", Some("a"));
        let error = map("child", Some("b")).owned_by(&owner).unwrap_err();
        let words = "ConfigMap b/child cannot be owned by ConfigMap a/owner: an owner is in the namespace of its child, \
                     or in none";
        assert_eq!(error.to_string(), words);
        let mut cluster_scoped = Namespace::default();
        cluster_scoped.metadata.name = Some("b".to_owned());
        assert!(matches!(cluster_scoped.owned_by(&owner), Err(OwnerError::Namespace { .. })));
        let mut node = Node::default();
        (node.metadata.name, node.metadata.uid) = (Some("n".to_owned()), Some("u".to_owned()));
        assert!(map("child", Some("b")).owned_by(&node).is_ok(), "an owner without a namespace owns in each");
    }

    #[test]
    fn operator_b_a_child_without_a_namespace_under_an_owner_without_one_is_told_what_to_do() {
        let mut node = Node::default();
        (node.metadata.name, node.metadata.uid) = (Some("n".to_owned()), Some("u".to_owned()));
        let words = "ConfigMap child has no namespace, and Node n, which is in none, has none to give: set \
                     metadata.namespace of the child";
        assert_eq!(map("child", None).owned_by(&node).unwrap_err().to_string(), words);
        let mut other = Node::default();
        other.metadata.name = Some("m".to_owned());
        assert!(other.owned_by(&node).is_ok(), "a kind without namespaces needs none");
    }

    #[test]
    fn opr_08_a_second_controller_is_refused_and_an_owner_that_controls_nothing_is_kept() {
        let (first, second) = (map("first", Some("a")), map("second", Some("a")));
        let child = map("child", None).owned_by(&first).unwrap();
        let error = child.clone().owned_by(&second).unwrap_err();
        let words = "ConfigMap a/child is controlled by ConfigMap first (uid uid-of-first), and not by ConfigMap a/second";
        assert_eq!(error.to_string(), words);
        let mut child = child;
        child.metadata.owner_references.as_mut().unwrap()[0].controller = None;
        let child = child.owned_by(&second).unwrap();
        assert_eq!(child.metadata.owner_references.unwrap().len(), 2);
    }

    #[test]
    fn opr_06_an_owner_that_no_server_has_stored_is_refused() {
        let mut owner = map("owner", Some("a"));
        owner.metadata.uid = None;
        let error = map("child", None).owned_by(&owner).unwrap_err();
        assert_eq!(error.to_string(), "the owner, a ConfigMap, has no uid: no server has stored it");
    }
}
