//! The writer against what Go's Kubernetes libraries write for the same value, and against our own reader.
//!
//! `fixtures.txt` is written by tests/control-plane/tables: each line a value as JSON and its YAML as a JSON string.
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::decode;
use super::encode;

#[test]
fn api_39_a_value_is_written_as_go_writes_it() {
    let lines = include_str!("../fixtures.txt").lines();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (value, yaml) in lines.filter_map(|line| line.split_once('\t')) {
        let (value, go): (Value, String) =
            (serde_json::from_str(value).unwrap(), serde_json::from_str(yaml).unwrap());
        let ours = encode(&value);
        if ours != go {
            wrong.push(format!("{value}\nours: {ours:?}\nGo's: {go:?}\n"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 700);
}

fn values() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[ -~]{0,100}", "[a-z0-9:.#' -]{0,12}", "\\PC{0,8}", "[a \n]{0,8}"];
    // Go writes the key of a merge bare, so that no reader accepts it.
    let text = text.prop_filter("is no merge", |text| text != "<<");
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(text.clone(), inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn api_39_what_is_written_reads_back(value in values()) {
        let object = json!({ "a": value });
        let text = encode(&object);
        prop_assert_eq!(decode(text.as_bytes()), Ok(object), "{}", text);
    }
}
