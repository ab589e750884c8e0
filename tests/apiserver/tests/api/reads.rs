//! Lists, gets, discovery and representations over HTTP: behaviours 4 to 9, 18, 20, 31 to 36, 43.
//!
//! They answer: is a read answered as by a real server, in the requested form? The rules themselves have their tables
//! in `src/cluster/tests.rs`; these tests check the bytes on the wire.
use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use informer_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::client::{config_map, get, open, post, request, server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn api_04_a_list_ahead_of_the_store_waits_and_then_is_refused() {
    let server = server();
    let revision = server.revision();
    let answer = get(&server, &format!("{MAPS}?resourceVersion={}", revision + 1));
    assert_eq!((answer.code, answer.header("retry-after")), (504, Some("1")));
    let status = answer.json();
    assert_eq!(
        status["message"],
        format!("Timeout: Too large resource version: {}, current: {revision}", revision + 1)
    );
    assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert_eq!(status["details"]["retryAfterSeconds"], 1);
}

#[test]
fn api_04_a_list_slightly_ahead_is_answered_when_the_store_reaches_its_version() {
    let server = server();
    let next = server.revision() + 1;
    std::thread::scope(|scope| {
        let list = scope.spawn(|| get(&server, &format!("{MAPS}?resourceVersion={next}")));
        while server.requests().is_empty() {
            std::thread::yield_now();
        }
        server.create(config_map("a", "x")).unwrap();
        let answer = list.join().unwrap();
        assert_eq!((answer.code, answer.json()["items"].as_array().unwrap().len()), (200, 1));
    });
}

#[test]
fn api_06_a_bad_version_is_400_in_a_list_and_500_in_a_watch_or_get() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    for (path, code) in [
        (format!("{MAPS}?resourceVersion=abc"), 400),
        (format!("{MAPS}?watch=1&resourceVersion=abc"), 500),
        (format!("{MAPS}/a?resourceVersion=abc"), 500),
        (format!("{MAPS}?resourceVersionMatch=Exact"), 422),
        (format!("{MAPS}?watch=1&sendInitialEvents=true"), 422),
    ] {
        assert_eq!(get(&server, &path).code, code, "{path}");
    }
    let invalid = get(&server, &format!("{MAPS}?sendInitialEvents=true")).json();
    assert_eq!((&invalid["reason"], &invalid["details"]["kind"]), (&json!("Invalid"), &json!("ListOptions")));
}

#[test]
fn api_07_pages_together_are_the_whole_list() {
    let server = server();
    for name in ["a", "b", "c", "d", "e"] {
        server.create(config_map(name, "x")).unwrap();
    }
    let (mut names, mut token, mut remaining) = (Vec::new(), String::new(), Vec::new());
    loop {
        let page = get(&server, &format!("{MAPS}?limit=2&continue={token}")).json();
        names.extend(page["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].clone()));
        remaining.push(page["metadata"]["remainingItemCount"].as_u64());
        match page["metadata"]["continue"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    assert_eq!(remaining, [Some(3), Some(1), None]);
    let whole = get(&server, &format!("{MAPS}?limit=2&resourceVersion=0")).json();
    assert_eq!(whole["items"].as_array().unwrap().len(), 5, "version 0 ignores the limit");
}

#[test]
fn api_08_an_expired_token_is_410_with_a_fresh_token() {
    let server = server();
    for name in ["a", "b", "c"] {
        server.create(config_map(name, "x")).unwrap();
    }
    let token =
        get(&server, &format!("{MAPS}?limit=1")).json()["metadata"]["continue"].as_str().unwrap().to_owned();
    server.faults().expire_continue_tokens();
    let refused = get(&server, &format!("{MAPS}?limit=1&continue={token}"));
    let status = refused.json();
    assert_eq!((refused.code, &status["reason"]), (410, &json!("Expired")));
    let fresh = status["metadata"]["continue"].as_str().unwrap();
    let rest = get(&server, &format!("{MAPS}?continue={fresh}")).json();
    assert_eq!(rest["items"].as_array().unwrap().len(), 2);
}

#[test]
fn api_09_items_of_built_ins_carry_no_type_and_those_of_custom_kinds_do() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    let maps = get(&server, MAPS).json();
    assert_eq!((&maps["kind"], &maps["apiVersion"]), (&json!("ConfigMapList"), &json!("v1")));
    assert_eq!((maps["items"][0].get("kind"), maps["items"][0].get("apiVersion")), (None, None));
    assert_eq!(get(&server, &format!("{MAPS}/a")).json()["kind"], "ConfigMap");

    server.create(widgets()).unwrap();
    server.create(widget("w")).unwrap();
    let list = get(&server, "/apis/example.com/v1/widgets").json();
    assert_eq!((&list["kind"], &list["items"][0]["kind"]), (&json!("WidgetList"), &json!("Widget")));
    assert_eq!(list["items"][0]["apiVersion"], "example.com/v1");
    assert_eq!(list["metadata"]["continue"], "", "custom kinds always say continue");
}

pub(crate) fn widgets() -> Value {
    let any = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": any},
                         {"name": "v1beta1", "served": true, "storage": false, "schema": any}],
        },
    })
}

