//! Operators: arithmetic, comparison, equality, indexes, sizes.
//!
//! Answers: what is the result of `+`, `<`, `==`, `[]`, `in` and `size`? `&&`, `||`, `?:` and optional selections are
//! in `eval.rs`.
//! 1. Numbers never wrap around: an overflow is an error.
use jiff::SignedDuration;

use super::{Given, Library, no_overload, position, size};
use crate::cluster::cel::macros::{INSERT, SORT};
use crate::cluster::cel::value::{Key, Value, whole};

pub(super) fn add(library: &mut Library) {
    library.globals(&[
        ("conditional", "_?_:_", "bool, A, A", "A", |_| no_overload()),
        ("logical_and", "_&&_", "bool, bool", "bool", |_| no_overload()),
        ("logical_or", "_||_", "bool, bool", "bool", |_| no_overload()),
        ("not_strictly_false", "@not_strictly_false", "bool", "bool", |given| Ok(given[0].clone())),
        ("logical_not", "!_", "bool", "bool", |given| match given {
            [Value::Bool(value)] => Ok(Value::Bool(!value)),
            _ => no_overload(),
        }),
        ("equals", "_==_", "A, A", "bool", |given| Ok(Value::Bool(given[0].equals(&given[1])))),
        ("not_equals", "_!=_", "A, A", "bool", |given| Ok(Value::Bool(!given[0].equals(&given[1])))),
        ("negate_double", "-_", "double", "double", negate),
        ("negate_int64", "-_", "int", "int", negate),
        ("index_list", "_[_]", "list(A), int", "A", index),
        ("index_map", "_[_]", "map(A, B), A", "B", index),
        ("in_list", "@in", "A, list(A)", "bool", contains),
        ("in_map", "@in", "A, map(A, B)", "bool", contains),
        ("size_bytes", "size", "bytes", "int", measured),
        ("size_list", "size", "list(A)", "int", measured),
        ("size_map", "size", "map(A, B)", "int", measured),
        ("size_string", "size", "string", "int", measured),
        ("map_insert_key_value", INSERT, "map(K, V), K, V", "map(K, V)", insert),
        ("map_insert_map", INSERT, "map(K, V), map(K, V)", "map(K, V)", insert),
    ]);
    library.members(&[
        ("bytes_size", "size", "bytes", "int", measured),
        ("list_size", "size", "list(A)", "int", measured),
        ("map_size", "size", "map(A, B)", "int", measured),
        ("string_size", "size", "string", "int", measured),
    ]);
    library.globals(&[
        ("add_bytes", "_+_", "bytes, bytes", "bytes", plus),
        ("add_double", "_+_", "double, double", "double", plus),
        ("add_duration_duration", "_+_", "duration, duration", "duration", plus),
        ("add_duration_timestamp", "_+_", "duration, timestamp", "timestamp", plus),
        ("add_timestamp_duration", "_+_", "timestamp, duration", "timestamp", plus),
        ("add_int64", "_+_", "int, int", "int", plus),
        ("add_list", "_+_", "list(A), list(A)", "list(A)", plus),
        ("add_string", "_+_", "string, string", "string", plus),
        ("add_uint64", "_+_", "uint, uint", "uint", plus),
        ("subtract_double", "_-_", "double, double", "double", minus),
        ("subtract_duration_duration", "_-_", "duration, duration", "duration", minus),
        ("subtract_int64", "_-_", "int, int", "int", minus),
        ("subtract_timestamp_duration", "_-_", "timestamp, duration", "timestamp", minus),
        ("subtract_timestamp_timestamp", "_-_", "timestamp, timestamp", "duration", minus),
        ("subtract_uint64", "_-_", "uint, uint", "uint", minus),
        ("multiply_double", "_*_", "double, double", "double", times),
        ("multiply_int64", "_*_", "int, int", "int", times),
        ("multiply_uint64", "_*_", "uint, uint", "uint", times),
        ("divide_double", "_/_", "double, double", "double", divided),
        ("divide_int64", "_/_", "int, int", "int", divided),
        ("divide_uint64", "_/_", "uint, uint", "uint", divided),
        ("modulo_int64", "_%_", "int, int", "int", modulo),
        ("modulo_uint64", "_%_", "uint, uint", "uint", modulo),
    ]);
    comparisons(library);
}

