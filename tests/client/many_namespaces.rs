//! One informer of a thousand namespaces (INF-92), on simulated time.
//!
//! Answers "how many watches does it cost?" by what the server counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_informer::informer::ClusterWide;
use actix_informer::prelude::*;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

const HOUR: Duration = Duration::from_secs(3_600);
const NAMESPACES: usize = 1_000;

fn map(namespace: &str, name: &str) -> Value {
    let metadata = json!({"name": name, "namespace": namespace});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

/// Waits until so many watches are open, whose ends and beginnings the server notices by and by.
async fn watches(server: &ApiServer, count: usize) {
    for _ in 0..100 {
        if server.watches("configmaps") == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(server.watches("configmaps"), count);
}

#[test]
fn inf_92_a_thousand_namespaces_are_a_thousand_watches_and_above_the_number_they_are_one() {
    Runtime::simulated(7).run(|runtime| async move {
        let server = ApiServer::builder().seed(7).in_process(runtime.wall_time()).start().await.unwrap();
        let client = Client::in_process(&runtime, server.service());
        let names: Vec<String> = (0..=NAMESPACES).map(|n| format!("n{n:04}")).collect();
        for name in &names {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            server.create(namespace).unwrap();
            server.create(map(name, "first")).unwrap();
        }
        let maps = client.resource::<ConfigMap>().namespaces(&names[..NAMESPACES]);
        let maps =
            maps.cluster_wide(ClusterWide::above(NAMESPACES)).informer(&runtime).unwrap().start().unwrap();
        maps.synced_within(HOUR).await.unwrap();
        watches(&server, NAMESPACES).await;
        assert_eq!((maps.status().sources.len(), maps.snapshot().len()), (NAMESPACES, NAMESPACES));
        let deleted = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&deleted);
        let subscription = maps.for_each(move |notify| {
            counted.fetch_add(usize::from(matches!(notify, Notify::Deleted { .. })), Ordering::Relaxed);
            std::future::ready(())
        });
        let subscription = subscription.unwrap();

        maps.add_namespace(&*names[NAMESPACES]).unwrap();
        maps.namespaces_synced().await.unwrap();
        watches(&server, 1).await;
        assert_eq!((maps.status().sources.len(), maps.snapshot().len()), (1, NAMESPACES + 1));
        names.iter().for_each(|name| drop(server.create(map(name, "second")).unwrap()));
        maps.wait_until(|status| status.objects == 2 * (NAMESPACES + 1)).await.unwrap();

        maps.set_namespaces(names[..NAMESPACES * 3 / 4].iter().map(String::as_str)).unwrap();
        maps.namespaces_synced().await.unwrap();
        watches(&server, NAMESPACES * 3 / 4).await;
        subscription.shutdown(HOUR).await.unwrap();
        assert_eq!(
            deleted.load(Ordering::Relaxed),
            2 * (NAMESPACES / 4 + 1),
            "those of namespaces that went"
        );
        assert_eq!((maps.snapshot().len(), maps.status().data.stale_messages), (NAMESPACES * 3 / 2, 0));
    });
}
