//! What calls cost when they run.
//!
//! Answers: what does this call with these arguments cost? It uses the actual sizes, `estimate_calls.rs` the largest
//! possible ones.
use super::library::Overload;
use super::size::scale;
use super::value::Value;

/// What each new list costs.
pub(super) const LIST: u64 = 10;
/// What each new map costs.
pub(super) const MAP: u64 = 30;
/// What each character of a text costs.
pub(super) const TEXT: f64 = 0.1;
/// What each character of a pattern costs, for each unit of the text.
pub(super) const PATTERN: f64 = 0.25;

fn size(value: Option<&Value>) -> u64 {
    match value {
        Some(Value::Optional(Some(value))) => size(Some(value)),
        Some(value) => value.size().unwrap_or(1),
        None => 1,
    }
}

/// The cost of a call.
pub(super) fn of_call(function: &str, overload: &Overload, given: &[Value], result: Option<&Value>) -> u64 {
    let first = size(given.first());
    let second = size(given.get(1));
    match function {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => given.first().map_or(0, traversal),
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR"
        | "quantity" | "isQuantity" | "semver" | "isSemver" => scale(first, TEXT),
        "ip" if overload.id != "cidr_ip" => scale(first, TEXT),
        "replace" | "split" | "ip.isCanonical" => scale(first, 2.0 * TEXT),
        "join" => scale(size(result), 2.0 * TEXT),
        "find" | "findAll" | "matches" => scale(first + 1, TEXT) * scale(second, PATTERN),
        "validate" => match given.first() {
            Some(Value::Format(format)) => scale(second + 1, TEXT) * scale(format.pattern, PATTERN),
            _ => 1,
        },
        "containsIP" | "containsCIDR" => contained(overload, first, second),
        _ => by_overload(overload, given, result),
    }
}

fn contained(overload: &Overload, first: u64, second: u64) -> u64 {
    let compared = scale(first + first, TEXT);
    match overload.id.as_str() {
        "cidr_contains_ip_string" => compared + scale(second, TEXT),
        "cidr_contains_cidr" => compared + scale(first, TEXT) + 1,
        "cidr_contains_cidr_string" => compared + scale(first, TEXT) + 1 + scale(second, TEXT),
        _ => compared,
    }
}

fn by_overload(overload: &Overload, given: &[Value], result: Option<&Value>) -> u64 {
    let first = size(given.first());
    let second = size(given.get(1));
    match overload.id.as_str() {
        "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
        | "strings_quote" | "string_format" => scale(first, TEXT),
        "in_list" => second,
        "equals" | "not_equals" => match given.first() {
            Some(
                Value::Quantity(_)
                | Value::Semver(_)
                | Value::Url(_)
                | Value::Ip(_)
                | Value::Cidr(..)
                | Value::Format(_),
            ) => 1,
            _ => scale(first.min(second), TEXT),
        },
        "add_string" | "add_bytes" => scale(first + second, TEXT),
        "contains_string" => scale(first, TEXT) * scale(second, TEXT),
        "list_slice" | "lists_range" | "list_reverse" => allocated(size(result), 1.0),
        "list_flatten" | "list_flatten_int" => allocated(first, depth(given.get(1))),
        "list_distinct" => compared(given.first()),
        "list_sets_contains_list" | "list_sets_intersects_list" => 1 + first.saturating_mul(second),
        "list_sets_equivalent_list" => 1 + 2 * first.saturating_mul(second),
        id if id.starts_with("list_") && id.ends_with("_sort") => compared(given.first()),
        id if id.ends_with("_sortByAssociatedKeys") => compared(given.get(1)),
        id if is_text_comparison(id) => scale(first.min(second), TEXT),
        _ => 1,
    }
}

/// Whether an overload compares texts or bytes.
pub(super) fn is_text_comparison(id: &str) -> bool {
    let compared = ["less_", "less_equals_", "greater_", "greater_equals_"];
    compared.iter().any(|name| matches!(id.strip_prefix(name), Some("string" | "bytes")))
}

#[expect(clippy::cast_precision_loss, reason = "costs are counted in floats, as by a real server")]
fn depth(value: Option<&Value>) -> f64 {
    match value {
        Some(Value::Int(depth)) => *depth as f64,
        _ => 1.0,
    }
}

fn allocated(count: u64, factor: f64) -> u64 {
    scale(count, factor) + 1 + LIST
}

/// A list whose items are compared with each other.
fn compared(list: Option<&Value>) -> u64 {
    let Some(Value::List(list)) = list else { return 1 };
    let count = list.items.len() as u64;
    let texts = matches!(list.items.front(), Some(Value::Text(_) | Value::Bytes(_)));
    allocated(count.saturating_mul(count), if texts { 2.0 + TEXT } else { 2.0 })
}

fn traversal(value: &Value) -> u64 {
    match value {
        Value::Text(text) => text.len() as u64 / 10,
        Value::Bytes(bytes) => bytes.len() as u64 / 10,
        Value::List(list) => list.items.iter().map(traversal).sum(),
        Value::Map(members) | Value::Object(members) => {
            members.iter().map(|(key, value)| traversal(&key.value()) + traversal(value)).sum()
        }
        _ => 1,
    }
}
