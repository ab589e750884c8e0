//! Whose a child is, on both servers: what `Children` relies on that only a real API server can say.
//!
//! Answers "does a real server refuse an apply in a state that is not there, and keep and move the fields of managers?" The
//! real control plane of these tests has no garbage collector: the test does what it would.

#![expect(clippy::unwrap_used, reason = "a helper that fails has failed the test")]

use actix_informer::client::api::Api;
use actix_informer::object::from_body;
use actix_informer::prelude::*;
use actix_informer::reconcile::{Adopt, ChildError, ChildPolicy, Children};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::stage::Stage;

fn maps(stage: &Stage) -> Api<ConfigMap> {
    stage.server.client().api().namespaced(&*stage.namespace)
}

fn map(name: &str, text: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"text": text}})).unwrap()
}

async fn owner(maps: &Api<ConfigMap>, name: &str) -> Object<ConfigMap> {
    from_body(maps.create(&PostParams::default(), &map(name, "owner")).await.unwrap()).unwrap()
}

fn reference(owner: &Object<ConfigMap>) -> Value {
    json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": owner.key().name(), "controller": true,
        "blockOwnerDeletion": true, "uid": owner.metadata.uid}])
}

/// Who applies an object.
async fn appliers(maps: &Api<ConfigMap>, name: &str) -> Vec<String> {
    let entries = maps.get(name).await.unwrap().metadata.managed_fields.unwrap_or_default();
    let applied = entries.into_iter().filter(|entry| entry.operation.as_deref() == Some("Apply"));
    applied.filter_map(|entry| entry.manager).collect()
}

pub(crate) async fn operator_a1_an_apply_succeeds_only_in_the_state_that_it_names(stage: Stage) {
    let maps = maps(&stage);
    let apply = async |metadata: Value, text: &str| {
        let mut body =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}});
        body["metadata"]["name"] = "a".into();
        maps.patch("a", &PatchParams::apply("test").force(), &Patch::Apply(body)).await
    };
    let nothing = json!({"resourceVersion": "1"});
    let made = apply(nothing.clone(), "1").await.unwrap();
    assert_ne!(
        made.metadata.resource_version.as_deref(),
        Some("1"),
        "a server leaves it out of what it creates"
    );
    assert!(apply(nothing, "2").await.unwrap_err().is_conflict(), "something is there");
    let exactly =
        |of: &ConfigMap| json!({"uid": of.metadata.uid, "resourceVersion": of.metadata.resource_version});
    let changed = apply(exactly(&made), "3").await.unwrap();
    assert!(apply(exactly(&made), "4").await.unwrap_err().is_conflict(), "another state of it");
    let mut other = exactly(&changed);
    other["uid"] = "00000000-0000-4000-8000-000000000000".into();
    let error = apply(other, "5").await.unwrap_err();
    assert!(error.is_conflict() || error.is_invalid(), "another life of it: {error}");
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(apply(exactly(&changed), "6").await.unwrap_err().is_conflict(), "it is gone");
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

pub(crate) async fn operator_a1_and_a6_managers_leave_each_other_alone_and_former_ones_are_moved_over(
    stage: Stage,
) {
    let (client, maps) = (stage.server.client(), maps(&stage));
    let owner = owner(&maps, "owner").await;
    let of = |manager: &str| Children::new(&client, manager).listed::<ConfigMap>("");
    let (dns, tls) = (of("dns"), of("tls"));
    // What both of them make, each of them takes.
    let adopting = ChildPolicy::new().adopt(Adopt::Always);
    let pass = async |children: &Children, names: &[&str]| {
        let mut pass = children.of(&owner, &owner).unwrap();
        for name in names {
            pass.apply_with(map(name, "1"), &adopting).await.unwrap();
        }
        pass.prune().await.unwrap().iter().map(|one| one.key.name().to_owned()).collect::<Vec<_>>()
    };
    pass(&dns, &["d", "both"]).await;
    let error = tls.of(&owner, &owner).unwrap().apply(map("both", "1")).await.unwrap_err();
    assert!(
        matches!(error, ChildError::NotOurs { .. }),
        "it has not asked for what another has made: {error}"
    );
    for _ in 0..3 {
        assert_eq!(pass(&dns, &["d", "both"]).await, [""; 0]);
        assert_eq!(pass(&tls, &["t", "both"]).await, [""; 0]);
    }
    assert_eq!(pass(&dns, &[]).await, ["d"]);
    assert_eq!(appliers(&maps, "both").await, ["tls"], "the other one is let go");
    assert_eq!(pass(&tls, &[]).await, ["both", "t"]);

    let former = format!("dns/{}", owner.metadata.uid.as_deref().unwrap());
    let before = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"text": "1", "old": "x"},
        "metadata": {"name": "f", "ownerReferences": reference(&owner)}});
    maps.patch("f", &PatchParams::apply(&former), &Patch::Apply(before)).await.unwrap();
    pass(&dns, &["f"]).await;
    let moved = maps.get("f").await.unwrap();
    assert_eq!(moved.data.unwrap().into_keys().collect::<Vec<_>>(), ["text"]);
    assert_eq!(appliers(&maps, "f").await, ["dns"]);
    assert_eq!(pass(&dns, &[]).await, ["f"]);
    assert!(maps.get_opt("owner").await.unwrap().is_some());
}

pub(crate) async fn operator_a5_a_child_that_was_left_behind_stays_so_and_what_is_fixed_is_made_anew(
    stage: Stage,
) {
    let (client, maps) = (stage.server.client(), maps(&stage));
    let children = Children::new(&client, "parts").listed::<ConfigMap>("");
    let made = owner(&maps, "leaving").await;
    let fixed = |text: &str| ConfigMap { immutable: Some(true), ..map("fixed", text) };
    let recreate = ChildPolicy::new().recreate();
    let mut pass = children.of(&made, &made).unwrap();
    pass.apply(map("left", "1")).await.unwrap();
    pass.apply(fixed("1")).await.unwrap();
    let error = pass.apply(fixed("2")).await.unwrap_err();
    assert!(matches!(&error, ChildError::Apply { source, .. } if source.is_invalid()), "{error}");
    pass.apply_with(fixed("2"), &recreate).await.unwrap();
    assert_eq!(maps.get("fixed").await.unwrap().data.unwrap()["text"], "2");
    drop(pass.prune().await.unwrap());

    maps.delete("leaving", &DeleteParams::orphan()).await.unwrap();
    // The garbage collector.
    let orphaned = Patch::Merge(json!({"metadata": {"ownerReferences": null}}));
    maps.patch("left", &PatchParams::default(), &orphaned).await.unwrap();
    for _ in 0..2 {
        let mut pass = children.of(&made, &made).unwrap();
        let error = pass.apply(map("left", "1")).await.unwrap_err();
        assert!(matches!(error, ChildError::OwnerIsGone { .. }), "{error}");
        assert_eq!(maps.get("left").await.unwrap().metadata.owner_references, None);
        let released = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        drop(maps.patch("leaving", &PatchParams::default(), &released).await);
    }
}
