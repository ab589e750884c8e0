//! Lists of an object as values of rules: some are sets or maps (`x-kubernetes-list-type`).
//!
//! Answers: when are two such lists equal, and what is their sum? The kind of the left list decides, at each depth.
//! 1. A set is equal in any order; its sum appends what it does not hold yet.
//! 2. A list that is a map is equal if the elements of each key are; its sum puts elements of known keys in their places.
//!    Keys are compared as they are written: one time in two forms is two keys.
//! 3. As on a real server, elements of a set are compared as JSON has them with the values of the other list. So a time is
//!    in no set, nor is `1` in a set of numbers. Elements without a hash in Go (objects, lists, bytes) end the rule.
//! 4. To the crate they are its own lists (`as_builtin`): all its functions take them, also on the right of an operator.
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cel::ExecutionError;
use cel::common::traits::{Adder, Container, Indexer, Iterable, Sizer, Zeroer};
use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelString, Kind, LIST_TYPE, Type};
use cel::common::value::{Builtin, BuiltinRef, CowVal, Val};
use serde_json::Value as Json;

use super::Cel;
use super::object::Object;
use super::object::escape;
use crate::cluster::schema::source::Source;

#[cfg(test)]
mod tests;

/// The value of a list; `written` are its elements in JSON.
pub(crate) fn list(source: &Source, written: &[Json], items: Vec<Cel>) -> Cel {
    let items = CelList::from(items);
    let manner = match source.list_type.as_deref() {
        Some("set") => Manner::Set(written.iter().map(Mark::written).collect()),
        Some("map") => {
            let names = source.list_map_keys.iter();
            // A real server looks for the escaped name in the unescaped object, and finds nothing.
            Manner::Map(names.map(|name| escape(name).map_or_else(|| name.clone(), Into::into)).collect())
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Mark {
    /// A scalar as JSON has it.
    Scalar(Json),
    /// It equals no element. If it has no hash, its type in Go.
    Unequal(&'static str),
}

impl Mark {
    fn written(value: &Json) -> Self {
        match value {
            Json::Null => Self::Unequal(""),
            Json::Array(_) => Self::Unequal("[]interface {}"),
            Json::Object(_) => Self::Unequal("map[string]interface {}"),
            scalar => Self::Scalar(scalar.clone()),
        }
    }

    fn of(value: &dyn Val) -> Self {
        if let Some(text) = value.downcast_ref::<CelString<'_>>() {
            return Self::Scalar(text.inner().into());
        }
        let number = value.downcast_ref::<CelInt>().map(|number| Json::from(*number.inner()));
        let double = || value.downcast_ref::<CelDouble>().map(|number| Json::from(*number.inner()));
        let truth = || value.downcast_ref::<CelBool>().map(|truth| Json::from(*truth.inner()));
        match number.or_else(double).or_else(truth) {
            Some(scalar) => Self::written(&scalar),
            None => Self::Unequal(match value.get_type().kind() {
                Kind::List => "[]interface {}",
                Kind::Map => "map[string]interface {}",
                Kind::Bytes => "[]uint8",
                _ => "",
            }),
        }
    }

    fn is_in(&self, marks: &HashSet<Self>) -> bool {
        matches!(self, Self::Scalar(_)) && marks.contains(self)
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

/// The hashes of a set's elements.
fn hashes(marks: &[Mark]) -> HashSet<Mark> {
    marks.iter().inspect(|mark| mark.hash()).cloned().collect()
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

/// The keys of an element as they are written; none if it is no object of the object.
fn key<'b>(names: &[Box<str>], element: &'b dyn Val) -> Option<Vec<&'b Json>> {
    let element = element.downcast_ref::<Object>()?;
    Some(names.iter().map(|name| element.written(name)).collect())
}

/// Where the element of each key is.
fn places<'b>(names: &[Box<str>], items: &'b CelList<'_>) -> HashMap<Vec<&'b Json>, usize> {
    let keys = items.inner().iter().enumerate();
    keys.filter_map(|(at, item)| Some((key(names, &**item)?, at))).collect()
}

/// The sum of a list without a kind.
fn appended<'w>(own: &CelList<'w>, other: &CelList<'w>) -> Listed<'w> {
    let items: Vec<_> = own.inner().iter().chain(other.inner()).map(|item| item.clone_as_boxed()).collect();
    Listed { manner: Manner::Plain, items: CelList::from(items) }
}

/// The sum of two sets.
fn joined<'w>(own: &CelList<'w>, marks: &[Mark], other: &CelList<'w>) -> Listed<'w> {
    let mut items: Vec<_> = own.inner().iter().map(|item| item.clone_as_boxed()).collect();
    let (mut known, mut marks) = (hashes(marks), marks.to_vec());
    for item in other.inner() {
        let mark = Mark::of(&**item);
        mark.hash();
        if !mark.is_in(&known) {
            items.push(item.clone_as_boxed());
            known.insert(mark.clone());
            marks.push(mark);
        }
    }
    Listed { manner: Manner::Set(marks), items: CelList::from(items) }
}

/// The sum of two lists that are maps.
fn merged<'w>(own: &CelList<'w>, names: &Arc<[Box<str>]>, other: &CelList<'w>) -> Listed<'w> {
    let mut items: Vec<_> = own.inner().iter().map(|item| item.clone_as_boxed()).collect();
    let places = places(names, own);
    for item in other.inner().iter() {
        match key(names, &**item).and_then(|key| places.get(&key)) {
            Some(at) => items[*at] = item.clone_as_boxed(),
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

    as_inner!(items);

    fn equals(&self, other: &dyn Val) -> bool {
        let Some(other) = other.downcast_ref::<CelList<'_>>() else { return false };
        if self.items.len() != other.len() {
            return false;
        }
        match &self.manner {
            Manner::Plain => self.items.equals(other),
            Manner::Set(marks) => {
                let marks = hashes(marks);
                other.inner().iter().map(|item| Mark::of(&**item)).all(|mark| {
                    mark.hash();
                    mark.is_in(&marks)
                })
            }
            Manner::Map(names) => {
                let places = places(names, &self.items);
                other.inner().iter().all(|item| {
                    let own = key(names, &**item).and_then(|key| places.get(&key));
                    own.is_some_and(|at| self.items[*at].equals(&**item))
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
