//! Field selectors over a cache.
//!
//! Answers "which values do the fields of this kind have, and does an object have those that a selector names?". A server
//! alone knows which fields of a kind it selects by; a program names those that it uses. Invariants:
//! 1. `metadata.name` and `metadata.namespace` are known of every kind. Another field that was not named is an error when
//!    the selector is parsed, and never a selection of nothing.
//! 2. A field that is not set has the empty value, as for servers.
//!
//! Read next: `../select.rs`, which selects.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use informer_core::index::Index;
use informer_core::meta::{Object, ObjectKey};
use informer_core::snapshot::Snapshot;

use crate::client::selector::{FieldTerms, SelectorError, Term};

/// Reads the value of a field; `None` if it is not set.
type Read<S> = Arc<dyn for<'a> Fn(&'a S) -> Option<&'a str> + Send + Sync>;

/// The fields of a kind by which a cache can be selected, beside `metadata.name` and `metadata.namespace`.
///
/// ```
/// use actix_informer::fake;
/// use actix_informer::object::{Fields, LabelSelector, Select};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let fields = Fields::<Pod>::new()
///     .field("spec.nodeName", |pod| pod.spec.as_ref()?.node_name.as_deref())
///     .field("status.phase", |pod| pod.status.as_ref()?.phase.as_deref());
/// let waiting = fields.select("spec.nodeName=,metadata.namespace!=kube-system")?;
///
/// let mut pod = Pod::default();
/// pod.metadata.name = Some("web".to_owned());
/// let mut pods = fake::informer([pod])?;
/// pods.add_index(fields.index("spec.nodeName")?)?; // optional: then only the pods of a value are visited
/// let everything = LabelSelector::everything();
/// assert_eq!(pods.snapshot().selected(&everything, &waiting).count(), 1);
///
/// let error = fields.select("spec.nodename=a").unwrap_err();
/// assert!(error.to_string().starts_with("field \"spec.nodename\" is not known"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Fields<S>(BTreeMap<Arc<str>, Read<S>>);

impl<S> Fields<S> {
    /// Only `metadata.name` and `metadata.namespace`.
    #[must_use]
    pub fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// And the field of this path, as servers call it, whose value this function reads. It must not block.
    #[must_use]
    pub fn field(
        mut self,
        path: impl Into<Arc<str>>,
        read: impl Fn(&S) -> Option<&str> + Send + Sync + 'static,
    ) -> Self {
        self.0.insert(path.into(), Arc::new(read));
        self
    }

    /// A selector as `kubectl --field-selector` takes it: terms `field=value` or `field!=value` with commas between them,
    /// all of which have to hold. The empty one selects everything.
    ///
    /// # Errors
    /// [`SelectorError`] when no server would take it, or when it names a field that is not among these.
    pub fn select(&self, text: &str) -> Result<FieldSelector<S>, SelectorError>
    where
        S: 'static,
    {
        let terms = FieldTerms::parse(text).map_err(SelectorError::new)?;
        let known = |term: &Term| self.0.get(&*term.field).cloned();
        let terms = terms.iter().map(|term| match known(term) {
            None if !matches!(&*term.field, "metadata.name" | "metadata.namespace") => {
                Err(self.unknown(&term.field))
            }
            read => {
                let read = read.map(|read| (Read::clone(&read), index_by(&term.field, read)));
                Ok((term.clone(), read))
            }
        });
        Ok(FieldSelector(terms.collect::<Result<_, _>>()?))
    }

    /// An index by one of these fields, named `field-text:` and its path. [`Select::selected`](super::Select::selected) uses
    /// it where it fits.
    ///
    /// # Errors
    /// [`SelectorError`] when the field is not among these.
    pub fn index(&self, path: &str) -> Result<Index<S, FieldText>, SelectorError>
    where
        S: 'static,
    {
        let read = self.0.get(path).cloned().ok_or_else(|| self.unknown(path))?;
        Ok(index_by(path, read))
    }

    fn unknown(&self, path: &str) -> SelectorError {
        let known = self.0.keys().map(|known| &**known).chain(["metadata.name", "metadata.namespace"]);
        let known = known.collect::<Vec<_>>().join(", ");
        SelectorError::new(format!("field {path:?} is not known here; known are {known}"))
    }
}

fn index_by<S: 'static>(path: &str, read: Read<S>) -> Index<S, FieldText> {
    Index::new(format!("field-text:{path}"), move |object: &Object<S>| {
        [FieldText(read(object.body()).unwrap_or_default().to_owned())]
    })
}

/// The value of a field in an index by [`Fields::index`]. It is looked up by a `&str`; empty where the field is not set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldText(String);

impl FieldText {
    /// Its text; may be empty.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for FieldText {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Which fields an object must have: made by [`Fields::select`].
pub struct FieldSelector<S>(Vec<(Term, Option<Field<S>>)>);

/// A field that a program has named: how it is read, and the index by it.
type Field<S> = (Read<S>, Index<S, FieldText>);

impl<S> FieldSelector<S> {
    /// The selector without terms.
    #[must_use]
    pub const fn everything() -> Self {
        Self(Vec::new())
    }

    /// Whether an object is selected. Allocates nothing.
    pub fn matches(&self, object: &Object<S>) -> bool {
        self.0.iter().all(|(term, field)| {
            let known = || term.known(object.key());
            let value = field.as_ref().map_or_else(known, |(read, _)| read(object.body()));
            term.holds(value.unwrap_or_default())
        })
    }

    /// The one namespace in which selected objects are, if the selector names it.
    pub(super) fn namespace(&self) -> Option<&str> {
        let is_namespace = |term: &&Term| term.field == "metadata.namespace" && term.is_equal;
        self.0.iter().map(|(term, _)| term).find(is_namespace).map(|term| &*term.value)
    }

    /// The index that gives the fewest objects under a value that the selector names.
    pub(super) fn fewest(&self, snapshot: &Snapshot<S>) -> Option<Found<S>> {
        let known = self.0.iter().filter(|(term, _)| term.is_equal).filter_map(|(term, field)| {
            let (_, index) = field.as_ref()?;
            let count = index.count(snapshot, &*term.value).ok()?;
            Some(Found { count, index: index.clone(), value: term.value.clone() })
        });
        known.min_by_key(|found| found.count)
    }
}

/// An index by a field, and how many objects it has under a value.
pub(super) struct Found<S> {
    pub(super) count: usize,
    index: Index<S, FieldText>,
    value: String,
}

impl<S> Found<S> {
    pub(super) fn objects<'a>(&self, snapshot: &'a Snapshot<S>) -> BTreeMap<&'a ObjectKey, &'a Object<S>> {
        let found = self.index.get(snapshot, &*self.value).into_iter().flatten();
        found.map(|object| (object.key(), object)).collect()
    }
}

impl<S> Clone for FieldSelector<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> Clone for Fields<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> Default for Fields<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> fmt::Debug for FieldSelector<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(term, _)| term)).finish()
    }
}

impl<S> fmt::Debug for Fields<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
