//! Objects of a cache by their labels and owners.
//!
//! Answers "which objects of this snapshot does a label selector select?", for typed and dynamic objects and for bodies of
//! metadata alone. Invariants:
//! 1. An index changes the cost of a selection, never its result. Only an index that [`by_label`] has made is used: its
//!    values have a type of their own, so that no other index of the same name is taken for it.
//! 2. Objects come in key order, each once.
//!
//! Read next: `client/selector/labels.rs`; `informer_core::index`.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;

use informer_core::index::Index;
use informer_core::meta::{Object, ObjectKey};
use informer_core::snapshot::Snapshot;
use kube_core::Resource;

use crate::client::selector::LabelSelector;

/// The value of a label in an index by [`by_label`]. It is looked up by a `&str`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelValue(String);

impl LabelValue {
    /// Its text; may be empty.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for LabelValue {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LabelValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An index by the value of one label, named `label:` and its key. [`Select::labelled`] uses it where it fits.
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
pub fn by_label<S: Resource>(key: &str) -> Index<S, LabelValue> {
    let label = key.to_owned();
    Index::new(format!("label:{key}"), move |object: &Object<S>| {
        object.meta().labels.as_ref().and_then(|labels| labels.get(&label)).cloned().map(LabelValue)
    })
}

/// An index by the uids of an object's owners, named `owner`: `by_owner().get(&snapshot, uid)` gives the children.
pub fn by_owner<S: Resource>() -> Index<S> {
    Index::new("owner", |object: &Object<S>| {
        let owners = object.meta().owner_references.iter().flatten();
        owners.map(|owner| owner.uid.clone()).collect::<Vec<_>>()
    })
}

/// Selects objects of a snapshot by their labels.
pub trait Select<S> {
    /// The objects that a selector selects, in key order.
    ///
    /// With an index by a label of which the selector names the values ([`by_label`]), only the objects that have one of
    /// them are visited. Otherwise each object is: O(n), without an allocation for each. The empty selector reads no label.
    fn labelled<'a>(&'a self, selector: &'a LabelSelector) -> impl Iterator<Item = &'a Object<S>>
    where
        S: 'a;
}

impl<S: Resource> Select<S> for Snapshot<S> {
    fn labelled<'a>(&'a self, selector: &'a LabelSelector) -> impl Iterator<Item = &'a Object<S>>
    where
        S: 'a,
    {
        let found = indexed(self, selector);
        let (indexed, all) = match found {
            Some(found) => (Some(found.into_values()), None),
            None => (None, Some(self.iter())),
        };
        let none = BTreeMap::new();
        let visited = indexed.into_iter().flatten().chain(all.into_iter().flatten());
        visited.filter(move |object| {
            selector.is_empty() || selector.matches(object.meta().labels.as_ref().unwrap_or(&none))
        })
    }
}

/// The objects that the index which gives the fewest of them has under the values that the selector names. O(log n) for
/// each index and value, and for each of these objects.
fn indexed<'a, S: Resource>(
    snapshot: &'a Snapshot<S>,
    selector: &LabelSelector,
) -> Option<BTreeMap<&'a ObjectKey, &'a Object<S>>> {
    let known = selector.possible().filter_map(|(label, values)| {
        let index = by_label::<S>(label);
        let counts = values.iter().map(|value| index.count(snapshot, *value).ok());
        let count: usize = counts.sum::<Option<usize>>()?;
        Some((count, index, values))
    });
    let (_, index, values) = known.min_by_key(|(count, ..)| *count)?;
    let found = values.iter().filter_map(|value| index.get(snapshot, *value).ok()).flatten();
    Some(found.map(|object| (object.key(), object)).collect())
}

#[cfg(test)]
mod tests;
