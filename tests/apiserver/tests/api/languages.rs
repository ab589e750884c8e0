//! Answers in protobuf and YAML over HTTP, where there is no real server to compare with: faults, sizes, websockets
//! (behaviours 38 and 39).
//!
//! They answer: does an answer stay readable in its language under faults and over websockets?
//! `tests/judged/languages.rs` compares the answers with those of a real server.
use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use informer_apiserver::{ApiServer, fuzzing};
use serde_json::{Value, json};

use crate::client::{Incoming, config_map, delete, get, open, request, server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PROTOBUF: (&str, &str) = ("Accept", "application/vnd.kubernetes.protobuf");
const YAML: (&str, &str) = ("Accept", "application/yaml");

fn read(language: (&str, &str), body: &[u8]) -> Value {
    let value = if language == PROTOBUF { fuzzing::protobuf_answer(body) } else { fuzzing::yaml(body) };
    value.unwrap_or_else(|| panic!("{language:?}: {}", String::from_utf8_lossy(body)))
}

/// A list in a language, and the same list as JSON without the types that only JSON's items may have.
fn lists(server: &ApiServer, language: (&str, &str), path: &str) -> (Value, Value) {
    let answer = request(server, "GET", path, &[language], "");
    assert_eq!(answer.code, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some(language.1));
    (read(language, &answer.body), get(server, path).json())
}

#[test]
fn api_38_a_list_has_the_same_content_in_every_language() {
    let server = server();
    for at in 0..3_000 {
        server.create(config_map(&format!("map-{at}"), "x")).unwrap();
    }
    for language in [PROTOBUF, YAML] {
        for path in [format!("{MAPS}?limit=7"), "/api/v1/configmaps?labelSelector=app%3Dnone".to_owned()] {
            let (received, json) = lists(&server, language, &path);
            assert_eq!(received["items"], json["items"], "{language:?} {path}");
            assert_eq!(received["metadata"]["resourceVersion"], json["metadata"]["resourceVersion"]);
        }
    }
    let headers = [PROTOBUF, ("Accept-Encoding", "gzip")];
    let packed = request(&server, "GET", MAPS, &headers, "");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut body = Vec::new();
    MultiGzDecoder::new(packed.body.as_slice()).read_to_end(&mut body).unwrap();
    assert_eq!(body, request(&server, "GET", MAPS, &[PROTOBUF], "").body);
    assert_eq!(read(PROTOBUF, &body)["items"].as_array().unwrap().len(), 3_000);
}

#[test]
fn a_padded_list_is_longer_and_has_the_same_content() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    for language in [PROTOBUF, YAML] {
        let short = request(&server, "GET", MAPS, &[language], "").body;
        server.faults().pad_lists(Some(100_000));
        let long = request(&server, "GET", MAPS, &[language], "").body;
        assert_eq!(read(language, &short), read(language, &long));
        assert!(long.len().abs_diff(short.len() + 100_000) < 10, "{} {}", short.len(), long.len());
        server.faults().pad_lists(None);
    }
}

#[test]
fn api_39_a_table_may_be_yaml() {
    let server = server();
    // The column Age counts seconds.
    server.clock().stop();
    server.create(config_map("a", "x")).unwrap();
    let table = |language: &str| format!("application/{language};as=Table;v=v1;g=meta.k8s.io");
    let ask = |accept: &str| request(&server, "GET", MAPS, &[("Accept", accept)], "");
    assert_eq!(read(YAML, &ask(&table("yaml")).body), ask(&table("json")).json());
}

fn message(watch: &mut Incoming) -> Vec<u8> {
    let piece = watch.next_piece();
    let (length, message) = piece.split_first_chunk().expect("a length");
    assert_eq!(u32::from_be_bytes(*length) as usize, message.len(), "one event at a time");
    message.to_vec()
}

#[test]
fn api_38_frames_have_a_length_and_may_be_cut_off() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    let mut watch = open(&server, "GET", &format!("{MAPS}?watch=1"), &[PROTOBUF], "");
    assert_eq!(watch.head.header("content-type"), Some("application/vnd.kubernetes.protobuf;stream=watch"));
    assert!(message(&mut watch).starts_with(b"\n\x05ADDED"));
    server.faults().reset_watches();
    assert!(watch.rest().is_err(), "no proper end");
}

#[test]
fn api_38_a_watch_over_a_websocket_sends_each_message_as_a_binary_frame() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    let headers = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Origin", "http://x"),
        PROTOBUF,
    ];
    let mut socket = open(&server, "GET", &format!("{MAPS}?watch=1"), &headers, "");
    assert_eq!(socket.head.code, 101);
    let (kind, added) = socket.frame();
    assert_eq!((kind, &added[..7]), (0x82, &b"\n\x05ADDED"[..]));
    delete(&server, &format!("{MAPS}/a"));
    let (kind, deleted) = socket.frame();
    assert_eq!((kind, &deleted[..9]), (0x82, &b"\n\x07DELETED"[..]));
}

#[test]
fn api_38_every_kind_that_is_served_has_messages() {
    let server = server();
    let groups = get(&server, "/apis").json();
    let groups =
        groups["groups"].as_array().unwrap().iter().flat_map(|group| group["versions"].as_array().unwrap());
    let paths: Vec<String> = groups
        .map(|version| format!("/apis/{}", version["groupVersion"].as_str().unwrap()))
        .chain(["/api/v1".to_owned()])
        .collect();
    let mut lists = 0;
    for path in paths {
        let resources = get(&server, &path).json();
        for resource in resources["resources"].as_array().unwrap() {
            let name = resource["name"].as_str().unwrap();
            if !resource["verbs"].as_array().unwrap().contains(&json!("list")) {
                continue;
            }
            let answer = request(&server, "GET", &format!("{path}/{name}"), &[PROTOBUF], "");
            let received = fuzzing::protobuf_answer(&answer.body).unwrap_or_default();
            let (kind, list) =
                (resource["kind"].as_str().unwrap(), received["kind"].as_str().unwrap_or_default());
            assert_eq!((answer.code, list), (200, format!("{kind}List").as_str()), "{path}/{name}");
            let made =
                json!({"apiVersion": resources["groupVersion"], "kind": kind, "metadata": {"name": "a"}});
            assert!(fuzzing::to_protobuf(&made).is_some(), "{made}");
            lists += 1;
        }
    }
    assert!(lists > 60, "{lists}");
}
