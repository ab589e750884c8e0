//! Informers by the public path, from a client's resource to a running informer, against the in-memory API server.
//!
//! Answers "what does a program see that runs several informers of one kind, or asks for a watch without an end?".

use std::time::Duration;

use actix_informer::client::{Client, Config};
use actix_informer::representation::{MetadataOnly, Typed};
use informer_actors::runtime::Runtime;
use informer_apiserver::ApiServer;
use informer_core::reflector::ReflectorConfig;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

/// A limit that a healthy wait never comes near.
const LIMIT: Duration = Duration::from_secs(60);

fn client(server: &ApiServer) -> Client {
    Client::new(Config::from_kubeconfig_text(&server.kubeconfig(), None).unwrap()).unwrap()
}

fn map(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}})
}

#[tokio::test]
async fn inf_31_two_informers_of_one_kind_run_on_one_runtime() {
    let (server, other) =
        (ApiServer::builder().start().await.unwrap(), ApiServer::builder().start().await.unwrap());
    for (server, name) in [(&server, "here"), (&other, "there")] {
        server.create(map("default", name)).unwrap();
        server.create(map("kube-system", name)).unwrap();
    }
    let runtime = Runtime::threads().start().unwrap();
    let maps = |server: &ApiServer| client(server).resource::<ConfigMap>();
    let whole = maps(&server).namespace("default").informer(&runtime).unwrap().start().unwrap();
    let system = maps(&server).namespace("kube-system").informer(&runtime).unwrap().start().unwrap();
    let light = maps(&server).keep_as(MetadataOnly::<ConfigMap>::new());
    let light = light.name("light").informer(&runtime).unwrap().start().unwrap();
    let elsewhere = maps(&other).namespace("default").keep_as(Typed::<ConfigMap>::new());
    let elsewhere = elsewhere.informer(&runtime).unwrap().start().unwrap();
    let names = [whole.name(), system.name(), light.name(), elsewhere.name()];
    assert_eq!(
        names,
        ["configmaps/ns=default", "configmaps/ns=kube-system", "light", "configmaps/ns=default-2"]
    );
    for informer in [&whole, &system, &elsewhere] {
        informer.synced_within(LIMIT).await.unwrap();
    }
    light.synced_within(LIMIT).await.unwrap();
    let found = |key: &str| key.parse().unwrap();
    assert!(whole.lister().get(&found("default/here")).is_some());
    assert!(whole.lister().get(&found("kube-system/here")).is_none());
    assert!(system.lister().get(&found("kube-system/here")).is_some());
    assert!(light.lister().get(&found("kube-system/here")).is_some());
    assert!(elsewhere.lister().get(&found("default/there")).is_some());
}

#[tokio::test]
async fn inf_55_a_watch_that_is_to_last_for_ever_is_followed_over_http() {
    let server = ApiServer::builder().start().await.unwrap();
    let runtime = Runtime::threads().start().unwrap();
    for longest in [Duration::MAX, Duration::from_secs(u64::MAX)] {
        for watch_list in [true, false] {
            let for_ever = |settings: &mut ReflectorConfig| {
                (settings.min_watch_timeout, settings.watch_list) = (longest, watch_list);
            };
            let source = client(&server).resource::<ConfigMap>();
            let maps = source.settings(for_ever).informer(&runtime).unwrap().start().unwrap();
            maps.synced_within(LIMIT).await.unwrap();
            let name = format!("made-{watch_list}-{}", longest.as_nanos());
            server.create(map("default", &name)).unwrap();
            let newest = server.revision().to_string().parse().unwrap();
            maps.lister().wait_for(&newest, LIMIT).await.unwrap();
            assert_eq!((maps.status().restarts, maps.last_error().map(|error| error.to_string())), (0, None));
        }
    }
}
