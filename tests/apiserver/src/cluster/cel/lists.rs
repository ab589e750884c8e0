//! Lists of an object as values of rules: some are sets or maps (`x-kubernetes-list-type`).
//!
//! Answers: when are two such lists equal, and what is their sum? The kind of the left list decides, at each depth.
//! 1. A set is equal in any order; its sum appends what it does not hold yet.
//! 2. A list that is a map is equal if the elements of each key are; its sum puts elements of known keys in their places.
//! 3. As on a real server, elements of a set are compared as JSON has them with the values of the other list. So a time is
//!    in no set, nor is `1` in a set of numbers. Elements without a hash in Go (objects, lists, bytes) end the rule.
//! 4. To the crate they are its own lists (`as_builtin`): all its functions take them, also on the right of an operator.
use std::cell::Cell;
use std::sync::Arc;

use cel::ExecutionError;
use cel::common::traits::{Adder, Container, Indexer, Iterable, Sizer, Zeroer};
use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelString, Kind, LIST_TYPE, Type};
use cel::common::value::{Builtin, BuiltinRef, CowVal, Val};
use serde_json::Value as Json;

use super::Cel;
use super::names::escape;
use crate::cluster::schema::source::Source;

#[cfg(test)]
mod tests;

/// The value of a list; `written` are its elements in JSON.
pub(crate) fn list(source: &Source, written: &[Json], items: Vec<Cel>) -> Cel {
    let items = CelList::from(items);
    let manner = match source.list_type.as_deref() {
        Some("set") => Manner::Set(written.iter().map(Mark::written).collect()),
        Some("map") => {
            // A real server looks for an escaped name in the unescaped object, and finds nothing.
            let names =
                source.list_map_keys.iter().filter(|name| escape(name).is_none_or(|seen| *seen == ***name));
            Manner::Map(names.cloned().collect())
        }
        _ => Manner::Plain,
    };
    Box::new(Listed { manner, items })
}

/// A list of the object. In this order: where its items begin differs from where it begins, as `search.rs` needs it.
#[derive(Debug, Clone)]
#[repr(C)]
struct Listed<'v> {
    manner: Manner,
    items: CelList<'v>,
}

#[derive(Debug, Clone)]
enum Manner {
    Plain,
    /// A set, with the marks of its elements.
    Set(Vec<Mark>),
    /// A map, with the names of the keys of its elements.
    Map(Arc<[Box<str>]>),
}

/// What tells an element of a set from others, as Go compares them.
#[derive(Debug, Clone, PartialEq)]
enum Mark {
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
    /// It equals no element. If it has no hash, its type in Go.
    Unequal(&'static str),
}

impl Mark {
    fn written(value: &Json) -> Self {
        match value {
            Json::Null => Self::Unequal(""),
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => {
                number.as_i64().map_or_else(|| Self::Double(number.as_f64().unwrap_or_default()), Self::Int)
            }
            Json::String(text) => Self::Text(text.clone()),
            Json::Array(_) => Self::Unequal("[]interface {}"),
            Json::Object(_) => Self::Unequal("map[string]interface {}"),
        }
    }

    fn of(value: &dyn Val) -> Self {
        if let Some(text) = value.downcast_ref::<CelString<'_>>() {
            return Self::Text(text.inner().to_owned());
        }
        let number = value.downcast_ref::<CelInt>().map(|number| Self::Int(*number.inner()));
        let double = || value.downcast_ref::<CelDouble>().map(|number| Self::Double(*number.inner()));
        let truth = || value.downcast_ref::<CelBool>().map(|truth| Self::Bool(*truth.inner()));
        number.or_else(double).or_else(truth).unwrap_or_else(|| {
            Self::Unequal(match value.get_type().kind() {
                Kind::List => "[]interface {}",
                Kind::Map => "map[string]interface {}",
                Kind::Bytes => "[]uint8",
                _ => "",
            })
        })
    }

    fn is_in(&self, marks: &[Self]) -> bool {
        !matches!(self, Self::Unequal(_)) && marks.contains(self)
    }

    /// Looks into the hash, as Go does before it compares.
    fn hash(&self) {
        if let Self::Unequal(of) = self
            && !of.is_empty()
            && FAULT.get().is_none()
        {
            FAULT.set(Some(of));
        }
    }
}

thread_local! {
    /// The type without a hash that was met first: it ends the whole rule on a real server, whatever its other parts say.
    static FAULT: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// The result of a rule, unless a set within had elements without a hash.
pub(super) fn hashed<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    FAULT.take();
    let result = run();
    FAULT
        .take()
        .map_or(result, |of| Err(format!("internal error: runtime error: hash of unhashable type {of}")))
}

/// The keys of an element; none if it is no object.
type Key<'b, 'v> = Option<Vec<Option<CowVal<'b, 'v>>>>;

fn key<'b, 'v>(names: &[Box<str>], element: &'b (dyn Val + 'v)) -> Key<'b, 'v> {
    let element = element.downcast_ref::<CelMap<'_>>()?;
    Some(names.iter().map(|name| element.get(&CelString::from(&**name)).ok()).collect())
}

