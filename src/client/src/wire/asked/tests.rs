//! Content-Types of answers, and kinds of objects in them.

use http::HeaderValue;

use super::*;

const LIST: Asked = Asked::json(RequestedContent::Objects, Form::List);
const METADATA: Asked = Asked::json(RequestedContent::Metadata, Form::Object);
const METADATA_LIST: Asked = Asked::json(RequestedContent::Metadata, Form::List);

fn headers(content_type: &str) -> HeaderMap {
    let value = HeaderValue::from_bytes(content_type.as_bytes()).expect("a value");
    HeaderMap::from_iter([(header::CONTENT_TYPE, value)])
}

#[test]
fn rest_45_the_content_type_of_an_answer_decides_how_it_is_read() {
    assert_eq!(LIST.wire(&HeaderMap::new()), Ok(WireKind::Json), "what was asked for");
    for json in [
        "application/json",
        "application/json;stream=watch",
        "Application/JSON; charset=utf-8",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        " application/json ;charset=UTF-8",
        "",
    ] {
        assert_eq!(METADATA.wire(&headers(json)), Ok(WireKind::Json), "{json:?}");
    }
    let long = "x".repeat(500);
    for other in [
        "text/html",
        "application/yaml",
        "application/jsonp",
        "application/problem+json",
        "json",
        "\u{e9}",
        &long,
    ] {
        let error = LIST.wire(&headers(other)).expect_err(other).to_string();
        assert!(error.ends_with(", where application/json was asked for") && error.len() < 200, "{error}");
    }
}

#[test]
fn rest_45_protobuf_that_was_not_asked_for_and_cbor_are_refused() {
    for other in
        ["application/vnd.kubernetes.protobuf;stream=watch", "application/cbor-seq", "application/cbor"]
    {
        assert!(!WireKind::Json.is_of(other), "{other}");
        let error = METADATA.wire(&headers(other)).expect_err(other).to_string();
        assert!(error.contains(other) && error.contains("as=PartialObjectMetadata;"), "{error}");
        assert!(!is_readable(&headers(other)));
    }
}

#[test]
fn dyn_02_metadata_is_asked_for_and_a_whole_object_or_a_table_is_refused() {
    let cases = [
        (METADATA, Some("meta.k8s.io/v1"), Some("PartialObjectMetadata"), true),
        (METADATA_LIST, Some("meta.k8s.io/v1"), Some("PartialObjectMetadataList"), true),
        (METADATA_LIST, Some("meta.k8s.io/v1"), Some("PartialObjectMetadata"), false),
        (METADATA, Some("meta.k8s.io/v1beta1"), Some("PartialObjectMetadata"), false),
        (METADATA, Some("v1"), Some("Pod"), false),
        (METADATA_LIST, Some("v1"), Some("PodList"), false),
        (METADATA, None, None, false),
        (LIST, Some("v1"), Some("PodList"), true),
        (LIST, Some("meta.k8s.io/v1"), Some("Table"), false),
        (LIST, Some("example.org/v1"), Some("Table"), true),
        (Asked::OBJECT, None, None, true),
    ];
    for (asked, version, kind, is_expected) in cases {
        let found = asked.check_kind(version, kind);
        assert_eq!(found.is_ok(), is_expected, "{asked:?} {version:?} {kind:?}");
    }
    let error = METADATA.check_kind(Some("v1"), Some("Pod")).expect_err("a whole object").to_string();
    assert_eq!(
        error,
        "the server sent v1 Pod, where application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1 was asked for"
    );
}
