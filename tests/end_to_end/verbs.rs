//! Every verb of `client::Api` on objects and collections: by type, by resource, as metadata.
//!
//! Answers "does each verb do on a server what its name says, and is each refusal typed?" Subresources are in
//! `subresources.rs`, waiting and watching in `waiting.rs`.

#![expect(clippy::unwrap_used, reason = "a verb that fails has failed the test")]

use actix_informer::client::api::{
    DeleteParams, Deleted, FieldValidation, ListParams, Patch, PatchParams, PostParams, Preconditions,
};
use actix_informer::client::{Api, Client, Error};
use k8s_openapi::api::core::v1::{ConfigMap, Node, PodTemplate};
use kube_core::discovery::ApiResource;
use kube_core::gvk::GroupVersionKind;
use kube_core::{DynamicObject, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;

use crate::server::{POWERLESS, Server};
use crate::stage::Stage;

/// A config map of one entry, as whatever type it is asked for.
pub(crate) fn map<K: DeserializeOwned>(name: &str, value: &str) -> K {
    let map: Value = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"part": value}}, "data": {"key": value},
    });
    serde_json::from_value(map).expect("a config map")
}

/// The config maps of the stage's namespace, by type.
pub(crate) fn maps(stage: &Stage) -> Api<ConfigMap> {
    stage.server.client().api::<ConfigMap>().namespaced(&*stage.namespace)
}

/// The same by a resource that is known at run time.
pub(crate) fn dynamic_maps(client: &Client, stage: &Stage) -> Api<DynamicObject> {
    client.dynamic_api(&ApiResource::erase::<ConfigMap>(&())).namespaced(&*stage.namespace)
}

fn names<K: Resource>(objects: &[K]) -> Vec<&str> {
    objects.iter().filter_map(|object| object.meta().name.as_deref()).collect()
}

/// Reads and deletes what `create` has made. `create` is of the same maps, perhaps by another type.
async fn lives<K, C>(maps: Api<K>, create: Api<C>)
where
    K: Resource + DeserializeOwned + Clone + Debug,
    C: Resource + DeserializeOwned + Serialize + Debug,
{
    assert!(maps.get_opt("a").await.unwrap().is_none());
    let absent = maps.get("a").await.unwrap_err();
    assert!(absent.is_not_found() && absent.refused().unwrap().is_object_not_found(), "{absent}");
    for name in ["a", "b", "c"] {
        let created = create.create(&PostParams::default(), &map(name, "v")).await.unwrap();
        assert!(created.meta().uid.is_some() && created.meta().resource_version.is_some());
    }
    let again = create.create(&PostParams::default(), &map("a", "v")).await.unwrap_err();
    assert!(again.is_already_exists() && !again.is_conflict(), "{again}");
    assert_eq!(maps.get("a").await.unwrap().meta().labels.as_ref().unwrap()["part"], "v");

    let listed = maps.list(&ListParams::default().labels("part=v")).await.unwrap();
    assert_eq!(names(&listed.items), ["a", "b", "c"]);
    assert!(listed.metadata.resource_version.is_some());
    let one = maps.list(&ListParams::default().labels("part").fields("metadata.name=b")).await.unwrap();
    assert_eq!(names(&one.items), ["b"]);

    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(maps.delete("a", &DeleteParams::default()).await.unwrap_err().is_not_found());
    maps.delete_collection(&DeleteParams::default(), &ListParams::default().labels("part=v")).await.unwrap();
    assert_eq!(names(&maps.list(&ListParams::default().labels("part")).await.unwrap().items), [""; 0]);
}

pub(crate) async fn objects_are_created_read_listed_and_deleted_by_type_by_resource_and_as_metadata(
    stage: Stage,
) {
    let client = stage.server.client();
    lives(maps(&stage), maps(&stage)).await;
    lives(dynamic_maps(&client, &stage), dynamic_maps(&client, &stage)).await;
    lives(maps(&stage).metadata(), maps(&stage)).await;
    lives(dynamic_maps(&client, &stage).metadata(), maps(&stage)).await;
    let nowhere = client.api::<ConfigMap>().get("a").await.unwrap_err();
    assert!(matches!(&nowhere, Error::Request(why) if why.contains("Api::namespaced")), "{nowhere}");
}

/// Adds one key by each sort of patch.
async fn patched<K>(maps: Api<K>, stage: &Stage)
where
    K: Resource + DeserializeOwned + Debug,
{
    let (typed, plain) = (self::maps(stage), PatchParams::default());
    typed.create(&PostParams::default(), &map("p", "v")).await.unwrap();
    let added = |key: &str| json!({"data": {key: "x"}});
    let json_patch = json!([{"op": "add", "path": "/data/json", "value": "x"}]);
    let json_patch = Patch::<()>::Json(serde_json::from_value(json_patch).unwrap());
    maps.patch("p", &plain, &json_patch).await.unwrap();
    maps.patch("p", &plain, &Patch::Merge(added("merge"))).await.unwrap();
    maps.patch("p", &plain, &Patch::Strategic(added("strategic"))).await.unwrap();
    let applied = |value: &str| {
        Patch::Apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p"}, "data": {"apply": value},
        }))
    };
    maps.patch("p", &PatchParams::apply("one"), &applied("x")).await.unwrap();
    let conflict = maps.patch("p", &PatchParams::apply("two"), &applied("y")).await.unwrap_err();
    assert!(conflict.is_conflict(), "{conflict}");
    let causes = &conflict.refused().unwrap().details.as_ref().unwrap().causes;
    assert_eq!(causes[0].field, ".data.apply");
    maps.patch("p", &PatchParams::apply("two").force(), &applied("y")).await.unwrap();
    let data = typed.get("p").await.unwrap().data.unwrap();
    let found: Vec<_> = data.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(found, ["apply=y", "json=x", "key=v", "merge=x", "strategic=x"]);
    maps.delete("p", &DeleteParams::default()).await.unwrap();
}

