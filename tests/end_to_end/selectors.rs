//! Selectors and scopes that are refused: here before any request, or by the server.
//!
//! Answers "is exactly that refused here which a server refuses, and what does an informer show of the rest?"

use actix_informer::client::{Client, Error, ResourceSource};
use actix_informer::prelude::*;
use actix_informer::representation::Dynamic;
use http::Method;
use k8s_openapi::api::core::v1::Node;
use kube_core::DynamicObject;
use kube_core::discovery::ApiResource;
use kube_core::gvk::GroupVersionKind;
use serde_json::Value;

use crate::followed::Followed;
use crate::stage::{Pod, Stage};

/// Label selectors, good and bad; the servers say which is which.
const LABELS: [&str; 60] = [
    "app",
    "!app",
    "! app",
    "app=shop",
    "app==shop",
    "app = shop",
    " app =\tshop ",
    "app!=shop",
    "app=",
    "app==",
    "app!=",
    "app in (a,b)",
    "app in (a, b )",
    "app in (a)",
    "app in ()",
    "app in (,)",
    "app in (a,)",
    "app in a",
    "app in (a",
    "app in (a b)",
    "app notin (a,b)",
    "app notin",
    "app notIn (a)",
    "app IN (a)",
    "in in (in)",
    "notin notin (notin)",
    "app=in",
    "app,web",
    "app,",
    ",app",
    "app,,web",
    "app web",
    "app=shop web",
    "app=shop=web",
    "=shop",
    "!",
    "!!app",
    "!app=shop",
    "app>1",
    "app<1",
    "app>x",
    "app>",
    "app>-1",
    "app>1.5",
    "app>=1",
    "example.org/app=shop",
    "Example.org/app=shop",
    "example..org/app",
    "/app",
    "example.org/",
    "a/b/c",
    "app=-x",
    "app=x-",
    "app=a/b",
    "app=ä",
    "-app",
    "app_1.b-c",
    "app in (a),web notin (b),!c,d!=e",
    "a123456789012345678901234567890123456789012345678901234567890123",
    "app=a123456789012345678901234567890123456789012345678901234567890123",
];

/// Field selectors of pods, good and bad.
const FIELDS: [&str; 26] = [
    "metadata.name=a",
    "metadata.name==a",
    "metadata.name!=a",
    "metadata.name=",
    "metadata.name",
    "metadata.name=a,",
    ",metadata.name=a",
    "metadata.name=a,,status.phase=Running",
    "metadata.name=a,status.phase!=Running",
    "=a",
    "!=a",
    "metadata.name=a=b",
    r"metadata.name=a\=b",
    r"metadata.name=a\,b",
    r"metadata.name=a\\b",
    r"metadata.name=a\b",
    r"metadata.name=a\",
    " metadata.name=a",
    "metadata.name= a",
    "metadata.name!a",
    "metadata.name>a",
    "==",
    "=",
    "status.phase in (Running)",
    "spec.nodeName===a",
    "metadata.name=a,metadata.namespace=b",
];

/// Every byte but letters and digits, escaped.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// Why the server does not list pods by this selector.
async fn refusal(stage: &Stage, parameter: &str, text: &str) -> Option<String> {
    let path = format!("/api/v1/namespaces/{}/pods?{parameter}={}", stage.namespace, escaped(text));
    match stage.api.try_ask(Method::GET, &path, None).await {
        Ok(_) => None,
        Err(Error::Refused(refused)) if refused.status().code == 400 => {
            Some(refused.status().message.clone())
        }
        Err(error) => panic!("{text:?}: {error}"),
    }
}

