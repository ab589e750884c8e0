//! Objects of built-in and custom kinds, written and read by type: every verb that an operator needs.
//!
//! Shows `client::Api`: create, get, list, modify, apply, a status, an entry, a watch, waiting for a condition, and typed
//! refusals. It runs against an in-memory API server, so it needs no cluster:
//!
//! ```sh
//! cargo run --example typed_verbs
//! ```

use std::time::Duration;

use actix_informer::client::api::{FieldValidation, conditions};
use actix_informer::prelude::*;
use futures_util::StreamExt;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::json;

const LONG: Duration = Duration::from_secs(10);

/// The custom kind of this example.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.org", version = "v1", kind = "Website", namespaced, schema = "disabled")]
#[kube(status = "WebsiteStatus", crates(kube_core = "::kube_core"))]
struct WebsiteSpec {
    host: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct WebsiteStatus {
    ready: bool,
}

/// Without `schemars` the definition is written by hand.
fn definition() -> serde_json::Result<CustomResourceDefinition> {
    let spec = json!({"type": "object", "properties": {"host": {"type": "string"}}, "required": ["host"]});
    let status = json!({"type": "object", "properties": {"ready": {"type": "boolean"}}});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    serde_json::from_value(json!({
        "metadata": {"name": "websites.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"kind": "Website", "plural": "websites", "singular": "website"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
            }],
        },
    }))
}

/// A custom kind: its definition, an object, its status.
async fn custom_kind(client: &Client) -> anyhow::Result<()> {
    let definitions = client.api::<CustomResourceDefinition>();
    definitions.create(&PostParams::default(), &definition()?).await?;
    definitions.until("websites.example.org", conditions::crd_established(), LONG).await?;

    let sites = client.api::<Website>().namespaced("default").field_validation(FieldValidation::Strict);
    let site = Website::new("shop", WebsiteSpec { host: "shop.example.org".to_owned() });
    let site = sites.create(&PostParams::default(), &site).await?;
    println!("created {} for {}", site.metadata.name.unwrap_or_default(), site.spec.host);

    let ready = Patch::Merge(json!({"status": {"ready": true}}));
    sites.patch_status("shop", &PatchParams::default(), &ready).await?;
    let is_ready = |site: Option<&Website>| {
        site.and_then(|site| site.status.as_ref()).is_some_and(|status| status.ready)
    };
    let site = sites.until("shop", is_ready, LONG).await?;
    println!("ready: {}", site.and_then(|site| site.status).unwrap_or_default().ready);

    let again = Website::new("shop", WebsiteSpec { host: "shop.example.org".to_owned() });
    match sites.create(&PostParams::default(), &again).await {
        Err(error) if error.is_already_exists() => println!("a refusal is typed: {error}"),
        other => println!("unexpected: {other:?}"),
    }
    Ok(())
}

/// A built-in kind: entries, changes, applies, and a watch that sees them.
async fn built_in_kind(client: &Client) -> anyhow::Result<()> {
    let maps = client.api::<ConfigMap>().namespaced("default");
    let list = maps.list(&ListParams::default()).await?;
    let version = list.metadata.resource_version.unwrap_or_default();
    let mut watch = maps.watch(&WatchParams::default(), &version)?;

    let mut prices = maps.entry("prices").await?.or_insert(ConfigMap::default);
    prices.get_mut().data = Some([("apple".to_owned(), "12".to_owned())].into());
    prices.commit(&PostParams::default()).await?;

    // Read, change, replace; again if another writer was faster.
    let cheaper = |map: &mut ConfigMap| {
        map.data.get_or_insert_default().insert("apple".to_owned(), "9".to_owned());
    };
    maps.modify("prices", &PostParams::default(), cheaper).await?;

    let pear = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"pear": "15"}});
    maps.patch("prices", &PatchParams::apply("example"), &Patch::Apply(pear)).await?;
    maps.delete("prices", &DeleteParams::default()).await?;

    while let Some(event) = watch.next().await {
        match event? {
            WatchEvent::Added(map) => println!("added {:?}", map.data.unwrap_or_default()),
            WatchEvent::Modified(map) => println!("modified {:?}", map.data.unwrap_or_default()),
            WatchEvent::Deleted(_) => break,
            _ => {}
        }
    }
    println!("deleted, absent: {}", maps.get_opt("prices").await?.is_none());
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = ApiServer::builder().start().await?;
    let client = Client::new(Config::new(server.url())?)?; // in a cluster: Client::from_environment()?
    custom_kind(&client).await?;
    built_in_kind(&client).await
}