pub(crate) async fn each_sort_of_patch_is_taken_by_type_by_resource_and_as_metadata(stage: Stage) {
    let client = stage.server.client();
    patched(maps(&stage), &stage).await;
    patched(dynamic_maps(&client, &stage), &stage).await;
    patched(maps(&stage).metadata(), &stage).await;
}

pub(crate) async fn parameters_of_writes_do_what_they_say(stage: Stage) {
    let maps = maps(&stage);
    let post = PostParams::default();
    let dry = PostParams { dry_run: true, field_manager: Some("somebody".to_owned()) };
    let tried = maps.create(&dry, &map("a", "v")).await.unwrap();
    let managers = tried.metadata.managed_fields.unwrap();
    assert_eq!(managers[0].manager.as_deref(), Some("somebody"));
    assert!(maps.get_opt("a").await.unwrap().is_none(), "it was a dry run");

    let client = stage.server.client();
    let mut odd: DynamicObject = map("a", "v");
    odd.data["dta"] = json!({});
    let dynamic = dynamic_maps(&client, &stage);
    let strict = dynamic.clone().field_validation(FieldValidation::Strict);
    let refused = strict.create(&post, &odd).await.unwrap_err();
    assert!(refused.refused().unwrap().code == 400 && refused.to_string().contains("dta"), "{refused}");
    dynamic.create(&post, &odd).await.unwrap();

    let read = maps.get("a").await.unwrap();
    let mut written = read.clone();
    written.data = None;
    maps.replace("a", &post, &written).await.unwrap();
    assert!(maps.replace("a", &post, &read).await.unwrap_err().is_conflict(), "it was read before");
    let mut whatever = read.clone();
    whatever.metadata.resource_version = None;
    maps.replace("a", &post, &whatever).await.unwrap();

    let another = Preconditions { uid: Some("another".to_owned()), ..Preconditions::default() };
    let refused = maps.delete("a", &DeleteParams::default().preconditions(another)).await.unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
    assert!(maps.delete("a", &DeleteParams::default().dry_run()).await.is_ok());
    let held = Patch::Merge(json!({"metadata": {"finalizers": ["example.org/held"]}}));
    maps.patch("a", &PatchParams::default(), &held).await.unwrap();
    let deleted = maps.delete("a", &DeleteParams::background()).await.unwrap().object().expect("it waits");
    assert!(deleted.metadata.deletion_timestamp.is_some());
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("a", &PatchParams::default(), &free).await.unwrap();
    assert!(maps.get_opt("a").await.unwrap().is_none());
    maps.create(&post, &map("a", "v")).await.unwrap();
    let done = maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(matches!(&done, Deleted::Status(status) if status.is_success()), "{done:?}");
}

pub(crate) async fn a_refusal_says_which_field_is_wrong_and_which_kind_is_not_served(stage: Stage) {
    let maps = maps(&stage);
    let error = maps.create(&PostParams::default(), &map("Not_A_Name", "v")).await.unwrap_err();
    let causes = &error.refused().unwrap().details.as_ref().unwrap().causes;
    assert!(error.is_invalid() && causes[0].field == "metadata.name", "{error:?}");
    assert!(error.to_string().contains(&format!("POST /api/v1/namespaces/{}/configmaps", stage.namespace)));

    let gadgets = GroupVersionKind::gvk("nowhere.example.org", "v1", "Gadget");
    let gadgets = ApiResource::from_gvk_with_plural(&gadgets, "gadgets");
    let gadgets = stage.server.client().dynamic_api(&gadgets).namespaced(&*stage.namespace);
    let error = gadgets.get_opt("a").await.unwrap_err();
    assert!(error.is_not_found() && !error.refused().unwrap().is_object_not_found(), "{error}");
    let nodes = stage.server.client().dynamic_api(&ApiResource::erase::<Node>(&()));
    assert!(nodes.clone().get_opt("nobody").await.unwrap().is_none());
    assert!(nodes.namespaced("default").get_opt("nobody").await.is_err(), "nodes are in no namespace");
    let powerless = match &*stage.server {
        Server::Memory(_) => {
            // Other scenarios on this server do not list these.
            stage.server.in_memory().faults().deny("list", "podtemplates");
            stage.server.client()
        }
        Server::Real(_) => Client::new(stage.server.config(Some(POWERLESS))).unwrap(),
    };
    let templates = powerless.api::<PodTemplate>().namespaced(&*stage.namespace);
    let forbidden = templates.list(&ListParams::default()).await.unwrap_err();
    assert!(forbidden.is_forbidden() && forbidden.to_string().contains("podtemplates"), "{forbidden}");
}
