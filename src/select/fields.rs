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
use serde::Serialize;

use crate::client::selector::{FieldTerms, SelectorError, Term};
use crate::wire::{FieldPath, FieldPathError};

/// A function of a program that reads the value of a field; `None` if it is not set.
type Reading<S> = Arc<dyn for<'a> Fn(&'a S) -> Option<&'a str> + Send + Sync>;
/// Gives the values at a path of a body.
type Visiting<S> = Arc<dyn Fn(&S, &mut dyn FnMut(&str)) + Send + Sync>;

/// How the value of a field is read, and the index by it.
enum Field<S> {
    By(Reading<S>, Index<S, FieldText>),
    At(Visiting<S>, Index<S, FieldText>),
}

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
pub struct Fields<S>(BTreeMap<Arc<str>, Field<S>>);

impl<S: 'static> Fields<S> {
    /// Only `metadata.name` and `metadata.namespace`.
    #[must_use]
    pub fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// And the field of this path, as servers call it, whose value this function reads. It must not block. An index by
    /// it is made by [`Self::index`].
    #[must_use]
    pub fn field(
        mut self,
        path: impl Into<Arc<str>>,
        read: impl Fn(&S) -> Option<&str> + Send + Sync + 'static,
    ) -> Self {
        let (path, read): (Arc<str>, Reading<S>) = (path.into(), Arc::new(read));
        let index = index_by(&path, Arc::clone(&read));
        self.0.insert(path, Field::By(read, index));
        self
    }

    /// And the field at this path of the object's JSON, for which no function is needed: many fields that servers select
    /// by are named so, such as `spec.nodeName` and those of custom kinds. A number or a boolean has the text of its JSON.
    /// With the index that `by_path` makes of this path ([`ResourceSource::by_path`](crate::client::ResourceSource::by_path)),
    /// only the objects of a value are visited.
    ///
    /// What is not kept (cut, or unknown to the type) counts as not set.
    ///
    /// ```
    /// use actix_informer::object::Fields;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let fields = Fields::<Pod>::new().path("spec.nodeName")?.path("spec.hostNetwork")?;
    /// let _on_its_network = fields.select("spec.nodeName=node-a,spec.hostNetwork=true")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`FieldPathError::Invalid`] when it is not a path, or one with `[*]`: an object can have several values there.
    pub fn path(mut self, path: &str) -> Result<Self, FieldPathError>
    where
        S: Serialize,
    {
        let path = path.parse::<FieldPath>()?.of_one_value()?;
        let (name, index) = (path.to_string(), path.clone().index());
        // An object whose `Serialize` fails has no value, as in the index.
        let visit: Visiting<S> = Arc::new(move |body, give| drop(path.visit(body, give)));
        self.0.insert(name.into(), Field::At(visit, index));
        Ok(self)
    }

    /// A selector as `kubectl --field-selector` takes it: terms `field=value` or `field!=value` with commas between them,
    /// all of which have to hold. The empty one selects everything.
    ///
    /// # Errors
    /// [`SelectorError`] when no server would take it, or when it names a field that is not among these.
    pub fn select(&self, text: &str) -> Result<FieldSelector<S>, SelectorError> {
        let terms = FieldTerms::parse(text).map_err(SelectorError::new)?;
        let terms = terms.iter().map(|term| match self.0.get(&*term.field).cloned() {
            None if !matches!(&*term.field, "metadata.name" | "metadata.namespace") => {
                Err(self.unknown(&term.field))
            }
            field => Ok((term.clone(), field)),
        });
        Ok(FieldSelector(terms.collect::<Result<_, _>>()?))
    }

    /// An index by one of these fields, named `field-text:` and its path; of a field by its [`Self::path`] the index that
    /// `by_path` makes. [`Select::selected`](super::Select::selected) uses it where it fits.
    ///
    /// # Errors
    /// [`SelectorError`] when the field is not among these.
    pub fn index(&self, path: &str) -> Result<Index<S, FieldText>, SelectorError> {
        let (Field::By(_, index) | Field::At(_, index)) =
            self.0.get(path).ok_or_else(|| self.unknown(path))?;
        Ok(index.clone())
    }

    fn unknown(&self, path: &str) -> SelectorError {
        let known = self.0.keys().map(|known| &**known).chain(["metadata.name", "metadata.namespace"]);
        let known = known.collect::<Vec<_>>().join(", ");
        SelectorError::new(format!("field {path:?} is not known here; known are {known}"))
    }
}

fn index_by<S: 'static>(path: &str, read: Reading<S>) -> Index<S, FieldText> {
    Index::new(format!("field-text:{path}"), move |object: &Object<S>| {
        [FieldText(read(object.body()).unwrap_or_default().to_owned())]
    })
}

impl<S> Field<S> {
    /// Whether a term holds for its value in this body.
    fn has(&self, body: &S, term: &Term) -> bool {
        match self {
            Self::By(read, _) => term.holds(read(body).unwrap_or_default()),
            Self::At(visit, _) => {
                let mut holds = None;
                visit(body, &mut |value| holds = Some(term.holds(value)));
                holds.unwrap_or_else(|| term.holds(""))
            }
        }
    }

    /// The index under whose value exactly the objects are that have it. One by a path has no entry for an object
    /// without the field.
    fn index_for(&self, value: &str) -> Option<&Index<S, FieldText>> {
        match self {
            Self::By(_, index) => Some(index),
            Self::At(_, index) => Some(index).filter(|_| !value.is_empty()),
        }
    }
}

/// The value of a field in an index by [`Fields::index`] or by a path. It is looked up by a `&str`; of a field that a
/// function reads it is empty where the field is not set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldText(String);

impl FieldText {
    pub(crate) const fn new(text: String) -> Self {
        Self(text)
    }

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

impl<S> FieldSelector<S> {
    /// The selector without terms.
    #[must_use]
    pub const fn everything() -> Self {
        Self(Vec::new())
    }

    /// Whether an object is selected. Allocates nothing, but for a number or a boolean at a path.
    pub fn matches(&self, object: &Object<S>) -> bool {
        self.0.iter().all(|(term, field)| match field {
            Some(field) => field.has(object.body(), term),
            None => term.holds(term.known(object.key()).unwrap_or_default()),
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
            let index = field.as_ref()?.index_for(&term.value)?;
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

impl<S> Clone for Field<S> {
    fn clone(&self) -> Self {
        match self {
            Self::By(read, index) => Self::By(Arc::clone(read), index.clone()),
            Self::At(visit, index) => Self::At(Arc::clone(visit), index.clone()),
        }
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

impl<S: 'static> Default for Fields<S> {
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
