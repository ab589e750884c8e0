//! Pages, watches, entries, retries and waits by `client::Api`.
//!
//! Answers "does what needs more than one request hold on both servers?" Connections that end and versions that expire
//! are in `tests/client/api_watch.rs`.

#![expect(clippy::unwrap_used, reason = "a verb that fails has failed the test")]

use std::time::Duration;

use actix_informer::client::Api;
use actix_informer::client::api::{
    CommitError, ConflictPolicy, DeleteParams, Entry, ListParams, Patch, PatchParams, PostParams, WatchEvent,
    WatchParams, conditions,
};
use actix_informer::object::Object;
use futures_util::{StreamExt, TryStreamExt, future};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::Resource;
use kube_core::discovery::ApiResource;
use kube_core::gvk::GroupVersionKind;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::stage::{LONG, Stage};
use crate::verbs::{dynamic_maps, map, maps};

fn post() -> PostParams {
    PostParams::default()
}

fn labelled() -> ListParams {
    ListParams::default().labels("part=v")
}

pub(crate) async fn pages_follow_each_other_and_list_all_joins_them(stage: Stage) {
    let maps = maps(&stage);
    for n in 0..5 {
        maps.create(&post(), &map(&format!("n{n}"), "v")).await.unwrap();
    }
    let two = labelled().limit(2);
    let sizes: Vec<_> = maps.pages(&two).map_ok(|page| page.items.len()).try_collect().await.unwrap();
    assert_eq!(sizes, [2, 2, 1]);
    let all = maps.list_all(&two).await.unwrap();
    assert_eq!(all.items.len(), 5);
    assert_eq!(maps.metadata().list_all(&two).await.unwrap().items.len(), 5);
}

pub(crate) async fn dyn_17_objects_are_read_one_by_one_with_pages_asked_for_ahead_and_an_error_stops_it(
    stage: Stage,
) {
    let maps = maps(&stage);
    for n in 0..7 {
        maps.create(&post(), &map(&format!("n{n}"), "v")).await.unwrap();
    }
    let items = || maps.pages(&labelled().limit(2)).prefetch(2).items();
    let names: Vec<_> = items().map_ok(|map| map.metadata.name.unwrap()).try_collect().await.unwrap();
    assert_eq!(names, ["n0", "n1", "n2", "n3", "n4", "n5", "n6"]);
    let mut read = 0;
    let stopped = items().map_err(|error| error.to_string()).try_for_each(|_| {
        read += 1;
        future::ready(if read == 3 { Err("enough".to_owned()) } else { Ok(()) })
    });
    assert_eq!((stopped.await, read), (Err("enough".to_owned()), 3));
}

pub(crate) async fn dyn_14_a_watch_from_no_version_or_from_0_is_refused(stage: Stage) {
    for version in ["", "0"] {
        assert!(maps(&stage).watch(&WatchParams::default(), version).is_err());
    }
}

