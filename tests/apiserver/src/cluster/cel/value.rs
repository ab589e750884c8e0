//! Values of expressions.
//!
//! Answers: are two values equal, which comes first, how large is a value?
//! 1. Numbers of different types are equal if their values are.
//! 2. Lists that a schema calls sets or maps are compared without their order.
//! 3. Cloning a value is cheap.
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use imbl::Vector;
use jiff::Timestamp;
use serde_json::Value as Json;

use super::library::format::Format;
use super::quantity::Quantity;
use super::semver::Version;
use super::types::{self, Type};
use super::url::Url;

/// A value.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    Timestamp(Timestamp),
    /// In nanoseconds.
    Duration(i64),
    List(List),
    Map(Arc<BTreeMap<Key, Self>>),
    /// An object with the fields of a schema.
    Object(Arc<BTreeMap<Key, Self>>),
    Optional(Option<Arc<Self>>),
    Type(Type),
    Quantity(Arc<Quantity>),
    Semver(Arc<Version>),
    Url(Arc<Url>),
    Ip(IpAddr),
    Cidr(IpAddr, u8),
    Format(&'static Format),
    /// The error of a step of a loop, until a later step decides otherwise.
    Failed(Arc<str>),
}

/// A list, and how its items are compared.
#[derive(Debug, Clone, Default)]
pub(crate) struct List {
    pub(crate) items: Vector<Value>,
    pub(crate) merge: Merge,
}

/// When two lists are equal.
#[derive(Debug, Clone, Default)]
pub(crate) enum Merge {
    /// The same items in the same order.
    #[default]
    Atomic,
    /// The same items.
    Set,
    /// The same items under the same values of these fields.
    Map(Arc<[Arc<str>]>),
}

/// The key of a map.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Text(Arc<str>),
}

impl From<Vector<Self>> for Value {
    fn from(items: Vector<Self>) -> Self {
        Self::List(List { items, merge: Merge::Atomic })
    }
}

impl FromIterator<Self> for Value {
    fn from_iter<I: IntoIterator<Item = Self>>(items: I) -> Self {
        Self::from(items.into_iter().collect::<Vector<Self>>())
    }
}

impl Value {
    pub(crate) fn text(text: impl AsRef<str>) -> Self {
        Self::Text(Arc::from(text.as_ref()))
    }

    pub(crate) fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// The key this value is; none if it cannot be one.
    pub(crate) fn key(&self) -> Option<Key> {
        Some(match self {
            Self::Bool(value) => Key::Bool(*value),
            Self::Int(value) => Key::Int(*value),
            Self::Uint(value) => Key::Uint(*value),
            Self::Text(value) => Key::Text(Arc::clone(value)),
            _ => return None,
        })
    }

    pub(super) fn members(&self) -> Option<&BTreeMap<Key, Self>> {
        match self {
            Self::Map(members) | Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The member under a key; a whole number finds an equal one of another type.
    pub(super) fn member(&self, key: &Self) -> Option<&Self> {
        let members = self.members()?;
        let whole = match key {
            Self::Double(value) => whole(*value).map(Self::Int)?,
            other => other.clone(),
        };
        members.get(&whole.key()?).or_else(|| match whole {
            Self::Int(value) => members.get(&Key::Uint(u64::try_from(value).ok()?)),
            Self::Uint(value) => members.get(&Key::Int(i64::try_from(value).ok()?)),
            _ => None,
        })
    }

    /// The size as costs count it; none where a value has no size.
    pub(super) fn size(&self) -> Option<u64> {
        Some(match self {
            Self::Text(text) => text.chars().count() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => list.items.len() as u64,
            Self::Map(members) | Self::Object(members) => members.len() as u64,
            Self::Ip(address) => octets(*address),
            Self::Cidr(_, bits) => u64::from(*bits).div_ceil(8),
            _ => return None,
        })
    }

    /// The type during a run: containers have items of type `dyn`.
    pub(super) fn type_of(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::Text(_) => Type::Text,
            Self::Bytes(_) => Type::Bytes,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Duration(_) => Type::Duration,
            Self::List(_) => Type::list(Type::Dyn),
            Self::Map(_) | Self::Object(_) => Type::map(Type::Dyn, Type::Dyn),
            Self::Optional(_) => Type::optional(Type::Dyn),
            Self::Type(_) => Type::Meta(Arc::new(Type::Dyn)),
            Self::Quantity(_) => Type::Library(types::QUANTITY),
            Self::Semver(_) => Type::Library(types::SEMVER),
            Self::Url(_) => Type::Library(types::URL),
            Self::Ip(_) => Type::Library(types::IP),
            Self::Cidr(..) => Type::Library(types::CIDR),
            Self::Format(_) => Type::Library(types::FORMAT),
            Self::Failed(_) => Type::Error,
        }
    }

    pub(crate) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Timestamp(a), Self::Timestamp(b)) => a == b,
            (Self::Duration(a), Self::Duration(b)) => a == b,
            (Self::List(a), Self::List(b)) => a.equals(b),
            (Self::Map(a) | Self::Object(a), Self::Map(b) | Self::Object(b)) => {
                a.len() == b.len()
                    && a.iter().all(|(key, value)| {
                        other.member(&key.value()).is_some_and(|other| value.equals(other))
                    })
            }
            (Self::Optional(a), Self::Optional(b)) => match (a, b) {
                (Some(a), Some(b)) => a.equals(b),
                (None, None) => true,
                _ => false,
            },
            (Self::Type(a), Self::Type(b)) => a.runtime_name() == b.runtime_name(),
            (Self::Quantity(a), Self::Quantity(b)) => a.compare(b).is_eq(),
            (Self::Semver(a), Self::Semver(b)) => a.compare(b).is_eq(),
            (Self::Url(a), Self::Url(b)) => a == b,
            (Self::Ip(a), Self::Ip(b)) => a == b,
            (Self::Cidr(a, bits), Self::Cidr(b, others)) => a == b && bits == others,
            (Self::Format(a), Self::Format(b)) => std::ptr::eq(*a, *b),
            _ => self.numbers(other) == Some(Ordering::Equal),
        }
    }

    /// The order of two numbers of any types; none for other values, and for NaN.
    fn numbers(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(b),
            (Self::Double(a), _) => other.integer().and_then(|b| against(*a, b)),
            (_, Self::Double(b)) => self.integer().and_then(|a| against(*b, a)).map(Ordering::reverse),
            _ => Some(self.integer()?.cmp(&other.integer()?)),
        }
    }

    fn integer(&self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(i128::from(*value)),
            Self::Uint(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    /// The order of two values; none if the language does not define one.
    pub(crate) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Some(a.cmp(b)),
            (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(b)),
            _ => self.numbers(other),
        }
    }

    /// Whether it is the zero value of its type: null, zero, empty.
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(value) => !value,
            Self::Int(value) | Self::Duration(value) => *value == 0,
            Self::Uint(value) => *value == 0,
            Self::Double(value) => *value == 0.0,
            Self::Optional(value) => value.is_none(),
            other => other.size() == Some(0),
        }
    }
}

