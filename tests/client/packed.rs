//! Caches of compressed texts, against the in-memory API server.
//!
//! Answers "does an informer train a dictionary, and use it for what came before?" The compression has its own tests
//! beside it.

use std::time::Duration;

use actix_informer::client::{Client, Config};
use actix_informer::prelude::*;
use actix_informer::representation::LazyBody;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::DynamicObject;
use serde_json::{Value, json};

use crate::scripted::*;

const MAPS: usize = 1_300;

fn map(number: usize, settings: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("map-{number:04}"), "namespace": "default", "labels": {"of": format!("{}", number % 7)}},
        "data": {"settings": format!("{settings} of number {number}").repeat(8), "number": number.to_string()},
    })
}

fn client_of(server: &ApiServer) -> Client {
    Client::new(Config::from_kubeconfig_text(&server.kubeconfig(), None).unwrap()).unwrap()
}

fn bytes<K: Send + Sync + 'static>(maps: &Informer<LazyBody<K>>) -> usize {
    maps.snapshot().iter().map(|map| map.kept_bytes()).sum()
}

#[cfg(feature = "testing")]
#[test]
fn what_is_listed_before_there_is_a_dictionary_is_compressed_again_by_it_and_reads_the_same() {
    Runtime::simulated(7).run(|runtime| async move {
        let server = ApiServer::builder().in_process(runtime.wall_time()).start().await.unwrap();
        for number in 0..MAPS {
            server.create(map(number, "settings")).unwrap();
        }
        let client = Client::in_process(&runtime, server.service());
        for watch_list in [true, false] {
            let source = client.resource::<ConfigMap>().settings(|settings| settings.watch_list = watch_list);
            let lazy = source.clone().lazy().informer(&runtime).unwrap().start().unwrap();
            let packed = source.packed().informer(&runtime).unwrap().start().unwrap();
            lazy.synced_within(LONG).await.unwrap();
            packed.synced_within(LONG).await.unwrap();
            // All that is published is looked through a second after the training at the latest.
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert!(bytes(&packed) * 4 < bytes(&lazy), "{} of {} bytes", bytes(&packed), bytes(&lazy));
            let (texts, snapshot) = (lazy.snapshot(), packed.snapshot());
            assert_eq!(snapshot.len(), MAPS);
            for (packed, lazy) in snapshot.iter().zip(texts.iter()) {
                assert_eq!(
                    (packed.key(), packed.version(), packed.text()),
                    (lazy.key(), lazy.version(), lazy.text())
                );
            }
            let of_three: LabelSelector = "of=3".parse().unwrap();
            assert_eq!(snapshot.labelled(&of_three).count(), texts.labelled(&of_three).count());
            let key = ObjectKey::namespaced("default", "map-0007");
            let decoded = snapshot.get(&key).expect("it is there").decoded().unwrap();
            assert_eq!(decoded.data.as_ref().unwrap()["number"], "7");
        }
    });
}

#[tokio::test]
async fn a_memory_report_says_what_each_kind_keeps_and_which_fields_would_be_less() {
    let server = ApiServer::builder().start().await.unwrap();
    for number in 0..40 {
        server.create(map(number, "settings")).unwrap();
    }
    let (client, runtime) = (client_of(&server), threads());
    let source = client.resource::<ConfigMap>();
    let lazy = source.clone().name("lazy").lazy().informer(&runtime).unwrap().start().unwrap();
    let packed = source.clone().name("packed").packed().informer(&runtime).unwrap().start().unwrap();
    let typed = source.name("typed").informer(&runtime).unwrap().start().unwrap();
    lazy.synced_within(LONG).await.unwrap();
    packed.synced_within(LONG).await.unwrap();
    typed.synced_within(LONG).await.unwrap();

    let memory = runtime.memory();
    let of =
        |name: &str| memory.informers.iter().find(|of| &*of.informer == name).expect("it is there").clone();
    let (texts, small, types) = (of("lazy"), of("packed"), of("typed"));
    assert_eq!([texts.objects, texts.samples, small.samples, types.samples], [40, 32, 32, 32]);
    assert_eq!((texts.text, types.kept), (types.text, None));
    let first: Vec<usize> = lazy.snapshot().iter().take(32).map(|map| map.kept_bytes()).collect();
    assert_eq!(texts.kept, Some((first.iter().sum::<usize>() / 32) as u64));
    assert!(small.kept.unwrap() * 3 < texts.kept.unwrap() * 2, "{small:?}");
    assert_eq!(&*texts.fields[0].path, "data");
    let whole = texts.share_of(&["data", "metadata", "kind", "apiVersion"]);
    assert!(texts.share_of(&["data"]) > 0.4 && (0.9..=1.0).contains(&whole), "{whole} of {texts:?}");
    let order: Vec<&str> = memory.informers.iter().map(|of| &*of.informer).collect();
    assert_eq!(order.last(), Some(&"packed"), "those with the most bytes come first");
}

#[tokio::test]
async fn a_kind_that_is_known_at_run_time_may_be_packed_and_its_changes_are_seen() {
    let server = ApiServer::builder().start().await.unwrap();
    server.create(map(0, "settings")).unwrap();
    let (client, runtime) = (client_of(&server), threads());
    let maps: Informer<LazyBody<DynamicObject>> =
        client.named("configmaps").packed().informer(&runtime).unwrap().start().unwrap();
    maps.synced_within(LONG).await.unwrap();
    let api = client.api::<ConfigMap>().namespaced("default");
    let changed: ConfigMap = serde_json::from_value(map(1, "another")).unwrap();
    let written = api.create(&PostParams::default(), &changed).await.unwrap();
    let version = written.metadata.resource_version.unwrap().parse().unwrap();
    maps.lister().wait_for(&version, LONG).await.unwrap();
    let found =
        maps.snapshot().get(&ObjectKey::namespaced("default", "map-0001")).unwrap().decoded().unwrap();
    assert_eq!(found.data["data"]["number"], "1");
}
