//! Discovery over HTTP: behaviours 32 to 35, compared with the answers of a real server (`discovery.json`).
//!
//! They answer: does a client learn the same kinds, verbs and names here as from kube-apiserver 1.36.2?
//! `record-kinds.py` makes the recording.
use serde_json::{Value, json};

use crate::client::{Answer, get, request, server};
use crate::reads::widgets;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn root(server: &informer_apiserver::ApiServer, path: &str, accept: &str) -> Answer {
    request(server, "GET", path, &[("Accept", accept)], "")
}

#[test]
fn api_32_the_resource_lists_are_those_of_a_real_server() {
    let server = server();
    let recorded: Vec<Value> = serde_json::from_str(include_str!("discovery.json")).unwrap();
    for list in &recorded {
        let version = list["groupVersion"].as_str().unwrap();
        let root = if version == "v1" { "api" } else { "apis" };
        assert_eq!(get(&server, &format!("/{root}/{version}")).json(), *list, "{version}");
    }
    let groups = get(&server, "/apis").json();
    let versions =
        groups["groups"].as_array().unwrap().iter().flat_map(|group| group["versions"].as_array().unwrap());
    let received: Vec<&Value> = versions.map(|version| &version["groupVersion"]).collect();
    let known: Vec<&Value> = recorded.iter().skip(1).map(|list| &list["groupVersion"]).collect();
    assert_eq!(received, known, "groups and versions in the order of a real server");
}

#[test]
fn api_33_the_aggregated_roots_have_the_content_of_the_lists() {
    let server = server();
    server.create(widgets()).unwrap();
    for (path, base) in [("/api", "/api"), ("/apis", "/apis")] {
        let answer = root(&server, path, AGGREGATED);
        assert_eq!(answer.header("content-type"), Some(AGGREGATED));
        for group in answer.json()["items"].as_array().unwrap() {
            for version in group["versions"].as_array().unwrap() {
                let name =
                    group["metadata"]["name"].as_str().map(|name| format!("/{name}")).unwrap_or_default();
                let list =
                    get(&server, &format!("{base}{name}/{}", version["version"].as_str().unwrap())).json();
                let mut received = Vec::new();
                for resource in version["resources"].as_array().unwrap() {
                    received
                        .push((resource["resource"].as_str().unwrap().to_owned(), resource["verbs"].clone()));
                    for sub in resource["subresources"].as_array().into_iter().flatten() {
                        let name = format!(
                            "{}/{}",
                            received.last().unwrap().0,
                            sub["subresource"].as_str().unwrap()
                        );
                        received.insert(received.len(), (name, sub["verbs"].clone()));
                    }
                }
                assert_eq!(received.len(), list["resources"].as_array().unwrap().len(), "{name}");
            }
        }
    }
}

#[test]
fn api_33_an_aggregated_root_changes_its_tag_with_the_kinds() {
    let server = server();
    let before = root(&server, "/apis", AGGREGATED).header("etag").unwrap().to_owned();
    let headers = [("Accept", AGGREGATED), ("If-None-Match", before.as_str())];
    let same = request(&server, "GET", "/apis", &headers, "");
    assert_eq!((same.code, same.body.len()), (304, 0));
    server.create(widgets()).unwrap();
    let changed = request(&server, "GET", "/apis", &headers, "");
    assert_eq!(changed.code, 200);
    assert_ne!(changed.header("etag"), Some(before.as_str()));
    assert!(changed.text().contains("example.com"));
}

#[test]
fn api_33_the_old_aggregated_form_alone_is_not_acceptable() {
    let server = server();
    let old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    let refused = root(&server, "/apis", old);
    assert_eq!((refused.code, &refused.json()["reason"]), (406, &json!("NotAcceptable")));
    let plain = root(&server, "/apis", &format!("{old},application/json"));
    assert_eq!(plain.json()["kind"], "APIGroupList");
}

#[test]
fn api_32_a_verb_a_kind_does_not_have_is_not_allowed() {
    let server = server();
    for (method, path, code) in [
        ("GET", "/api/v1/bindings", 405),
        ("GET", "/api/v1/namespaces/default/bindings/a", 404),
        ("DELETE", "/api/v1/namespaces", 405),
        ("POST", "/api/v1/componentstatuses", 405),
        ("GET", "/api/v1/namespaces/default/pods/a/binding", 405),
        ("GET", "/api/v1/namespaces/default/pods/a/nope", 404),
    ] {
        assert_eq!(request(&server, method, path, &[], "").code, code, "{method} {path}");
    }
}
