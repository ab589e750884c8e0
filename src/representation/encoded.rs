//! One object as the server sent it, for a representation to keep.
//!
//! Answers "what is known of these bytes before they are decoded?" Invariants:
//! 1. Its metadata has been scanned once, before the representation is called; nothing is scanned again for it.
//! 2. The bytes are not checked to be one document: a representation that keeps them, or reads only a part of them, gets
//!    whatever the server sent. [`Encoded::pruned`] and [`Prune::decode`] check all of them.
//!
//! Read next: `wire/meta_scan.rs`.

use std::borrow::Cow;
use std::str::Utf8Error;

use super::{DecodeError, Prune};
use crate::wire::{Cut, FieldPath, MetaScan, Owner, WireKind};

/// The bytes of one object, and what a scan of its metadata has found.
///
/// ```
/// use actix_informer::representation::Encoded;
///
/// let pod = Encoded::json(br#"{"metadata":{"name":"web-0","resourceVersion":"7","labels":{"app":"web"}},"spec":{}}"#);
/// assert_eq!(pod.meta().name.as_deref(), Some("web-0"));
/// assert!(pod.labels().any(|(label, value)| label == "app" && value == "web"));
/// ```
#[derive(Debug, Clone)]
pub struct Encoded<'a> {
    wire: WireKind,
    bytes: &'a [u8],
    meta: MetaScan<'a>,
}

impl<'a> Encoded<'a> {
    /// An object written as JSON: for tests of representations. The client makes the others.
    pub fn json(bytes: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self::new(WireKind::Json, bytes.as_ref())
    }

    pub(crate) fn new(wire: WireKind, bytes: &'a [u8]) -> Self {
        Self { wire, bytes, meta: wire.identify(bytes) }
    }

    /// How it is written. Representations are given JSON alone.
    pub fn wire(&self) -> WireKind {
        self.wire
    }

    /// Its bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its bytes as a text. Reads all of them.
    ///
    /// # Errors
    /// When they are not UTF-8.
    pub fn text(&self) -> Result<&'a str, Utf8Error> {
        std::str::from_utf8(self.bytes)
    }

    /// Name, namespace, uid, version and kind, as far as they were found.
    pub fn meta(&self) -> &MetaScan<'a> {
        &self.meta
    }

    /// `metadata.labels` in the order of the bytes; values that are not texts are left out. Costs a scan of the metadata
    /// behind the version.
    pub fn labels(&self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + use<'a> {
        self.wire.labels(&self.meta)
    }

    /// `metadata.ownerReferences` in the order of the bytes. Costs a scan of the metadata behind the version.
    pub fn owners(&self) -> impl Iterator<Item = Owner<'a>> + use<'a> {
        self.wire.owners(&self.meta)
    }

    /// The values at a path, without decoding the object: for a representation that keeps little else. Costs a scan of
    /// all bytes, mostly 64 at once.
    ///
    /// ```
    /// use actix_informer::object::FieldPath;
    /// use actix_informer::representation::{DecodeError, Encoded, Prune, Representation};
    ///
    /// /// Keeps the node of each pod, and nothing else.
    /// struct Node(FieldPath);
    ///
    /// impl Representation for Node {
    ///     type Body = Option<String>;
    ///     fn keep(&self, object: &Encoded<'_>, _prune: &Prune) -> Result<Option<String>, DecodeError> {
    ///         Ok(object.values_at(&self.0).pop())
    ///     }
    /// }
    /// let node = Node("spec.nodeName".parse()?);
    /// let kept = node.keep(&Encoded::json(r#"{"metadata":{},"spec":{"nodeName":"node-a"}}"#), &Prune::default())?;
    /// assert_eq!(kept.as_deref(), Some("node-a"));
    /// // An index of such bodies: Index::new("node", |node: &Object<Option<String>>| node.body().clone())
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn values_at(&self, path: &FieldPath) -> Vec<String> {
        self.wire.scan(self.bytes, path)
    }

    /// Its text without the fields of `prune`, for a representation that keeps texts.
    ///
    /// The fields are cut from the bytes where that is safe: the rest is then as the server wrote it. Where it is not, the
    /// object is decoded and written again. Both read the text once more, to make sure that it is one document.
    ///
    /// ```
    /// use actix_informer::representation::{DecodeError, Encoded, Prune, Representation};
    ///
    /// /// Keeps the text of each object, without `metadata.managedFields`.
    /// struct Text;
    ///
    /// impl Representation for Text {
    ///     type Body = String;
    ///     fn keep(&self, object: &Encoded<'_>, prune: &Prune) -> Result<String, DecodeError> {
    ///         object.pruned(prune)
    ///     }
    /// }
    /// let sent = Encoded::json(r#"{"metadata":{"name":"a","managedFields":[{"manager":"m"}]},"spec":{}}"#);
    /// assert_eq!(Text.keep(&sent, &Prune::default())?, r#"{"metadata":{"name":"a"},"spec":{}}"#);
    /// # Ok::<(), DecodeError>(())
    /// ```
    ///
    /// # Errors
    /// When it is not UTF-8, or not one document, also within the fields that are cut.
    pub fn pruned(&self, prune: &Prune) -> Result<String, DecodeError> {
        let text = self.text()?;
        let mut out = Vec::with_capacity(text.len());
        if self.wire.cut(self.bytes, prune.fields(), &mut out) == Cut::Done
            && self.wire.is_document(&out)
            && let Ok(rest) = String::from_utf8(out)
        {
            return Ok(rest);
        }
        let parsed: serde_json::Value = prune.decode(text)?;
        Ok(parsed.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pruned(json: &[u8]) -> Result<String, String> {
        let prune = Prune::default().cut(["x"]);
        Encoded::json(json).pruned(&prune).map_err(|error| error.to_string())
    }

    #[test]
    fn the_text_without_cut_fields_is_as_the_server_wrote_it_or_is_written_again() {
        let text = br#"{"b":1.50,"x":{"y":[2]}, "a":1e400}"#;
        assert_eq!(pruned(text).as_deref(), Ok(r#"{"b":1.50, "a":1e400}"#));
        assert_eq!(
            pruned(br#"{"b":1.50,"\u0078":2}"#).as_deref(),
            Ok(r#"{"b":1.5}"#),
            "a key with an escape"
        );
    }

    #[test]
    fn what_is_not_one_document_is_refused_also_in_what_is_cut() {
        for broken in [
            &br#"{"x":[tru],"a":1}"#[..],
            br#"{"x":1,"a":}"#,
            br#"{"x":1} {}"#,
            br#"{"a":1,"x":"#,
            b"{\"x\":\"\xff\"}",
        ] {
            assert!(pruned(broken).is_err(), "{}", String::from_utf8_lossy(broken));
        }
    }
}
