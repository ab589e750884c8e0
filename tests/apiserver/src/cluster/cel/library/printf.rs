//! `'%s is %d'.format([..])`.
//!
//! Answers: what is the result for a text with clauses, and does each clause have an argument of its type? The check
//! before a run and the run share the parser of clauses.
use super::conversions::shown;
use super::{Given, no_overload, text};
use crate::cluster::cel::types::Type;
use crate::cluster::cel::value::Value;

const FAILED: &str = "error during formatting: ";

/// A part of a text with clauses.
enum Piece<'a> {
    Text(&'a str),
    Clause(char, Option<usize>),
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        pieces.push(Piece::Text(&rest[..at]));
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            pieces.push(Piece::Text("%"));
            rest = after;
            continue;
        }
        let mut precision = None;
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
            precision = Some(after[..end].parse().map_err(|_| {
                "could not parse formatting clause: unable to find end of precision specifier".to_owned()
            })?);
            rest = &after[end..];
        }
        let letter = rest.chars().next().ok_or("unexpected end of string")?;
        if !"sdfebxXo".contains(letter) {
            return Err(format!(
                "could not parse formatting clause: unrecognized formatting clause {:?}",
                letter.to_string()
            ));
        }
        pieces.push(Piece::Clause(letter, precision));
        rest = &rest[letter.len_utf8()..];
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

/// Checks clauses against the types of arguments.
///
/// # Errors The error text, and the argument it is about.
pub(in crate::cluster::cel) fn check(text: &str, types: &[(u64, Type)]) -> Result<(), (Option<u64>, String)> {
    let pieces = pieces(text).map_err(|words| (None, words))?;
    let mut at = 0;
    for piece in pieces {
        let Piece::Clause(letter, _) = piece else { continue };
        let (id, of) = types.get(at).ok_or_else(|| (None, format!("index {at} out of range")))?;
        at += 1;
        if let Some(words) = refuse(letter, of) {
            return Err((Some(*id), format!("{FAILED}{words}")));
        }
    }
    match at.cmp(&types.len()) {
        std::cmp::Ordering::Less => Err((
            None,
            format!("too many arguments supplied to string.format (expected {at}, got {})", types.len()),
        )),
        _ => Ok(()),
    }
}

fn refuse(letter: char, of: &Type) -> Option<String> {
    let name = of.runtime_name();
    match (letter, of) {
        (_, Type::Dyn) | ('s' | 'd', Type::Int | Type::Uint) => None,
        ('s', Type::Object(_) | Type::Library(_) | Type::Optional(_)) => Some(format!(
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given {name}"
        )),
        ('s', _) => None,
        ('d', _) => Some(format!("decimal clause can only be used on integers, was given {name}")),
        ('f' | 'e', Type::Double | Type::Int | Type::Uint) => None,
        ('f', _) => Some(format!("fixed-point clause can only be used on doubles, was given {name}")),
        ('e', _) => Some(format!("scientific clause can only be used on doubles, was given {name}")),
        ('b', Type::Int | Type::Uint | Type::Bool) => None,
        ('b', _) => Some(format!("only integers and bools can be formatted as binary, was given {name}")),
        ('x' | 'X', Type::Int | Type::Uint | Type::Text | Type::Bytes) => None,
        ('x' | 'X', _) => Some(format!(
            "only integers, byte buffers, and strings can be formatted as hex, was given {name}"
        )),
        (_, Type::Int | Type::Uint) => None,
        _ => Some(format!("octal clause can only be used on integers, was given {name}")),
    }
}

/// The text with its clauses replaced.
pub(super) fn run(given: &[Value]) -> Given {
    let Value::List(arguments) = &given[1] else { return no_overload() };
    let mut arguments = arguments.items.iter().enumerate();
    let count = arguments.len();
    let mut done = String::new();
    for piece in pieces(text(&given[0]))? {
        match piece {
            Piece::Text(text) => done.push_str(text),
            Piece::Clause(letter, precision) => {
                let (_, value) = arguments.next().ok_or_else(|| format!("index {count} out of range"))?;
                done.push_str(&filled(letter, precision, value)?);
            }
        }
    }
    Ok(Value::text(done))
}

fn filled(letter: char, precision: Option<usize>, value: &Value) -> Result<String, String> {
    let failed = |words: String| format!("{FAILED}{words}");
    let of = value.type_of();
    let whole = match value {
        Value::Int(value) => Some(i128::from(*value)),
        Value::Uint(value) => Some(i128::from(*value)),
        Value::Bool(value) if letter == 'b' => Some(i128::from(*value)),
        _ => None,
    };
    if let Some(words) = refuse(letter, &of) {
        return Err(failed(words));
    }
    let sign = if whole.is_some_and(|whole| whole < 0) { "-" } else { "" };
    let size = whole.map(i128::unsigned_abs);
    Ok(match (letter, size, value) {
        ('s', _, value) => plain(value),
        ('d', Some(size), _) => format!("{sign}{size}"),
        ('b', Some(size), _) => format!("{sign}{size:b}"),
        ('o', Some(size), _) => format!("{sign}{size:o}"),
        ('x', Some(size), _) => format!("{sign}{size:x}"),
        ('X', Some(size), _) => format!("{sign}{size:X}"),
        ('x', _, Value::Text(text)) => hex(text.as_bytes()),
        ('X', _, Value::Text(text)) => hex(text.as_bytes()).to_uppercase(),
        ('x', _, Value::Bytes(bytes)) => hex(bytes),
        ('X', _, Value::Bytes(bytes)) => hex(bytes).to_uppercase(),
        (_, _, value) => {
            let number: f64 = shown(value).parse().unwrap_or_default();
            let precision = precision.unwrap_or(6);
            if letter == 'f' { format!("{number:.precision$}") } else { scientific(number, precision) }
        }
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// As Go's printer for English writes it: `1.500000 × 10⁰⁰`.
fn scientific(number: f64, precision: usize) -> String {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let text = format!("{number:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(("", exponent), |digits| ("⁻", digits));
    let raised = format!("{digits:0>2}");
    let raised: String =
        raised.bytes().filter_map(|digit| RAISED.get(usize::from(digit.wrapping_sub(b'0')))).collect();
    format!("{mantissa} × 10{sign}{raised}")
}

/// A value as `%s` writes it; texts in lists and maps are quoted.
fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        Value::Timestamp(_) | Value::Duration(_) => shown(value),
        other => inner(other),
    }
}

fn inner(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Text(text) => format!("{text:?}"),
        Value::Timestamp(_) => format!("timestamp({:?})", shown(value)),
        Value::Duration(_) => format!("duration({:?})", shown(value)),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::List(list) => {
            let items: Vec<String> = list.items.iter().map(inner).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(members) | Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(key, value)| format!("{}:{}", inner(&key.value()), inner(value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
        other => shown(other),
    }
}
