//! Informers with indices by the path of a field, against the in-memory API server.
//!
//! Answers "which objects have this value in this field?" for informers of types, of trees and of metadata alone.

use std::time::Duration;

use actix_informer::client::{Client, Config, ResourceSource};
use actix_informer::informer::{Index, Informer};
use actix_informer::object::{FieldPathError, FieldText, Fields, LabelSelector, Select};
use actix_informer::prelude::Object;
use actix_informer::representation::{MetadataOnly, ReadFields, Representation};
use informer_actors::runtime::Runtime;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::Pod;
use kube_core::discovery::ApiResource;
use serde_json::{Value, json};

/// A limit that a healthy wait never comes near.
const LIMIT: Duration = Duration::from_secs(60);

fn pod(name: &str, app: &str, node: Option<&str>, images: &[&str]) -> Value {
    let containers: Vec<_> = images.iter().map(|image| json!({"name": image, "image": image})).collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"a.b/app": app}},
        "spec": {"nodeName": node, "hostNetwork": true, "containers": containers},
    })
}

/// The names of the objects under a value.
fn under<S: Send + Sync + 'static>(
    informer: &Informer<S>,
    index: &Index<S, FieldText>,
    value: &str,
) -> Vec<String> {
    let snapshot = informer.snapshot();
    let found = index.get(&snapshot, value).expect("the informer has the index");
    found.map(|object| object.key().name().to_owned()).collect()
}

async fn synced<K, R: Representation>(
    source: ResourceSource<K, R>,
    indices: &[Index<R::Body, FieldText>],
    runtime: &Runtime,
) -> Informer<R::Body> {
    let builder =
        indices.iter().fold(source.informer(runtime).unwrap(), |builder, index| builder.index_with(index));
    let informer = builder.start().unwrap();
    informer.synced_within(LIMIT).await.unwrap();
    informer
}

/// Follows the pods of a server with an index of each path.
async fn indexed<K, R: Representation<Body: ReadFields>, const N: usize>(
    source: ResourceSource<K, R>,
    paths: [&str; N],
    runtime: &Runtime,
) -> (Informer<R::Body>, [Index<R::Body, FieldText>; N]) {
    let indices = paths.map(|path| source.by_path(path).unwrap());
    (synced(source, &indices, runtime).await, indices)
}

#[tokio::test]
async fn idx_34_an_index_by_a_path_finds_typed_lazy_dynamic_and_metadata_objects_and_follows_their_changes() {
    let server = ApiServer::builder().start().await.unwrap();
    server.create(pod("one", "web", Some("node-a"), &["x", "y"])).unwrap();
    let mut two = server.create(pod("two", "db", None, &["y"])).unwrap();
    let client = Client::new(Config::from_kubeconfig_text(&server.kubeconfig(), None).unwrap()).unwrap();
    let runtime = Runtime::threads().start().unwrap();
    let fields = ["spec.nodeName", "spec.containers[*].image", "spec.hostNetwork"];
    let (typed, by) = indexed(client.resource::<Pod>(), fields, &runtime).await;
    let (lazy, of_texts) = indexed(client.resource::<Pod>().name("texts").lazy(), fields, &runtime).await;
    let trees = client.dynamic(&ApiResource::erase::<Pod>(&()));
    let (dynamic, of_trees) = indexed(trees.name("trees"), fields, &runtime).await;
    let light = client.resource::<Pod>().keep_as(MetadataOnly::<Pod>::new());
    let (metadata, [by_app]) = indexed(light, ["metadata.labels['a.b/app']"], &runtime).await;

    assert_eq!(under(&typed, &by[0], "node-a"), ["one"]);
    assert_eq!(under(&dynamic, &of_trees[0], "node-a"), ["one"]);
    for (at, value) in [(0, "node-a"), (1, "y"), (2, "true")] {
        assert_eq!(under(&lazy, &of_texts[at], value), under(&typed, &by[at], value), "{value}");
    }
    assert_eq!(under(&typed, &by[1], "y"), ["one", "two"]);
    assert_eq!(under(&dynamic, &of_trees[1], "y"), ["one", "two"]);
    assert_eq!(under(&typed, &by[2], "true"), ["one", "two"]);
    assert_eq!(under(&metadata, &by_app, "db"), ["two"]);

    // Two fields change; an index that is added later has the new state.
    two["spec"]["containers"][0]["image"] = "z".into();
    two["metadata"]["labels"]["a.b/app"] = "web".into();
    let written = server.update(two).unwrap();
    let version =
        written.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap().parse().unwrap();
    typed.lister().wait_for(&version, LIMIT).await.unwrap();
    dynamic.lister().wait_for(&version, LIMIT).await.unwrap();
    lazy.lister().wait_for(&version, LIMIT).await.unwrap();
    assert_eq!(under(&lazy, &of_texts[1], "z"), ["two"]);
    metadata.lister().wait_for(&version, LIMIT).await.unwrap();
    assert_eq!(
        (under(&typed, &by[1], "y"), under(&typed, &by[1], "z")),
        (vec!["one".into()], vec!["two".into()])
    );
    assert_eq!(under(&dynamic, &of_trees[1], "z"), ["two"]);
    assert!(under(&metadata, &by_app, "db").is_empty());
    assert_eq!(under(&metadata, &by_app, "web"), ["one", "two"]);
    let late = client.resource::<Pod>().by_path("metadata.name").unwrap();
    typed.add_index(&late).await.unwrap();
    typed.wait_until(|_| late.get(&typed.snapshot(), "two").is_ok()).await.unwrap();
    assert_eq!(under(&typed, &late, "two"), ["two"]);
}