fn octets(address: IpAddr) -> u64 {
    if address.is_ipv4() { 4 } else { 16 }
}

#[expect(clippy::cast_precision_loss, reason = "a double is compared with a whole number as Go does")]
fn against(double: f64, whole: i128) -> Option<Ordering> {
    double.partial_cmp(&(whole as f64))
}

#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
pub(super) fn whole(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() < 9.2e18).then_some(value as i64)
}

impl Key {
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Uint(value) => Value::Uint(*value),
            Self::Text(value) => Value::Text(Arc::clone(value)),
        }
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::Text(Arc::from(text))
    }
}

impl List {
    pub(super) fn contains(&self, item: &Value) -> bool {
        self.items.iter().any(|own| own.equals(item))
    }

    fn equals(&self, other: &Self) -> bool {
        if self.items.len() != other.items.len() {
            return false;
        }
        match (&self.merge, &other.merge) {
            (Merge::Atomic, Merge::Atomic) => self.items.iter().zip(&other.items).all(|(a, b)| a.equals(b)),
            (Merge::Set, _) | (_, Merge::Set) => self.items.iter().all(|item| other.contains(item)),
            (Merge::Map(keys), _) | (_, Merge::Map(keys)) => self.items.iter().all(|item| {
                other.items.iter().any(|other| same_keys(keys, item, other) && item.equals(other))
            }),
        }
    }

    /// Both lists' items; those of a set or a map once.
    pub(super) fn joined(&self, other: &Self) -> Self {
        let mut items = self.items.clone();
        match &self.merge {
            Merge::Atomic => items.append(other.items.clone()),
            Merge::Set => {
                let new: Vec<Value> =
                    other.items.iter().filter(|item| !self.contains(item)).cloned().collect();
                items.extend(new);
            }
            Merge::Map(keys) => {
                for item in &other.items {
                    match items.iter().position(|own| same_keys(keys, own, item)) {
                        Some(at) => items[at] = item.clone(),
                        None => items.push_back(item.clone()),
                    }
                }
            }
        }
        Self { items, merge: self.merge.clone() }
    }
}

fn same_keys(keys: &[Arc<str>], a: &Value, b: &Value) -> bool {
    keys.iter().all(|key| {
        let key = Value::Text(Arc::clone(key));
        match (a.member(&key), b.member(&key)) {
            (Some(a), Some(b)) => a.equals(b),
            (None, None) => true,
            _ => false,
        }
    })
}

/// A value from JSON without a schema.
pub(super) fn from_json(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Value::Int(value),
            None => Value::Double(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::text(text),
        Json::Array(items) => items.iter().map(from_json).collect(),
        Json::Object(members) => {
            let members = members.iter().map(|(name, value)| (Key::text(name), from_json(value)));
            Value::Map(Arc::new(members.collect()))
        }
    }
}
