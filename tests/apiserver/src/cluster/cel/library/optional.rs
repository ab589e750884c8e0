//! Optional values.
//!
//! Answers: is there a value, and which? `or` and `orValue` evaluate their second part only if it is needed; `eval.rs`
//! does that.
use super::{Given, Library, no_overload, standard};
use crate::cluster::cel::value::Value;

pub(super) fn add(library: &mut Library) {
    library.globals(&[
        ("optional_of", "optional.of", "V", "optional(V)", |given| Ok(Value::some(given[0].clone()))),
        ("optional_ofNonZeroValue", "optional.ofNonZeroValue", "V", "optional(V)", |given| {
            Ok(if given[0].is_zero() { Value::Optional(None) } else { Value::some(given[0].clone()) })
        }),
        ("optional_none", "optional.none", "", "optional(V)", |_| Ok(Value::Optional(None))),
        ("optional_unwrap", "optional.unwrap", "list(optional(V))", "list(V)", unwrap),
        ("list_optindex_optional_int", "_[?_]", "list(V), int", "optional(V)", index),
        ("optional_list_optindex_optional_int", "_[?_]", "optional(list(V)), int", "optional(V)", index),
        ("map_optindex_optional_value", "_[?_]", "map(K, V), K", "optional(V)", index),
        ("optional_map_optindex_optional_value", "_[?_]", "optional(map(K, V)), K", "optional(V)", index),
        ("optional_list_index_int", "_[_]", "optional(list(V)), int", "optional(V)", standard::index),
        ("optional_map_index_value", "_[_]", "optional(map(K, V)), K", "optional(V)", standard::index),
    ]);
    library.members(&[
        ("optional_value", "value", "optional(V)", "V", |given| match &given[0] {
            Value::Optional(Some(value)) => Ok((**value).clone()),
            Value::Optional(None) => Err("optional.none() dereference".to_owned()),
            _ => no_overload(),
        }),
        ("optional_hasValue", "hasValue", "optional(V)", "bool", |given| match &given[0] {
            Value::Optional(value) => Ok(Value::Bool(value.is_some())),
            _ => no_overload(),
        }),
        ("optional_or_optional", "or", "optional(V), optional(V)", "optional(V)", |_| no_overload()),
        ("optional_orValue_value", "orValue", "optional(V), V", "V", |_| no_overload()),
        ("optional_unwrapOpt", "unwrapOpt", "list(optional(V))", "list(V)", unwrap),
        ("list_first", "first", "list(V)", "optional(V)", |given| {
            end(given, |list| list.items.front().cloned())
        }),
        ("list_last", "last", "list(V)", "optional(V)", |given| {
            end(given, |list| list.items.back().cloned())
        }),
    ]);
}

fn index(given: &[Value]) -> Given {
    Ok(standard::optional_index(&given[0], &given[1]))
}

fn end(given: &[Value], of: fn(&super::super::value::List) -> Option<Value>) -> Given {
    match &given[0] {
        Value::List(list) => Ok(of(list).map_or(Value::Optional(None), Value::some)),
        _ => no_overload(),
    }
}

fn unwrap(given: &[Value]) -> Given {
    let Value::List(list) = &given[0] else { return no_overload() };
    let values = list.items.iter().filter_map(|item| match item {
        Value::Optional(value) => value.as_deref().cloned(),
        other => Some(other.clone()),
    });
    Ok(values.collect())
}