#[tokio::test]
async fn idx_34_a_field_selector_uses_the_index_by_the_path_that_it_names() {
    let server = ApiServer::builder().start().await.unwrap();
    server.create(pod("one", "web", Some("node-a"), &["x"])).unwrap();
    server.create(pod("two", "db", None, &["y"])).unwrap();
    let client = Client::new(Config::from_kubeconfig_text(&server.kubeconfig(), None).unwrap()).unwrap();
    let runtime = Runtime::threads().start().unwrap();
    let fields = Fields::<Pod>::new().path("spec.nodeName").unwrap();
    let by_node = client.resource::<Pod>().by_path("spec.nodeName").unwrap();
    let pods = synced(client.resource::<Pod>(), std::slice::from_ref(&by_node), &runtime).await;
    assert_eq!(
        fields.index("spec.nodeName").unwrap().count(&pods.snapshot(), "node-a"),
        Ok(1),
        "it is that index"
    );
    let selected = |text: &str| {
        let (snapshot, selector) = (pods.snapshot(), fields.select(text).unwrap());
        let (labels, name) = (LabelSelector::everything(), |of: &Object<Pod>| of.key().name().to_owned());
        snapshot.selected(&labels, &selector).map(name).collect::<Vec<_>>()
    };
    assert_eq!(
        (selected("spec.nodeName=node-a"), selected("spec.nodeName=")),
        (vec!["one".into()], vec!["two".into()])
    );
}

// IDX-34: given an index by the path of a field (`spec.nodeName`, `spec.containers[*].image`,
// `metadata.labels['a.b/app']`), of typed, dynamic or metadata objects, when objects come and change, then it
// holds what a look into their JSON finds: texts, and numbers and booleans as their texts; nothing where a
// field is missing, null, an object or an array. What is not a path, or is not below `metadata` where
// metadata alone is kept, is a typed error before the start.
// - a it finds typed, dynamic and metadata objects, also after a change and if it is added later:
//   `idx_34_an_index_by_a_path_finds_typed_lazy_dynamic_and_metadata_objects_and_follows_their_changes`
// - b it holds what a look into the JSON finds:
//   `idx_34_any_path_in_any_value_gives_what_a_look_into_the_json_gives`
// - c texts, numbers and booleans; nothing where a field is missing, null, an object or an array:
//   `idx_34_values_are_found_in_typed_dynamic_and_metadata_bodies`
// - d what is not a path is a typed error
// - e what is not below `metadata`, where metadata alone is kept, is one before the start
// - f a field selector over the cache uses it:
//   `idx_34_a_field_selector_uses_the_index_by_the_path_that_it_names`
#[test]
fn idx_34_a_path_that_is_none_or_not_below_the_metadata_that_is_kept_is_an_error_before_the_start() {
    let client = Client::new(Config::new("http://127.0.0.1:1").unwrap()).unwrap();
    let (pods, light) =
        (client.resource::<Pod>(), client.resource::<Pod>().keep_as(MetadataOnly::<Pod>::new()));
    let error = pods.by_path("spec.containers[0]").unwrap_err();
    assert!(matches!(&error, FieldPathError::Invalid { at: 16, .. }), "{error}");
    let error = light.by_path("spec.nodeName").unwrap_err().to_string();
    assert_eq!(
        error,
        "the informer of pods keeps metadata alone, and the field path \"spec.nodeName\" is not below it"
    );
    assert!(light.by_path("metadata").is_err() && light.by_path("metadata.labels.app").is_ok());
}
