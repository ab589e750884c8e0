//! A cached object reads as its own type, wherever it is read.

use actix_informer::client::{Client, Config};
use futures_util::StreamExt;
use informer_actors::subscription::Notify;
use informer_apiserver::ApiServer;
use informer_core::meta::Object;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use crate::scripted::*;

/// A function that knows pods and nothing of caches.
fn image(pod: &Pod) -> &str {
    let spec = pod.spec.as_ref().expect("a pod as it was created");
    spec.containers[0].image.as_deref().unwrap_or_default()
}

#[tokio::test]
async fn lst_06_a_cached_pod_reads_as_a_pod_from_lister_snapshot_index_and_notify() {
    let server = ApiServer::builder().start().await.unwrap();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "x:1"}]},
    });
    server.create(pod).unwrap();
    let client = Client::new(Config::from_kubeconfig_text(&server.kubeconfig(), None).unwrap()).unwrap();
    let runtime = threads();
    let builder = client.resource::<Pod>().informer(&runtime).unwrap();
    let pods = builder.index("image", |pod: &Object<Pod>| [image(pod).to_owned()]).start().unwrap();
    reached(&pods, |status| status.synced).await;
    let (lister, snapshot) = (pods.lister(), pods.snapshot());
    assert_eq!(image(&lister.get(&"default/one".parse().unwrap()).unwrap()), "x:1");
    assert_eq!(image(&lister.list()[0]), "x:1");
    assert_eq!(image(&lister.by_index("image", "x:1").unwrap()[0]), "x:1");
    assert_eq!(image(snapshot.iter().next().unwrap()), "x:1");
    assert_eq!(image(snapshot.by_index("image", "x:1").unwrap().next().unwrap()), "x:1");
    let mut events = pods.events().unwrap();
    let Some(Notify::Added { object, .. }) = events.next().await else { panic!("not received") };
    assert_eq!(image(&object), "x:1");
    assert_eq!(object.spec.as_ref().unwrap().containers.len(), 1, "and by its fields");
    drop(events);
    ends(pods).await;
}
