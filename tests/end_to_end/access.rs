//! Who may read what, and over which connection: refusals, missing kinds, HTTPS.
//!
//! Answers "what does an informer show that may not read, or reads what does not exist, and does it come back?"

use std::time::Duration;

use actix_informer::client::Client;
use actix_informer::core::reflector::ReflectorConfig;
use actix_informer::prelude::*;
use kube_core::discovery::ApiResource;
use kube_core::gvk::GroupVersionKind;
use serde_json::json;

use crate::followed::Followed;
use crate::stage::{LONG, LOOK, Pod, Stage};

/// Asks again soon after a refusal.
fn impatient(resource: &str) -> ReflectorConfig {
    ReflectorConfig { refused_wait: Duration::from_millis(200), ..ReflectorConfig::new(resource) }
}

pub(crate) async fn a_denied_informer_says_so_and_recovers(stage: Stage) {
    stage.api.create_many(&stage.namespace, 3).await;
    let pods = stage.server.powerless_client().resource::<Pod>().namespace(&*stage.namespace);
    let source = pods.source(&stage.runtime, impatient("pods")).expect("a sound namespace");
    let builder = Informer::builder(&stage.runtime, "pods").source_with(source);
    let pods = Followed::start(builder, &[&stage.namespace]);
    let state = pods.state(|state| matches!(state, SourceState::Denied { .. })).await;
    let SourceState::Denied { error } = state else { unreachable!("it was waited for") };
    assert!(matches!(error, ListWatchError::Denied(_)), "{error}");
    assert!(pods.counters().denied >= 1 && !pods.informer.status().synced);
    stage.server.empower(&stage.api).await;
    pods.informer.synced_within(LONG).await.expect("it recovers by itself");
    pods.agrees(&stage.api).await;
    pods.streams().await;
}

pub(crate) async fn a_missing_kind_is_gone_until_it_is_defined(stage: Stage) {
    let widgets = GroupVersionKind::gvk("example.org", "v1", "Widget");
    let widgets = ApiResource::from_gvk_with_plural(&widgets, "widgets");
    let source = stage.server.client().dynamic(&widgets).namespace(&*stage.namespace);
    let source = source.source(&stage.runtime, impatient("widgets.example.org")).expect("sound names");
    let builder = Informer::builder(&stage.runtime, "widgets").source_with(source);
    let widgets = Followed::start(builder, &[]);
    widgets.state(|state| matches!(state, SourceState::Gone { .. })).await;
    assert!(widgets.counters().gone >= 1 && !widgets.informer.status().synced);

    stage.api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition()).await;
    let path = format!("/apis/example.org/v1/namespaces/{}/widgets", stage.namespace);
    let widget = json!({
        "apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "first"}, "spec": {"size": 3},
    });
    while stage.api.try_post(&path, &widget).await.is_none() {
        tokio::time::sleep(LOOK).await;
    }
    widgets.informer.synced_within(LONG).await.expect("it recovers by itself");
    widgets.holds(&stage.api.list(&path).await).await;
    let first = widgets.informer.lister().get(&stage.key("first")).expect("it is listed");
    assert_eq!(first.data["spec"]["size"], 3);
}

fn definition() -> serde_json::Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

pub(crate) async fn https_with_a_token_and_with_a_client_certificate(stage: Stage) {
    let stage = stage.secured().await;
    stage.api.create_many(&stage.namespace, 3).await;
    for context in stage.server.contexts() {
        let config = stage.server.config(Some(context));
        assert!(config.endpoint().starts_with("https://"));
        let client = Client::new(config).expect("a sound context");
        let source = client.resource::<Pod>().namespace(&*stage.namespace);
        let pods = stage.follow(stage.described(context, source), &[&stage.namespace]).await;
        stage.api.create(&stage.namespace, context).await;
        pods.agrees(&stage.api).await;
    }
    let stranger = Client::new(stage.server.config(None).token("not-the-token")).expect("a sound token");
    let source = stranger.resource::<Pod>().namespace(&*stage.namespace);
    let pods = Followed::start(stage.described("stranger", source), &[]);
    pods.state(|state| matches!(state, SourceState::Denied { .. })).await;
}
