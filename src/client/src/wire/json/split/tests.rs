//! Compares the splitter with serde_json on the same lists and with a simple reading of lines, cut at every
//! position. Only `split` and `lines` call the splitter. Documents are written by hand where a map would sort
//! their members.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

const NO_LIMIT: usize = usize::MAX;

fn split(text: &[u8], cuts: &[usize], limit: usize) -> Result<(ListHead, Vec<Frame>), SplitError> {
    let (mut splitter, mut items) = (BracketSplitter::list(limit), Vec::new());
    for chunk in chunks(text, cuts) {
        splitter.push(&chunk, &mut items)?;
    }
    Ok((splitter.finish()?, items))
}

fn chunks(text: &[u8], cuts: &[usize]) -> Vec<Bytes> {
    let mut bounds: Vec<_> = cuts.iter().map(|cut| (*cut).min(text.len())).collect();
    bounds.extend([0, text.len()]);
    bounds.sort_unstable();
    bounds.windows(2).map(|pair| Bytes::copy_from_slice(&text[pair[0]..pair[1]])).collect()
}

fn lines(chunks: &[Bytes], limit: usize) -> (Vec<Frame>, Result<ListHead, SplitError>) {
    let (mut splitter, mut lines) = (BracketSplitter::watch(limit), Vec::new());
    chunks.iter().for_each(|chunk| splitter.push(chunk, &mut lines).expect("any bytes are lines"));
    (lines, splitter.finish())
}

#[test]
fn a_line_within_one_chunk_is_a_slice_of_it() {
    let chunk = Bytes::from_static(b"first\nsecond\n");
    let (lines, _) = lines(std::slice::from_ref(&chunk), 64);
    let Frame::Whole(second) = &lines[1] else { panic!("whole") };
    assert_eq!(second.as_ptr(), chunk[6..].as_ptr());
}

#[test]
fn of_a_line_above_the_limit_only_the_head_is_kept_and_the_next_is_whole() {
    let (lines, end) = lines(&[Bytes::from_static(b"0123"), Bytes::from_static(b"456789\nnext\n")], 6);
    let head = Bytes::from_static(b"012345");
    assert_eq!(lines, [Frame::Oversize { head, size: 10 }, Frame::Whole(Bytes::from_static(b"next"))]);
    assert_eq!(end, Ok(ListHead::default()));
}

fn check(document: &Value, text: &str, cuts: &[usize]) {
    let (head, items) =
        split(text.as_bytes(), cuts, NO_LIMIT).unwrap_or_else(|error| panic!("{error}: {text}"));
    let field = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    assert_eq!(head.kind, field("/kind"));
    assert_eq!(head.api_version, field("/apiVersion"));
    assert_eq!(head.version, field("/metadata/resourceVersion").filter(|text| !text.is_empty()));
    assert_eq!(head.token, field("/metadata/continue").filter(|text| !text.is_empty()));
    assert_eq!(head.has_items, document.get("items").is_some());
    let expected = document.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
    let found: Vec<Value> = items
        .iter()
        .map(|frame| match frame {
            Frame::Whole(bytes) => serde_json::from_slice(bytes).unwrap(),
            Frame::Oversize { .. } => panic!("no limit"),
        })
        .collect();
    assert_eq!(found, expected, "{text} cut at {cuts:?}");
}

#[test]
fn a_realistic_list_gives_the_same_items_with_one_cut_anywhere_and_with_two() {
    let document = json!({
        "apiVersion": "v1",
        "items": [{"a": "]}\"\\", "b": [1, {"c": null}]}, {}, "text", 12.5, null, [[]], {"items": [1]}],
        "kind": "PodList",
        "metadata": {"continue": "", "resourceVersion": "12", "remainingItemCount": 3},
        "zz": {"kind": "no", "items": [1, 2]},
    });
    for text in [document.to_string(), serde_json::to_string_pretty(&document).unwrap()] {
        for first in 0..=text.len() {
            check(&document, &text, &[first]);
        }
        for first in (0..text.len()).step_by(3) {
            for second in (first..text.len()).step_by(5) {
                check(&document, &text, &[first, second]);
            }
        }
        check(&document, &text, &(0..text.len()).collect::<Vec<_>>());
    }
}

#[test]
fn every_incomplete_prefix_of_a_list_is_reported_as_truncated() {
    let text = r#"{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[{"a":1},2]}"#;
    for end in 0..text.len() {
        let error = split(&text.as_bytes()[..end], &[], NO_LIMIT).unwrap_err();
        assert_eq!(error, SplitError::Truncated(end as u64));
    }
}

