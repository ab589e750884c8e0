//! Answers in protobuf and YAML: behaviours 38 and 39.
//!
//! They answer: does a client get its answers and errors in the requested language? The harness reads both languages
//! into JSON.
use serde_json::{Value, json};

use crate::definitions::widgets;
use crate::harness::{Request, Session, judge};

const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";
const WIDGETS: &str = "/apis/{group}/v1/namespaces/{ns}/widgets";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const YAML: &str = "application/yaml";

fn ask(method: &'static str, path: impl Into<String>, accept: &str) -> Request {
    Request::new(method, path).header("Accept", accept)
}

/// An object of each kind that both servers show alike, created and then read in a language.
fn kinds(s: &mut Session, language: &str) {
    let coordination = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases";
    let spec = json!({"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2020-01-02T03:04:05.123456Z"});
    let role = json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]});
    let pdb = json!({"spec": {"maxUnavailable": "25%", "selector": {"matchLabels": {"app": "a"}}}});
    let quota = json!({"spec": {"hard": {"pods": "9", "requests.cpu": "1500m"}}});
    let slice = json!({"addressType": "IPv4", "ports": [{"name": "http", "port": 80}],
        "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": true}}]});
    let reporter = json!({"regarding": {"kind": "Pod", "name": "a", "namespace": "{ns}"}, "reason": "R", "action": "A",
        "type": "Normal", "eventTime": "2020-01-02T03:04:05.000006Z", "reportingController": "x.y/z", "reportingInstance": "i"});
    for (path, mut body) in [
        (MAPS, json!({"data": {"a": "1", "b": "two\nlines\n"}, "binaryData": {"c": "AAEC", "d": ""}})),
        ("/api/v1/namespaces/{ns}/secrets", json!({"stringData": {"k": "v"}, "immutable": true})),
        ("/api/v1/namespaces/{ns}/resourcequotas", quota),
        (coordination, json!({ "spec": spec })),
        ("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles", role),
        ("/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets", pdb),
        ("/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices", slice),
        ("/apis/events.k8s.io/v1/namespaces/{ns}/events", reporter),
    ] {
        body["metadata"] = json!({"name": "a", "labels": {"app": "x"}, "annotations": {"note": "yes"}});
        s.send(ask("POST", path, language).json(&body));
        s.send(ask("GET", format!("{path}/a"), language));
        s.send(ask("GET", path, language));
    }
    s.send(ask("GET", "/api/v1/namespaces/{ns}/events/a", language));
    s.send(ask("GET", "/api/v1/namespaces/{ns}", language));
}

#[test]
fn api_38_kinds_are_answered_in_protobuf() {
    judge(|s| kinds(s, PROTOBUF));
}

#[test]
fn api_39_kinds_are_answered_in_yaml() {
    judge(|s| kinds(s, YAML));
}

/// Answers to writes in a language, also refusals.
fn writes(s: &mut Session, language: &str) {
    let map = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    let made = s.send(ask("POST", MAPS, language).json(&map)).json();
    s.send(ask("POST", MAPS, language).json(&map));
    s.send(ask("POST", MAPS, language).json(&json!({"metadata": {"name": "A_b"}})));
    s.send(ask("PUT", format!("{MAPS}/a"), language).json(&made));
    let merge = |body: &Value| {
        ask("PATCH", format!("{MAPS}/a"), language).body("application/merge-patch+json", body.to_string())
    };
    s.send(merge(&json!({"data": {"k": "w"}})));
    s.send(merge(&json!({"metadata": {"resourceVersion": "1"}})));
    s.send(ask("DELETE", format!("{MAPS}/a"), language));
    s.send(ask("GET", format!("{MAPS}/a"), language));
    s.send(ask("POST", MAPS, language).json(&json!({"metadata": {"name": "b"}})));
    s.send(ask("DELETE", format!("{MAPS}/b"), language));
    s.send(ask("GET", "/api/v1/namespaces/{ns}/nopes", language));
    s.send(ask("GET", MAPS, language).anonymously());
    s.send(ask("GET", MAPS, language).powerlessly());
    s.send(ask("GET", format!("{MAPS}?continue=x"), language));
}

