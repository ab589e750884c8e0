//! Objects within a custom object as values of rules.
//!
//! Answers: when are two objects equal? Rules read only fields that the schema names and that have a value; the others are
//! hidden, but take part in `==`, as on a real server.
//! 1. Equal objects have equally many fields, the hidden ones counted.
//! 2. A field that can be read is equal in both. One that is null can be read in neither.
//! 3. A field of no schema is as it is written in the other object, or not there.
//! 4. To the crate they are its own maps (`as_builtin`), without what is hidden.
//! 5. A name that the language cannot read is escaped, or its field is hidden.
use std::any::Any;

use cel::common::traits::{Container, Indexer, Iterable, Sizer, Zeroer};
use cel::common::types::{CelMap, CelMapKey, MAP_TYPE, Type};
use cel::common::value::{Builtin, BuiltinRef, StaticVal, Val};
use serde_json::{Map, Value as Json};

use super::Cel;
use crate::cluster::schema::source::{Others, Source};

/// The value of an object: the fields that can be read by their names in rules, the hidden ones, and the scalars as they
/// are written.
pub(crate) fn object(
    fields: impl IntoIterator<Item = (String, Cel)>,
    hidden: Map<String, Json>,
    scalars: Map<String, Json>,
) -> Cel {
    let fields = fields.into_iter().map(|(name, value)| (CelMapKey::from(name), value));
    Box::new(Object { fields: fields.collect::<std::collections::HashMap<_, _>>().into(), hidden, scalars })
}

#[derive(Debug, Clone)]
pub(super) struct Object {
    fields: CelMap<'static>,
    hidden: Map<String, Json>,
    scalars: Map<String, Json>,
}

impl Object {
    /// A field by which a list finds its elements, as it is written.
    pub(super) fn written(&self, name: &str) -> &Json {
        self.scalars.get(name).or_else(|| self.hidden.get(name)).unwrap_or(&Json::Null)
    }

    fn is_read(&self, name: &str) -> bool {
        let name = escape(name).unwrap_or_else(|| name.to_owned());
        self.fields.contains_key(&CelMapKey::from(name))
    }

    fn size(&self) -> usize {
        self.fields.len() + self.hidden.len()
    }
}

impl StaticVal for Object {}

impl Val for Object {
    fn get_type(&self) -> &Type {
        Self::cel_type()
    }

    fn cel_type() -> &'static Type {
        &MAP_TYPE
    }

    as_inner!(fields);

    fn equals(&self, other: &dyn Val) -> bool {
        let Some(other) = other.downcast_ref::<Self>() else {
            return self.hidden.is_empty() && self.fields.equals(other);
        };
        let read = |(name, value): (&CelMapKey<'_>, &Cel)| {
            other.fields.inner().get(name).is_some_and(|other| value.equals(&**other))
        };
        let hidden = |(name, value): (&String, &Json)| {
            !other.is_read(name) && other.hidden.get(name).is_none_or(|other| other == value)
        };
        self.size() == other.size() && self.fields.inner().iter().all(read) && self.hidden.iter().all(hidden)
    }

    fn clone_as_boxed<'w>(&self) -> Box<dyn Val + 'w>
    where
        Self: 'w,
    {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn as_builtin<'b, 'w>(&'b self) -> BuiltinRef<'b, 'w>
    where
        Self: 'w,
    {
        BuiltinRef::Map(&self.fields)
    }

    fn into_builtin<'w>(self: Box<Self>) -> Option<Builtin<'w>>
    where
        Self: 'w,
    {
        Some(Builtin::Map(self.fields))
    }
}

/// Whether expressions see the values of a schema.
pub(crate) fn is_seen(source: &Source, whole: bool) -> bool {
    match &*source.kind {
        _ if source.int_or_string => true,
        "array" => source.items.as_ref().is_some_and(|of| is_seen(of, of.embedded)),
        "object" => match &source.additional_properties {
            Some(Others::Typed(of)) if !whole => is_seen(of, of.embedded),
            _ => true,
        },
        kind => matches!(kind, "string" | "boolean" | "number" | "integer"),
    }
}

/// Reserved words of the language, which cannot be names.
const WORDS: &str = "true false null in as break const continue else for function if import let loop package namespace return \
    var void while";

/// The name with which an expression accesses a field; none if it cannot.
pub(crate) fn escape(name: &str) -> Option<String> {
    let first = name.chars().next()?;
    let readable = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-' | '/');
    if first.is_ascii_digit() || !name.chars().all(readable) {
        return None;
    }
    if WORDS.split(' ').any(|word| word == name) {
        return Some(format!("__{name}__"));
    }
    let parts = name.replace("__", "__underscores__");
    Some(parts.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__"))
}
