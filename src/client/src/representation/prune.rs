//! Names the fields of an object that are not kept, and decodes objects without them.
//!
//! Answers "which fields are cut?" as a set of paths. A field is cut by its path, not by its value: for that there is the
//! transform. Invariants:
//! 1. A cut field is checked to be JSON and left out of the bytes, before the object is decoded.
//! 2. If no field is cut, the plain deserializer runs at no extra cost.
//! 3. A path needs no step for a list: it continues in each of the list's elements.
//!
//! Read next: `wire/json/cut.rs`; `wire/field_path.rs`, the tree of paths.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Error, IgnoredAny};
use serde_json::Value;

use super::{DecodeError, JsonError};
use crate::wire::{Cut, FieldTree, LeftOut, WireKind};

/// The fields that are cut from every object: `metadata.managedFields` by default. Cloning copies a pointer.
///
/// ```
/// use actix_informer::representation::Prune;
/// use serde_json::{Value, json};
///
/// let prune = Prune::default()
///     .cut(["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"])
///     .cut(["spec", "containers", "env"]);
/// let kept: Value = prune.decode(r#"{"metadata":{"managedFields":[1]},"spec":{"containers":[{"env":1,"image":2}]}}"#)?;
/// assert_eq!(kept, json!({"metadata": {}, "spec": {"containers": [{"image": 2}]}}));
/// # Ok::<(), actix_informer::representation::DecodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Prune(Arc<FieldTree>);

impl Prune {
    /// Cuts nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self(Arc::new(FieldTree::default()))
    }

    /// Also cuts the field at this path. An empty path changes nothing, and so does a path below a field that is cut.
    #[must_use]
    pub fn cut<I>(mut self, path: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<Box<str>>,
    {
        Arc::make_mut(&mut self.0).cut(path.into_iter().map(Into::into));
        self
    }

    /// Whether nothing is cut.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The paths that are cut, in one form for all ways in which they were given.
    pub(crate) fn paths(&self) -> BTreeSet<Vec<String>> {
        self.0.paths()
    }

    /// Decodes one whole JSON document without the cut fields.
    ///
    /// # Errors
    /// [`DecodeError::Json`] with the path of the field for everything that `serde_json::from_str` would refuse, also
    /// inside cut fields. The path is found by decoding once more; a document that decodes has no extra cost.
    pub fn decode<T: DeserializeOwned>(&self, json: &str) -> Result<T, DecodeError> {
        let decoded = match self.is_empty() {
            true => serde_json::from_str(json).ok(),
            false => self.rest(json, LeftOut::Gone).and_then(|rest| serde_json::from_str(&rest).ok()),
        };
        decoded.map_or_else(|| self.decoded_with_place(json).map_err(DecodeError::Json), Ok)
    }

    /// The text without the cut fields; `None` if that cannot be told from the bytes.
    pub(super) fn rest(&self, json: &str, left_out: LeftOut) -> Option<String> {
        // What is cut may be nearly all of it.
        let mut rest = Vec::new();
        let is_cut = WireKind::Json.cut(json.as_bytes(), &self.0, left_out, &mut rest) == Cut::Done;
        String::from_utf8(rest).ok().filter(|_| is_cut)
    }

    /// The same for a document that does not decode, to find the error's place.
    fn decoded_with_place<T: DeserializeOwned>(&self, json: &str) -> Result<T, JsonError> {
        serde_json::from_str::<IgnoredAny>(json).map_err(|error| JsonError::from(&error))?;
        let Some(rest) = self.rest(json, LeftOut::Blank) else {
            let refused = serde_json::from_str::<Value>(json).err();
            return Err(JsonError::from(
                &refused.unwrap_or_else(|| Error::custom("its fields cannot be cut")),
            ));
        };
        let decoded = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(&rest));
        decoded.map_err(|error| JsonError::at(&error.path().to_string(), error.inner()))
    }
}

impl Default for Prune {
    fn default() -> Self {
        Self::nothing().cut(["metadata", "managedFields"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use kube_core::DynamicObject;
    use serde_json::{Value, json};

    fn removed(mut value: Value, path: &[&str]) -> Value {
        match (&mut value, path) {
            (Value::Object(map), [last]) => {
                map.remove(*last);
            }
            (Value::Object(map), [first, rest @ ..]) => {
                if let Some(below) = map.remove(*first) {
                    map.insert((*first).to_owned(), removed(below, rest));
                }
            }
            (Value::Array(items), path) => {
                for item in items.iter_mut() {
                    *item = removed(item.take(), path);
                }
            }
            _ => {}
        }
        value
    }

    fn pod() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "a", "labels": {"managedFields": "kept"}, "annotations": {"a.b/c": "x", "d": "y"},
                "managedFields": [{"manager": "m", "operation": "Update", "fieldsV1": {"f:metadata": {"\"": 1}}}],
            },
            "spec": {"containers": [
                {"name": "one", "env": [{"name": "A", "value": "1"}]},
                {"name": "two", "image": "i", "env": [{"name": "B", "value": "2"}]},
            ]},
            "status": {"phase": "Running"},
        })
    }

    #[test]
    fn a_pruned_decode_equals_decoding_the_document_without_the_field() {
        let paths: [&[&str]; 6] = [
            &["metadata", "managedFields"],
            &["metadata", "annotations", "a.b/c"],
            &["spec", "containers", "env"],
            &["status"],
            &["metadata", "nothing", "there"],
            &["metadata", "name", "is a text"],
        ];
        for path in paths {
            let prune = Prune::nothing().cut(path.iter().copied());
            let without = removed(pod(), path);
            let text = pod().to_string();
            assert_eq!(prune.decode::<Value>(&text).unwrap(), without, "{path:?}");
            assert_eq!(prune.decode::<Pod>(&text).unwrap(), serde_json::from_value(without.clone()).unwrap());
            assert_eq!(
                prune.decode::<DynamicObject>(&text).unwrap(),
                serde_json::from_value(without).unwrap()
            );
        }
    }

    #[test]
    fn several_paths_are_cut_together_and_a_path_below_a_cut_field_changes_nothing() {
        let prune =
            Prune::default().cut(["spec", "containers"]).cut(["spec", "containers", "env"]).cut(["spec"]);
        let kept: Value = prune.decode(&pod().to_string()).unwrap();
        assert_eq!(kept, removed(removed(pod(), &["spec"]), &["metadata", "managedFields"]));
    }

    #[test]
    fn invalid_json_is_refused_inside_a_cut_field_and_behind_the_document() {
        for broken in [r#"{"metadata":{"managedFields":[tru]}}"#, r#"{"metadata":{}} {}"#, r#"{"metadata":{"#]
        {
            assert!(Prune::default().decode::<Value>(broken).is_err(), "{broken}");
        }
    }
}