#[test]
fn api_38_writes_are_answered_in_protobuf() {
    judge(|s| writes(s, PROTOBUF));
}

#[test]
fn api_39_writes_are_answered_in_yaml() {
    judge(|s| writes(s, YAML));
}

#[test]
fn api_38_watches_are_sent_in_protobuf() {
    judge(|s| {
        let from = s.post(MAPS, &json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).version();
        let mut whole = s.open(ask("GET", format!("{MAPS}?watch=1&allowWatchBookmarks=true"), PROTOBUF));
        whole.events(s, 2);
        let initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
        let partial = format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
        let mut metadata = s.open(ask("GET", format!("{MAPS}?watch=1&{initial}"), &partial));
        metadata.events_until(s, "BOOKMARK");
        s.patch("merge", format!("{MAPS}/a"), &json!({"data": {"k": "w"}}));
        s.delete(format!("{MAPS}/a"));
        whole.events(s, 2);
        metadata.events(s, 2);
        let mut resumed = s.open(ask("GET", format!("{MAPS}?watch=1&resourceVersion={from}"), PROTOBUF));
        resumed.events(s, 2);
        for language in [
            YAML,
            "application/yaml,application/json",
            "application/json;stream=watch",
            "application/json;stream=x",
        ] {
            let mut watch = s.open(ask("GET", format!("{MAPS}?watch=1&resourceVersion={from}"), language));
            watch.events(s, 1);
        }
        let bookmark = format!("{MAPS}?watch=1&{initial}&fieldSelector=metadata.name%3Dnone");
        s.open(ask("GET", bookmark, PROTOBUF)).events_until(s, "BOOKMARK");
        let pods = format!("/api/v1/namespaces/{{ns}}/pods?watch=1&{initial}");
        s.open(ask("GET", pods, PROTOBUF)).events_until(s, "BOOKMARK");
    });
}

#[test]
fn api_38_the_best_range_of_the_header_wins() {
    judge(|s| {
        s.prepare(Request::new("POST", MAPS).json(&json!({"metadata": {"name": "a"}})));
        let metadata = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        let list = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        let table = ";as=Table;g=meta.k8s.io;v=v1";
        for accept in [
            format!("application/json;q=0.1,{PROTOBUF};q=0.9"),
            format!("{PROTOBUF};q=0.1,application/json"),
            format!("*/*,{PROTOBUF}"),
            format!("{PROTOBUF};q=0"),
            format!("{YAML};q=0,application/json;q=0"),
            format!("application/*,{YAML}"),
            format!("text/html,{YAML};q=0.5,*/*;q=0.1"),
            "application/*".to_owned(),
            "text/html".to_owned(),
            "*".to_owned(),
            format!("{PROTOBUF}{metadata}"),
            format!("{PROTOBUF}{metadata},application/json"),
            format!("{YAML}{metadata}"),
            format!("{PROTOBUF}{table}"),
            format!("{PROTOBUF}{table},application/json;q=0.5"),
            format!("{PROTOBUF}{list}"),
            format!("{PROTOBUF};sv=v1"),
            format!("{PROTOBUF};stream=watch"),
        ] {
            s.send(ask("GET", format!("{MAPS}/a"), &accept));
            s.send(ask("GET", format!("{MAPS}/none"), &accept));
        }
        s.send(ask("GET", MAPS, &format!("{PROTOBUF}{list}")));
        s.send(ask("GET", MAPS, &format!("{YAML}{list}")));
        s.send(ask("GET", MAPS, &format!("{PROTOBUF}{metadata}")));
    });
}