// DYN-15: given a wait until a condition holds for an object, on an informer or by a list and a watch of its
// own, when the condition holds, fails, or the limit passes, then it gives the object, the condition's error,
// or a timeout with what was seen last, the state and the last error.
// - a an informer's wait gives the object
// - b or its absence, after the first list only, also where another object has the name by then:
//   `dyn_15_an_absence_counts_after_the_first_list_only_and_also_where_another_object_has_the_name`
// - c or the condition's error
// - d or a timeout with what was seen, the state and the last error:
//   `dyn_15_at_the_limit_the_error_has_what_was_seen_the_state_and_the_last_error`
// - e it ends when the informer stops, and asks about each state once:
//   `dyn_15_a_wait_ends_when_the_informer_stops_and_asks_about_each_state_once`
// - f a wait without an informer gives the object or its absence:
//   `dyn_15_until_sees_the_state_at_the_start_each_change_and_a_deletion_that_a_gap_has_hidden`
// - g or the condition's error, or a refusal that waiting does not mend:
//   `dyn_15_an_error_of_the_condition_ends_a_wait_without_an_informer`
// - h or a timeout with what was seen last: `dyn_15_until_ends_at_its_deadline_with_what_it_saw_last`
pub(crate) async fn dyn_15_an_informer_waits_for_a_state_a_deletion_an_error_and_its_limit(stage: Stage) {
    let pods = stage.server.client().api::<Pod>().namespaced(&*stage.namespace);
    let pod = serde_json::from_value(crate::api::pod("web")).unwrap();
    let source = stage.server.client().resource::<Pod>().namespace(&*stage.namespace);
    let informer = stage.described("until", source).start().unwrap();
    let key = stage.key("web");
    let phase = |pod: Option<&Object<Pod>>| {
        pod.and_then(|pod| pod.body().status.as_ref()?.phase.clone()).unwrap_or_default()
    };
    let running = |pod: Option<&Object<Pod>>| phase(pod) == "Running";
    let act = async {
        pods.create(&post(), &pod).await.unwrap();
        let running = Patch::Merge(json!({"status": {"phase": "Running"}}));
        pods.patch_status("web", &PatchParams::default(), &running).await.unwrap();
    };
    let (found, ()) = future::join(informer.until(&key, running, LONG), act).await;
    let found = found.unwrap().unwrap();
    let again = |pod: Option<&Object<Pod>>| {
        pod.is_none_or(|pod| pod.body().metadata.uid != found.body().metadata.uid)
    };
    let act = async {
        pods.delete("web", &DeleteParams::default().grace_period(0)).await.unwrap();
        pods.create(&post(), &pod).await.unwrap();
    };
    future::join(informer.until(&key, again, LONG), act).await.0.unwrap();
    let fails = |pod: Option<&Object<Pod>>| match phase(pod).as_str() {
        "Failed" => Err("the pod has failed"),
        _ => Ok(false),
    };
    let act = async {
        let failed = Patch::Merge(json!({"status": {"phase": "Failed"}}));
        pods.patch_status("web", &PatchParams::default(), &failed).await.unwrap();
    };
    let (failed, ()) = future::join(informer.until(&key, fails, LONG), act).await;
    assert_eq!(failed.unwrap_err().to_string(), "the condition failed: the pod has failed");
    let late = informer.until(&key, |_| false, Duration::from_millis(50)).await.unwrap_err().to_string();
    assert!(late.contains("did not hold within 50ms; last seen: the object at version "), "{late}");
}

async fn follows<K: Resource + DeserializeOwned + Clone + std::fmt::Debug>(api: Api<K>, stage: &Stage) {
    let version = api.list(&labelled()).await.unwrap().metadata.resource_version.unwrap();
    let mut watch = api.watch(&WatchParams::default().labels("part=v"), &version).unwrap();
    let maps = maps(stage);
    maps.create(&post(), &map("a", "v")).await.unwrap();
    maps.create(&post(), &map("unseen", "w")).await.unwrap();
    maps.modify("a", &post(), |map| map.data = None).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    maps.delete("unseen", &DeleteParams::default()).await.unwrap();
    let name = |object: &K| object.meta().name.clone().unwrap();
    let mut found = Vec::new();
    while found.len() < 3 {
        match tokio::time::timeout(LONG, watch.next()).await.unwrap().unwrap().unwrap() {
            WatchEvent::Added(object) => found.push(format!("+{}", name(&object))),
            WatchEvent::Modified(object) => found.push(format!("~{}", name(&object))),
            WatchEvent::Deleted(object) => found.push(format!("-{}", name(&object))),
            _ => {}
        }
    }
    assert_eq!(found, ["+a", "~a", "-a"]);
}

pub(crate) async fn a_watch_brings_each_change_by_type_by_resource_and_as_metadata(stage: Stage) {
    let client = stage.server.client();
    follows(maps(&stage), &stage).await;
    follows(dynamic_maps(&client, &stage), &stage).await;
    follows(maps(&stage).metadata(), &stage).await;
}

