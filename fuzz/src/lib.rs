//! What each fuzz target does with its bytes, as plain functions.
//!
//! Answers "what must hold for every input?" One function per target, named like it; a broken promise is a panic.
//! libFuzzer calls them from `fuzz_targets/`; the tests below call them with mutations of the seeds, on stable and the
//! same every time. Invariants:
//! 1. A target is a function of its bytes alone: no clock, no network; `kubeconfig` reads files that its text names.
//!
//! Read next: `frames.rs` and `decode.rs`, the oracles.

use actix_informer::client::Config;
use actix_informer::client::status::Status;
use actix_informer::representation::{MetaScan, meta_scan as scan};
use serde_json::Value;

mod decode;
mod frames;
mod requests;
pub mod seeds;

pub use decode::{decode_list, decode_watch};
pub use frames::{frames_list, frames_watch};
pub use requests::{definition, patch_body, request_body, request_line};

/// A refusal is typed and bounded whatever its body, and alike as an answer and as an ERROR frame.
pub fn status(data: &[u8]) {
    let Some((code, body)) = data.split_first_chunk::<2>() else { return };
    let code = u16::from_be_bytes(*code);
    let header = std::str::from_utf8(body).ok();
    let day = std::time::Duration::from_secs(24 * 60 * 60);
    let answer = Status::from_answer(code, header, body);
    assert!(answer.retry_after().is_none_or(|wait| wait <= day));
    let frame = Status::from_frame(&String::from_utf8_lossy(body));
    assert!(frame.retry_after().is_none_or(|wait| wait <= day));
    for initial_events in [false, true] {
        for status in [&answer, &frame] {
            let error = status.clone().into_error(initial_events);
            let _ = error.class();
            assert!(error.to_string().chars().count() < 1200, "the server's words are bounded");
        }
    }
    let alike = frame.kind == "Status" && frame.code != 0;
    if alike && std::str::from_utf8(body).is_ok() {
        let answer = Status::from_answer(frame.code, None, body).into_error(false);
        assert_eq!(answer.class(), frame.into_error(false).class());
    }
}

/// The scan agrees with a parser where that finds anything, and a prefix says nothing else than the whole.
pub fn meta_scan(data: &[u8]) {
    let whole = scan(data);
    let cut = data.len() / 2 + usize::from(data.first().copied().unwrap_or_default()) % (data.len() / 2 + 1);
    let part = scan(&data[..cut.min(data.len())]);
    // A key that stands twice may be told from its first place while the second is cut off.
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

/// Any text is a configuration or an error, and neither shows its token.
pub fn kubeconfig(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let shown = match Config::from_kubeconfig_text(text, None) {
        Ok(config) => format!("{config:?}"),
        Err(_) => return,
    };
    assert!(!shown.contains(seeds::SECRET), "{shown}");
}

/// Whether no escape and no key that the scan looks for stands twice: where parsers may differ.
fn is_plain(data: &[u8]) -> bool {
    let count = |key: &str| data.windows(key.len()).filter(|window| *window == key.as_bytes()).count();
    let keys = ["\"metadata\"", "\"name\"", "\"namespace\"", "\"uid\"", "\"resourceVersion\""];
    !data.contains(&b'\\') && keys.iter().all(|key| count(key) <= 1)
}

#[cfg(test)]
mod tests {
    use super::seeds::{Target, mutated};

    fn survives(target: Target, rounds: usize) {
        let seeds = target.seeds();
        seeds.iter().for_each(|seed| target.run(seed));
        let mut chance = fastrand::Rng::with_seed(17);
        for _ in 0..rounds {
            target.run(&mutated(&seeds, &mut chance));
        }
    }

    #[test]
    fn watches_in_any_bytes_are_split_alike_however_they_are_chunked() {
        survives(Target::FramesWatch, 40_000);
    }

    #[test]
    fn lists_in_any_bytes_are_split_alike_however_they_are_chunked_and_as_a_parser_sees_them() {
        survives(Target::FramesList, 40_000);
    }

    #[test]
    fn a_list_is_whole_only_when_each_of_its_items_is_json_and_accounted_for() {
        survives(Target::DecodeList, 20_000);
    }

    #[test]
    fn every_line_of_a_watch_is_told_under_its_own_key_or_ends_it() {
        survives(Target::DecodeWatch, 20_000);
    }

    #[test]
    fn every_refusal_is_typed_and_bounded() {
        survives(Target::Status, 40_000);
    }

    #[test]
    fn a_scan_agrees_with_a_parser() {
        survives(Target::MetaScan, 40_000);
    }

    #[test]
    fn a_body_in_any_bytes_is_a_value_or_a_refusal() {
        survives(Target::RequestBody, 20_000);
    }

    #[test]
    fn a_patch_of_any_bytes_is_applied_or_refused_and_then_changes_nothing() {
        survives(Target::PatchBody, 4_000);
    }

    #[test]
    fn a_definition_of_any_schema_takes_again_what_it_has_stored() {
        survives(Target::Definition, 4_000);
    }

    #[test]
    fn a_request_line_in_any_text_is_a_resource_or_none() {
        survives(Target::RequestLine, 20_000);
    }

    #[test]
    fn every_kubeconfig_is_a_configuration_or_an_error() {
        survives(Target::Kubeconfig, 4_000);
    }
}