#[test]
fn api_38_custom_kinds_have_no_messages() {
    judge(|s| {
        widgets(s);
        let widget = json!({"apiVersion": "{group}/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}});
        let both = format!("{PROTOBUF},application/json");
        s.send(ask("POST", WIDGETS, &both).json(&widget));
        let metadata = format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
        for accept in [PROTOBUF, &both, YAML, "application/*", &metadata] {
            s.send(ask("GET", format!("{WIDGETS}/a"), accept));
            s.send(ask("GET", format!("{WIDGETS}/none"), accept));
        }
        s.send(ask("GET", WIDGETS, YAML));
        s.send(ask("GET", WIDGETS, &format!("{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")));
        let mut watch = s.open(ask("GET", format!("{WIDGETS}?watch=1&allowWatchBookmarks=true"), &metadata));
        watch.events(s, 2);
        s.open(ask("GET", format!("{WIDGETS}?watch=1"), PROTOBUF)).events(s, 1);
        s.send(ask("DELETE", format!("{WIDGETS}/a"), &both));
        s.send(ask("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}", YAML));
        s.send(ask(
            "GET",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}",
            PROTOBUF,
        ));
    });
}

#[test]
fn api_38_kinds_that_are_not_stored_are_answered_in_protobuf_too() {
    judge(|s| {
        for language in [PROTOBUF, YAML] {
            let access = "/apis/authorization.k8s.io/v1";
            let asked = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "{ns}"}}});
            s.send(ask("POST", format!("{access}/selfsubjectaccessreviews"), language).json(&asked));
            s.send(
                ask("POST", format!("{access}/selfsubjectaccessreviews"), language)
                    .json(&json!({"spec": {}})),
            );
            s.send(
                ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", language).json(&json!({})),
            );
            let scale = "/apis/apps/v1/namespaces/{ns}/replicasets/a/scale";
            let set = json!({"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"app": "a"}}, "replicas": 2,
                "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
            s.prepare(Request::new("POST", "/apis/apps/v1/namespaces/{ns}/replicasets").json(&set));
            s.send(ask("GET", scale, language));
            s.prepare(Request::new("DELETE", "/apis/apps/v1/namespaces/{ns}/replicasets/a"));
            s.send(
                ask("POST", "/api/v1/namespaces/{ns}/pods/none/eviction", language)
                    .json(&json!({"metadata": {"name": "none"}})),
            );
            let token = "/api/v1/namespaces/{ns}/serviceaccounts/none/token";
            s.send(ask("POST", token, language).json(&json!({"spec": {}})));
        }
    });
}

#[test]
fn api_38_discovery_is_answered_in_every_language() {
    judge(|s| {
        for language in [PROTOBUF, YAML, "text/html"] {
            for path in [
                "/api/v1",
                "/apis/apps",
                "/apis/apps/v1",
                "/apis/nope",
                "/nope",
                "/version",
                "/openapi/v2",
                "/openapi/v3/apis/policy/v1",
            ] {
                s.send(ask("GET", path, language));
            }
            let aggregated = format!("{language};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
            s.send(ask("GET", "/api", &aggregated));
        }
    });
}

#[test]
fn api_39_texts_that_yaml_must_quote() {
    judge(|s| {
        let long = "a sentence that goes on for so long that it does not fit into one line of eighty characters, and then more";
        let mut data = json!({});
        for (at, text) in [
            "",
            " a",
            "a ",
            "yes",
            "1",
            "1.5",
            "0x1f",
            "~",
            "null",
            "- a",
            "a: b",
            "a #b",
            "it's",
            "\"",
            "a\nb",
            "a\n",
            "\n",
            "a \nb",
            "a\tb",
            "2026-01-02",
            "12:30:45",
            "{a}",
            "*",
            "\u{1f600}",
            "1_000",
            ".5",
            "1e3",
            long,
            &format!("{long}: {long}"),
            &format!("\t{long}"),
            &format!("{long}\n{long}"),
        ]
        .into_iter()
        .enumerate()
        {
            data[format!("k{at}")] = json!(text);
        }
        s.prepare(Request::new("POST", MAPS).json(&json!({"metadata": {"name": "a"}, "data": data})));
        s.send(ask("GET", format!("{MAPS}/a"), YAML));
        s.send(ask("GET", MAPS, YAML));
    });
}
