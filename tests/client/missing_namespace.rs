//! A namespace that is followed and does not exist (REF-64), on simulated time.
//!
//! Answers "is a mistyped namespace said, and does it disturb anything?".

use std::time::Duration;

use actix_informer::prelude::*;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

const MINUTE: Duration = Duration::from_secs(60);

/// How often namespaces were asked for.
fn asked(server: &ApiServer) -> usize {
    server.requests().iter().filter(|request| request.resource == "namespaces").count()
}

async fn synced(client: &Client, runtime: &Runtime, namespace: &str) -> Informer<ConfigMap> {
    let maps =
        client.resource::<ConfigMap>().namespace(namespace).informer(runtime).unwrap().start().unwrap();
    maps.synced_within(MINUTE).await.unwrap();
    tokio::time::sleep(MINUTE).await;
    maps
}

#[test]
fn ref_64_a_namespace_that_does_not_exist_stands_in_the_status_until_something_comes_of_it() {
    Runtime::simulated(7).run(|runtime| async move {
        let server = ApiServer::builder().seed(7).in_process(runtime.wall_time()).start().await.unwrap();
        let client = Client::in_process(&runtime, server.service());
        let empty = synced(&client, &runtime, "default").await;
        assert_eq!((empty.status().sources[0].hint.clone(), asked(&server)), (None, 1), "it exists");

        let mistyped = synced(&client, &runtime, "shpo").await;
        let text = mistyped.status().to_string();
        assert!(text.ends_with("streaming; 0 objects; namespace \"shpo\" does not exist"), "{text}");
        assert!(mistyped.last_error().is_none() && asked(&server) == 2, "it is no error, and asked for once");
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shpo"}});
        server.create(namespace).unwrap();
        let metadata = json!({"name": "one", "namespace": "shpo"});
        server.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).unwrap();
        mistyped.wait_until(|status| status.objects == 1).await.unwrap();
        tokio::time::sleep(MINUTE).await;
        assert_eq!(mistyped.status().sources[0].hint, None);

        server.faults().deny("get", "namespaces");
        let unknown = synced(&client, &runtime, "hsop").await;
        assert!(unknown.status().sources[0].hint.is_none() && unknown.last_error().is_none());
        let all = client.resource::<ConfigMap>().informer(&runtime).unwrap().start().unwrap();
        all.synced_within(MINUTE).await.unwrap();
        assert_eq!(asked(&server), 3, "all namespaces together are not asked for");
    });
}