pub(crate) async fn an_entry_creates_changes_and_refuses_to_overwrite(stage: Stage) {
    let maps = maps(&stage);
    let entry = maps.entry("a").await.unwrap();
    assert!(matches!(entry, Entry::Vacant(_)) && entry.get().is_none());
    let mut entry = entry.or_insert(|| map("a", "v"));
    let dry = PostParams { dry_run: true, ..post() };
    entry.commit(&dry).await.unwrap();
    assert!(maps.get_opt("a").await.unwrap().is_none(), "it was a dry run");
    entry = maps.entry("a").await.unwrap().or_insert(|| map("a", "v"));
    entry.commit(&post()).await.unwrap();
    let created = entry.get().metadata.resource_version.clone();
    entry.commit(&post()).await.unwrap();
    assert_eq!(entry.get().metadata.resource_version, created, "nothing has changed, nothing is written");

    let mut late = maps.entry("a").await.unwrap().and_modify(|map| map.data = None);
    entry.get_mut().data.get_or_insert_default().insert("more".to_owned(), "2".to_owned());
    entry.commit(&post()).await.unwrap();
    assert_eq!(maps.get("a").await.unwrap().data.unwrap().len(), 2);
    let Entry::Occupied(late) = &mut late else { panic!("it is there") };
    let conflict = late.commit(&post()).await.unwrap_err();
    assert!(matches!(&conflict, CommitError::Save(error) if error.is_conflict()), "{conflict}");

    let mut another = maps.entry("b").await.unwrap().or_insert(|| map("c", "v"));
    assert!(matches!(another.commit(&post()).await, Err(CommitError::Name { .. })));
    another.get_mut().metadata.name = None;
    another.get_mut().metadata.namespace = Some("elsewhere".to_owned());
    assert!(matches!(another.commit(&post()).await, Err(CommitError::Namespace { .. })));
}

pub(crate) async fn writers_of_one_object_lose_nothing_when_conflicts_are_retried(stage: Stage) {
    const WRITERS: usize = 4;
    const WRITES: usize = 5;
    let maps = &maps(&stage);
    maps.create(&post(), &map("count", "v")).await.unwrap();
    let (policy, params) = (ConflictPolicy { attempts: 100, ..ConflictPolicy::default() }, &post());
    let write = |writer: usize, n: usize| async move {
        let mut map: ConfigMap = maps.get("count").await?;
        map.data.get_or_insert_default().insert(format!("{writer}-{n}"), "written".to_owned());
        maps.replace("count", params, &map).await
    };
    let writer = |writer: usize| async move {
        for n in 0..WRITES {
            maps.client().retry_on_conflict(policy, || write(writer, n)).await.unwrap();
        }
    };
    future::join_all((0..WRITERS).map(writer)).await;
    let written = maps.get("count").await.unwrap().data.unwrap();
    assert_eq!(written.len(), 1 + WRITERS * WRITES);
}

pub(crate) async fn until_waits_for_pods_deletions_definitions_and_conditions(stage: Stage) {
    let client = stage.server.client();
    let pods = client.api::<Pod>().namespaced(&*stage.namespace);
    let pod = serde_json::from_value(crate::api::pod("web")).unwrap();
    let act = async {
        pods.create(&post(), &pod).await.unwrap();
        let running = Patch::Merge(json!({"status": {"phase": "Running"}}));
        pods.patch_status("web", &PatchParams::default(), &running).await.unwrap();
    };
    let (running, ()) = future::join(pods.until("web", conditions::pod_running(), LONG), act).await;
    let uid = running.unwrap().unwrap().metadata.uid.unwrap();
    let act = async {
        pods.delete("web", &DeleteParams::default().grace_period(0)).await.unwrap();
        pods.create(&post(), &pod).await.unwrap();
    };
    future::join(pods.until("web", conditions::deleted(&uid), LONG), act).await.0.unwrap();

    let group = format!("{}.example.org", stage.namespace);
    let name = format!("gadgets.{group}");
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    }))
    .unwrap();
    let definitions = client.api::<CustomResourceDefinition>();
    definitions.create(&post(), &definition).await.unwrap();
    definitions.until(&name, conditions::crd_established(), LONG).await.unwrap();

    let gadgets =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(&group, "v1", "Gadget"), "gadgets");
    let gadgets = client.dynamic_api(&gadgets).namespaced(&*stage.namespace);
    let ready = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Gadget", "metadata": {"name": "g"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    let ready = serde_json::from_value(ready).unwrap();
    // A definition that is established may be served a moment later.
    while let Err(error) = gadgets.create(&post(), &ready).await {
        assert!(error.is_not_found() && !error.refused().unwrap().is_object_not_found(), "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    gadgets.until("g", conditions::has_condition("Ready", "True"), LONG).await.unwrap();
    let strategic = Patch::Strategic(json!({"spec": {}}));
    let refused = gadgets.patch("g", &PatchParams::default(), &strategic).await.unwrap_err();
    assert_eq!(refused.refused().unwrap().code, 415, "{refused}");
    definitions.delete(&name, &DeleteParams::default()).await.unwrap();
}