/// Numbers of all types are compared with each other, other values with values of their type.
fn comparisons(library: &mut Library) {
    const NAMES: [(&str, &str, super::Run); 4] = [
        ("_<_", "less", |given| ordered(given, std::cmp::Ordering::is_lt)),
        ("_<=_", "less_equals", |given| ordered(given, std::cmp::Ordering::is_le)),
        ("_>_", "greater", |given| ordered(given, std::cmp::Ordering::is_gt)),
        ("_>=_", "greater_equals", |given| ordered(given, std::cmp::Ordering::is_ge)),
    ];
    const PAIRS: [(&str, &str, &str); 14] = [
        ("bool", "bool", "bool"),
        ("int64", "int", "int"),
        ("int64_double", "int", "double"),
        ("int64_uint64", "int", "uint"),
        ("uint64", "uint", "uint"),
        ("uint64_double", "uint", "double"),
        ("uint64_int64", "uint", "int"),
        ("double", "double", "double"),
        ("double_int64", "double", "int"),
        ("double_uint64", "double", "uint"),
        ("string", "string", "string"),
        ("bytes", "bytes", "bytes"),
        ("timestamp", "timestamp", "timestamp"),
        ("duration", "duration", "duration"),
    ];
    for (name, id, run) in NAMES {
        for (kinds, first, second) in PAIRS {
            library.row(false, ("", name, "", "bool", run));
            let added = library.functions.get_mut(name).and_then(|overloads| overloads.last_mut());
            if let Some(added) = added {
                added.id = format!("{id}_{kinds}");
                added.args = [first, second].map(super::Type::read).to_vec();
            }
        }
    }
}

fn ordered(given: &[Value], holds: fn(std::cmp::Ordering) -> bool) -> Given {
    match given[0].order(&given[1]) {
        Some(order) => Ok(Value::Bool(holds(order))),
        None if matches!(given, [Value::Double(_), _] | [_, Value::Double(_)]) => {
            Err("NaN values cannot be ordered".to_owned())
        }
        None => no_overload(),
    }
}

fn overflow(of: &str) -> String {
    format!("{of} overflow")
}

fn checked_int(value: Option<i64>) -> Given {
    value.map(Value::Int).ok_or_else(|| overflow("integer"))
}

fn checked_uint(value: Option<u64>) -> Given {
    value.map(Value::Uint).ok_or_else(|| overflow("unsigned integer"))
}

fn checked_duration(value: Option<i64>) -> Given {
    value.map(Value::Duration).ok_or_else(|| overflow("duration"))
}

fn moved(time: jiff::Timestamp, by: i64) -> Given {
    let moved = time.checked_add(SignedDuration::from_nanos(by));
    moved.map(Value::Timestamp).map_err(|_| overflow("timestamp"))
}

fn negate(given: &[Value]) -> Given {
    match given {
        [Value::Int(value)] => checked_int(value.checked_neg()),
        [Value::Double(value)] => Ok(Value::Double(-value)),
        _ => no_overload(),
    }
}

pub(super) fn plus(given: &[Value]) -> Given {
    match given {
        [Value::Int(a), Value::Int(b)] => checked_int(a.checked_add(*b)),
        [Value::Uint(a), Value::Uint(b)] => checked_uint(a.checked_add(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a + b)),
        [Value::Text(a), Value::Text(b)] => Ok(Value::text(format!("{a}{b}"))),
        [Value::Bytes(a), Value::Bytes(b)] => Ok(Value::Bytes([&**a, &**b].concat().into())),
        [Value::List(a), Value::List(b)] => Ok(Value::List(a.joined(b))),
        [Value::Duration(a), Value::Duration(b)] => checked_duration(a.checked_add(*b)),
        [Value::Timestamp(time), Value::Duration(by)] | [Value::Duration(by), Value::Timestamp(time)] => {
            moved(*time, *by)
        }
        _ => no_overload(),
    }
}

