//! One informer of two clusters, of which one goes away and comes back.
//!
//! Shows that keys begin with the cluster, that the objects of a cluster that is away stay, how old they are, and that
//! the other cluster goes on meanwhile. Runs on two in-memory API servers, so it needs no cluster:
//!
//! ```sh
//! cargo run --example two_clusters
//! ```

use std::time::Duration;

use actix_informer::prelude::*;
use actix_informer::status::SourceStatus;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

const LONG: Duration = Duration::from_secs(30);

fn shop(server: &ApiServer, name: &str, color: &str) -> anyhow::Result<()> {
    let metadata = json!({"name": name, "namespace": "default"});
    server.create(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"color": color}
    }))?;
    Ok(())
}

/// What the cache has, and how old it may be.
fn show(shops: &Informer<ConfigMap>) {
    let lister = shops.lister();
    for shop in lister.snapshot().iter() {
        let color = shop.data.as_ref().and_then(|data| data.get("color")).map_or("none", String::as_str);
        let age = lister.age(shop.source()).unwrap_or_default();
        println!("  {:<18} {color:<6} as of {:.1} s ago", shop.key().to_string(), age.as_secs_f64());
    }
    for source in shops.status().sources {
        println!("  source {}: {}", source.source, source.state);
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (eu, mut us) = (ApiServer::builder().start().await?, ApiServer::builder().start().await?);
    shop(&eu, "berlin", "red")?;
    shop(&us, "boston", "blue")?;

    let runtime = Runtime::threads().start()?;
    let [client_eu, client_us] = [&eu, &us].map(|server| Config::new(server.url()).and_then(Client::new));
    let (client_eu, client_us) = (client_eu?, client_us?);
    let described = client_eu.resource::<ConfigMap>().namespace("default").labels("!internal");
    let clusters = described.in_clusters([("eu", &client_eu), ("us", &client_us)]);
    let shops = clusters.informer(&runtime)?.start()?;
    shops.synced_within(LONG).await?;
    println!("both clusters are there:");
    show(&shops);

    us.stop();
    let is_away = |source: &SourceStatus| matches!(source.state, SourceState::Backoff { .. });
    shops.wait_until(|status| status.source(&SourceId::new("us")).is_some_and(is_away)).await?;
    shop(&eu, "paris", "green")?;
    shops.wait_until(|status| status.objects == 3).await?;
    println!("one is away; its objects stay, and the other cluster goes on:");
    show(&shops);

    us.start_again()?;
    shop(&us, "miami", "pink")?;
    shops.wait_until(|status| status.objects == 4).await?;
    println!("it is back:");
    show(&shops);

    let (af, name) = (ApiServer::builder().start().await?, SourceId::new("af"));
    shop(&af, "accra", "gold")?;
    let client_af = Client::new(Config::new(af.url())?)?;
    let described = client_af.resource::<ConfigMap>().namespace("default").labels("!internal");
    shops.add_source(described.in_cluster("af", &client_af)?.source(&runtime)?)?;
    shops.source_synced(&name).await?;
    shops.remove_source(&SourceId::new("us")).await?;
    println!("another one has come, and one is left out:");
    show(&shops);
    runtime.shutdown(LONG).await?;
    Ok(())
}
