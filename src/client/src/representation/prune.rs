//! Which fields of an object are not kept: [`Prune`].

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Error, IgnoredAny};
use serde_json::Value;

use super::DecodeError;
use crate::wire::{Cut, FieldPath, FieldPathError, FieldTree, JsonError, LeftOut, cut_json, from_text};

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
pub struct Prune(pub(super) Arc<FieldTree>);

impl Prune {
    /// Cuts nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self(Arc::new(FieldTree::default()))
    }

    /// Keeps only the fields at these paths, beside `apiVersion`, `kind` and the metadata (without
    /// `managedFields`). A path leads into each element of an array, with `[*]` or without. The rest is never
    /// built: a cache of texts, or of trees of a kind known only at run time, is as small as what is chosen. A typed cache needs the fields without which its type does not decode.
    ///
    /// ```
    /// use actix_informer::prelude::*;
    /// use actix_informer::representation::Prune;
    ///
    /// # fn demo(client: Client, runtime: Runtime) -> Result<(), Box<dyn std::error::Error>> {
    /// let routes = Prune::only(["spec.host", "spec.backends[*].service"])?;
    /// let websites = client.named("websites.example.org").prune(routes).informer(&runtime)?.start()?;
    /// # drop(websites); Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When one of them is not a path.
    pub fn only<'a>(paths: impl IntoIterator<Item = &'a str>) -> Result<Self, FieldPathError> {
        let mut tree = FieldTree::default();
        let paths = ["apiVersion", "kind", "metadata"].into_iter().chain(paths);
        for path in paths {
            tree.choose(path.parse::<FieldPath>()?.steps());
        }
        Ok(Self(Arc::new(tree)).cut(["metadata", "managedFields"]))
    }

    /// Also cuts the field at this path. An empty path changes nothing, and so does a path below a field that
    /// is cut.
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

    pub(crate) fn paths(&self) -> BTreeSet<Vec<String>> {
        self.0.paths()
    }

    /// Decodes one whole JSON document without the cut fields.
    ///
    /// # Errors
    /// [`DecodeError::Json`] with the path of the field for everything that `serde_json::from_str` would
    /// refuse, also inside cut fields. The path is found by decoding once more; a document that decodes has
    /// no extra cost.
    pub fn decode<T: DeserializeOwned>(&self, json: &str) -> Result<T, DecodeError> {
        let decoded = match self.is_empty() {
            true => from_text(json).ok(),
            false => self.rest(json, LeftOut::Gone).and_then(|rest| from_text(&rest).ok()),
        };
        decoded.map_or_else(|| self.decoded_with_place(json).map_err(DecodeError::Json), Ok)
    }

    pub(super) fn rest(&self, json: &str, left_out: LeftOut) -> Option<String> {
        let mut rest = Vec::new();
        let is_cut = cut_json(json.as_bytes(), &self.0, left_out, &mut rest) == Cut::Done;
        String::from_utf8(rest).ok().filter(|_| is_cut)
    }

    fn decoded_with_place<T: DeserializeOwned>(&self, json: &str) -> Result<T, JsonError> {
        serde_json::from_str::<IgnoredAny>(json).map_err(|error| JsonError::from(&error))?;
        let Some(rest) = self.rest(json, LeftOut::Blank) else {
            let refused = serde_json::from_str::<Value>(json).err();
            return Err(JsonError::from(
                &refused.unwrap_or_else(|| Error::custom("its fields cannot be cut")),
            ));
        };
        from_text(&rest).map_err(|error| JsonError::in_text(&rest, &error))
    }
}

impl Default for Prune {
    fn default() -> Self {
        Self::nothing().cut(["metadata", "managedFields"])
    }
}
