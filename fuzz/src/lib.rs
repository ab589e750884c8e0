//! The fuzz targets as plain functions of their bytes.
//!
//! Answers "what must hold for every input?" There is one function per target, with the same name; it panics if a
//! promise does not hold. libFuzzer calls the functions from `fuzz_targets/`. The tests below call them with mutations
//! of the seeds, on stable Rust, with the same inputs in every run. Invariants:
//! 1. A target depends only on its bytes: no clock, no network; `kubeconfig` reads files that its text names.
//!
//! Read next: `frames.rs` and `decode.rs`, the oracles.

use actix_informer::client::Config;
use actix_informer::representation::{Encoded, Lazy, MetaScan, Prune, Representation as _};
use actix_informer::unstable::{
    error_of_status, meta_scan as scan, plugin_answer, status_of_answer, status_of_frame, wait_of_status,
};
use k8s_openapi::api::core::v1::Pod;
use serde::de::IgnoredAny;
use serde_json::Value;

mod decode;
mod discovery;
mod frames;
mod protobuf;
mod requests;
pub mod seeds;
mod streams;

pub use decode::{decode_list, decode_watch};
pub use discovery::discovery_document;
pub use frames::{frames_list, frames_watch};
pub use protobuf::{protobuf_list, protobuf_watch};
pub use requests::{definition, patch_body, request_body, request_line};
pub use streams::{log_lines, websocket_frames};

/// Any error answer gives a typed error of bounded length, and the same one as an HTTP answer and as an ERROR event.
pub fn status(data: &[u8]) {
    let Some((code, body)) = data.split_first_chunk::<2>() else { return };
    let code = u16::from_be_bytes(*code);
    let header = std::str::from_utf8(body).ok();
    let longest = std::time::Duration::from_secs(5 * 60);
    let answer = status_of_answer(code, header, body);
    assert!(wait_of_status(&answer).is_none_or(|wait| wait <= longest));
    let frame = status_of_frame(&String::from_utf8_lossy(body));
    assert!(wait_of_status(&frame).is_none_or(|wait| wait <= longest));
    for initial_events in [false, true] {
        for status in [&answer, &frame] {
            let error = error_of_status(status.clone(), initial_events);
            let _ = error.class();
            assert!(error.to_string().chars().count() < 1200, "the server's message is shortened");
        }
    }
    let is_status = serde_json::from_slice::<Value>(body).is_ok_and(|value| value["kind"] == "Status");
    if is_status && frame.code != 0 && std::str::from_utf8(body).is_ok() {
        let answer = error_of_status(status_of_answer(frame.code, None, body), false);
        assert_eq!(answer.class(), error_of_status(frame, false).class());
    }
}

/// The scan finds what a parser finds, and the scan of a prefix finds nothing else than the scan of all bytes.
pub fn meta_scan(data: &[u8]) {
    let whole = scan(data);
    let cut = data.len() / 2 + usize::from(data.first().copied().unwrap_or_default()) % (data.len() / 2 + 1);
    let part = scan(&data[..cut.min(data.len())]);
    // If a key occurs twice, a prefix may have only the first one.
    if !is_plain(data) {
        return;
    }
    let fields = |scan: &MetaScan<'_>| {
        let texts = [&scan.name, &scan.namespace, &scan.uid, &scan.version].map(Option::as_deref);
        texts.map(|text| text.map(str::to_owned))
    };
    for (part, whole) in fields(&part).iter().zip(fields(&whole)) {
        assert!(part.is_none() || *part == whole, "{part:?} {whole:?}");
    }
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    let text = |name: &str| value.pointer(&format!("/metadata/{name}")).and_then(Value::as_str);
    let namespace = text("namespace").filter(|text| !text.is_empty());
    let expected = [text("name"), namespace, text("uid"), text("resourceVersion")];
    assert_eq!(fields(&whole), expected.map(|text| text.map(str::to_owned)));
}

/// Only one JSON document is pruned, and gives what a parser gives that skips the fields, with the same labels and owners.
pub fn pruned(data: &[u8]) {
    let (object, prune) = (Encoded::json(data), Prune::default().cut(["spec", "containers", "env"]));
    let Ok(text) = object.pruned(&prune) else { return };
    let whole = std::str::from_utf8(data).expect("bytes that are no text are not pruned");
    let Ok(expected) = prune.decode::<Value>(whole) else {
        // A number that no parser takes is left as it is.
        return assert!(serde_json::from_slice::<IgnoredAny>(data).is_ok(), "not JSON, and pruned");
    };
    assert_eq!(serde_json::from_str::<Value>(&text).expect("it is JSON"), expected);
    let kept = Lazy::<Pod>::new().keep(&object, &prune).expect("what a parser takes is kept");
    let mut kept: Value = serde_json::from_str(&kept.text()).expect("it is JSON");
    if let Some(members) = kept.as_object_mut() {
        members.retain(|name, _| !["apiVersion", "kind"].contains(&&**name) || expected.get(name).is_some());
    }
    assert_eq!(kept, expected, "a lazy cache keeps another object");
    let count = |name: &str| whole.matches(&format!("\"{name}\"")).count();
    if is_plain(data) && count("labels") <= 1 && count("ownerReferences") <= 1 {
        let value: Value = serde_json::from_slice(data).expect("it is JSON");
        let texts = |value: &Value| {
            value.as_object().map(|members| members.values().filter(|value| value.is_string()).count())
        };
        let labels = value.pointer("/metadata/labels").and_then(texts).unwrap_or_default();
        assert!(object.labels().count() >= labels, "a label is missing");
    }
}

