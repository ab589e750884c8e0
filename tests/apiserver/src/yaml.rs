//! YAML text, read into the JSON value that a real server converts it to, and written.
//!
//! Answers: what does this text mean, and which text means this value? Used for request bodies, apply patches and
//! answers. Reading and writing is `serde-saphyr`'s; an answer has its style, not Go's.
//! 1. Only the first document counts; of a key that comes twice, the last value.
//! 2. Words mean what YAML 1.1 says (`yes` is true), because Kubernetes' parser reads them so.
//! 3. Bounded: nesting, aliases and the number of nodes end in an error, not in a full memory.
use serde_json::Value;

/// The text of a value, with a newline at its end; for readers of YAML 1.2 `no` is a word.
pub(crate) fn encode(value: &Value, yaml_12: bool) -> String {
    let options =
        serde_saphyr::ser_options! { prefer_block_scalars: false, no_lang_directive: true, yaml_12: yaml_12 };
    serde_saphyr::to_string_with_options(value, options).expect("a JSON value has a text")
}

/// # Errors
/// What is wrong with a text that is not YAML.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, String> {
    let mut options = serde_saphyr::Options::default();
    options.duplicate_keys = serde_saphyr::DuplicateKeyPolicy::LastWins;
    options.legacy_octal_numbers = true;
    options.with_snippet = false;
    let mut reader = bytes;
    let first = serde_saphyr::read_with_options::<_, Value>(&mut reader, options).next();
    first.unwrap_or(Ok(Value::Null)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{decode, encode};

    #[test]
    fn yaml_reads_as_kubernetes_reads_it() {
        for (text, value) in [
            ("a: yes", json!({"a": true})),
            ("a: off\nb: \"off\"", json!({"a": false, "b": "off"})),
            ("a: ~\nb:\n", json!({"a": null, "b": null})),
            ("a: 1\nb: 1.5\nc: 1.0", json!({"a": 1, "b": 1.5, "c": 1.0})),
            ("a: 9007199254740993", json!({"a": 9_007_199_254_740_993_i64})),
            ("a: 2026-01-01T00:00:00Z", json!({"a": "2026-01-01T00:00:00Z"})),
            ("1: x\ntrue: z", json!({"1": "x", "true": "z"})),
            ("a: 1\na: 2", json!({"a": 2})),
            ("a: |\n  x\n  y\n", json!({"a": "x\ny\n"})),
            ("a: &x {b: c}\nd: *x", json!({"a": {"b": "c"}, "d": {"b": "c"}})),
            ("a: 0644", json!({"a": 420})),
            ("{\"a\": [1, {}]}", json!({"a": [1, {}]})),
            ("a: x\n---\nb: z\n", json!({"a": "x"})),
            ("", json!(null)),
        ] {
            assert_eq!(decode(text.as_bytes()), Ok(value), "{text}");
        }
        assert!(decode(b"a: [\n").is_err());
        assert!(decode(b"a: \xc3\x28").is_err());
    }

    #[test]
    fn api_39_what_is_written_reads_back() {
        for text in [
            "",
            " a ",
            "yes",
            "1",
            "1.50",
            "0x1f",
            "017",
            "~",
            "a: b",
            "a #b",
            "'\"",
            "a\nb\n",
            "\n",
            "\t",
            "<<",
            "2026-01-02",
            "12:30:45",
            "{a}",
            "*a",
            "- a",
            "\u{1f600}",
            "\u{85}",
            "1_000",
            "1e3",
            "%",
            "?",
            "---",
            "\0",
            &"long ".repeat(40),
        ] {
            let value = json!({"a": text, "list": [text, {text: [[], {}, null, true, -1, 1.5, 9_007_199_254_740_993_i64]}]});
            let written = encode(&value, false);
            assert_eq!(decode(written.as_bytes()), Ok(value), "{written}");
        }
    }

    #[test]
    fn aliases_that_multiply_are_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..10 {
            let previous = format!("*a{}, ", level - 1).repeat(10);
            text += &format!("a{level}: &a{level} [{previous}]\n");
        }
        assert!(decode(text.as_bytes()).is_err());
    }
}
