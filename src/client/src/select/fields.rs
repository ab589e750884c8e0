//! Field selectors over a cache. Only a server knows the selectable fields of a kind; a program names those that it uses.
//!
//! `metadata.name` and `metadata.namespace` are always known. Another field that was not named is an error at parsing, never an
//! empty selection. A field that is not set has the empty value, as for servers.

use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use informer_core::index::{Index, IndexError};
use informer_core::meta::{Object, ObjectKey};
use informer_core::snapshot::Snapshot;
use serde::Serialize;

use crate::ResourceSource;
use crate::representation::{ReadFields, Representation, RequestedContent};
use crate::selector::{FieldTerms, SelectorError, Term};
use crate::wire::{FieldPath, FieldPathError, JsonError, WireKind};

/// `None` if the field is not set.
type Reading<S> = Arc<dyn for<'a> Fn(&'a S) -> Option<Cow<'a, str>> + Send + Sync>;

struct Field<S> {
    read: Reading<S>,
    index: Index<S, FieldText>,
    /// The index has no entry for an object without the field.
    is_path: bool,
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

    /// Adds the field of this path, as servers call it. `read` returns its value and must not block.
    /// [`Self::index`] makes an index by it.
    #[must_use]
    pub fn field(
        mut self,
        path: impl Into<Arc<str>>,
        read: impl Fn(&S) -> Option<&str> + Send + Sync + 'static,
    ) -> Self {
        let path: Arc<str> = path.into();
        let read: Reading<S> = Arc::new(move |body| read(body).map(Cow::Borrowed));
        let index = index_by(&path, Arc::clone(&read));
        self.0.insert(path, Field { read, index, is_path: false });
        self
    }

    /// Adds the field at this path of the object's JSON, without a function. Many fields that servers select
    /// by have such names, for example `spec.nodeName` and those of custom kinds. A number or a boolean has
    /// the text of its JSON. With the index that `by_path` makes of this path
    /// ([`ResourceSource::by_path`](crate::ResourceSource::by_path)), only the objects with a value are
    /// visited.
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
    /// [`FieldPathError::Invalid`] when it is not a path, or one with `[*]`: an object can have several
    /// values there.
    pub fn path(mut self, path: &str) -> Result<Self, FieldPathError>
    where
        S: ReadFields,
    {
        let path = path.parse::<FieldPath>()?.of_one_value()?;
        let (name, index) = (path.to_string(), path.clone().index());
        // No value if `Serialize` fails, as in the index.
        let read: Reading<S> = Arc::new(move |body| body.values_at(&path).ok()?.pop().map(Cow::Owned));
        self.0.insert(name.into(), Field { read, index, is_path: true });
        Ok(self)
    }

    /// A selector as `kubectl --field-selector` takes it: terms `field=value` or `field!=value`, separated by
    /// commas, which must all hold. The empty one selects everything.
    ///
    /// # Errors
    /// [`SelectorError`] when no server would accept it, or when it names a field that is not among these.
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

    /// An index by one of these fields, named `field-text:` and its path; for a field that [`Self::path`]
    /// added, the index that `by_path` makes. [`Select::selected`](super::Select::selected) uses it where it
    /// fits.
    ///
    /// # Errors
    /// [`SelectorError`] when the field is not among these.
    pub fn index(&self, path: &str) -> Result<Index<S, FieldText>, SelectorError> {
        self.0.get(path).map(|field| field.index.clone()).ok_or_else(|| self.unknown(path))
    }

    fn unknown(&self, path: &str) -> SelectorError {
        let known = self.0.keys().map(|known| &**known).chain(["metadata.name", "metadata.namespace"]);
        let known = known.collect::<Vec<_>>().join(", ");
        SelectorError::new(format!("field {path:?} is not known here; known are {known}"))
    }
}

fn index_by<S: 'static>(path: &str, read: Reading<S>) -> Index<S, FieldText> {
    Index::new(format!("field-text:{path}"), move |object: &Object<S>| {
        [FieldText(read(object.body()).unwrap_or_default().into_owned())]
    })
}

impl<S> Field<S> {
    fn has(&self, body: &S, term: &Term) -> bool {
        term.holds(&(self.read)(body).unwrap_or_default())
    }

    /// An index by a path has no entry for an empty value.
    fn index_for(&self, value: &str) -> Option<&Index<S, FieldText>> {
        Some(&self.index).filter(|_| !(self.is_path && value.is_empty()))
    }
}

/// The value of a field in an index by [`Fields::index`] or by a path, or of a label in one by
/// [`by_label`](super::by_label). It is looked up by a `&str`. For a field that a function reads, it is empty
/// if the field is not set.
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

impl fmt::Display for FieldText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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

    /// Whether an object is selected. Allocates nothing, except for a field by its path: then the body is
    /// written as JSON.
    pub fn matches(&self, object: &Object<S>) -> bool {
        self.0.iter().all(|(term, field)| match field {
            Some(field) => field.has(object.body(), term),
            None => term.holds(term.known(object.key()).unwrap_or_default()),
        })
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        let is_namespace = |term: &&Term| term.field == "metadata.namespace" && term.is_equal;
        self.0.iter().map(|(term, _)| term).find(is_namespace).map(|term| &*term.value)
    }

    pub(super) fn fewest(&self, snapshot: &Snapshot<S>) -> Option<Found<S>> {
        let known = self.0.iter().filter(|(term, _)| term.is_equal).filter_map(|(term, field)| {
            let index = field.as_ref()?.index_for(&term.value)?;
            let count = index.count(snapshot, &*term.value).ok()?;
            Some(Found { count, index: index.clone(), value: term.value.clone() })
        });
        known.min_by_key(|found| found.count)
    }
}

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

informer_core::clone_of!([S] Field<S> { read, index, is_path });

informer_core::clone_of!([S] FieldSelector<S>);

informer_core::clone_of!([S] Fields<S>);

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

// A body is written as JSON, and scanned like an object of a server.

impl FieldPath {
    /// The values at this path in a body, in the order of its JSON.
    ///
    /// # Errors
    /// When the body's own `Serialize` fails.
    pub fn values_of<T: Serialize + ?Sized>(&self, body: &T) -> Result<Vec<String>, JsonError> {
        let json = serde_json::to_vec(body).map_err(|error| JsonError::from(&error))?;
        Ok(WireKind::Json.scan(&json, self))
    }

    pub(crate) fn index<S: ReadFields + 'static>(self) -> Index<S, FieldText> {
        let name = format!("field:{self}");
        Index::fallible(name, move |object: &Object<S>| {
            let values =
                object.body().values_at(&self).map_err(|error| IndexError::new(error.to_string()))?;
            Ok(values.into_iter().map(FieldText::new).collect())
        })
    }
}

impl<K, R: Representation> ResourceSource<K, R>
where
    R::Body: ReadFields,
{
    /// An index by the field at this path, named `field:` and the path: for the builder of this description's
    /// informer, before or after its start.
    ///
    /// The values are texts; a number or a boolean has the text of its JSON (`3`, `true`). An object without
    /// the field, or with null there, is in no entry; `[*]` stands for each element of an array. The index
    /// reads what is kept, so a field that is cut, or that the type does not have, is not found. A selection
    /// by a field that [`Fields::path`](crate::select::Fields::path) names uses it.
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
    /// [`FieldPathError::Invalid`] when it is not a path; [`FieldPathError::NotMetadata`] when only metadata
    /// is kept and the path is not below `metadata`.
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
mod value_tests;
