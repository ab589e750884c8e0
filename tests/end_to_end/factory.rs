//! A kind that is requested from a factory by name, while its definition comes, goes and comes back under load.
//!
//! Answers "does the informer show what the server has, whatever becomes of the kind?" on both servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix_informer::client::Client;
use actix_informer::prelude::*;
use http::Method;
use kube_core::DynamicObject;
use serde_json::{Value, json};

use crate::followed::Watched;
use crate::stage::{LOOK, Stage, eventually, until};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(group: &str, version: &str, scope: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("sites.{group}")},
        "spec": {
            "group": group, "scope": scope,
            "names": {"plural": "sites", "singular": "site", "kind": "Site", "listKind": "SiteList"},
            "versions": [{"name": version, "served": true, "storage": true, "schema": schema}],
        },
    })
}

/// Writes and deletes sites of both forms until it is told to stop; what is not defined at the moment is refused.
async fn load(client: Client, group: String, namespace: String, stop: Arc<AtomicBool>) {
    let forms = [("v1", format!("namespaces/{namespace}/sites")), ("v2", "sites".to_owned())];
    for n in 0_u32.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        for (version, path) in &forms {
            let (path, name) = (format!("/apis/{group}/{version}/{path}"), format!("site-{}", n % 20));
            let site = json!({
                "apiVersion": format!("{group}/{version}"), "kind": "Site", "metadata": {"name": name}, "n": n,
            });
            let body = Some(("application/json", site.to_string().into_bytes()));
            let patch = Some(("application/merge-patch+json", json!({"n": n}).to_string().into_bytes()));
            let _refused = match n % 5 {
                0 => client.request(Method::DELETE, &format!("{path}/{name}"), None).await,
                1 => client.request(Method::PATCH, &format!("{path}/{name}"), patch).await,
                _ => client.request(Method::POST, &path, body).await,
            };
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until the informer holds what the server lists in this version of the kind.
async fn agrees(client: &Client, path: &str, sites: &Informer<DynamicObject>) {
    loop {
        let listed = client.request(Method::GET, path, None).await;
        let listed: Value = match listed {
            Ok(answer) => serde_json::from_slice(answer.body()).expect("JSON"),
            Err(_) => Value::Null,
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let form =
            |meta: &Value| (text(&meta["namespace"]), text(&meta["name"]), text(&meta["resourceVersion"]));
        let items = listed["items"].as_array().cloned().unwrap_or_default();
        let mut there: Vec<_> = items.iter().map(|item| form(&item["metadata"])).collect();
        let held = |object: &Object<DynamicObject>| {
            let key = object.key();
            (
                key.namespace().unwrap_or_default().to_owned(),
                key.name().to_owned(),
                object.version().to_string(),
            )
        };
        let mut here: Vec<_> = sites.snapshot().iter().map(held).collect();
        there.sort();
        here.sort();
        if listed["items"].is_array() && there == here {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

pub(crate) async fn fac_13_a_definition_comes_goes_and_comes_back_otherwise_under_load(stage: Stage) {
    let (client, group) = (stage.server.client(), format!("{}.example.org", stage.namespace));
    let factory = InformerFactory::new(&stage.runtime, &client);
    let name = format!("sites.{group}");
    let sites = factory.of(factory.named(&name).await.expect("a name")).expect("declared");
    let pods = factory.informer::<crate::stage::Pod>().expect("declared");
    let watched = Watched::of(&sites, SubscribeOptions::new());
    factory.start().expect("open");
    let is_gone = |sites: &Informer<DynamicObject>| matches!(sites.state(), SourceState::Gone { .. });
    until("the kind is missing", || is_gone(&sites)).await;

    for (version, scope) in [("v1", "Namespaced"), ("v2", "Cluster"), ("v1", "Namespaced")] {
        let stop = Arc::new(AtomicBool::new(false));
        let writer = load(client.clone(), group.clone(), stage.namespace.clone(), Arc::clone(&stop));
        let path = format!("/apis/{group}/{version}/sites");
        let act = async {
            stage.api.post(DEFINITIONS, &definition(&group, version, scope)).await;
            let of_version = |object: &Object<DynamicObject>| {
                object.types.as_ref().is_some_and(|types| types.api_version == format!("{group}/{version}"))
            };
            until("objects of this version come", || sites.snapshot().iter().any(of_version)).await;
            stop.store(true, Ordering::Relaxed);
        };
        futures_util::future::join(writer, act).await;
        agrees(&client, &path, &sites).await;
        watched.agrees(&sites).await;
        let writing = Arc::new(AtomicBool::new(false));
        let writer = load(client.clone(), group.clone(), stage.namespace.clone(), Arc::clone(&writing));
        let act = async {
            let path = format!("{DEFINITIONS}/{name}");
            client.request(Method::DELETE, &path, None).await.expect("it is defined");
            until("the kind is missing again", || is_gone(&sites)).await;
            let is_there = async || client.request(Method::GET, &path, None).await.is_ok();
            while is_there().await {
                tokio::time::sleep(LOOK).await;
            }
            writing.store(true, Ordering::Relaxed);
        };
        futures_util::future::join(writer, act).await;
    }
    assert_eq!((sites.status().restarts, pods.status().relists()), (0, 0), "others are not disturbed");
    eventually("the subscriber's replay is the store", || watched.received.agrees_with(&sites.snapshot()))
        .await;
    let report = factory.shutdown(crate::stage::LONG).await;
    assert!(report.is_clean(), "{report}");
}
