//! Names the fields of an object that are not kept, and decodes objects without them.
//!
//! Answers "which fields are cut?" as a set of paths; `prune/cut.rs` skips them. A field is cut by its path, not by its
//! value: for that there is the transform. Invariants:
//! 1. The parser skips a cut field: its bytes are read once, and nothing is allocated.
//! 2. Outside the paths, and if there are none, the plain deserializer runs at no extra cost.
//! 3. A path needs no step for a list: it continues in each of the list's elements.
//!
//! Read next: `prune/cut.rs`; `wire/fields.rs`, the tree of paths.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::{DecodeError, JsonError};
use crate::wire::FieldTree;

mod cut;

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

    pub(super) fn fields(&self) -> &FieldTree {
        &self.0
    }

    /// The paths that are cut, in one form for all ways in which they were given.
    pub(crate) fn paths(&self) -> BTreeSet<Vec<String>> {
        self.0.paths()
    }

    /// Decodes one whole JSON document without the cut fields.
    ///
    /// A path cannot lead through a map whose keys are not strings in Rust; it may end at such a map. Nothing is cut from a
    /// `serde_json::value::RawValue`, whose text is taken as it is: [`Encoded::pruned`](super::Encoded::pruned) gives the
    /// text without the cut fields.
    ///
    /// # Errors
    /// [`DecodeError::Json`] with the path of the field for everything that `serde_json::from_str` would refuse, also
    /// inside cut fields. The path is found by decoding once more; a document that decodes has no extra cost.
    pub fn decode<T: DeserializeOwned>(&self, json: &str) -> Result<T, DecodeError> {
        self.decoded(json).map_err(|error| DecodeError::Json(self.located::<T>(json, &error)))
    }

    fn decoded<T: DeserializeOwned>(&self, json: &str) -> serde_json::Result<T> {
        if self.is_empty() {
            return serde_json::from_str(json);
        }
        let mut parser = serde_json::Deserializer::from_str(json);
        let value = T::deserialize(cut::CutDeserializer { inner: &mut parser, node: &self.0 })?;
        parser.end()?;
        Ok(value)
    }

    fn located<T: DeserializeOwned>(&self, json: &str, error: &serde_json::Error) -> JsonError {
        if !error.is_data() {
            return JsonError::from(error);
        }
        let mut parser = serde_json::Deserializer::from_str(json);
        let cutting = cut::CutDeserializer { inner: &mut parser, node: &self.0 };
        match serde_path_to_error::deserialize::<_, T>(cutting) {
            Err(located) => JsonError::at(&located.path().to_string(), located.inner()),
            Ok(_) => JsonError::from(error),
        }
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
