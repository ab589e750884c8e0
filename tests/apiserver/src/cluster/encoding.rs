//! The languages of answers: JSON, YAML, protobuf; together with the form of an object they describe what one client
//! wants to see.
//!
//! Answers: which bytes does a client get for this object, event, bookmark or document? It does not use HTTP.
//! 1. JSON is copied from the stored bytes; nothing is decoded.
//! 2. The message of an object is encoded once and kept with it (`Object::message`), the frame of an event is encoded
//!    once and kept with the event.
//! 3. YAML is written from the JSON each time: only people read it. It has no streams. Reading and writing is
//!    `serde-saphyr`'s; an answer has its style, not Go's.
//! 4. Custom kinds have no messages, only their metadata has; a Table has none. The server does not offer what it does
//!    not have.
//! 5. Of a YAML text that is read, as a request's body or an apply patch, only the first document counts; of a key that
//!    comes twice, the last value. Words mean what YAML 1.1 says (`yes` is true), because Kubernetes' parser reads them so.
//! 6. Reading is bounded: nesting, aliases and the number of nodes end in an error, not in a full memory.
//!
//! Next: `http/accept.rs` chooses, `protobuf/answer.rs` writes messages.

use bytes::Bytes;
use serde_json::{Value, json};

use super::kind::Kind;
use super::metadata::bookmark_metadata;
use super::object::Object;
use super::representation::{Form, bookmark_line, error_line, watch_line};
use crate::protobuf::answer::{self, Type};

/// Why a message must exist.
const OFFERED: &str = "protobuf is only chosen for what has a message";

/// The language of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

impl Encoding {
    /// In a real server's order of preference, if the client has none.
    pub(crate) const ALL: [Self; 3] = [Self::Json, Self::Yaml, Self::Protobuf];

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// A value that contains its own type.
    pub(crate) fn value(self, value: &Value) -> Bytes {
        match self {
            Self::Json => value.to_string().into(),
            Self::Yaml => write_yaml(value, false).into(),
            Self::Protobuf => answer::value(value).expect(OFFERED),
        }
    }

    /// An ERROR event that carries a Status.
    pub(crate) fn error_event(self, status: &Value) -> Bytes {
        match self {
            Self::Protobuf => answer::event("ERROR", &self.value(status)),
            _ => error_line(status),
        }
    }
}

/// Which part of an object a client wants to see, and in which language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Representation {
    pub(crate) form: Form,
    pub(crate) encoding: Encoding,
}

impl Representation {
    /// Whole objects as JSON.
    pub(crate) const PLAIN: Self = Self { form: Form::Full, encoding: Encoding::Json };

    /// One whole object, as GET answers it.
    pub(crate) fn object(self, kind: &Kind, object: &Object) -> Bytes {
        match self.encoding {
            Encoding::Json => self.form.object(kind, object),
            Encoding::Yaml => yaml_of(&self.form.object(kind, object)),
            Encoding::Protobuf => self.enveloped(kind, &self.message(kind, object)),
        }
    }

    /// The message of an object, without an envelope.
    pub(crate) fn message(self, kind: &Kind, object: &Object) -> Bytes {
        object.message(kind, self.form == Form::Metadata).expect(OFFERED)
    }

    fn enveloped(self, kind: &Kind, message: &[u8]) -> Bytes {
        match self.form {
            Form::Metadata => answer::enveloped(Type::METADATA, message),
            _ => answer::enveloped(Type { api_version: &kind.api_version(), kind: &kind.kind }, message),
        }
    }

    /// A watch event about `object`, with what separates it from the next.
    pub(crate) fn event(self, event_type: &str, kind: &Kind, object: &Object) -> Bytes {
        match self.encoding {
            Encoding::Protobuf => answer::event(event_type, &self.object(kind, object)),
            _ => watch_line(event_type, kind, object, self.form),
        }
    }

    /// A bookmark at `revision`; `initial_end` adds the annotation that ends a watch-list's first part.
    pub(crate) fn bookmark(self, kind: &Kind, revision: u64, initial_end: bool) -> Bytes {
        if self.encoding != Encoding::Protobuf {
            return bookmark_line(kind, self.form, revision, initial_end);
        }
        let metadata = bookmark_metadata(revision, initial_end);
        let message = match self.form {
            Form::Metadata => answer::metadata_message(&metadata),
            _ => {
                let told = Type { api_version: &kind.api_version(), kind: &kind.kind };
                answer::message(told, &json!({ "metadata": metadata })).expect(OFFERED)
            }
        };
        answer::event("BOOKMARK", &self.enveloped(kind, &message))
    }
}

/// Our JSON as YAML.
pub(crate) fn yaml_of(json: &[u8]) -> Bytes {
    let value: Value = serde_json::from_slice(json).expect("an answer of ours is JSON");
    write_yaml(&value, false).into()
}

/// The text of a value, with a newline at its end; for readers of YAML 1.2 `no` is a word.
pub(crate) fn write_yaml(value: &Value, yaml_12: bool) -> String {
    let options =
        serde_saphyr::ser_options! { prefer_block_scalars: false, no_lang_directive: true, yaml_12: yaml_12 };
    serde_saphyr::to_string_with_options(value, options).expect("a JSON value has a text")
}

/// # Errors
/// What is wrong with a text that is not YAML.
pub(crate) fn read_yaml(bytes: &[u8]) -> Result<Value, String> {
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

    use super::{read_yaml, write_yaml};

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
            assert_eq!(read_yaml(text.as_bytes()), Ok(value), "{text}");
        }
        assert!(read_yaml(b"a: [\n").is_err());
        assert!(read_yaml(b"a: \xc3\x28").is_err());
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
            let written = write_yaml(&value, false);
            assert_eq!(read_yaml(written.as_bytes()), Ok(value), "{written}");
        }
    }

    #[test]
    fn aliases_that_multiply_are_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..10 {
            let previous = format!("*a{}, ", level - 1).repeat(10);
            text += &format!("a{level}: &a{level} [{previous}]\n");
        }
        assert!(read_yaml(text.as_bytes()).is_err());
    }
}
