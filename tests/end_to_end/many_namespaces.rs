//! One informer of many namespaces: how many watches it costs, and what it may not watch (INF-92).
//!
//! Answers "does it follow each namespace by itself where it has to, and all by one watch where it may?". How many watches
//! are open a real server says in its metrics.

use std::time::Duration;

use actix_informer::client::{Client, ResourceSource};
use actix_informer::informer::ClusterWide;
use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::followed::Followed;
use crate::server::Server;
use crate::stage::{LONG, LOOK, Pod, Stage, until};

/// As many as are created in some seconds.
const NAMESPACES: usize = 200;
const RBAC: &str = "rbac.authorization.k8s.io";

/// Creates namespaces with a pod in each, several at once.
async fn create(stage: &Stage, names: &[String]) {
    let created = names.iter().map(|name| async move {
        stage.api.create_namespace(name).await;
        stage.api.create(name, "first").await;
    });
    stream::iter(created).buffer_unordered(16).count().await;
}

fn names(stage: &Stage, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{}-{n:03}", stage.namespace)).collect()
}

/// How many watches of pods the server has open: those of single namespaces, or those of all.
async fn watches(stage: &Stage, of_all: bool) -> usize {
    if let Server::Memory(_) = &*stage.server {
        return stage.server.in_memory().watches("pods");
    }
    let metrics =
        stage.api.try_ask(http::Method::GET, "/metrics", None).await.expect("an administrator asks");
    let scope = if of_all { "scope=\"cluster\"" } else { "scope=\"namespace\"" };
    let metrics = String::from_utf8_lossy(&metrics).into_owned();
    let open = metrics.lines().filter(|line| line.starts_with("apiserver_longrunning_requests{"));
    let open = open
        .filter(|line| ["resource=\"pods\"", "verb=\"WATCH\"", scope].iter().all(|part| line.contains(part)));
    let counts = open.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    counts.sum::<f64>() as usize
}

async fn until_watches(stage: &Stage, of_all: bool, count: usize) {
    let end = tokio::time::Instant::now() + LONG;
    let mut open = watches(stage, of_all).await;
    while open != count {
        assert!(tokio::time::Instant::now() < end, "{open} watches are open, not {count}");
        tokio::time::sleep(LOOK * 20).await;
        open = watches(stage, of_all).await;
    }
}

pub(crate) async fn inf_92_hundreds_of_namespaces_are_as_many_watches_and_above_the_number_they_are_one(
    stage: Stage,
) {
    let names = names(&stage, NAMESPACES + 1);
    create(&stage, &names).await;
    // A real server itself watches all pods.
    let of_others = watches(&stage, true).await;
    let pods = stage.server.client().resource::<Pod>().namespaces(&names[..NAMESPACES]);
    let followed =
        Followed::start(stage.described("many", pods.cluster_wide(ClusterWide::above(NAMESPACES))), &[]);
    followed.informer.synced_within(LONG).await.expect("each lists");
    until_watches(&stage, false, NAMESPACES).await;
    followed.informer.add_namespace(&*names[NAMESPACES]).expect("a name");
    followed.informer.namespaces_synced().await.expect("it runs");
    until_watches(&stage, true, of_others + 1).await;
    assert_eq!(followed.informer.status().sources.len(), 1);
    stage.api.create(&names[7], "second").await;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    followed.holds(&stage.api.pods(&names).await).await;
}

/// Lets the user without permissions read the pods of one namespace.
async fn admit(stage: &Stage, namespace: &str) {
    let binding = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding",
        "metadata": {"name": "reads-pods-here", "namespace": namespace},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "system:aggregate-to-view"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "powerless"}],
    });
    stage.api.post(&format!("/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings"), &binding).await;
}

/// On a server with RBAC.
pub(crate) async fn inf_92_forbidden_to_watch_all_it_follows_each(stage: Stage) {
    let names = names(&stage, 4);
    create(&stage, &names).await;
    for name in &names {
        admit(&stage, name).await;
    }
    let client: Client = stage.server.powerless_client();
    let policy = ClusterWide::above(2).retry_after(Duration::from_secs(1));
    let pods: ResourceSource<Pod> = client.resource::<Pod>().namespaces(&names).cluster_wide(policy);
    let followed = Followed::start(stage.described("admitted", pods), &[]);
    followed.informer.synced_within(LONG).await.expect("each namespace may be read");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let shown = || followed.informer.status().namespaces[0].clone();
    until("the refusal is shown", || shown().refused.is_some()).await;
    let why = shown().to_string();
    let expected = "4 namespaces one by one, as the cluster-wide watch is refused: denied: ";
    assert!(why.starts_with(expected), "{why}");
    assert!(why.contains("User \"powerless\" cannot") && why.contains("at the cluster scope"), "{why}");
    stage.api.create(names[0], "second").await;
    followed.holds(&stage.api.pods(&names).await).await;

    stage.server.empower(&stage.api).await;
    until("the cluster-wide watch has taken over", || followed.informer.status().sources.len() == 1).await;
    assert_eq!((shown().refused, shown().cluster_wide), (None, true));
    stage.api.create(names[1], "second").await;
    followed.holds(&stage.api.pods(&names).await).await;
    let deleted = followed.first.received.lines().iter().filter(|line| line.starts_with("Missed")).count();
    assert_eq!(deleted, 0, "nobody is told of the hand-over");
}
