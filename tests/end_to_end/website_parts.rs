//! Finalizers and children on both servers: what a real API server says to the patches, applies and deletions of
//! `actix_informer::reconcile`.
//!
//! Answers "do the helpers of reconcilers rely on something that only the in-memory server does?"

#![expect(clippy::unwrap_used, reason = "a helper that fails has failed the test")]

use actix_informer::client::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use actix_informer::object::from_body;
use actix_informer::prelude::*;
use actix_informer::reconcile::{
    Applied, ChildError, Children, Finalize, FinalizerError, OwnerError, finalizer,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::stage::{LONG, Stage};
use crate::verbs::{map, maps};

const MINE: &str = "example.org/mine";
const OTHER: &str = "example.org/other";

async fn seen(maps: &Api<ConfigMap>) -> Object<ConfigMap> {
    from_body(maps.get("owner").await.unwrap()).unwrap()
}

async fn change(maps: &Api<ConfigMap>, patch: Value) {
    maps.patch("owner", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn step(stage: &Stage, object: &Object<ConfigMap>) -> String {
    let step = async |event: Finalize<ConfigMap>| Ok::<_, FinalizerError>(event.to_string());
    finalizer(&stage.server.client(), object, MINE, step).await.unwrap()
}

pub(crate) async fn opr_04_a_finalizer_is_added_and_removed_beside_others_and_after_conflicts(stage: Stage) {
    let maps = maps(&stage);
    maps.create(&PostParams::default(), &map("owner", "1")).await.unwrap();
    let first = seen(&maps).await;
    change(&maps, json!({"data": {"key": "2"}, "metadata": {"finalizers": [OTHER]}})).await;
    let applied = format!("apply {}", first.key());
    assert_eq!(step(&stage, &first).await, applied, "after a conflict");
    let held = seen(&maps).await;
    assert_eq!(held.metadata.finalizers.as_deref().unwrap(), [OTHER, MINE]);
    assert_eq!(step(&stage, &held).await, applied);

    maps.delete("owner", &DeleteParams::default()).await.unwrap();
    assert_eq!(step(&stage, &first).await, "", "no finalizer is added to what is being deleted");
    let ending = seen(&maps).await;
    change(&maps, json!({"metadata": {"labels": {"a": "b"}}})).await;
    let cleaned = format!("clean up {}", first.key());
    assert_eq!(step(&stage, &ending).await, cleaned, "after a conflict");
    assert_eq!(seen(&maps).await.metadata.finalizers.as_deref().unwrap(), [OTHER]);
    change(&maps, json!({"metadata": {"finalizers": null}})).await;
    assert!(maps.get_opt("owner").await.unwrap().is_none());
    assert_eq!(step(&stage, &ending).await, cleaned, "it is gone, which is no error");
    assert_eq!(step(&stage, &first).await, "");
}

fn deployment(replicas: i32) -> Deployment {
    let labels = json!({"app": "web"});
    let probe = json!({"httpGet": {"port": 80}});
    let container = json!({
        "name": "web", "image": "nginx", "ports": [{"containerPort": 80}], "readinessProbe": probe,
        "resources": {"limits": {"cpu": "1000m", "memory": "0.5Gi"}},
    });
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
    let spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
    serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": spec})).unwrap()
}

pub(crate) async fn opr_09_children_are_applied_left_alone_put_right_and_pruned(stage: Stage) {
    let (client, maps) = (stage.server.client(), maps(&stage));
    let owner = from_body(maps.create(&PostParams::default(), &map("owner", "1")).await.unwrap()).unwrap();
    let informer =
        client.resource::<Deployment>().namespace(&*stage.namespace).informer(&stage.runtime).unwrap();
    let informer = informer.start().unwrap();
    informer.synced_within(LONG).await.unwrap();
    let children =
        Children::new(&client, "parts").cached(&informer.lister()).listed::<ConfigMap>("part=child");
    let pass = async |replicas: i32| {
        let mut pass = children.of(&owner, &owner).unwrap();
        let applied = pass.apply(deployment(replicas)).await.unwrap();
        let version = applied.metadata.resource_version.as_deref().unwrap().parse().unwrap();
        informer.lister().wait_for(&version, LONG).await.unwrap();
        pass.prune().await.unwrap();
        matches!(applied, Applied::Written(_))
    };
    assert!(
        pass(2).await && !pass(2).await,
        "the second pass finds what the first has made, with its defaults"
    );

    let deployments = client.api::<Deployment>().namespaced(&*stage.namespace);
    let change = async |patch: Value| {
        let changed = deployments.patch("web", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        let version = changed.metadata.resource_version.unwrap().parse().unwrap();
        informer.lister().wait_for(&version, LONG).await.unwrap();
    };
    change(json!({"metadata": {"labels": {"foreign": "x"}}})).await;
    assert!(pass(2).await && !pass(2).await, "one look at what somebody has changed");
    change(json!({"spec": {"replicas": 5}})).await;
    assert!(pass(2).await, "an own field");
    assert_eq!(deployments.get("web").await.unwrap().spec.unwrap().replicas, Some(2));

    let mut other_pass = children.of(&owner, &owner).unwrap();
    other_pass.apply(map::<ConfigMap>("child", "child")).await.unwrap();
    let pruned: Vec<_> = other_pass.prune().await.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(pruned, [format!("Deployment {}/web", stage.namespace)]);
    let pruned = children.of(&owner, &owner).unwrap().prune().await.unwrap();
    assert_eq!(pruned.last().map(|pruned| pruned.key.name()), Some("child"));
    assert!(maps.get_opt("child").await.unwrap().is_none() && maps.get_opt("owner").await.unwrap().is_some());

    let mut first = children.of(&owner, &owner).unwrap();
    first.apply(map::<ConfigMap>("taken", "child")).await.unwrap();
    let second = from_body(maps.create(&PostParams::default(), &map("second", "1")).await.unwrap()).unwrap();
    let mut second = children.of(&second, &second).unwrap();
    let refused = second.apply(map::<ConfigMap>("taken", "child")).await.unwrap_err();
    assert!(matches!(&refused, ChildError::Owner(OwnerError::Controlled { .. })), "{refused}");
}
