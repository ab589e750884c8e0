//! Request bodies over HTTP: protobuf, YAML, and what is refused (behaviours 38 and 39, E1, E9).
//!
//! They answer: in which languages may a client write? The protobuf messages themselves are compared with Go's
//! reading in `src/protobuf/tests.rs`.
use serde_json::json;

use crate::client::{get, request, server};
use crate::reads::widgets;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A field of wire type 2 with a short content.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let len = u8::try_from(content.len()).ok().filter(|len| *len < 0x80).expect("a short field");
    [&[number << 3 | 2, len][..], content].concat()
}

/// A body as kubectl sends it: envelope, type, message.
fn protobuf(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &type_meta), field(2, message), field(3, b""), field(4, b"")].concat()
}

fn config_map(name: &str) -> Vec<u8> {
    let metadata = [field(1, name.as_bytes()), field(3, b""), vec![0x38, 0]].concat();
    let entry = [field(1, b"key"), field(2, b"value")].concat();
    protobuf("v1", "ConfigMap", &[field(1, &metadata), field(2, &entry)].concat())
}

#[test]
fn api_e1_a_protobuf_body_creates_and_updates() {
    let server = server();
    let headers = [("Content-Type", PROTOBUF), ("Accept", "application/json")];
    let made = request(&server, "POST", MAPS, &headers, &config_map("a"));
    assert_eq!((made.code, made.header("content-type")), (201, Some("application/json")), "{}", made.text());
    assert_eq!(made.json()["data"], json!({"key": "value"}));
    let put = request(&server, "PUT", &format!("{MAPS}/a"), &headers, &config_map("a"));
    assert_eq!((put.code, &put.json()["metadata"]["name"]), (200, &json!("a")));
    let stored = get(&server, &format!("{MAPS}/a")).json();
    assert_eq!(
        stored["metadata"]["resourceVersion"],
        made.json()["metadata"]["resourceVersion"],
        "nothing changed"
    );
}

#[test]
fn api_e1_delete_options_may_be_protobuf() {
    let server = server();
    server.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})).unwrap();
    let preconditions = field(2, &field(1, b"other"));
    let body = protobuf("v1", "DeleteOptions", &preconditions);
    let path = format!("{MAPS}/a");
    let kept = request(&server, "DELETE", &path, &[("Content-Type", PROTOBUF)], &body);
    assert_eq!(kept.code, 409, "{}", kept.text());
    let body = protobuf("apps/v1", "DeleteOptions", &[]);
    assert_eq!(request(&server, "DELETE", &path, &[("Content-Type", PROTOBUF)], &body).code, 200);
}

#[test]
fn api_e1_a_malformed_protobuf_body_is_400_with_the_text_of_the_real_server() {
    let server = server();
    let refused = |body: &[u8]| {
        let answer = request(&server, "POST", MAPS, &[("Content-Type", PROTOBUF)], body);
        assert_eq!(answer.code, 400, "{}", answer.text());
        answer.json()["message"].as_str().unwrap().to_owned()
    };
    let unrecognized = "the object provided is unrecognized (must be of type ConfigMap): ";
    let prefix =
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (78787878)";
    assert_eq!(refused(b"xxxx"), format!("{unrecognized}{prefix}"));
    assert_eq!(refused(b""), format!("{unrecognized}empty data (<empty>)"));
    assert_eq!(refused(b"k8s\0\x12\x7f"), format!("{unrecognized}unexpected EOF (6b387300127f)"));
    let cannot = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: unexpected EOF";
    assert_eq!(refused(&protobuf("v1", "ConfigMap", b"\x0a\x7fab")), cannot);
    assert!(
        refused(&protobuf("v1", "Foo", b"")).contains("no kind \"Foo\" is registered for version \"v1\"")
    );
    let other = "Pod in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion";
    assert_eq!(refused(&protobuf("v1", "Pod", b"")), other);
}

#[test]
fn api_39_a_yaml_body_is_accepted_for_built_in_and_custom_kinds() {
    let server = server();
    server.create(widgets()).unwrap();
    let yaml = [("Content-Type", "application/yaml")];
    let made = request(&server, "POST", MAPS, &yaml, "metadata:\n  name: a\ndata:\n  k: \"yes\"\n");
    assert_eq!((made.code, &made.json()["data"]["k"]), (201, &json!("yes")));
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 3}\n";
    assert_eq!(request(&server, "POST", WIDGETS, &yaml, widget).code, 201);
    assert_eq!(request(&server, "POST", MAPS, &yaml, "a: [\n").code, 400);
    let deleted = request(&server, "DELETE", &format!("{MAPS}/a"), &yaml, "gracePeriodSeconds: 0");
    assert_eq!(deleted.code, 200);
}

