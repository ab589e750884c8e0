//! Selects objects of a cache by their labels, fields and owners. Objects come in key order, each once.
//!
//! An index changes the cost of a selection, never its result. Only an index of [`by_label`], [`Fields::index`] or `by_path` is
//! used: its values have their own type, so no other index of the same name is taken for it.

use std::collections::BTreeMap;

use crate::representation::ReadMetadata;
use crate::selector::LabelSelector;
use informer_core::index::Index;
use informer_core::meta::{Object, ObjectKey};
use informer_core::snapshot::Snapshot;

pub use fields::{FieldSelector, FieldText, Fields};

mod fields;

/// An index by the value of one label, named `label:` and its key. [`Select::labelled`] uses it where it
/// fits.
///
/// ```
/// use actix_informer::informer::by_label;
/// use actix_informer::prelude::*;
/// use k8s_openapi::api::core::v1::Pod;
///
/// # fn demo(client: Client, runtime: Runtime) -> Result<(), Box<dyn std::error::Error>> {
/// let by_app = by_label("app");
/// let pods = client.resource::<Pod>().informer(&runtime)?.index_with(&by_app).start()?;
/// let carts: LabelSelector = "app=cart,tier!=test".parse()?;
/// for pod in pods.snapshot().labelled(&carts) {
///     println!("{}", pod.key());
/// }
/// println!("{} pods of the cart", by_app.count(&pods.snapshot(), "cart")?);
/// # Ok(()) }
/// ```
pub fn by_label<S: ReadMetadata>(key: &str) -> Index<S, FieldText> {
    let label = key.to_owned();
    Index::new(format!("label:{key}"), move |object: &Object<S>| {
        object.body().label(&label).map(|value| FieldText::new(value.into_owned()))
    })
}

/// An index by the uids of an object's owners, named `owner`: `by_owner().get(&snapshot, uid)` returns the
/// children.
pub fn by_owner<S: ReadMetadata>() -> Index<S> {
    Index::new("owner", |object: &Object<S>| object.body().owner_uids())
}

/// Selects objects of a snapshot by their labels and fields.
pub trait Select<S> {
    /// The objects that a selector selects, in key order.
    ///
    /// If the selector names the values of a label that has an index ([`by_label`]), only the objects with
    /// one of these values are visited. Otherwise every object is visited: O(n), without an allocation for
    /// each, except for fields by a path. The empty selector reads no label.
    fn labelled<'a>(&'a self, selector: &'a LabelSelector) -> impl Iterator<Item = &'a Object<S>>
    where
        S: 'a;

    /// The objects that both selectors select, in key order. For conditions that no selector can express,
    /// filter the result.
    ///
    /// Of the indices that fit ([`by_label`], [`Fields::index`], `by_path`) the one with the fewest objects
    /// is used. Without one, only the namespace that the fields name is visited. Otherwise as
    /// [`Self::labelled`].
    fn selected<'a>(
        &'a self,
        labels: &'a LabelSelector,
        fields: &'a FieldSelector<S>,
    ) -> impl Iterator<Item = &'a Object<S>>
    where
        S: 'a;
}

impl<S: ReadMetadata> Select<S> for Snapshot<S> {
    fn labelled<'a>(&'a self, selector: &'a LabelSelector) -> impl Iterator<Item = &'a Object<S>>
    where
        S: 'a,
    {
        let found = indexed(self, selector, None).map(BTreeMap::into_values);
        let all = found.is_none().then(|| self.iter());
        has_labels(found.into_iter().flatten().chain(all.into_iter().flatten()), selector)
    }

    fn selected<'a>(
        &'a self,
        labels: &'a LabelSelector,
        fields: &'a FieldSelector<S>,
    ) -> impl Iterator<Item = &'a Object<S>>
    where
        S: 'a,
    {
        let found = indexed(self, labels, Some(fields)).map(BTreeMap::into_values);
        // Cluster-scoped objects have the empty namespace.
        let named = fields.namespace().filter(|namespace| !namespace.is_empty() && found.is_none());
        let all = (found.is_none() && named.is_none()).then(|| self.iter());
        let of_namespace = named.map(|namespace| self.namespace(namespace));
        let visited = found.into_iter().flatten().chain(of_namespace.into_iter().flatten());
        has_labels(visited.chain(all.into_iter().flatten()), labels)
            .filter(move |object| fields.matches(object))
    }
}

fn has_labels<'a, S: ReadMetadata + 'a>(
    objects: impl Iterator<Item = &'a Object<S>>,
    selector: &'a LabelSelector,
) -> impl Iterator<Item = &'a Object<S>> {
    objects.filter(move |object| selector.selects(|key| object.body().label(key)))
}

/// By the index with the fewest objects. O(log n) for each index and value, and for each object.
fn indexed<'a, S: ReadMetadata>(
    snapshot: &'a Snapshot<S>,
    labels: &LabelSelector,
    fields: Option<&FieldSelector<S>>,
) -> Option<BTreeMap<&'a ObjectKey, &'a Object<S>>> {
    let by_labels = labels.possible().filter_map(|(label, values)| {
        let index = by_label::<S>(label);
        let counts = values.iter().map(|value| index.count(snapshot, *value).ok());
        Some((counts.sum::<Option<usize>>()?, index, values))
    });
    let by_label = by_labels.min_by_key(|(count, ..)| *count);
    let by_field = fields.and_then(|fields| fields.fewest(snapshot));
    let fewest = by_label.as_ref().map_or(usize::MAX, |(count, ..)| *count);
    if let Some(found) = by_field.filter(|found| found.count < fewest) {
        return Some(found.objects(snapshot));
    }
    let (_, index, values) = by_label?;
    let found = values.iter().filter_map(|value| index.get(snapshot, *value).ok()).flatten();
    Some(found.map(|object| (object.key(), object)).collect())
}

#[cfg(test)]
mod tests;
