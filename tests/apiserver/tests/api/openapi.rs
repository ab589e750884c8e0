//! OpenAPI over HTTP: behaviour 40.
//!
//! They answer: what can `kubectl explain` and client-side validation learn from this server? `tests/judged/` checks
//! that the documents of built-in groups are exactly those of a real server.
use serde_json::json;

use crate::client::{get, request, server};
use crate::reads::widgets;

fn address(server: &informer_apiserver::ApiServer, name: &str) -> String {
    let index = get(server, "/openapi/v3").json();
    index["paths"][name]["serverRelativeURL"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn api_40_a_document_is_cached_by_its_hash() {
    let server = server();
    let address = address(&server, "apis/apps/v1");
    let current = get(&server, &address);
    assert_eq!((current.code, current.header("cache-control")), (200, Some("public, immutable")));
    let tag = current.header("etag").unwrap();
    let known = request(&server, "GET", &address, &[("If-None-Match", tag)], "");
    assert_eq!((known.code, known.body.len()), (304, 0));
    let old = get(&server, "/openapi/v3/apis/apps/v1?hash=OLD");
    assert_eq!((old.code, old.header("location")), (301, Some(address.as_str())));
    let other = request(&server, "GET", &address, &[("Accept", "text/html")], "");
    assert_eq!(other.code, 406);
}

#[test]
fn api_40_a_definition_has_its_document_and_leaves_validation_to_the_server() {
    let server = server();
    server.create(widgets()).unwrap();
    let name = "apis/example.com/v1";
    let document = get(&server, &address(&server, name)).json();
    let path = "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}";
    let parameters = document["paths"][path]["patch"]["parameters"].as_array().unwrap();
    assert!(parameters.iter().any(|parameter| parameter["name"] == "fieldValidation"));
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let kinds = json!([{"group": "example.com", "version": "v1", "kind": "Widget"}]);
    assert_eq!(schemas["com.example.v1.Widget"]["x-kubernetes-group-version-kind"], kinds);
    assert!(schemas.contains_key("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));
}

#[test]
fn api_40_the_older_form_is_answered_as_json_and_as_protobuf() {
    let server = server();
    let document = get(&server, "/openapi/v2").json();
    assert_eq!(document["swagger"], "2.0");
    let spec = &document["definitions"]["io.k8s.api.apps.v1.DeploymentSpec"]["properties"];
    assert_eq!(spec["template"]["$ref"], "#/definitions/io.k8s.api.core.v1.PodTemplateSpec");
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
    let patch = &document["paths"][path]["patch"];
    assert_eq!(patch["parameters"][0]["in"], "body");
    let protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    let received = request(&server, "GET", "/openapi/v2", &[("Accept", protobuf)], "");
    assert_eq!((received.code, received.header("content-type")), (200, Some(protobuf)));
    assert!(received.body.starts_with(b"\n\x032.0\x12"), "a version and then the info");
}
