//! The values of an object at a path, and indices by them.
//!
//! Answers "what has this object at `spec.nodeName`?" for any body that can be serialized: typed, dynamic, metadata. The
//! body is not written: its `Serialize` is walked along the path, and what is not on the path is not visited. Invariants:
//! 1. What is found is what would be found in the body's JSON. What a representation has left out is not found.
//! 2. Nothing is allocated but the values.
//!
//! Read next: `wire/field_path.rs`, paths and what a value is; `field_values/walk.rs`.

use informer_core::index::{Index, IndexError};
use informer_core::meta::Object;
use serde::Serialize;

use crate::client::ResourceSource;
use crate::representation::{Representation, RequestedContent};
use crate::select::FieldText;
use crate::wire::{FieldPath, FieldPathError, JsonError};

mod walk;

impl FieldPath {
    /// The values at this path in a body, in the order of its JSON.
    ///
    /// # Errors
    /// When the body's own `Serialize` fails.
    pub fn values_of<T: Serialize + ?Sized>(&self, body: &T) -> Result<Vec<String>, JsonError> {
        let mut values = Vec::new();
        self.visit(body, &mut |text| values.push(text.to_owned())).map(|()| values)
    }

    /// Gives each of the values to `give`, without a copy.
    pub(crate) fn visit<T: Serialize + ?Sized>(
        &self,
        body: &T,
        give: &mut dyn FnMut(&str),
    ) -> Result<(), JsonError> {
        body.serialize(walk::Walk::new(self.steps(), give)).map_err(|error| JsonError::from(&error))
    }

    /// An index by the values at this path, named `field:` and the path.
    pub(crate) fn index<S: Serialize + 'static>(self) -> Index<S, FieldText> {
        let name = format!("field:{self}");
        Index::fallible(name, move |object: &Object<S>| {
            let values = self.values_of(object.body()).map_err(|error| IndexError::new(error.to_string()))?;
            Ok(values.into_iter().map(FieldText::new).collect())
        })
    }
}

impl<K, R: Representation> ResourceSource<K, R>
where
    R::Body: Serialize,
{
    /// An index by the field at this path, named `field:` and the path: for the builder of this description's informer,
    /// before or after its start.
    ///
    /// The values are texts: of a number or a boolean that of its JSON (`3`, `true`). An object without the field, or with
    /// null there, is in no entry; `[*]` stands for each element of an array. The index reads what is kept, so a field that
    /// is cut, or that the type does not have, is not found. A selection by a field that
    /// [`Fields::path`](crate::object::Fields::path) names uses it.
    ///
    /// ```
    /// use actix_informer::prelude::*;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// # fn demo(client: Client, runtime: Runtime) -> Result<(), Box<dyn std::error::Error>> {
    /// let pods = client.resource::<Pod>();
    /// let by_node = pods.by_path("spec.nodeName")?;
    /// let by_image = pods.by_path("spec.containers[*].image")?;
    /// let pods = pods.informer(&runtime)?.index_with(&by_node).index_with(&by_image).start()?;
    /// for pod in by_node.get(&pods.snapshot(), "node-a")? {
    ///     println!("{}", pod.key());
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`FieldPathError::Invalid`] when it is not a path; [`FieldPathError::NotMetadata`] when only metadata is kept and
    /// the path is not below `metadata`.
    pub fn by_path(&self, path: &str) -> Result<Index<R::Body, FieldText>, FieldPathError> {
        let path: FieldPath = path.parse()?;
        if self.requested_content() == RequestedContent::Metadata && !path.is_in_metadata() {
            let (resource, path) = (self.resource_name(), path.to_string());
            return Err(FieldPathError::NotMetadata { resource, path });
        }
        Ok(path.index())
    }
}

#[cfg(test)]
mod tests;
