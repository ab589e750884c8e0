//! Answers whose Content-Type is not what was asked for.
//!
//! Answers "is anything but JSON ever decoded, and does the error name both sides?" for lists, watches, single objects and
//! refusals, of informers and of `Api`.

use actix_informer::client::api::{DeleteParams, ListParams, WatchParams};
use actix_informer::client::{Client, Config, Error};
use futures_util::StreamExt;
use http::Method;
use informer_actors::list_watch::ListWatch;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::ObjectKey;
use k8s_openapi::api::core::v1::ConfigMap;

use crate::harness::*;
use crate::raw_server::*;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A server that answers everything with this.
async fn answering(status: &'static str, content_type: &'static str, body: String) -> (RawServer, Client) {
    let server = RawServer::start(move |mut connection: Connection| {
        let sent = answer(status, &format!("content-type: {content_type}\r\n"), &body);
        async move {
            while let Some(head) = connection.request().await {
                if let Some(length) = head.lines().find_map(|line| line.strip_prefix("content-length: ")) {
                    connection.body(length.parse().unwrap()).await;
                }
                connection.write(&sent).await;
            }
        }
    })
    .await;
    let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
    (server, client)
}

fn names_both(text: &str, content_type: &str, path: &str) {
    for part in [content_type, "where application/json", "was asked for", path] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

#[tokio::test]
async fn rest_45_a_list_a_watch_or_an_object_of_another_content_type_is_an_error_that_names_both() {
    for content_type in ["text/html; charset=utf-8", PROTOBUF, "application/yaml"] {
        let (_server, client) = answering("200 OK", content_type, list_of(&[], "9")).await;
        let source = made(client.resource::<ConfigMap>());
        local(async {
            let listed = list(&source, latest()).await.unwrap_err();
            let (_, watched) = watch(&source, from("9")).await;
            let got = source.get(ObjectKey::namespaced("a", "b")).await.map(drop).unwrap_err();
            for (error, path) in [
                (listed, "/api/v1/configmaps"),
                (watched.unwrap_err(), "/api/v1/configmaps"),
                (got, "/api/v1/namespaces/a/configmaps/b"),
            ] {
                assert!(matches!(error, ListWatchError::Protocol(_)), "{error:?}");
                names_both(&error.to_string(), content_type, &format!("requested at {path}"));
            }
        })
        .await;
    }
}

#[tokio::test]
async fn rest_45_an_answer_to_a_verb_of_another_content_type_is_an_error_that_names_both() {
    let item = config_map("a", 3);
    let (_server, client) = answering("200 OK", "text/html", item).await;
    let maps = client.api::<ConfigMap>().namespaced("a");
    let object = ConfigMap::default();
    let mut watch = maps.watch(&WatchParams::default(), "9").unwrap();
    for (error, request) in [
        (maps.get("a").await.unwrap_err(), "GET /api/v1/namespaces/a/configmaps/a"),
        (maps.list(&ListParams::default()).await.unwrap_err(), "GET /api/v1/namespaces/a/configmaps"),
        (
            maps.create(&Default::default(), &object).await.unwrap_err(),
            "POST /api/v1/namespaces/a/configmaps",
        ),
        (
            maps.delete("a", &DeleteParams::default()).await.map(drop).unwrap_err(),
            "DELETE /api/v1/namespaces/a/configmaps/a",
        ),
        (watch.next().await.unwrap().unwrap_err(), "GET /api/v1/namespaces/a/configmaps"),
    ] {
        let is_typed = matches!(&error, Error::UnexpectedAnswer { received, asked, .. }
            if received == "text/html" && *asked == "application/json");
        assert!(is_typed, "{error:?}");
        names_both(&error.to_string(), "text/html", request);
    }
}

// REST-45: given an answer of another Content-Type than was asked for, when it is read, then it is an error
// that names both sides, for lists, watches, single objects and verbs; without a Content-Type it is what was
// asked for; a refusal is quoted only if it is JSON or text.
// - a lists, watches and single objects of informers:
//   `rest_45_a_list_a_watch_or_an_object_of_another_content_type_is_an_error_that_names_both`
// - b answers to verbs: `rest_45_an_answer_to_a_verb_of_another_content_type_is_an_error_that_names_both`
// - c JSON whatever its parameters, or without a Content-Type
// - d refusals: `rest_45_a_refusal_is_quoted_if_it_is_json_or_text_and_only_named_if_it_is_not`
// - e protobuf that was not asked for, and CBOR, are not read: `rest_45_protobuf_that_was_not_asked_for_and_cbor_are_refused`
#[tokio::test]
async fn rest_45_a_json_answer_is_read_whatever_its_parameters_say() {
    for content_type in
        ["application/json", "application/json;stream=watch", "Application/Json; charset=utf-8"]
    {
        let (_server, client) = answering("200 OK", content_type, list_of(&[config_map("a", 3)], "9")).await;
        let page =
            local(async { list(&made(client.resource::<ConfigMap>()), latest()).await }).await.unwrap();
        assert_eq!(page.items, ["a/a@3"]);
        assert_eq!(client.api::<ConfigMap>().list(&ListParams::default()).await.unwrap().items.len(), 1);
    }
}

#[tokio::test]
async fn rest_45_a_refusal_is_quoted_if_it_is_json_or_text_and_only_named_if_it_is_not() {
    let status = r#"{"kind":"Status","code":403,"reason":"Forbidden","message":"not you"}"#;
    for (content_type, body, expected) in [
        ("application/json", status, "not you"),
        ("text/plain", "go away", "go away"),
        ("text/html", "<b>go</b>", "<b>go</b>"),
        (PROTOBUF, "k8s\u{0}binary", "10 bytes of application/vnd.kubernetes.protobuf"),
        (PROTOBUF, status, "bytes of application/vnd.kubernetes.protobuf, which is neither JSON nor text"),
    ] {
        let (_server, client) = answering("403 Forbidden", content_type, body.to_owned()).await;
        let error = client.request(Method::GET, "/x", None).await.unwrap_err();
        assert!(error.is_forbidden() && error.to_string().contains(expected), "{error}");
        assert!(!error.to_string().contains("binary"), "{error}");
        let error = local(async { list(&made(client.resource::<ConfigMap>()), latest()).await }).await;
        assert!(matches!(error, Err(ListWatchError::Denied(_))), "{error:?}");
    }
}

// DYN-02: given metadata, when it is got, listed, watched or deleted, then PartialObjectMetadata is
// negotiated; an answer of whole objects is refused (in a list or watch of an informer each such object is
// set aside, so that it is counted and does not stay unnoticed).
// - a it is asked for: `metadata_alone_is_asked_for_by_the_accept_header_of_every_verb`
// - b whole objects are refused
// - c of an informer each is set aside:
//   `ref_19_another_kind_in_a_list_or_watch_of_a_dynamic_or_metadata_informer_is_undecodable`
#[tokio::test]
async fn dyn_02_whole_objects_in_the_place_of_metadata_are_refused_in_get_list_and_watch() {
    let whole = config_map("a", 3);
    let list_of_whole = list_of(std::slice::from_ref(&whole), "9");
    let (_objects, client) = answering("200 OK", "application/json", whole.clone()).await;
    let maps = client.api::<ConfigMap>().namespaced("a").metadata();
    let (_lists, client) = answering("200 OK", "application/json", list_of_whole.clone()).await;
    let listed = client.api::<ConfigMap>().metadata().list(&ListParams::default()).await.unwrap_err();
    let (_events, client) = answering("200 OK", "application/json", event("ADDED", &whole)).await;
    let mut watch = client.api::<ConfigMap>().metadata().watch(&WatchParams::default(), "9").unwrap();
    for (error, kind) in [
        (maps.get("a").await.unwrap_err(), "v1 ConfigMap"),
        (maps.delete("a", &DeleteParams::default()).await.map(drop).unwrap_err(), "v1 ConfigMap"),
        (listed, "v1 ConfigMapList"),
        (watch.next().await.unwrap().unwrap_err(), "v1 ConfigMap"),
    ] {
        let is_typed = matches!(&error, Error::UnexpectedAnswer { received, asked, .. }
            if received == kind && asked.contains("PartialObjectMetadata"));
        assert!(is_typed, "{error:?}");
    }
    // The source of an informer: the list as a whole, each object by itself.
    let (_lists, client) = answering("200 OK", "application/json", list_of_whole).await;
    let source = made(client.metadata::<ConfigMap>());
    let page = local(async { list(&source, latest()).await }).await.unwrap();
    assert!(page.items[0].contains("not meta.k8s.io/v1 PartialObjectMetadata"), "{:?}", page.items);
}