pub(crate) fn widget(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1}})
}

#[test]
fn api_18_a_big_list_is_compressed_for_clients_that_accept_it() {
    let server = server();
    for number in 0..40 {
        let mut map = config_map(&format!("m{number:02}"), "x");
        map["data"] = json!({"k": "v".repeat(10_000)});
        server.create(map).unwrap();
    }
    let plain = get(&server, MAPS);
    assert_eq!(
        (plain.header("content-encoding"), plain.header("transfer-encoding")),
        (None, Some("chunked"))
    );
    let packed = request(&server, "GET", MAPS, &[("Accept-Encoding", "gzip")], "");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut body = Vec::new();
    MultiGzDecoder::new(packed.body.as_slice()).read_to_end(&mut body).unwrap();
    assert!(packed.body.len() < 20_000 && body == plain.body);
    let small = request(&server, "GET", &format!("{MAPS}/m00"), &[("Accept-Encoding", "gzip")], "");
    assert_eq!(small.header("content-encoding"), None);
}

#[test]
fn api_20_every_refusal_is_a_status_of_its_reason() {
    let server = server();
    for (method, path, code, reason) in [
        ("GET", "/api/v1/namespaces/default/configmaps/none", 404, "NotFound"),
        ("GET", "/api/v1/nopes", 404, "NotFound"),
        ("GET", "/apis/apps/v9/deployments", 404, "NotFound"),
        ("PUT", "/api/v1/namespaces/default/configmaps/a/status", 404, "NotFound"),
        ("HEAD", "/api/v1/pods", 405, "MethodNotAllowed"),
        ("OPTIONS", "/api/v1/pods", 405, "MethodNotAllowed"),
        ("POST", "/api/v1/pods", 405, "MethodNotAllowed"),
        ("PATCH", "/api/v1/namespaces/default/configmaps/a", 415, "UnsupportedMediaType"),
    ] {
        let answer = open(&server, method, path, &[], "");
        assert_eq!(answer.head.code, code, "{method} {path}");
        if method == "HEAD" {
            continue;
        }
        let mut answer = answer;
        let status: Value = serde_json::from_slice(&answer.rest().unwrap()).unwrap();
        assert_eq!((&status["kind"], &status["reason"]), (&json!("Status"), &json!(reason)), "{path}");
        assert_eq!(status["code"], code);
    }
    let missing = get(&server, "/api/v1/namespaces/default/configmaps/none").json();
    assert_eq!(missing["message"], "configmaps \"none\" not found");
    assert_eq!(missing["details"], json!({"name": "none", "kind": "configmaps"}));
}

#[test]
fn api_20_an_unknown_path_is_plain_text() {
    let server = server();
    for path in ["/nope", "/apis/example.com", "/apis/example.com/v1/widgets"] {
        let answer = get(&server, path);
        assert_eq!((answer.code, answer.text().as_str()), (404, "404 page not found\n"), "{path}");
    }
}

