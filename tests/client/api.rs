//! What each verb of `client::Api` sends, and what it makes of each answer.
//!
//! Answers "is the request exactly the one that the API documents?" against a server that shows each request. What a
//! server does with it is in the end-to-end suite (`verbs.rs` there).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_informer::client::api::{
    ConflictPolicy, DeleteParams, FieldValidation, GetParams, ListParams, Patch, PatchParams, PostParams,
    Preconditions, conditions,
};
use actix_informer::client::{Api, Client, Config, Error};
use futures_util::{StreamExt, TryStreamExt};
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube_core::discovery::ApiResource;
use serde_json::{Value, json};

use crate::raw_server::*;

const MAP: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}"#;

fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let value = head.lines().find_map(|line| {
        let (key, value) = line.split_once(": ")?;
        key.eq_ignore_ascii_case(name).then_some(value)
    });
    value.unwrap_or_default()
}

pub(crate) fn client(server: &RawServer) -> Client {
    Client::new(Config::new(server.url()).unwrap()).unwrap()
}

/// A server that answers every request with this body, and what it was asked: the request line without the protocol,
/// the content type, the Accept header and the body.
pub(crate) async fn recording(
    status: &'static str,
    body: &'static str,
) -> (RawServer, Arc<Mutex<Vec<[String; 4]>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&asked);
    let server = RawServer::start(move |mut connection: Connection| {
        let record = Arc::clone(&record);
        async move {
            while let Some(head) = connection.request().await {
                let sent = connection.body(header(&head, "content-length").parse().unwrap_or(0)).await;
                let line = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
                let (content, accept) = (header(&head, "content-type"), header(&head, "accept"));
                record.lock().unwrap().push([line, content.to_owned(), accept.to_owned(), sent]);
                connection.write(answer(status, "", body)).await;
            }
        }
    })
    .await;
    (server, asked)
}

const JSON: &str = "application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

#[tokio::test]
async fn an_object_with_an_empty_name_and_a_generated_one_is_created() {
    let (server, asked) = recording("201 Created", MAP).await;
    let maps = client(&server).api::<ConfigMap>().namespaced("shop");
    let mut map = ConfigMap::default();
    (map.metadata.name, map.metadata.generate_name) = (Some(String::new()), Some("a-".to_owned()));
    let stored = maps.create(&PostParams::default(), &map).await.unwrap();
    assert_eq!((stored.metadata.name.as_deref(), asked.lock().unwrap().len()), (Some("a"), 1));
}

#[tokio::test]
async fn each_verb_sends_the_documented_path_query_content_type_and_body() {
    let (server, asked) = recording("200 OK", MAP).await;
    let maps = client(&server).api::<ConfigMap>().namespaced("shop");
    let map: ConfigMap = serde_json::from_str(MAP).unwrap();
    let dry = PostParams { dry_run: true, field_manager: Some("me & you".to_owned()) };
    let path = "/api/v1/namespaces/shop/configmaps";

    maps.get("a").await.unwrap();
    maps.get_with("a", &GetParams::any()).await.unwrap();
    maps.clone().field_validation(FieldValidation::Strict).create(&dry, &map).await.unwrap();
    maps.replace("a", &PostParams::default(), &map).await.unwrap();
    let merge = Patch::Merge(json!({"data": {"b": "c"}}));
    let validated = PatchParams { field_manager: Some("me".to_owned()), ..PatchParams::default() };
    let strict = maps.clone().field_validation(FieldValidation::Strict);
    strict.patch("a", &validated.validation_ignore(), &merge).await.unwrap();
    maps.patch("a", &PatchParams::apply("me").force().dry_run(), &Patch::Apply(json!({}))).await.unwrap();
    maps.patch("a", &PatchParams::default(), &Patch::Strategic(json!({}))).await.unwrap();
    let json_patch = serde_json::from_value(json!([{"op": "remove", "path": "/data"}])).unwrap();
    maps.patch("a", &PatchParams::default(), &Patch::<()>::Json(json_patch)).await.unwrap();
    let uid = Preconditions { uid: Some("u".to_owned()), ..Preconditions::default() };
    maps.delete("a", &DeleteParams::foreground().grace_period(3).preconditions(uid)).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    client(&server).api::<ConfigMap>().create(&PostParams::default(), &map).await.unwrap();

    let precise = r#"{"gracePeriodSeconds":3,"propagationPolicy":"Foreground","preconditions":{"uid":"u"}}"#;
    let expected = [
        [&*format!("GET {path}/a"), "", JSON, ""],
        [&format!("GET {path}/a?resourceVersion=0"), "", JSON, ""],
        [&format!("POST {path}?dryRun=All&fieldManager=me+%26+you&fieldValidation=Strict"), JSON, JSON, MAP],
        [&format!("PUT {path}/a"), JSON, JSON, MAP],
        [
            &format!("PATCH {path}/a?fieldManager=me&fieldValidation=Ignore"),
            "application/merge-patch+json",
            JSON,
            r#"{"data":{"b":"c"}}"#,
        ],
        [
            &format!("PATCH {path}/a?dryRun=All&force=true&fieldManager=me"),
            "application/apply-patch+yaml",
            JSON,
            "{}",
        ],
        [&format!("PATCH {path}/a"), "application/strategic-merge-patch+json", JSON, "{}"],
        [
            &format!("PATCH {path}/a"),
            "application/json-patch+json",
            JSON,
            r#"[{"op":"remove","path":"/data"}]"#,
        ],
        [&format!("DELETE {path}/a"), JSON, JSON, precise],
        [&format!("DELETE {path}/a"), JSON, JSON, "{}"],
        [&format!("POST {path}"), JSON, JSON, MAP],
    ];
    let asked = asked.lock().unwrap();
    for (found, expected) in asked.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(asked.len(), expected.len());
}

