//! A controller that is written with kube-rs, moved over to an informer of ours by four lines.
//!
//! Shows kube-rs's own `Controller`, its `reflector` store and its `reconcile` function, all unchanged, on the stream of an
//! informer; the lines that changed are numbered. kube-rs keeps its store beside the informer's cache. kube-runtime
//! counts `Controller::for_stream` as unstable: its feature is `unstable-runtime-stream-control`. It runs against an
//! in-memory API server, so it needs no cluster:
//!
//! ```sh
//! cargo run --example kube_controller --features kube
//! ```

use std::sync::Arc;
use std::time::Duration;

use actix_informer::prelude::{Client, Runtime};
use actix_informer::subscription::kube_events;
use futures_util::{StreamExt, TryStreamExt};
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::ResourceExt;
use kube_client::api::{Api, Patch, PatchParams, PostParams};
use kube_runtime::controller::{Action, Controller};
use kube_runtime::{WatchStreamExt, reflector};
use serde_json::json;

const LONG: Duration = Duration::from_secs(10);

/// Looks at one object, as every controller of kube-rs does.
async fn reconcile(map: Arc<ConfigMap>, _context: Arc<()>) -> Result<Action, std::convert::Infallible> {
    let color = map.data.as_ref().and_then(|data| data.get("color"));
    println!("reconciles {} of color {}", map.name_any(), color.map_or("none", String::as_str));
    Ok(Action::await_change())
}

fn error_policy(_: Arc<ConfigMap>, error: &std::convert::Infallible, _: Arc<()>) -> Action {
    match *error {}
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = ApiServer::builder().tls().token("s3cret").start().await?;
    let kubeconfig = kube_client::config::Kubeconfig::from_yaml(&server.kubeconfig())?;
    let config = kube_client::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?;
    let kube = kube_client::Client::try_from(config)?;
    let maps: Api<ConfigMap> = Api::default_namespaced(kube.clone());
    for name in ["first", "second"] {
        let map = serde_json::from_value(json!({"metadata": {"name": name}, "data": {"color": "red"}}))?;
        maps.create(&PostParams::default(), &map).await?;
    }

    let (reader, writer) = reflector::store();
    let client = Client::from_kube(kube.clone(), tokio::runtime::Handle::current()); // 1: new
    let runtime = Runtime::threads().start()?; // 2: new
    let informer = client.resource::<ConfigMap>().informer(&runtime)?.start()?; // 3: new
    let stream = kube_events(informer.events()?) // 4: was `watcher(maps.clone(), Config::default()).default_backoff()`
        .reflect(writer)
        .applied_objects();
    let controller = Controller::for_stream(stream, reader);

    let mut results = controller.run(reconcile, error_policy, Arc::new(())).boxed();
    for _ in 0..2 {
        let (done, _) = tokio::time::timeout(LONG, results.try_next()).await??.expect("it goes on");
        println!("done: {}", done.name);
    }
    let patch = Patch::Merge(json!({"data": {"color": "blue"}}));
    maps.patch("first", &PatchParams::default(), &patch).await?;
    let (done, _) = tokio::time::timeout(LONG, results.try_next()).await??.expect("it goes on");
    println!("done again: {}", done.name);

    drop((results, informer));
    runtime.shutdown(LONG).await?;
    Ok(())
}
