//! The path of the value at which serde_json has stopped, from the place in the error and the text. To follow the path while
//! decoding would cost every answer, and a second decoder for each type.
//!
//! 1. An error about a value stands behind it, or at the bracket with which it begins.
//! 2. What is found only behind an object (a field is missing, or the type's own code refuses a member last) has the path of the
//!    object.

enum Step<'a> {
    /// Between two members of an object.
    Between,
    Member(&'a [u8]),
    Item(usize),
}

/// Such as `spec.containers[0].image`; empty for the whole text.
pub(super) fn path_at(json: &[u8], (line, column): (usize, usize)) -> String {
    let lines = json.split_inclusive(|byte| *byte == b'\n');
    let end = lines.take(line.saturating_sub(1)).map(<[u8]>::len).sum::<usize>() + column;
    let (mut at, mut open) = (0, Vec::new());
    while let Some(byte) = json.get(at) {
        at += 1;
        match (byte, open.last_mut()) {
            (b'{' | b'[', _) if at > end => break,
            (b'{', _) => open.push(Step::Between),
            (b'[', _) => open.push(Step::Item(0)),
            (b'}' | b']', _) => {
                open.pop();
            }
            (b',', Some(Step::Item(number))) => *number += 1,
            (b',', Some(last)) => *last = Step::Between,
            (b':' | b',' | b' ' | b'\t' | b'\r' | b'\n', _) => continue,
            (b'"', last) => {
                let first = at;
                at = string_end(json, first);
                if let Some(last @ Step::Between) = last {
                    *last = Step::Member(json.get(first..at - 1).unwrap_or_default());
                }
            }
            _ => {
                let is_in = |byte: &&u8| !matches!(**byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n');
                at += json[at..].iter().take_while(is_in).count();
            }
        }
        if at >= end {
            break;
        }
    }
    written(&open)
}

/// Behind the closing quote.
fn string_end(json: &[u8], first: usize) -> usize {
    let mut at = first;
    while let Some(byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => break,
            b'\\' => at += 1,
            _ => {}
        }
    }
    at.min(json.len())
}

fn written(open: &[Step<'_>]) -> String {
    let mut path = String::new();
    for step in open {
        match step {
            Step::Between => {}
            Step::Item(number) => path.push_str(&format!("[{number}]")),
            Step::Member(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&String::from_utf8_lossy(name));
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::Value;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Tree {
        #[expect(dead_code, reason = "only whether it decodes is asked")]
        number: Option<u8>,
        #[expect(dead_code, reason = "only whether it decodes is asked")]
        needed: bool,
        #[serde(default)]
        #[expect(dead_code, reason = "only whether it decodes is asked")]
        below: Vec<Self>,
        #[serde(default)]
        #[expect(dead_code, reason = "only whether it decodes is asked")]
        named: std::collections::BTreeMap<String, Self>,
    }

    fn place_of(json: &str) -> String {
        let error = serde_json::from_str::<Tree>(json).expect_err("it does not decode");
        path_at(json.as_bytes(), (error.line(), error.column()))
    }

    #[test]
    fn the_path_leads_to_the_value_that_does_not_decode() {
        for (json, path) in [
            (r#"{"number": 300, "needed": true}"#, "number"),
            (r#"{"needed": "true"}"#, "needed"),
            (r#"{"needed": [true]}"#, "needed"),
            (r#"{"needed": {"a": 1}}"#, "needed"),
            (r#"{"needed": null}"#, "needed"),
            (r#"{"number": 1}"#, ""),
            (r#"{"needed": true, "below": [{"needed": true}, {"number": 1}]}"#, "below[1]"),
            (
                r#"{"needed": true, "below": [{"needed": true}, {"needed": true, "number": -1}]}"#,
                "below[1].number",
            ),
            ("{\n  \"needed\": true,\n  \"below\": [\n    {\"needed\": 7}\n  ]\n}", "below[0].needed"),
            (r#"{"named": {"a \" b": {"needed": {}}}, "needed": true}"#, r#"named.a \" b.needed"#),
            (r#"{"named": {"a": 5}, "needed": true}"#, "named.a"),
            (r#"{"below": {}, "needed": true}"#, "below"),
            (r#"["number"]"#, "[0]"),
            ("7", ""),
        ] {
            assert_eq!(place_of(json), path, "{json}");
        }
    }

    proptest! {
        #[test]
        fn a_place_in_any_bytes_gives_a_path(
            bytes in "[\\[\\]{},:\" \\\\a1\n]{0,40}",
            place in (0_usize..5, 0_usize..60),
        ) {
            let path = path_at(bytes.as_bytes(), place);
            prop_assert!(path.len() <= 8 * bytes.len() + 1);
        }

        #[test]
        fn of_a_value_of_a_wrong_type_the_path_is_the_one_that_was_followed(
            depth in 0_usize..6,
            siblings in 0_usize..3,
            wrong in prop_oneof![Just("\"x\""), Just("[]"), Just("{}"), Just("-3"), Just("true"), Just("2.5")],
        ) {
            let mut json = format!(r#"{{"needed":true,"number":{wrong}}}"#);
            for level in 0..depth {
                let others = r#"{"needed":false},"#.repeat(siblings);
                json = match level % 2 {
                    0 => format!(r#"{{"needed":true,"below":[{others}{json}]}}"#),
                    _ => format!(r#"{{"named":{{"k":{json}}},"needed":true}}"#),
                };
            }
            let parsed: Value = serde_json::from_str(&json).expect("JSON");
            let mut text = serde_json::Deserializer::from_str(&json);
            let followed = serde_path_to_error::deserialize::<_, Tree>(&mut text).expect_err("wrong");
            prop_assert_eq!(place_of(&json), followed.path().to_string(), "{}", parsed);
        }
    }
}
