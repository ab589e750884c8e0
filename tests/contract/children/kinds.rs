//! OPR-11: two types for one kind, as a program has that moves from one version of a kind to another.
//!
//! Answers "is a child that was applied as one type safe from a pass that looks for it as another?".

use std::borrow::Cow;

use actix_informer::reconcile::Children;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::{NamespaceResourceScope, Resource};
use serde::{Deserialize, Serialize};

use super::{pass_of, scene};

/// Another type for the kind of config maps, as that of another version of a kind is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct SameKind(ConfigMap);

impl Resource for SameKind {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        ConfigMap::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        ConfigMap::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        ConfigMap::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        ConfigMap::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

// OPR-11: given children that are not wanted any more, children of others and objects that the owner does not
// control, when a pass is pruned, then the first are deleted and no others; a child whose apply has failed is
// kept.
// - a unwanted children are deleted and no others
// - b a child whose apply has failed is kept: `opr_11_a_child_whose_apply_has_failed_is_not_pruned`
#[test]
fn opr_11_a_child_that_was_applied_is_not_pruned_by_another_type_of_its_kind() {
    scene(|scene| async move {
        let scene = scene;
        let children = Children::new(&scene.cluster.client, "sites").listed::<SameKind>("");
        let pages = [("a", "1"), ("b", "2")];
        assert_eq!(pass_of(&children, &scene.owner, &pages).await.unwrap().1, [""; 0]);
        let (_, pruned) = pass_of(&children, &scene.owner, &pages[..1]).await.unwrap();
        assert_eq!(pruned, ["ConfigMap default/b"]);
    });
}