fn keys<'b, 'v>(names: &[Box<str>], items: &'b CelList<'v>) -> Vec<Key<'b, 'v>> {
    items.inner().iter().map(|item| key(names, &**item)).collect()
}

/// Where the element of a key is.
fn position(keys: &[Key<'_, '_>], wanted: &Key<'_, '_>) -> Option<usize> {
    wanted.as_ref()?;
    keys.iter().rposition(|key| key == wanted)
}

/// The sum of a list without a kind.
fn appended<'w>(own: &CelList<'w>, other: &CelList<'w>) -> Listed<'w> {
    let items: Vec<_> = own.inner().iter().chain(other.inner()).map(|item| item.clone_as_boxed()).collect();
    Listed { manner: Manner::Plain, items: CelList::from(items) }
}

/// The sum of two sets.
fn joined<'w>(own: &CelList<'w>, marks: &[Mark], other: &CelList<'w>) -> Listed<'w> {
    marks.iter().for_each(Mark::hash);
    let mut items: Vec<_> = own.inner().iter().map(|item| item.clone_as_boxed()).collect();
    let mut marks = marks.to_vec();
    for item in other.inner() {
        let mark = Mark::of(&**item);
        mark.hash();
        if !mark.is_in(&marks) {
            items.push(item.clone_as_boxed());
            marks.push(mark);
        }
    }
    Listed { manner: Manner::Set(marks), items: CelList::from(items) }
}

/// The sum of two lists that are maps.
fn merged<'w>(own: &CelList<'w>, names: &Arc<[Box<str>]>, other: &CelList<'w>) -> Listed<'w> {
    let mut items: Vec<_> = own.inner().iter().map(|item| item.clone_as_boxed()).collect();
    let keys = keys(names, own);
    for item in other.inner().iter() {
        match position(&keys, &key(names, &**item)) {
            Some(at) => items[at] = item.clone_as_boxed(),
            None => items.push(item.clone_as_boxed()),
        }
    }
    Listed { manner: Manner::Map(Arc::clone(names)), items: CelList::from(items) }
}

impl Val for Listed<'_> {
    fn get_type(&self) -> &Type {
        Self::cel_type()
    }

    fn cel_type() -> &'static Type {
        &LIST_TYPE
    }

    fn as_adder<'b, 'w>(&'b self) -> Option<&'b (dyn Adder + 'w)>
    where
        Self: 'w,
    {
        Some(self)
    }

    fn as_container(&self) -> Option<&dyn Container> {
        self.items.as_container()
    }

    fn as_indexer<'b, 'w>(&'b self) -> Option<&'b (dyn Indexer + 'w)>
    where
        Self: 'w,
    {
        self.items.as_indexer()
    }

    fn into_indexer<'w>(self: Box<Self>) -> Option<Box<dyn Indexer + 'w>>
    where
        Self: 'w,
    {
        Box::new(self.items).into_indexer()
    }

    fn as_iterable<'b, 'w>(&'b self) -> Option<&'b (dyn Iterable + 'w)>
    where
        Self: 'w,
    {
        self.items.as_iterable()
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        self.items.as_sizer()
    }

    fn as_zeroer(&self) -> Option<&dyn Zeroer> {
        self.items.as_zeroer()
    }

    fn equals(&self, other: &dyn Val) -> bool {
        let Some(other) = other.downcast_ref::<CelList<'_>>() else { return false };
        if self.items.len() != other.len() {
            return false;
        }
        match &self.manner {
            Manner::Plain => self.items.equals(other),
            Manner::Set(marks) => {
                marks.iter().for_each(Mark::hash);
                other.inner().iter().map(|item| Mark::of(&**item)).all(|mark| {
                    mark.hash();
                    mark.is_in(marks)
                })
            }
            Manner::Map(names) => {
                let keys = keys(names, &self.items);
                other.inner().iter().all(|item| {
                    let own = position(&keys, &key(names, &**item));
                    own.is_some_and(|at| self.items[at].equals(&**item))
                })
            }
        }
    }

    fn clone_as_boxed<'w>(&self) -> Box<dyn Val + 'w>
    where
        Self: 'w,
    {
        Box::new(self.clone())
    }

    fn as_builtin<'b, 'w>(&'b self) -> BuiltinRef<'b, 'w>
    where
        Self: 'w,
    {
        BuiltinRef::List(&self.items)
    }

    fn into_builtin<'w>(self: Box<Self>) -> Option<Builtin<'w>>
    where
        Self: 'w,
    {
        Some(Builtin::List(self.items))
    }
}

impl Adder for Listed<'_> {
    fn add<'b, 'w>(&'b self, other: &(dyn Val + 'w)) -> Result<CowVal<'b, 'w>, ExecutionError>
    where
        Self: 'w,
    {
        let Some(other) = other.downcast_ref::<CelList<'_>>() else {
            return Err(ExecutionError::no_such_overload("_+_", Vec::new()));
        };
        Ok(CowVal::owned(match &self.manner {
            Manner::Plain => appended(&self.items, other),
            Manner::Set(marks) => joined(&self.items, marks, other),
            Manner::Map(names) => merged(&self.items, names, other),
        }))
    }
}