#[test]
fn api_e9_other_media_types_are_415_and_the_refusal_names_those_that_are_read() {
    let server = server();
    server.create(widgets()).unwrap();
    let accepted = |path: &str, media: &str| {
        let answer = request(&server, "POST", path, &[("Content-Type", media)], "{}");
        assert_eq!((answer.code, &answer.json()["reason"]), (415, &json!("UnsupportedMediaType")), "{media}");
        answer.json()["message"].as_str().unwrap().rsplit_once(": ").unwrap().1.to_owned()
    };
    let builtin = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    for media in ["application/cbor", "text/plain", "nonsense", "text/yaml"] {
        assert_eq!(accepted(MAPS, media), builtin);
    }
    for media in ["application/cbor", PROTOBUF] {
        assert_eq!(accepted(WIDGETS, media), builtin);
    }
    let named = |accept: &str| request(&server, "GET", MAPS, &[("Accept", accept)], "").code;
    for refused in ["application/*", "application/cbor", "text/html"] {
        assert_eq!(named(refused), 406, "{refused}");
    }
    for taken in [
        "*/*",
        "",
        PROTOBUF,
        "application/yaml",
        "application/json;charset=utf-8",
        "application/cbor, application/json",
    ] {
        assert_eq!(named(taken), 200, "{taken:?}");
    }
}

#[test]
fn bugs_12_bytes_that_are_no_character_and_half_a_pair_count_as_the_replacement() {
    let server = server();
    let long: [(&[u8], &str); 9] = [
        (b"a\xff\xfeb", "a\u{fffd}\u{fffd}b"),
        (b"\xe2\x82", "\u{fffd}\u{fffd}"),
        (br"\ud83d", "\u{fffd}"),
        (br"\ude00\ud83d", "\u{fffd}\u{fffd}"),
        (br"\ud83d\ude00", "\u{1f600}"),
        (br"\ud83d\ud83d\ude00", "\u{fffd}\u{1f600}"),
        (br"\\ud83d", r"\ud83d"),
        (b"\xe2\x82\xac\xff", "\u{20ac}\u{fffd}"),
        (br"\ud83d\n", "\u{fffd}\n"),
    ];
    for (at, (sent, stored)) in long.into_iter().enumerate() {
        let head = format!(r#"{{"metadata": {{"name": "m{at}"}}, "data": {{"k": ""#);
        let body = [head.as_bytes(), sent, br#""}}"#].concat();
        let made = request(&server, "POST", MAPS, &[("Content-Type", "application/json")], &body);
        assert_eq!((made.code, &made.json()["data"]["k"]), (201, &json!(stored)), "{}", made.text());
        let patch = [br#"{"data": {"p": ""#, sent, br#""}}"#].concat();
        let path = format!("{MAPS}/m{at}");
        let patched =
            request(&server, "PATCH", &path, &[("Content-Type", "application/merge-patch+json")], &patch);
        assert_eq!((patched.code, &patched.json()["data"]["p"]), (200, &json!(stored)), "{}", patched.text());
    }
}

#[test]
fn bugs_10_numbers_of_custom_objects_are_written_as_in_go() {
    let server = server();
    server.create(widgets()).unwrap();
    let numbers = [
        ("1e3", "1000"),
        ("1.0", "1"),
        ("-0", "0"),
        ("1.50", "1.5"),
        ("0.000001", "0.000001"),
        ("0.0000001", "1e-7"),
        ("1e21", "1e+21"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854776000"),
        ("18446744073709551615", "18446744073709552000"),
        ("-9223372036854775809", "-9223372036854776000"),
        ("9007199254740993", "9007199254740993"),
    ];
    let fields = |side: fn(&(&str, &str)) -> String| {
        let all: Vec<String> =
            numbers.iter().enumerate().map(|(at, row)| format!("\"n{at:02}\":{}", side(row))).collect();
        all.join(",")
    };
    let (sent, stored) = (fields(|row| row.0.to_owned()), fields(|row| row.1.to_owned()));
    let body = format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"w"}},"spec":{{{sent}}}}}"#
    );
    let json = [("Content-Type", "application/json")];
    let made = request(&server, "POST", WIDGETS, &json, &body);
    assert_eq!(made.code, 201, "{}", made.text());
    assert!(made.text().contains(&stored), "{}", made.text());
    let found = get(&server, &format!("{WIDGETS}/w"));
    assert!(found.text().contains(&stored), "{}", found.text());
    // The same numbers are no change only as they are stored, as on a real server.
    let mut version = made.json()["metadata"]["resourceVersion"].clone();
    for (spec, changes) in [(&sent, true), (&stored, false)] {
        let patch = format!(r#"{{"spec":{{{spec}}}}}"#);
        let media = [("Content-Type", "application/merge-patch+json")];
        let patched = request(&server, "PATCH", &format!("{WIDGETS}/w"), &media, &patch);
        assert!(patched.text().contains(&stored), "{}", patched.text());
        let written = patched.json()["metadata"]["resourceVersion"].clone();
        assert_eq!(written != version, changes, "{}", patched.text());
        version = written;
    }
}
