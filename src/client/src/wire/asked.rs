//! What is asked of a server, and whether its answer is that.

use std::fmt;

use http::{HeaderMap, header};
use informer_core::words::shortened;

use super::{Form, RequestedContent, WireKind};

const MAX_TYPE_CHARS: usize = 100;
const META: &str = "meta.k8s.io/v1";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) content: RequestedContent,
    pub(crate) form: Form,
    /// Preferred. JSON is always read, too.
    pub(crate) wire: WireKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unexpected {
    pub(crate) asked: &'static str,
    pub(crate) received: String,
}

impl fmt::Display for Unexpected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server sent {}, where {} was asked for", self.received, self.asked)
    }
}

impl Asked {
    pub(crate) const OBJECT: Self = Self::json(RequestedContent::Objects, Form::Object);

    pub(crate) const fn json(content: RequestedContent, form: Form) -> Self {
        Self { content, form, wire: WireKind::Json }
    }

    pub(crate) fn accept(self) -> &'static str {
        self.wire.accept(self.content, self.form)
    }

    pub(crate) fn wire(self, headers: &HeaderMap) -> Result<WireKind, Unexpected> {
        let Some(received) = headers.get(header::CONTENT_TYPE).filter(|value| !value.is_empty()) else {
            return Ok(self.wire);
        };
        let text = received.to_str().unwrap_or("a Content-Type that is no text");
        [WireKind::Json, self.wire]
            .into_iter()
            .find(|wire| wire.is_of(text))
            .ok_or_else(|| Unexpected { asked: self.accept(), received: shortened(text, MAX_TYPE_CHARS) })
    }

    pub(crate) fn check_kind(self, api_version: Option<&str>, kind: Option<&str>) -> Result<(), Unexpected> {
        let (version, named) = (api_version.unwrap_or_default(), kind.unwrap_or("an object without a kind"));
        let is_expected = match (self.content, self.form) {
            (RequestedContent::Objects, _) => !(named == "Table" && version.starts_with("meta.k8s.io/")),
            (RequestedContent::Metadata, Form::List) => {
                version == META && named == "PartialObjectMetadataList"
            }
            (RequestedContent::Metadata, Form::Object) => version == META && named == "PartialObjectMetadata",
        };
        let received = || shortened(format!("{version} {named}").trim_start(), MAX_TYPE_CHARS);
        is_expected.then_some(()).ok_or_else(|| Unexpected { asked: self.accept(), received: received() })
    }
}

/// Whether a refusal's body may be quoted, and may be a `Status`: JSON, text, or without a type.
pub(crate) fn is_readable(headers: &HeaderMap) -> bool {
    let Some(received) = headers.get(header::CONTENT_TYPE).filter(|value| !value.is_empty()) else {
        return true;
    };
    let text = received.to_str().unwrap_or_default();
    WireKind::Json.is_of(text) || text.trim_start().to_ascii_lowercase().starts_with("text/")
}

#[cfg(test)]
mod tests;
