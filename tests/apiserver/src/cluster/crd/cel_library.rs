//! Functions of the Kubernetes library for rules that the interpreter does not bring itself.
//!
//! Answers: what do `isSorted`, `sum`, `find`, `isURL`, `isIP` and their like say? Not here, for want of types of
//! their own in the interpreter: arithmetic of quantities, `semver`, parts of a URL, an IP address or a CIDR.
use std::net::IpAddr;
use std::sync::Arc;

use cel::extractors::This;
use cel::{Context, Value};
use regex::Regex;

use super::format;

type List = Arc<Vec<Value>>;

/// Adds the functions.
pub(super) fn add(context: &mut Context<'_, '_>) {
    let added = [
        context.add_function("isSorted", |This(list): This<List>| list.is_sorted()),
        context.add_function("sum", |This(list): This<List>| sum(&list)),
        context.add_function("min", |This(list): This<List>| extreme(&list, std::cmp::Ordering::Less)),
        context.add_function("max", |This(list): This<List>| extreme(&list, std::cmp::Ordering::Greater)),
        context.add_function("find", |This(text): This<Arc<String>>, pattern: Arc<String>| {
            let found = Regex::new(&pattern)
                .ok()
                .and_then(|regex| regex.find(&text).map(|found| found.as_str().to_owned()));
            found.unwrap_or_default()
        }),
        context.add_function("findAll", |This(text): This<Arc<String>>, pattern: Arc<String>| {
            let regex = Regex::new(&pattern).ok();
            let found = regex.iter().flat_map(|regex| regex.find_iter(&text));
            Value::List(Arc::new(
                found.map(|found| Value::String(Arc::new(found.as_str().to_owned()))).collect(),
            ))
        }),
        context.add_function("isURL", |text: Arc<String>| format::holds("uri", &text)),
        context.add_function("isIP", |text: Arc<String>| text.parse::<IpAddr>().is_ok()),
        context.add_function("isCIDR", |text: Arc<String>| format::holds("cidr", &text)),
        context.add_function("isQuantity", |text: Arc<String>| crate::cluster::schema::is_quantity(&text)),
    ];
    debug_assert!(added.iter().all(Result::is_ok), "the language has none of these names: {added:?}");
}

fn sum(list: &[Value]) -> Value {
    let mut whole = 0_i64;
    let mut real: Option<f64> = None;
    for item in list {
        match item {
            Value::Int(value) => whole = whole.saturating_add(*value),
            Value::Float(value) => real = Some(real.unwrap_or_default() + value),
            _ => return Value::Null,
        }
    }
    real.map_or(Value::Int(whole), Value::Float)
}

fn extreme(list: &[Value], wanted: std::cmp::Ordering) -> Value {
    let mut items = list.iter();
    let first = items.next().cloned().unwrap_or(Value::Null);
    items.fold(first, |best, item| if item.partial_cmp(&best) == Some(wanted) { item.clone() } else { best })
}

/// A time as the language knows it.
pub(super) fn timestamp(text: &str) -> Option<Value> {
    evaluated(&format!("timestamp({text:?})"))
}

/// A duration as the language knows it.
pub(super) fn duration(text: &str) -> Option<Value> {
    evaluated(&format!("duration({text:?})"))
}

/// The interpreter's own reading of a literal, so that its time library stays its own affair.
fn evaluated(expression: &str) -> Option<Value> {
    super::rules::compile(expression).ok()?.execute(&Context::default()).ok()
}
