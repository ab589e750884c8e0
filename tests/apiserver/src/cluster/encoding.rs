//! The languages of answers: JSON, YAML, protobuf; together with the form of an object they describe what one client
//! wants to see.
//!
//! Answers: which bytes does a client get for this object, event, bookmark or document? It does not use HTTP.
//! 1. JSON is copied from the stored bytes; nothing is decoded.
//! 2. The message of an object is encoded once and kept with it (`Object::message`), the frame of an event is encoded
//!    once and kept with the event.
//! 3. YAML is written from the JSON each time: only people read it. It has no streams.
//! 4. Custom kinds have no messages, only their metadata has; a Table has none. The server does not offer what it does
//!    not have.
//!
//! Next: `http/accept.rs` chooses, `protobuf/answer.rs` and `yaml.rs` write.
use bytes::Bytes;
use serde_json::{Value, json};

use super::kind::Kind;
use super::metadata::bookmark_metadata;
use super::object::Object;
use super::representation::{Form, bookmark_line, error_line, watch_line};
use crate::protobuf::answer::{self, Type};
use crate::yaml;

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
            Self::Yaml => yaml::encode(value, false).into(),
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
    yaml::encode(&value, false).into()
}
