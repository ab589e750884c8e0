//! Times and durations as text.
//!
//! Answers: which time or duration does this text mean? Formats are Go's.
use jiff::Timestamp;

use super::value::Value;

/// A time in RFC 3339.
pub(super) fn timestamp(text: &str) -> Option<Timestamp> {
    let separated = text.as_bytes().get(10).is_some_and(|letter| letter.eq_ignore_ascii_case(&b't'));
    separated.then(|| text.parse().ok()).flatten()
}

/// A text of the format `date-time`.
pub(crate) fn date_time(text: &str) -> Option<Value> {
    timestamp(text).map(Value::Timestamp)
}

/// A text of the format `date`.
pub(crate) fn date(text: &str) -> Option<Value> {
    timestamp(&format!("{text}T00:00:00Z")).map(Value::Timestamp)
}

/// Nanoseconds of a duration like `1h30m` or `-1.5s`.
pub(crate) fn duration(text: &str) -> Option<i64> {
    const UNITS: [(&str, i64); 8] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut sum = (!rest.is_empty()).then_some(0_i64)?;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (digits, after) = rest.split_at(end);
        let longest =
            UNITS.iter().filter(|(unit, _)| after.starts_with(unit)).max_by_key(|(unit, _)| unit.len());
        let (unit, nanos) = longest?;
        sum = sum.checked_add(part(digits, *nanos)?)?;
        rest = &after[unit.len()..];
    }
    Some(if negative { -sum } else { sum })
}

/// A number with a fraction, in nanoseconds.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a fraction of a unit is rounded down, as in Go"
)]
fn part(digits: &str, nanos: i64) -> Option<i64> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: f64 = if fraction.is_empty() { 0.0 } else { format!("0.{fraction}").parse().ok()? };
    whole.checked_mul(nanos)?.checked_add((fraction * nanos as f64) as i64)
}

/// A duration in seconds, as text.
pub(super) fn seconds(nanos: i64) -> String {
    let (sign, nanos) = if nanos < 0 { ("-", nanos.unsigned_abs()) } else { ("", nanos.unsigned_abs()) };
    let fraction = format!("{:09}", nanos % 1_000_000_000);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{fraction}s", nanos / 1_000_000_000)
}