#[test]
fn api_32_discovery_lists_groups_versions_and_resources() {
    let server = server();
    assert_eq!(get(&server, "/api").json()["versions"], json!(["v1"]));
    let groups = get(&server, "/apis").json();
    let names: Vec<&str> =
        groups["groups"].as_array().unwrap().iter().map(|g| g["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"apps") && names.contains(&"apiextensions.k8s.io"));
    let core = get(&server, "/api/v1").json();
    let find = |list: &Value, name: &str| {
        list["resources"].as_array().unwrap().iter().find(|resource| resource["name"] == name).cloned()
    };
    let pods = find(&core, "pods").unwrap();
    assert_eq!(
        (&pods["kind"], &pods["namespaced"], &pods["shortNames"]),
        (&json!("Pod"), &json!(true), &json!(["po"]))
    );
    assert!(pods["verbs"].as_array().unwrap().contains(&json!("watch")));
    assert!(find(&core, "pods/status").is_some() && find(&core, "configmaps/status").is_none());
}

#[test]
fn api_34_a_definition_is_served_at_once_and_deleted_with_its_objects() {
    let server = server();
    server.create(widgets()).unwrap();
    let made = server.create(widget("w")).unwrap();
    let group = get(&server, "/apis/example.com").json();
    assert_eq!(group["preferredVersion"]["version"], "v1");
    let list = get(&server, "/apis/example.com/v1").json();
    assert_eq!(
        (&list["resources"][0]["name"], &list["resources"][0]["shortNames"]),
        (&json!("widgets"), &json!(["wd"]))
    );
    let definition =
        server.get("customresourcedefinitions.apiextensions.k8s.io", "", "widgets.example.com").unwrap();
    let conditions = definition["status"]["conditions"].as_array().unwrap();
    assert!(
        conditions
            .iter()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
    );
    let beta = get(&server, "/apis/example.com/v1beta1/namespaces/default/widgets/w").json();
    assert_eq!(beta["apiVersion"], "example.com/v1beta1", "conversion rewrites the version only");

    server.delete("customresourcedefinitions.apiextensions.k8s.io", "", "widgets.example.com").unwrap();
    assert_eq!(get(&server, "/apis/example.com/v1/widgets").text(), "404 page not found\n");
    server.create(widgets()).unwrap();
    assert_eq!(get(&server, "/apis/example.com/v1/widgets").json()["items"], json!([]));
    let again = server.create(widget("w")).unwrap();
    assert_ne!(made["metadata"]["uid"], again["metadata"]["uid"]);
}

#[test]
fn api_36_a_client_can_ask_for_metadata_only() {
    let server = server();
    let mut map = config_map("a", "x");
    map["data"] = json!({"k": "v"});
    server.create(map).unwrap();
    let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let listed = request(&server, "GET", MAPS, &[("Accept", list)], "").json();
    assert_eq!(
        (&listed["kind"], &listed["apiVersion"]),
        (&json!("PartialObjectMetadataList"), &json!("meta.k8s.io/v1"))
    );
    let item = &listed["items"][0];
    assert_eq!(
        (&item["kind"], &item["metadata"]["labels"]["app"], item.get("data")),
        (&json!("PartialObjectMetadata"), &json!("x"), None)
    );
    let single = request(&server, "GET", &format!("{MAPS}/a"), &[("Accept", one)], "").json();
    assert_eq!((&single["kind"], single.get("data")), (&json!("PartialObjectMetadata"), None));
    assert_eq!(request(&server, "GET", MAPS, &[("Accept", one)], "").code, 406);

    let path = format!("{MAPS}?watch=1&allowWatchBookmarks=true");
    let mut watch = open(&server, "GET", &path, &[("Accept", one)], "");
    let added = watch.event().unwrap().unwrap();
    assert_eq!(
        (&added["type"], &added["object"]["kind"], added["object"].get("data")),
        (&json!("ADDED"), &json!("PartialObjectMetadata"), None)
    );
    let marker = watch.event().unwrap().unwrap();
    assert_eq!(
        (&marker["type"], &marker["object"]["kind"]),
        (&json!("BOOKMARK"), &json!("PartialObjectMetadata"))
    );
}

#[test]
fn api_43_health_and_version_answer_scripts() {
    let server = ApiServer::builder().token("t").start_blocking().unwrap();
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(get(&server, path).text(), "ok");
    }
    assert!(get(&server, "/version").json()["gitVersion"].as_str().unwrap().starts_with("v1."));
}

#[test]
fn e3_a_namespace_that_does_not_exist_lists_empty() {
    let server = server();
    let answer = get(&server, "/api/v1/namespaces/nowhere/pods");
    assert_eq!((answer.code, &answer.json()["items"]), (200, &json!([])));
    let made = post(&server, "/api/v1/namespaces/nowhere/pods", &json!({"metadata": {"name": "a"}}));
    assert_eq!((made.code, &made.json()["message"]), (404, &json!("namespaces \"nowhere\" not found")));
}

#[test]
fn e17_a_wrong_token_is_401_and_none_is_403() {
    let server = ApiServer::builder().token("right").start_blocking().unwrap();
    let with = |token: &str| request(&server, "GET", "/api/v1/pods", &[("Authorization", token)], "");
    assert_eq!(with("Bearer right").code, 200);
    assert_eq!(
        (with("Bearer wrong").code, &with("Bearer wrong").json()["reason"]),
        (401, &json!("Unauthorized"))
    );
    let anonymous = get(&server, "/api/v1/pods");
    assert_eq!(anonymous.code, 403);
    let message = "pods is forbidden: User \"system:anonymous\" cannot list resource \"pods\" in API group \"\" at the cluster scope";
    assert_eq!(anonymous.json()["message"], message);
}