#[tokio::test]
async fn metadata_alone_is_asked_for_by_the_accept_header_of_every_verb() {
    let object = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}"#;
    let (server, asked) = recording("200 OK", object).await;
    let resource = ApiResource::erase::<ConfigMap>(&());
    let of_objects = client(&server);
    let maps = of_objects.api::<ConfigMap>().namespaced("shop").metadata();
    maps.get("a").await.unwrap();
    maps.patch("a", &PatchParams::default(), &Patch::Merge(json!({}))).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    of_objects.dynamic_api(&resource).namespaced("shop").metadata().get("a").await.unwrap();
    let accepted =
        |asked: &[[String; 4]]| asked.iter().map(|[_, _, accept, _]| accept.clone()).collect::<Vec<_>>();
    assert_eq!(accepted(&asked.lock().unwrap()), [METADATA; 4]);

    let list =
        r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[]}"#;
    let (server, asked) = recording("200 OK", list).await;
    let maps = client(&server).api::<ConfigMap>().namespaced("shop").metadata();
    maps.list(&ListParams::default()).await.unwrap();
    maps.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    assert_eq!(accepted(&asked.lock().unwrap()), [METADATA_LIST; 2]);
}

#[tokio::test]
async fn each_subresource_has_its_path_and_its_body_names_the_object() {
    let (server, asked) =
        recording("200 OK", r#"{"kind":"Pod","apiVersion":"v1","metadata":{},"items":[]}"#).await;
    let pods = client(&server).api::<Pod>().namespaced("shop");
    let (post, patch) = (PostParams::default(), PatchParams::default());
    let merge = Patch::Merge(json!({}));
    pods.evict("a", &DeleteParams::default().grace_period(1), &post).await.unwrap();
    pods.bind("a", "node-1", &post).await.unwrap();
    pods.patch_ephemeral_containers("a", &patch, &merge).await.unwrap();
    pods.patch_resize("a", &patch, &merge).await.unwrap();
    pods.get_status("a").await.unwrap();
    pods.patch_status("a", &patch, &merge).await.unwrap();
    pods.get_subresource::<Value>("anything", "a").await.unwrap();
    let asked = asked.lock().unwrap();
    let lines: Vec<_> = asked.iter().map(|[line, ..]| line.rsplit("/pods/a/").next().unwrap()).collect();
    let expected = ["eviction", "binding", "ephemeralcontainers", "resize", "status", "status", "anything"];
    assert_eq!(lines, expected);
    let eviction: Value = serde_json::from_str(&asked[0][3]).unwrap();
    assert_eq!(eviction["deleteOptions"], json!({"gracePeriodSeconds": 1}));
    assert_eq!(eviction["metadata"], json!({"name": "a", "namespace": "shop"}));
    let binding: Value = serde_json::from_str(&asked[1][3]).unwrap();
    assert_eq!((&binding["metadata"]["name"], &binding["target"]["name"]), (&json!("a"), &json!("node-1")));
}

// REST-14: given name "..", "a/b", "a%b", when building a path, then refused.
// - a refused
#[tokio::test]
async fn rest_14_what_would_change_the_path_or_the_meaning_of_a_request_is_refused_before_it_is_sent() {
    let (server, asked) = recording("200 OK", MAP).await;
    let client = client(&server);
    let maps = client.api::<ConfigMap>().namespaced("shop");
    let map: ConfigMap = serde_json::from_str(MAP).unwrap();
    for name in ["", ".", "..", "a/b", "a%2Fb"] {
        let refused = [
            maps.get(name).await.unwrap_err(),
            maps.replace(name, &PostParams::default(), &map).await.unwrap_err(),
            maps.delete(name, &DeleteParams::default()).await.unwrap_err(),
            maps.get_scale(name).await.unwrap_err(),
            maps.get_subresource::<Value>(name, "a").await.unwrap_err(),
        ];
        assert!(refused.iter().all(|error| matches!(error, Error::Name { .. })), "{name:?}: {refused:?}");
    }
    let outside = client.api::<ConfigMap>().namespaced("a/b").list(&ListParams::default()).await;
    assert!(matches!(outside, Err(Error::Name { what: "namespace", .. })), "{outside:?}");
    let selector = maps.list(&ListParams::default().labels("app in (")).await;
    assert!(matches!(selector, Err(Error::Selector { .. })), "{selector:?}");
    let everywhere = client.api::<ConfigMap>();
    let nowhere = [
        everywhere.get("a").await.unwrap_err(),
        everywhere.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap_err(),
        everywhere.create(&PostParams::default(), &ConfigMap::default()).await.unwrap_err(),
        everywhere.watch(&Default::default(), "0").unwrap_err(),
    ];
    assert!(nowhere.iter().all(|error| matches!(error, Error::Request(_))), "{nowhere:?}");
    assert_eq!(asked.lock().unwrap().len(), 0, "nothing was sent");
    client.api::<Node>().get("system:node a").await.expect_err("the answer is no node");
    assert_eq!(asked.lock().unwrap()[0][0], "GET /api/v1/nodes/system:node%20a");
}

#[tokio::test]
async fn a_refusal_names_the_request_and_gives_details_and_causes() {
    let body = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,
        "message":"ConfigMap \"a\" is invalid","details":{"name":"a","kind":"ConfigMap","causes":
        [{"reason":"FieldValueInvalid","message":"Invalid value","field":"metadata.name"}]}}"#;
    let (server, _) = recording("422 Unprocessable Entity", body).await;
    let maps = client(&server).api::<ConfigMap>().namespaced("shop");
    let error = maps.get_with("a", &GetParams::any()).await.unwrap_err();
    let refused = error.refused().unwrap();
    assert!(error.is_invalid() && refused.is_invalid());
    assert_eq!((refused.method().as_str(), refused.path()), ("GET", "/api/v1/namespaces/shop/configmaps/a"));
    assert_eq!(refused.details.as_ref().unwrap().causes[0].field, "metadata.name");
    let text =
        "the server answered 422 to GET /api/v1/namespaces/shop/configmaps/a: ConfigMap \"a\" is invalid";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn an_answer_that_does_not_decode_names_the_field_and_quotes_no_value() {
    let (server, _) = recording("200 OK", r#"{"metadata":{"name":"a"},"data":{"key":["hunter2"]}}"#).await;
    let error = client(&server).api::<ConfigMap>().namespaced("shop").get("a").await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("GET /api/v1/namespaces/shop/configmaps/a") && text.contains("data.key"), "{text}");
    assert!(!format!("{error:?} {text}").contains("hunter2"), "{text}");
}

#[tokio::test]
async fn only_the_absence_of_the_object_is_none() {
    let absent = r#"{"kind":"Status","reason":"NotFound","code":404,"message":"no","details":{"name":"a","kind":"configmaps"}}"#;
    let no_kind = r#"{"kind":"Status","reason":"NotFound","code":404,"message":"could not find the requested resource","details":{}}"#;
    for (body, is_none) in [(absent, true), (no_kind, false), ("404 page not found", false)] {
        let (server, _) = recording("404 Not Found", body).await;
        let found = client(&server).api::<ConfigMap>().namespaced("shop").get_opt("a").await;
        match found {
            Ok(found) => assert!(found.is_none() && is_none, "{body}"),
            Err(error) => assert!(error.is_not_found() && !is_none, "{body}: {error}"),
        }
    }
}

// RL-13: given only conflicts, when RetryOnConflict, then at most 5 tries; other errors are returned at once
// (changed: there is no context whose error is to be preserved: who gives up drops the future).
// - a at most 5 tries
// - b other errors are returned at once
#[tokio::test]
async fn rl_13_a_conflict_is_tried_five_times_and_every_other_refusal_once() {
    for (status, reason, attempts) in [
        ("409 Conflict", "Conflict", 5),
        ("409 Conflict", "AlreadyExists", 1),
        ("403 Forbidden", "Forbidden", 1),
        ("500 Oops", "InternalError", 1),
    ] {
        let body = format!(r#"{{"kind":"Status","reason":"{reason}","message":"no"}}"#);
        let (server, asked) = recording(status, body.leak()).await;
        let client = client(&server);
        let maps = client.api::<ConfigMap>().namespaced("shop");
        let map: ConfigMap = serde_json::from_str(MAP).unwrap();
        let params = PostParams::default();
        let replace = || maps.replace("a", &params, &map);
        assert!(client.retry_on_conflict(ConflictPolicy::default(), replace).await.is_err());
        assert_eq!(asked.lock().unwrap().len(), attempts, "{status} {reason}");
    }
}

fn in_memory(server: &ApiServer) -> Api<ConfigMap> {
    let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
    client.api::<ConfigMap>().namespaced("default")
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
}

#[tokio::test]
async fn a_page_that_expires_ends_the_stream_with_an_error_and_list_all_lists_once_more() {
    let server = ApiServer::builder().start().await.unwrap();
    for n in 0..5 {
        server.create(map(&format!("n{n}"))).unwrap();
    }
    let maps = in_memory(&server);
    let two = ListParams::default().limit(2);
    let sizes: Vec<_> = maps.pages(&two).map_ok(|page| page.items.len()).try_collect().await.unwrap();
    assert_eq!(sizes, [2, 2, 1]);

    let mut pages = std::pin::pin!(maps.pages(&two));
    assert_eq!(pages.next().await.unwrap().unwrap().items.len(), 2);
    server.create(map("late")).unwrap();
    server.faults().expire_continue_tokens();
    assert!(pages.next().await.unwrap().unwrap_err().is_expired());
    assert!(pages.next().await.is_none(), "nothing comes after the error");

    assert_eq!(maps.list_all(&two).await.unwrap().items.len(), 6);
}

#[tokio::test]
async fn list_all_asks_once_more_for_all_in_one_when_a_page_has_expired() {
    let page = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"t"},"items":[{"metadata":{"name":"old"}}]}"#;
    let whole = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"new"}}]}"#;
    let server = RawServer::start(move |mut connection: Connection| async move {
        while let Some(head) = connection.request().await {
            connection
                .write(match (head.contains("continue=t"), head.contains("limit=")) {
                    (true, _) => answer("410 Gone", "", r#"{"kind":"Status","reason":"Expired","code":410}"#),
                    (false, true) => answer("200 OK", "", page),
                    (false, false) => answer("200 OK", "", whole),
                })
                .await;
        }
    })
    .await;
    let all =
        client(&server).api::<ConfigMap>().namespaced("a").list_all(&ListParams::default()).await.unwrap();
    assert_eq!(all.metadata.resource_version.as_deref(), Some("9"));
    let names: Vec<_> = all.items.iter().filter_map(|map| map.metadata.name.as_deref()).collect();
    assert_eq!(names, ["new"], "nothing of the expired version");
}

#[tokio::test]
async fn dyn_15_until_ends_at_its_deadline_with_what_it_saw_last() {
    let server = ApiServer::builder().start().await.unwrap();
    let maps = in_memory(&server);
    let soon = Duration::from_millis(200);
    let error = maps.until("a", conditions::present(), soon).await.unwrap_err().to_string();
    let absent =
        "configmaps default/a: the condition did not hold within 200ms; last seen: the object was not there";
    assert_eq!(error, absent);
    server.create(map("a")).unwrap();
    let error = maps.until("a", conditions::absent(), soon).await.unwrap_err().to_string();
    assert!(error.ends_with(&format!("last seen: the object at version {}", server.revision())), "{error}");
    server.faults().deny("list", "configmaps");
    let denied = maps.until("a", conditions::absent(), Duration::MAX).await.unwrap_err();
    assert!(denied.to_string().contains("403"), "{denied}");
}
