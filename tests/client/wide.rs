//! A cluster-wide source that keeps the objects of some namespaces (INF-92).
//!
//! Answers "are the objects of other namespaces dropped before they are decoded?", by a transform that counts what is
//! decoded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_informer::client::{Client, Config};
use actix_informer::informer::ClusterWide;
use actix_informer::representation::Typed;
use actix_informer::runtime::Runtime;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(60);

fn map(namespace: usize, name: &str) -> Value {
    let metadata = json!({"name": name, "namespace": format!("n{namespace}")});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}})
}

#[tokio::test]
async fn inf_92_objects_of_other_namespaces_are_dropped_before_they_are_decoded_from_lists_and_watches() {
    for watch_list in [true, false] {
        let server = ApiServer::builder().start().await.unwrap();
        for namespace in 0..10 {
            let name = format!("n{namespace}");
            server
                .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
                .unwrap();
            (0..20).for_each(|n| drop(server.create(map(namespace, &format!("m{n}"))).unwrap()));
        }
        let decoded = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&decoded);
        let counting = Typed::<ConfigMap>::new().transform(move |map| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(map)
        });
        let runtime = Runtime::threads().start().unwrap();
        let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
        let maps = client.resource::<ConfigMap>().keep_as(counting).namespaces(["n1", "n3", "n5"]);
        let maps = maps.settings(|settings| settings.watch_list = watch_list);
        let maps = maps.cluster_wide(ClusterWide::above(2)).informer(&runtime).unwrap().start().unwrap();
        maps.synced_within(LONG).await.unwrap();
        assert_eq!((maps.snapshot().len(), decoded.load(Ordering::Relaxed)), (60, 60));
        assert_eq!(maps.status().sources.len(), 1, "one watch");
        for namespace in 0..10 {
            server.create(map(namespace, "live")).unwrap();
            server.delete("configmaps", &format!("n{namespace}"), "m0").unwrap();
        }
        server.create(map(5, "last")).unwrap();
        let (lister, last) = (maps.lister(), "n5/last".parse().unwrap());
        maps.wait_until(|_| lister.get(&last).is_some()).await.unwrap();
        assert_eq!(maps.snapshot().len(), 61);
        assert_eq!(decoded.load(Ordering::Relaxed), 67, "four new ones, and the last states of three");
        runtime.shutdown(LONG).await.unwrap();
    }
}
