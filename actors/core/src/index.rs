//! Secondary indices: which objects have a given value, by a user's function.
//!
//! The function, and comparisons of values of one object, run under `catch_unwind`; comparisons between objects do
//! not.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub(crate) use table::{NamedTable, Table};

use crate::meta::Object;
use crate::words::panic_text;

mod table;

/// The user's function: the values under which an object is found. Runs once per stored version of an object,
/// on the informer's thread, and so must not block.
pub type IndexFn<S, V> = Arc<dyn Fn(&Object<S>) -> Result<Vec<V>, IndexError> + Send + Sync>;

/// An index of objects by values of type `V`, and the handle to read it. Cloning copies two pointers.
///
/// An informer is given a handle before or after its start; the handle then reads any of that informer's
/// snapshots. Values may be of any ordered type; a `String` is looked up by `&str`. The order must be total,
/// also where a value came from outside, and must not panic: a panic in it restarts the informer's store,
/// each time.
///
/// ```
/// # use informer_core::face as actix_informer;
/// use actix_informer::informer::Index;
/// use actix_informer::object::Snapshot;
///
/// let by_length = Index::<String, usize>::new("length", |object| Some(object.body().len()));
/// let snapshot = Snapshot::<String>::empty_with_indices([(&by_length).into()]);
/// assert_eq!(by_length.get(&snapshot, &5)?.count(), 0);
/// # Ok::<(), actix_informer::informer::UnknownIndex>(())
/// ```
pub struct Index<S, V = String> {
    name: Arc<str>,
    values: IndexFn<S, V>,
}

impl<S, V> Index<S, V> {
    /// An index by a function that cannot fail. It returns an object's values: a vector, an array, an
    /// `Option`.
    ///
    /// ```
    /// # use informer_core::face as actix_informer;
    /// use actix_informer::informer::Index;
    /// let by_body = Index::<String>::new("body", |object| [object.body().clone()]);
    /// assert_eq!(&**by_body.name(), "body");
    /// ```
    pub fn new<I>(name: impl Into<Arc<str>>, values: impl Fn(&Object<S>) -> I + Send + Sync + 'static) -> Self
    where
        I: IntoIterator<Item = V>,
    {
        Self::fallible(name, move |object| Ok(values(object).into_iter().collect()))
    }

    /// An index by a function that can fail. After a failure that object has no entry; nothing else changes.
    pub fn fallible(
        name: impl Into<Arc<str>>,
        values: impl Fn(&Object<S>) -> Result<Vec<V>, IndexError> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), values: Arc::new(values) }
    }

    /// Its name, which is unique in its informer.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// In order, each once. A panic of the function, or of a comparison, is an error.
    pub(crate) fn values_of(&self, object: &Object<S>) -> Result<Vec<V>, IndexError>
    where
        V: Ord,
    {
        let ordered = || {
            let mut values = (self.values)(object)?;
            for value in &values {
                // A value without an order, such as a NaN, has none with itself.
                let _ = value.cmp(value);
            }
            values.sort_unstable();
            values.dedup();
            Ok(values)
        };
        catch_unwind(AssertUnwindSafe(ordered))
            .unwrap_or_else(|panic| Err(IndexError::new(format!("panicked: {}", panic_text(&*panic)))))
    }
}

crate::clone_of!([S, V] Index<S, V> { name, values });

crate::debug_as!([S, V] Index<S, V>, self, name = self.name);

/// An index whose type of values is erased, so that one list holds several. Made from an [`Index`].
pub struct AnyIndex<S>(Arc<dyn ErasedIndex<S>>);

impl<S> AnyIndex<S> {
    /// The name of the index.
    pub fn name(&self) -> &Arc<str> {
        self.0.name()
    }

    pub(crate) fn empty(&self) -> NamedTable {
        self.0.empty()
    }

    pub(crate) fn update(&self, table: &mut NamedTable, object: &Object<S>) -> Result<(), IndexError> {
        self.0.update(table, object)
    }
}

impl<S, V: Ord + Send + Sync + 'static> From<Index<S, V>> for AnyIndex<S>
where
    S: 'static,
{
    fn from(index: Index<S, V>) -> Self {
        Self(Arc::new(index))
    }
}

impl<S, V: Ord + Send + Sync + 'static> From<&Index<S, V>> for AnyIndex<S>
where
    S: 'static,
{
    fn from(index: &Index<S, V>) -> Self {
        index.clone().into()
    }
}

crate::clone_of!([S] AnyIndex<S>);

crate::debug_as!([S] AnyIndex<S>, self, name = self.name());

trait ErasedIndex<S>: Send + Sync {
    fn name(&self) -> &Arc<str>;

    fn empty(&self) -> NamedTable;

    fn update(&self, table: &mut NamedTable, object: &Object<S>) -> Result<(), IndexError>;
}

impl<S, V: Ord + Send + Sync + 'static> ErasedIndex<S> for Index<S, V> {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn empty(&self) -> NamedTable {
        NamedTable::new::<V>(Arc::clone(&self.name))
    }

    fn update(&self, table: &mut NamedTable, object: &Object<S>) -> Result<(), IndexError> {
        let (values, failed) = match self.values_of(object) {
            Ok(values) => (values, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        if let Some(table) = table.of_mut::<V>() {
            table.set(object.key(), values);
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Why an index function returned no values for an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IndexError(Arc<str>);

impl IndexError {
    /// An error with the function's message.
    pub fn new(message: impl Into<Arc<str>>) -> Self {
        Self(message.into())
    }
}

/// There is no index of that name, with values of the requested type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no index is named {0:?}")]
pub struct UnknownIndex(pub String);

/// There is already an index of that name; it is not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an index named {0:?} exists")]
pub struct IndexExists(pub String);
