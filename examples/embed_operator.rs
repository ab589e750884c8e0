//! An operator in an ordinary `#[tokio::main]`: it labels every pod that says which team it belongs to.
//!
//! Shows the actor system embedded in a program that knows nothing of actors: an informer with an index, a stream of
//! events, and reading one's own writes. It runs against an in-memory API server, so it needs no cluster:
//!
//! ```sh
//! cargo run --example embed_operator
//! ```

use std::time::Duration;

use actix_informer::prelude::*;
use futures_util::StreamExt;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

const TEAM: &str = "example.org/team";
const LONG: Duration = Duration::from_secs(10);

/// The annotation says the team; the label is what selectors need.
fn wanted_label(pod: &Pod) -> Option<&str> {
    let annotations = pod.metadata.annotations.as_ref()?;
    let team = annotations.get(TEAM)?;
    let label = pod.metadata.labels.as_ref().and_then(|labels| labels.get("team"));
    (label != Some(team)).then_some(team)
}

/// Writes the label, and gives the version of the pod that has it.
async fn set_label(client: &Client, pod: &Object<Pod>, team: &str) -> anyhow::Result<ResourceVersion> {
    let pods = client.api::<Pod>().namespaced(pod.key().namespace().unwrap_or_default());
    let label = Patch::Merge(json!({"metadata": {"labels": {"team": team}}}));
    let patched = pods.patch(pod.key().name(), &PatchParams::default(), &label).await?;
    Ok(patched.metadata.resource_version.unwrap_or_default().parse()?)
}

async fn reconcile(client: &Client, pods: &Lister<Pod>, key: &ObjectKey) -> anyhow::Result<()> {
    let Some(pod) = pods.get(key) else {
        println!("{key}: gone");
        return Ok(());
    };
    let Some(team) = wanted_label(&pod) else {
        println!("{key}: nothing to do at version {}", pod.version());
        return Ok(());
    };
    let written = set_label(client, &pod, team).await?;
    // Read your own write: the next look into the cache cannot be older than what was just written.
    pods.wait_for(&written, LONG).await?;
    println!("{key}: labelled team={team} at version {written}");
    Ok(())
}

fn pod(name: &str, team: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": {TEAM: team}},
        "spec": {"containers": [{"name": "main", "image": "example.org/app:1"}]},
    })
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = ApiServer::builder().start().await?;
    server.create(pod("web", "shop"))?;
    server.create(pod("db", "storage"))?;

    let client = Client::new(Config::new(server.url())?)?;
    let runtime = Runtime::threads().start()?;
    let pods = client
        .resource::<Pod>()
        .namespace("default")
        .informer(&runtime)?
        .index("team", |pod| pod.metadata.labels.as_ref().and_then(|labels| labels.get("team").cloned()))
        .start()?;
    pods.synced_within(LONG).await?; // an Err says what it is doing instead, and why

    let lister = pods.lister();
    let mut events = pods.events()?;
    let newcomer = server.create(pod("cache", "shop"))?;
    println!("created {} while the operator runs", newcomer["metadata"]["name"].as_str().unwrap_or_default());
    for _ in 0..6 {
        let Some(notify) = events.next().await else { break };
        reconcile(&client, &lister, notify.key()).await?;
    }
    let shop = lister.by_index("team", "shop")?;
    println!("team shop has {} pods", shop.len());

    match client.api::<Pod>().namespaced("default").get("nobody").await {
        Err(error) if error.is_not_found() => println!("a refusal is typed: {error}"),
        other => println!("unexpected: {other:?}"),
    }
    drop(events); // otherwise the shutdown would wait for this stream to be read to its end
    let report = pods.shutdown(LONG).await;
    println!("stopped, everything delivered: {}", report.is_clean());
    Ok(())
}