#[test]
fn a_document_that_is_not_a_list_is_refused_with_the_position_of_the_fault() {
    for (text, at) in [
        ("404 page not found", 0),
        ("[]", 0),
        ("{]", 1),
        (r#"{"items":{}}"#, 9),
        (r#"{"items":[1,]}"#, 12),
        (r#"{"items":[,1]}"#, 10),
        (r#"{"items":[1 2]}"#, 12),
        (r#"{"a":1,}"#, 7),
        (r#"{"a":1}x"#, 7),
        (r#"{"kind":7}"#, 8),
        (r#"{"metadata":"x"}"#, 12),
        (r#"{"a" 1}"#, 5),
        (r#"{"items":[],"items":[]}"#, 12),
        (r#"{"metadata":{},"metadata":{}}"#, 15),
    ] {
        match split(text.as_bytes(), &[], NO_LIMIT) {
            Err(SplitError::InvalidDocument { at: found, .. }) => assert_eq!(found, at, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn null_items_are_an_empty_list_and_an_object_without_items_has_none() {
    let (head, items) = split(br#"{"items":null,"metadata":null}"#, &[], NO_LIMIT).unwrap();
    assert_eq!((head.has_items, items.len()), (true, 0));
    assert!(!split(b"{}", &[], NO_LIMIT).unwrap().0.has_items);
}

#[test]
fn of_an_item_above_the_limit_the_first_bytes_are_kept_and_the_other_items_are_complete() {
    let text = br#"{"items":[{"a":1},{"name":"0123456789"},{"b":2}]}"#;
    for cut in 0..text.len() {
        let (_, items) = split(text, &[cut], 12).unwrap();
        let head = Bytes::from_static(br#"{"name":"012"#);
        assert_eq!(items[1], Frame::Oversize { head, size: 21 });
        assert!(matches!((&items[0], &items[2]), (Frame::Whole(_), Frame::Whole(_))));
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        r#"[a-z"\\\]\}\[\{é\n]{0,8}"#.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((r#"[a-z"\\]{0,4}"#, inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A document with its members in random order. The text is built by hand, because a map would sort them.
fn document() -> impl Strategy<Value = (Value, String)> {
    let metadata = prop_oneof![
        Just(Value::Null),
        ("[0-9]{0,3}", "[a-z]{0,3}", json_value()).prop_map(|(version, token, other)| {
            json!({"resourceVersion": version, "continue": token, "other": other})
        }),
    ];
    let items = prop::collection::vec(json_value(), 0..5);
    (items, metadata, json_value(), any::<bool>())
        .prop_flat_map(|(items, metadata, other, pretty)| {
            let members = vec![
                ("items", Value::from(items)),
                ("metadata", metadata),
                ("other", other),
                ("kind", json!("PodList")),
                ("apiVersion", json!("v1")),
            ];
            (Just(members).prop_shuffle(), Just(pretty))
        })
        .prop_map(|(members, pretty)| {
            let gap = if pretty { "\n  " } else { "" };
            let texts: Vec<_> =
                members.iter().map(|(key, value)| format!("{gap}\"{key}\":{gap}{value}{gap}")).collect();
            let document =
                members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>();
            (Value::Object(document), format!("{{{}}}", texts.join(",")))
        })
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_lines(text in "[ab \n]{0,40}", cuts in prop::collection::vec(0usize..41, 0..6)) {
        let (found, end) = lines(&chunks(text.as_bytes(), &cuts), 64);
        let (whole, rest) = text.rsplit_once('\n').unwrap_or(("", &text));
        let expected: Vec<_> = whole.split('\n').filter(|line| !line.is_empty()).collect();
        let found: Vec<_> = found.into_iter().map(|frame| match frame {
            Frame::Whole(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Frame::Oversize { .. } => panic!("no line is above the limit"),
        }).collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(end.err(), (!rest.is_empty()).then_some(SplitError::HalfEvent(rest.len())));
    }

    #[test]
    fn any_document_in_any_order_and_any_chunking_gives_what_serde_json_gives(
        (document, text) in document(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let cuts: Vec<_> = cuts.into_iter().map(|cut| cut.index(text.len())).collect();
        check(&document, &text, &cuts);
        for cut in 0..text.len() {
            check(&document, &text, &[cut]);
        }
    }

    #[test]
    fn no_input_makes_the_splitter_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), cut in 0usize..64) {
        let _ = split(&bytes, &[cut], 8);
        let _ = lines(&chunks(&bytes, &[cut]), 8);
    }
}
