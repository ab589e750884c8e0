//! Lists and sets: order, sums, parts.
//!
//! Answers: what is the result of `isSorted`, `sum`, `slice`, `sets.contains` and similar functions?
use std::cmp::Ordering;

use super::standard::{SORT_BY, plus};
use super::{Given, Library, ORDERED, int, no_overload, position, size};
use crate::cluster::cel::value::{List, Value};

pub(super) fn add(library: &mut Library) {
    library.of_lists("isSorted", (&ORDERED, "", "bool"), |given| {
        let items = &list(given, 0)?.items;
        let sorted = items.iter().zip(items.iter().skip(1));
        Ok(Value::Bool(sorted.into_iter().all(|(a, b)| a.order(b) != Some(Ordering::Greater))))
    });
    library.of_lists("min", (&ORDERED, "", "T"), |given| extreme(given, "min", Ordering::Less));
    library.of_lists("max", (&ORDERED, "", "T"), |given| extreme(given, "max", Ordering::Greater));
    library.of_lists("sort", (&ORDERED, "", "list(T)"), |given| {
        let items = list(given, 0)?;
        sorted(items, items)
    });
    sums(library);
    for key in ORDERED {
        let args = format!("list(T), list({key})");
        library.row(true, ("", SORT_BY, "", "list(T)", |given| sorted(list(given, 0)?, list(given, 1)?)));
        if let Some(added) = library.functions.get_mut(SORT_BY).and_then(|overloads| overloads.last_mut()) {
            added.id = format!("list_{key}_sortByAssociatedKeys");
            added.args = super::split(&args).into_iter().map(super::Type::read).collect();
        }
    }
    library.members(&[
        ("list_a_index_of_int", "indexOf", "list(A), A", "int", |given| {
            let at = list(given, 0)?.items.iter().position(|item| item.equals(&given[1]));
            Ok(at.map_or(Value::Int(-1), size))
        }),
        ("list_a_last_index_of_int", "lastIndexOf", "list(A), A", "int", |given| {
            let items: Vec<&Value> = list(given, 0)?.items.iter().collect();
            Ok(items.iter().rposition(|item| item.equals(&given[1])).map_or(Value::Int(-1), size))
        }),
        ("list_slice", "slice", "list(T), int, int", "list(T)", slice),
        ("list_flatten", "flatten", "list(list(T))", "list(T)", |given| flat(list(given, 0)?, 1)),
        ("list_flatten_int", "flatten", "list(dyn), int", "list(dyn)", |given| {
            flat(list(given, 0)?, int(&given[1]))
        }),
        ("list_reverse", "reverse", "list(T)", "list(T)", |given| {
            Ok(list(given, 0)?.items.iter().rev().cloned().collect())
        }),
        ("list_distinct", "distinct", "list(T)", "list(T)", |given| {
            let mut distinct = List::default();
            for item in &list(given, 0)?.items {
                if !distinct.contains(item) {
                    distinct.items.push_back(item.clone());
                }
            }
            Ok(Value::List(distinct))
        }),
    ]);
    sets(library);
}

/// Ranges, and lists taken as sets.
fn sets(library: &mut Library) {
    library.globals(&[
        ("lists_range", "lists.range", "int", "list(int)", |given| {
            Ok((0..int(&given[0])).map(Value::Int).collect())
        }),
        ("list_sets_contains_list", "sets.contains", "list(T), list(T)", "bool", |given| {
            Ok(Value::Bool(holds(list(given, 0)?, list(given, 1)?)))
        }),
        ("list_sets_equivalent_list", "sets.equivalent", "list(T), list(T)", "bool", |given| {
            let (a, b) = (list(given, 0)?, list(given, 1)?);
            Ok(Value::Bool(holds(a, b) && holds(b, a)))
        }),
        ("list_sets_intersects_list", "sets.intersects", "list(T), list(T)", "bool", |given| {
            let (a, b) = (list(given, 0)?, list(given, 1)?);
            Ok(Value::Bool(a.items.iter().any(|item| b.contains(item))))
        }),
    ]);
}

fn list(given: &[Value], at: usize) -> Result<&List, String> {
    match given.get(at) {
        Some(Value::List(list)) => Ok(list),
        _ => Err("no such overload".to_owned()),
    }
}

fn holds(list: &List, part: &List) -> bool {
    part.items.iter().all(|item| list.contains(item))
}

fn sums(library: &mut Library) {
    library.of_lists("sum", (&["int"], "", "T"), |given| sum(given, Value::Int(0)));
    library.of_lists("sum", (&["uint"], "", "T"), |given| sum(given, Value::Uint(0)));
    library.of_lists("sum", (&["double"], "", "T"), |given| sum(given, Value::Double(0.0)));
    library.of_lists("sum", (&["duration"], "", "T"), |given| sum(given, Value::Duration(0)));
}

fn sum(given: &[Value], zero: Value) -> Given {
    list(given, 0)?.items.iter().try_fold(zero, |sum, item| plus(&[sum, item.clone()]))
}

fn extreme(given: &[Value], name: &str, wanted: Ordering) -> Given {
    let best = list(given, 0)?
        .items
        .iter()
        .reduce(|best, item| if item.order(best) == Some(wanted) { item } else { best });
    best.cloned().ok_or_else(|| format!("{name} called on empty list"))
}

fn slice(given: &[Value]) -> Given {
    let items = &list(given, 0)?.items;
    let (start, end) = (int(&given[1]), int(&given[2]));
    let (Some(from), Some(until)) = (position(start), position(end)) else {
        return Err(format!("cannot slice({start}, {end}), negative indexes not supported"));
    };
    if from > until {
        return Err(format!(
            "cannot slice({start}, {end}), start index must be less than or equal to end index"
        ));
    }
    if until > items.len() {
        return Err(format!("cannot slice({start}, {end}), list is length {}", items.len()));
    }
    Ok(items.iter().skip(from).take(until - from).cloned().collect())
}

fn flat(list: &List, depth: i64) -> Given {
    if depth < 0 {
        return Err("level must be non-negative".to_owned());
    }
    let mut flattened = List::default();
    for item in &list.items {
        match item {
            Value::List(inner) if depth > 0 => match flat(inner, depth - 1)? {
                Value::List(inner) => flattened.items.append(inner.items),
                _ => return no_overload(),
            },
            other => flattened.items.push_back(other.clone()),
        }
    }
    Ok(Value::List(flattened))
}

fn sorted(list: &List, keys: &List) -> Given {
    if list.items.len() != keys.items.len() {
        return Err(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} elements respectively",
            list.items.len(),
            keys.items.len()
        ));
    }
    let mut pairs: Vec<(&Value, &Value)> = keys.items.iter().zip(&list.items).collect();
    if pairs.windows(2).any(|pair| pair[0].0.type_of() != pair[1].0.type_of()) {
        return Err("list elements must have the same type".to_owned());
    }
    pairs.sort_by(|a, b| a.0.order(b.0).unwrap_or(Ordering::Equal));
    Ok(pairs.into_iter().map(|(_, item)| item.clone()).collect())
}
