//! An operator in an ordinary `#[tokio::main]`: it labels every pod that says which team it belongs to.
//!
//! Shows a controller embedded in a program that knows nothing of actors: an informer with an index, a reconcile function
//! that is run by the program's own tokio runtime, and reading one's own writes. It runs against an in-memory API server,
//! so it needs no cluster:
//!
//! ```sh
//! cargo run --example embed_operator
//! ```

use std::time::Duration;

use actix_informer::prelude::*;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

const TEAM: &str = "example.org/team";
const LONG: Duration = Duration::from_secs(10);

fn label(pod: &Pod) -> Option<&String> {
    pod.metadata.labels.as_ref()?.get("team")
}

/// The annotation says the team; the label is what selectors need.
async fn reconcile(client: Client, request: Request<Pod>) -> Result<Outcome, ReconcileError> {
    let key = request.key();
    let Some(pod) = request.object() else {
        println!("{key}: gone");
        return Ok(Outcome::Done);
    };
    let team = pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(TEAM));
    if team.is_none() || team == label(pod) {
        println!("{key}: nothing to do at version {}", pod.version());
        return Ok(Outcome::Done);
    }
    let pods = client.api::<Pod>().namespaced(key.namespace().unwrap_or_default());
    let patch = Patch::Merge(json!({"metadata": {"labels": {"team": team}}}));
    let patched = pods.patch(key.name(), &PatchParams::default(), &patch).await?; // an error is tried again later
    request.written(&patched); // the key is not reconciled again before the cache has this
    println!("{key}: labelled team={} because of: {}", team.map_or("", String::as_str), request.causes());
    Ok(Outcome::Done)
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
        .index("team", |pod| label(pod).cloned())
        .start()?;
    let controller = Controller::builder(&pods)
        .time_limit(LONG)
        .reconcile(move |request| reconcile(client.clone(), request))
        .start()?;
    pods.synced_within(LONG).await?; // an Err says what it is doing instead, and why

    server.create(pod("cache", "shop"))?;
    for name in ["web", "db", "cache"] {
        let is_labelled = |pod: Option<&Object<Pod>>| pod.is_some_and(|pod| label(pod).is_some());
        pods.until(&ObjectKey::namespaced("default", name), is_labelled, LONG).await?;
    }
    println!("team shop has {} pods", pods.lister().by_index("team", "shop")?.len());

    controller.drain(LONG).await?; // what waits is reconciled, nothing new is taken
    controller.ended().await; // its workers, too
    println!("{}", controller.status());
    Ok(())
}