fn minus(given: &[Value]) -> Given {
    match given {
        [Value::Int(a), Value::Int(b)] => checked_int(a.checked_sub(*b)),
        [Value::Uint(a), Value::Uint(b)] => checked_uint(a.checked_sub(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a - b)),
        [Value::Duration(a), Value::Duration(b)] => checked_duration(a.checked_sub(*b)),
        [Value::Timestamp(time), Value::Duration(by)] => moved(*time, by.saturating_neg()),
        [Value::Timestamp(a), Value::Timestamp(b)] => {
            checked_duration(i64::try_from(a.as_nanosecond() - b.as_nanosecond()).ok())
        }
        _ => no_overload(),
    }
}

fn times(given: &[Value]) -> Given {
    match given {
        [Value::Int(a), Value::Int(b)] => checked_int(a.checked_mul(*b)),
        [Value::Uint(a), Value::Uint(b)] => checked_uint(a.checked_mul(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a * b)),
        _ => no_overload(),
    }
}

fn divided(given: &[Value]) -> Given {
    match given {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err("division by zero".to_owned())
        }
        [Value::Int(a), Value::Int(b)] => checked_int(a.checked_div(*b)),
        [Value::Uint(a), Value::Uint(b)] => checked_uint(a.checked_div(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a / b)),
        _ => no_overload(),
    }
}

fn modulo(given: &[Value]) -> Given {
    match given {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err("modulus by zero".to_owned())
        }
        [Value::Int(a), Value::Int(b)] => checked_int(a.checked_rem(*b)),
        [Value::Uint(a), Value::Uint(b)] => checked_uint(a.checked_rem(*b)),
        _ => no_overload(),
    }
}

/// The item or the member; of an optional value an optional one.
pub(in crate::cluster::cel) fn index(given: &[Value]) -> Given {
    match given {
        [Value::List(list), at] => {
            let at = match at {
                Value::Int(at) => *at,
                Value::Double(at) => {
                    whole(*at).ok_or_else(|| format!("unsupported index value {at} in list"))?
                }
                Value::Uint(at) => return Err(format!("unsupported index: {at}")),
                _ => return no_overload(),
            };
            let item = position(at).and_then(|at| list.items.get(at));
            item.cloned().ok_or_else(|| format!("index out of bounds: {at}"))
        }
        [Value::Map(_) | Value::Object(_), key] => match given[0].member(key) {
            Some(member) => Ok(member.clone()),
            None => Err(format!("no such key: {}", super::conversions::shown(key))),
        },
        [Value::Optional(None), _] => Ok(Value::Optional(None)),
        [Value::Optional(Some(value)), at] => Ok(optional_index(value, at)),
        _ => no_overload(),
    }
}

/// The item or the member, if there is one.
pub(in crate::cluster::cel) fn optional_index(of: &Value, at: &Value) -> Value {
    match of {
        Value::Optional(None) => Value::Optional(None),
        Value::Optional(Some(of)) => optional_index(of, at),
        of => index(&[of.clone(), at.clone()]).map_or(Value::Optional(None), Value::some),
    }
}

fn contains(given: &[Value]) -> Given {
    match given {
        [item, Value::List(list)] => Ok(Value::Bool(list.contains(item))),
        [key, map @ (Value::Map(_) | Value::Object(_))] => Ok(Value::Bool(map.member(key).is_some())),
        _ => no_overload(),
    }
}

fn measured(given: &[Value]) -> Given {
    given[0]
        .size()
        .and_then(|count| usize::try_from(count).ok())
        .map_or_else(no_overload, |count| Ok(size(count)))
}

fn insert(given: &[Value]) -> Given {
    let mut members = given[0].members().cloned().unwrap_or_default();
    let mut put = |key: Key, value: Value| {
        if members.contains_key(&key) {
            return Err(format!(
                "insert failed: key {} already exists",
                super::conversions::shown(&key.value())
            ));
        }
        members.insert(key, value);
        Ok(())
    };
    match given {
        [_, key, value] => {
            let key =
                key.key().ok_or_else(|| format!("unsupported key type: {}", key.type_of().runtime_name()))?;
            put(key, value.clone())?;
        }
        [_, other] => {
            for (key, value) in other.members().into_iter().flatten() {
                put(key.clone(), value.clone())?;
            }
        }
        _ => return no_overload(),
    }
    Ok(Value::Map(members.into()))
}

/// The name of the function that sorts by keys, for `lists.rs`.
pub(super) const SORT_BY: &str = SORT;
