//! Who may read what, and over which connection: refusals, missing kinds, HTTPS.
//!
//! Answers "what does an informer show that is not allowed to read, or reads what does not exist, and does it
//! recover?"

use std::time::Duration;

use actix_informer::client::Client;
use actix_informer::prelude::*;
use http::Method;
use informer_core::reflector::ReflectorConfig;
use kube_core::discovery::ApiResource;
use kube_core::gvk::GroupVersionKind;
use serde_json::json;

use crate::followed::Followed;
use crate::stage::{LONG, LOOK, Pod, Stage, eventually};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// How soon an informer with its defaults follows a kind that was missing for some seconds.
const SECONDS: Duration = Duration::from_secs(12);

/// Asks again soon after a refusal.
fn impatient(settings: &mut ReflectorConfig) {
    settings.refused_wait = Duration::from_millis(200);
}

pub(crate) async fn a_denied_informer_reports_it_and_recovers(stage: Stage) {
    stage.api.create_many(&stage.namespace, 3).await;
    let pods = stage.server.powerless_client().resource::<Pod>().namespace(&*stage.namespace);
    let builder = pods.settings(impatient).informer(&stage.runtime).expect("a valid namespace");
    let pods = Followed::start(builder, &[&stage.namespace]);
    let state = pods.state(|state| matches!(state, SourceState::Denied { .. })).await;
    let SourceState::Denied { error, .. } = state else { unreachable!("it was waited for") };
    assert!(matches!(error, ListWatchError::Denied(_)), "{error}");
    assert!(pods.counters().denied >= 1 && !pods.informer.status().synced);
    stage.server.empower(&stage.api).await;
    pods.informer.synced_within(LONG).await.expect("it recovers by itself");
    pods.agrees(&stage.api).await;
    pods.streams().await;
}

pub(crate) async fn ref_35_a_missing_kind_is_gone_until_it_is_defined(stage: Stage) {
    let widgets = GroupVersionKind::gvk("example.org", "v1", "Widget");
    let widgets = ApiResource::from_gvk_with_plural(&widgets, "widgets");
    let source = stage.server.client().dynamic(&widgets).namespace(&*stage.namespace);
    let builder = source.informer(&stage.runtime).expect("valid names");
    let widgets = Followed::start(builder, &[]);
    widgets.state(|state| matches!(state, SourceState::Gone { .. })).await;
    assert!(widgets.counters().gone >= 1 && !widgets.informer.status().synced);

    define_with(&stage, "first").await;
    widgets.informer.synced_within(SECONDS).await.expect("it syncs within seconds");
    widgets.holds(&stage.api.list(&widgets_in(&stage)).await).await;
    let first = widgets.informer.lister().get(&stage.key("first")).expect("it is listed");
    assert_eq!(first.data["spec"]["size"], 3);

    widgets.streams().await;
    let deleted =
        stage.api.try_ask(Method::DELETE, &format!("{DEFINITIONS}/widgets.example.org"), None).await;
    deleted.expect("the definition is deleted");
    widgets.state(|state| matches!(state, SourceState::Gone { .. })).await;
    define_with(&stage, "second").await;
    let (key, lister) = (stage.key("second"), widgets.informer.lister());
    let is_back = || lister.get(&key).map(drop).ok_or_else(|| widgets.informer.status().to_string());
    tokio::time::timeout(SECONDS, eventually("the second widget arrives", is_back))
        .await
        .expect("in seconds");
    widgets.holds(&stage.api.list(&widgets_in(&stage)).await).await;
}

fn widgets_in(stage: &Stage) -> String {
    format!("/apis/example.org/v1/namespaces/{}/widgets", stage.namespace)
}

/// Defines the kind, and creates an object of it as soon as the server takes it.
async fn define_with(stage: &Stage, name: &str) {
    let widget = json!({
        "apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 3},
    });
    while stage.api.try_post(DEFINITIONS, &definition()).await.is_none() {
        // A definition that is being deleted is still there for a moment.
        tokio::time::sleep(LOOK).await;
    }
    while stage.api.try_post(&widgets_in(stage), &widget).await.is_none() {
        // The server serves a new kind some time later, without an event.
        tokio::time::sleep(LOOK).await;
    }
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
        let client = Client::new(config).expect("a valid context");
        let source = client.resource::<Pod>().namespace(&*stage.namespace);
        let pods = stage.follow(stage.described(context, source), &[&stage.namespace]).await;
        stage.api.create(&stage.namespace, context).await;
        pods.agrees(&stage.api).await;
    }
    let stranger = Client::new(stage.server.config(None).token("not-the-token")).expect("a valid token");
    let source = stranger.resource::<Pod>().namespace(&*stage.namespace);
    let pods = Followed::start(stage.described("stranger", source), &[]);
    pods.state(|state| matches!(state, SourceState::Denied { .. })).await;
}
