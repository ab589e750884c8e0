//! Texts: search, parts, case, patterns.
//!
//! Answers: what is the result of `indexOf`, `split`, `matches`, `findAll` and similar functions? Positions count
//! characters, not bytes.
use super::{Given, Library, int, no_overload, pattern, position, printf, size, text};
use crate::cluster::cel::value::Value;

pub(super) fn add(library: &mut Library) {
    library.members(&[
        ("contains_string", "contains", "string, string", "bool", |given| {
            Ok(Value::Bool(text(&given[0]).contains(text(&given[1]))))
        }),
        ("ends_with_string", "endsWith", "string, string", "bool", |given| {
            Ok(Value::Bool(text(&given[0]).ends_with(text(&given[1]))))
        }),
        ("starts_with_string", "startsWith", "string, string", "bool", |given| {
            Ok(Value::Bool(text(&given[0]).starts_with(text(&given[1]))))
        }),
        ("matches_string", "matches", "string, string", "bool", matches),
        ("string_char_at_int", "charAt", "string, int", "string", char_at),
        ("string_index_of_string", "indexOf", "string, string", "int", index_of),
        ("string_index_of_string_int", "indexOf", "string, string, int", "int", index_of),
        ("string_last_index_of_string", "lastIndexOf", "string, string", "int", last_index_of),
        ("string_last_index_of_string_int", "lastIndexOf", "string, string, int", "int", last_index_of),
        ("string_lower_ascii", "lowerAscii", "string", "string", |given| {
            Ok(Value::text(text(&given[0]).to_ascii_lowercase()))
        }),
        ("string_upper_ascii", "upperAscii", "string", "string", |given| {
            Ok(Value::text(text(&given[0]).to_ascii_uppercase()))
        }),
        ("string_replace_string_string", "replace", "string, string, string", "string", replace),
        ("string_replace_string_string_int", "replace", "string, string, string, int", "string", replace),
        ("string_split_string", "split", "string, string", "list(string)", split),
        ("string_split_string_int", "split", "string, string, int", "list(string)", split),
        ("string_substring_int", "substring", "string, int", "string", substring),
        ("string_substring_int_int", "substring", "string, int, int", "string", substring),
        ("string_trim", "trim", "string", "string", |given| Ok(Value::text(text(&given[0]).trim()))),
        ("string_format", "format", "string, list(dyn)", "string", printf::run),
        ("list_join", "join", "list(string)", "string", join),
        ("list_join_string", "join", "list(string), string", "string", join),
        ("string_find_string", "find", "string, string", "string", find),
        ("string_find_all_string", "findAll", "string, string", "list(string)", find_all),
        ("string_find_all_string_int", "findAll", "string, string, int", "list(string)", find_all),
    ]);
    library.globals(&[
        ("matches", "matches", "string, string", "bool", matches),
        ("strings_quote", "strings.quote", "string", "string", |given| {
            Ok(Value::text(quoted(text(&given[0]))))
        }),
    ]);
}

fn matches(given: &[Value]) -> Given {
    Ok(Value::Bool(pattern(text(&given[1]))?.is_match(text(&given[0]))))
}

fn characters(value: &Value) -> Vec<char> {
    text(value).chars().collect()
}

fn out_of_range(at: i64) -> String {
    format!("index out of range: {at}")
}

fn char_at(given: &[Value]) -> Given {
    let (characters, at) = (characters(&given[0]), int(&given[1]));
    match position(at).filter(|at| *at <= characters.len()) {
        Some(at) => Ok(Value::text(characters.get(at).map(char::to_string).unwrap_or_default())),
        None => Err(out_of_range(at)),
    }
}

fn index_of(given: &[Value]) -> Given {
    let (all, wanted) = (characters(&given[0]), characters(&given[1]));
    let from = given.get(2).map_or(0, int);
    let from = position(from).ok_or_else(|| out_of_range(from))?;
    if wanted.is_empty() {
        return Ok(size(from));
    }
    let found = all.windows(wanted.len()).skip(from).position(|part| part == wanted);
    Ok(found.map_or(Value::Int(-1), |at| size(at + from)))
}

fn last_index_of(given: &[Value]) -> Given {
    let (all, wanted) = (characters(&given[0]), characters(&given[1]));
    let until = match given.get(2).map(int) {
        Some(until) => position(until).ok_or_else(|| out_of_range(until))?,
        None => all.len(),
    };
    if wanted.is_empty() {
        return Ok(size(until.min(all.len())));
    }
    let found = all.windows(wanted.len()).take(until.saturating_add(1)).rposition(|part| part == wanted);
    Ok(found.map_or(Value::Int(-1), size))
}

fn replace(given: &[Value]) -> Given {
    let (all, old, new) = (text(&given[0]), text(&given[1]), text(&given[2]));
    let replaced = match given.get(3).map(int) {
        Some(count) if count >= 0 => all.replacen(old, new, position(count).unwrap_or_default()),
        _ => all.replace(old, new),
    };
    Ok(Value::text(replaced))
}

fn split(given: &[Value]) -> Given {
    let (all, by) = (text(&given[0]), text(&given[1]));
    let count = given.get(2).map_or(-1, int);
    if count == 0 {
        return Ok(std::iter::empty().collect());
    }
    let most = position(count).unwrap_or(usize::MAX);
    if !by.is_empty() {
        return Ok(all.splitn(most, by).map(Value::text).collect());
    }
    let mut parts: Vec<String> = all.chars().map(String::from).collect();
    if parts.len() > most {
        let rest = parts.split_off(most - 1).concat();
        parts.push(rest);
    }
    Ok(parts.iter().map(Value::text).collect())
}

fn substring(given: &[Value]) -> Given {
    let all = characters(&given[0]);
    let length = i64::try_from(all.len()).unwrap_or(i64::MAX);
    let start = int(&given[1]);
    let end = given.get(2).map_or(length, int);
    let inside = |at: i64| (0..=length).contains(&at);
    if given.len() > 2 && start > end {
        return Err(format!("invalid substring range. start: {start}, end: {end}"));
    }
    if let Some(wrong) = [start, end].into_iter().find(|at| !inside(*at)) {
        return Err(out_of_range(wrong));
    }
    let (start, end) = (position(start).unwrap_or_default(), position(end).unwrap_or_default());
    Ok(Value::text(all[start..end].iter().collect::<String>()))
}

fn join(given: &[Value]) -> Given {
    let Value::List(list) = &given[0] else { return no_overload() };
    let between = given.get(1).map_or("", text);
    Ok(Value::text(list.items.iter().map(text).collect::<Vec<_>>().join(between)))
}

fn find(given: &[Value]) -> Given {
    let pattern = pattern(text(&given[1])).map_err(|words| format!("Illegal regex: {words}"))?;
    Ok(Value::text(pattern.find(text(&given[0])).map_or("", |found| found.as_str())))
}

fn find_all(given: &[Value]) -> Given {
    let pattern = pattern(text(&given[1])).map_err(|words| format!("Illegal regex: {words}"))?;
    let most = given.get(2).map(int).and_then(position).unwrap_or(usize::MAX);
    Ok(pattern.find_iter(text(&given[0])).take(most).map(|found| Value::text(found.as_str())).collect())
}

/// The text in double quotes, with escapes.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