pub(crate) async fn inf_84_selectors_are_refused_before_any_request_exactly_if_the_server_cannot_parse_them(
    stage: Stage,
) {
    let client = stage.server.client();
    let pods = || client.resource::<Pod>();
    let mut differences = Vec::new();
    let mut compare = |source: ResourceSource<Pod>, text: &str, theirs: Option<String>| {
        let ours = source.informer(&stage.runtime).err().map(|error| error.to_string());
        // Which fields a kind can be selected by is known to the server alone: its refusal may be left to it.
        let is_left = theirs.as_ref().is_some_and(|why| why.contains("field label not supported"));
        if ours.is_some() != theirs.is_some() && !is_left {
            differences.push(format!("{text:?}: here {ours:?}, the server {theirs:?}"));
        }
    };
    for text in LABELS {
        compare(pods().labels(text), text, refusal(&stage, "labelSelector", text).await);
    }
    for text in FIELDS {
        compare(pods().fields(text), text, refusal(&stage, "fieldSelector", text).await);
    }
    assert!(differences.is_empty(), "{}:\n{}", stage.server.name(), differences.join("\n"));
}

pub(crate) async fn ref_63_a_field_that_the_server_does_not_know_is_a_state_that_quotes_the_selector(
    stage: Stage,
) {
    for watch_list in [true, false] {
        let pods = stage.server.client().resource::<Pod>().namespace(&*stage.namespace);
        let pods = pods.labels("app=first").fields("spec.nonsense=1");
        let pods = pods.settings(|settings| settings.watch_list = watch_list);
        let pods = Followed::start(pods.informer(&stage.runtime).expect("it can be parsed"), &[]);
        let state = pods.state(|state| matches!(state, SourceState::SelectorRejected { .. })).await;
        let text = state.to_string();
        let begins = "selector rejected: labels=app=first, fields=spec.nonsense=1: ";
        assert!(text.starts_with(begins) && text.contains("field label not supported"), "{text}");
        let wait = pods.informer.synced_within(std::time::Duration::ZERO).await.expect_err("it cannot sync");
        assert!(wait.to_string().contains(begins), "{wait}");
        let counters = pods.counters();
        assert_eq!((counters.rejected_selectors, counters.failures), (1, 1), "it is not retried at once");
    }
}

/// A source of a resource that discovery has named.
fn discovered(client: &Client, group_version: &str, found: &Value) -> ResourceSource<DynamicObject, Dynamic> {
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    let text = |field: &str| found[field].as_str().expect("discovery says it").to_owned();
    let kind = GroupVersionKind::gvk(group, version, &text("kind"));
    client.dynamic(&ApiResource::from_gvk_with_plural(&kind, &text("name")))
}

pub(crate) async fn inf_84_of_every_kind_of_kubernetes_it_is_known_whether_it_is_in_namespaces(stage: Stage) {
    let client = stage.server.client();
    let get = async |path: String| -> Value {
        let body = stage.api.try_ask(Method::GET, &path, None).await.expect("discovery");
        serde_json::from_slice(&body).expect("JSON")
    };
    let groups = get("/apis".to_owned()).await;
    let groups = groups["groups"].as_array().expect("groups").clone();
    let versions = groups.iter().flat_map(|group| group["versions"].as_array().expect("versions"));
    let versions = versions.map(|version| version["groupVersion"].as_str().expect("a text").to_owned());
    let mut compared = 0;
    for version in std::iter::once("v1".to_owned()).chain(versions) {
        let root = if version == "v1" { "/api" } else { "/apis" };
        let list = get(format!("{root}/{version}")).await;
        for found in list["resources"].as_array().expect("resources") {
            if found["name"].as_str().expect("a name").contains('/') {
                continue;
            }
            let source = discovered(&client, &version, found).namespace("web");
            let is_refused = matches!(source.informer(&stage.runtime), Err(Error::ClusterScoped { .. }));
            assert_eq!(Some(!is_refused), found["namespaced"].as_bool(), "{version}: {found}");
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared} kinds");
    let nodes = client.dynamic(&ApiResource::erase::<Node>(&())).namespace("web");
    assert!(nodes.informer(&stage.runtime).is_err());
}
