//! A program written with kube-rs takes one informer of ours, over the client that it has already.
//!
//! Shows what an operator with kube-rs's `Api`, its credentials and its tower layers adds for it: ten lines, between the
//! two marks. It runs against an in-memory API server, so it needs no cluster:
//!
//! ```sh
//! cargo run --example with_kube_client --features kube
//! ```

use std::time::Duration;

use actix_informer::prelude::{Client, Runtime};
use futures_util::StreamExt;
use http::Request;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

const LONG: Duration = Duration::from_secs(10);

/// The program's own kube client, with a tower layer of its own: every request carries a header.
async fn kube_client(server: &ApiServer) -> anyhow::Result<kube_client::Client> {
    let kubeconfig = kube_client::config::Kubeconfig::from_yaml(&server.kubeconfig())?;
    let config = kube_client::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?;
    let layer = tower::util::MapRequestLayer::new(|mut request: Request<kube_client::client::Body>| {
        request.headers_mut().insert("x-team", http::HeaderValue::from_static("shop"));
        request
    });
    Ok(kube_client::client::ClientBuilder::try_from(config)?.with_layer(&layer).build())
}

fn config_map(name: &str) -> anyhow::Result<ConfigMap> {
    Ok(serde_json::from_value(json!({"metadata": {"name": name}, "data": {"color": "red"}}))?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = ApiServer::builder().tls().token("s3cret").start().await?;
    let kube = kube_client(&server).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(kube.clone());
    maps.create(&PostParams::default(), &config_map("first")?).await?;

    // From here ...
    let client = Client::from_kube(kube.clone(), tokio::runtime::Handle::current());
    let runtime = Runtime::threads().start()?;
    let informer = client.resource::<ConfigMap>().informer(&runtime)?.start()?;
    let mut events = informer.events()?;
    tokio::spawn(async move {
        while let Some(notify) = events.next().await {
            println!("{:?}: {} at version {}", notify.cause(), notify.key(), notify.subject().version());
        }
    });
    informer.synced_within(LONG).await?;
    // ... to here is what the program adds.

    let patch = Patch::Merge(json!({"data": {"color": "blue"}}));
    let patched = maps.patch("first", &PatchParams::default(), &patch).await?;
    let written = patched.metadata.resource_version.unwrap_or_default().parse()?;
    informer.lister().wait_for(&written, LONG).await?;
    let cached = informer.lister().get(&"default/first".parse()?);
    let color = cached.as_ref().and_then(|map| map.data.as_ref()?.get("color"));
    println!("the cache has the program's own write: {color:?}");

    drop(informer);
    runtime.shutdown(LONG).await?;
    let names = maps.list(&Default::default()).await?.items.len();
    println!("the informer has ended, and the program's own client goes on: {names} config maps");
    Ok(())
}