/// Any text gives a configuration or an error of bounded length, and neither shows the token.
pub fn kubeconfig(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let is_token_only =
        text.matches(seeds::SECRET).count() == text.matches(&format!("token: {}", seeds::SECRET)).count();
    match Config::from_kubeconfig_text(text, None) {
        Ok(config) => {
            let shown = format!("{config:?} {:?}", config.warnings());
            assert!(!shown.contains(seeds::SECRET), "{shown}");
        }
        Err(error) => {
            let shown = format!("{error} {error:?}");
            assert!(!is_token_only || !shown.contains(seeds::SECRET), "{shown}");
            assert!(error.to_string().chars().count() < 1200, "{error}");
        }
    }
}

/// Anything that a credential plugin prints gives credentials or an error of bounded length, and neither shows a secret.
pub fn exec_output(data: &[u8]) {
    for version in ["v1", "v1beta1"] {
        let answer = plugin_answer(data, &format!("client.authentication.k8s.io/{version}"));
        let shown = answer.unwrap_or_else(|error| format!("{error} {error:?}"));
        assert!(!shown.contains(seeds::SECRET) && shown.chars().count() < 1200, "{shown}");
    }
}

/// Whether the bytes have no escape, and no key of the scan twice: otherwise parsers may differ.
fn is_plain(data: &[u8]) -> bool {
    let count = |key: &str| data.windows(key.len()).filter(|window| *window == key.as_bytes()).count();
    let keys = ["\"metadata\"", "\"name\"", "\"namespace\"", "\"uid\"", "\"resourceVersion\""];
    !data.contains(&b'\\') && keys.iter().all(|key| count(key) <= 1)
}

#[cfg(test)]
mod mutations {
    use super::seeds::{Target, mutated};

    /// `INFORMER_FUZZ_ROUNDS=n` runs n times as many rounds.
    fn check(target: Target, rounds: usize) {
        let rounds = rounds
            * std::env::var("INFORMER_FUZZ_ROUNDS").map_or(1, |times| times.parse().expect("a number"));
        let seeds = target.seeds();
        seeds.iter().for_each(|seed| target.run(seed));
        let mut rng = fastrand::Rng::with_seed(17);
        for _ in 0..rounds {
            target.run(&mutated(&seeds, &mut rng));
        }
    }

    #[test]
    fn any_bytes_of_a_watch_are_split_into_the_same_lines_in_any_chunks() {
        check(Target::FramesWatch, 10_000);
    }

    #[test]
    fn any_bytes_of_a_list_are_split_into_the_same_items_in_any_chunks_and_as_by_a_parser() {
        check(Target::FramesList, 10_000);
    }

    #[test]
    fn a_list_is_complete_only_if_each_of_its_items_is_json_and_gives_a_part() {
        check(Target::DecodeList, 5_000);
    }

    #[test]
    fn every_line_of_a_watch_gives_a_part_with_its_own_key_or_ends_the_watch() {
        check(Target::DecodeWatch, 5_000);
    }

    #[test]
    fn a_list_in_protobuf_has_one_meaning_in_any_pieces() {
        check(Target::ProtobufList, 2_500);
    }

    #[test]
    fn a_watch_in_protobuf_has_one_meaning_in_any_pieces() {
        check(Target::ProtobufWatch, 1_000);
    }

    #[test]
    fn every_error_answer_gives_a_typed_error_of_bounded_length() {
        check(Target::Status, 10_000);
    }

    #[test]
    fn a_scan_finds_what_a_parser_finds() {
        check(Target::MetaScan, 10_000);
    }

    #[test]
    fn only_one_document_is_pruned_and_gives_what_a_parser_gives() {
        check(Target::Pruned, 10_000);
    }

    #[test]
    fn a_body_of_any_bytes_is_a_value_or_is_refused() {
        check(Target::RequestBody, 5_000);
    }

    #[test]
    fn a_patch_of_any_bytes_is_applied_or_is_refused_and_changes_nothing() {
        check(Target::PatchBody, 1_000);
    }

    #[test]
    fn a_definition_with_any_schema_accepts_the_objects_that_it_has_stored() {
        check(Target::Definition, 1_000);
    }

    #[test]
    fn any_text_as_a_request_line_names_a_resource_or_none() {
        check(Target::RequestLine, 5_000);
    }

    #[test]
    fn any_bytes_of_a_websocket_are_the_same_events_in_any_chunks_and_no_byte_changes_its_channel() {
        check(Target::WebsocketFrames, 10_000);
    }

    #[test]
    fn any_bytes_of_a_log_are_the_same_lines_in_any_chunks() {
        check(Target::LogLines, 5_000);
    }

    #[test]
    fn every_output_of_a_plugin_gives_credentials_or_an_error() {
        check(Target::ExecOutput, 5_000);
    }

    #[test]
    fn every_discovery_document_gives_resources_that_have_their_names_and_survive_a_disk() {
        check(Target::DiscoveryDocument, 5_000);
    }

    #[test]
    fn every_kubeconfig_gives_a_configuration_or_an_error() {
        check(Target::Kubeconfig, 1_000);
    }
}
