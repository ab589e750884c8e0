//! Texts that YAML 1.1 would read as something else without quotes: numbers, times, yes and no.
//!
//! Answers: is this text still a text without quotes? The rules are those of Go's YAML, which quotes what its own
//! parser would resolve.
//! 1. A text that only looks like a number in base 60 is quoted too.

use super::write::Version;

/// The words that are not read as texts.
const WORDS: &[&str] = &[
    "", "~", "null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE", ".nan", ".NaN",
    ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF",
];
/// Those that only the second version of Go's YAML reads so.
const OLD_WORDS: &[&str] =
    &["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF"];

/// Whether a parser reads this text, without quotes, as text.
pub(super) fn is_text(text: &str, version: Version) -> bool {
    if WORDS.contains(&text) || (version == Version::Second && OLD_WORDS.contains(&text)) {
        return false;
    }
    match text.as_bytes()[0] {
        b'.' => !is_float(text),
        b'0'..=b'9' | b'+' | b'-' => {
            let joined = text.replace('_', "");
            !(is_time(text) || is_integer(&joined) || is_float(&joined) || is_base_60(text))
        }
        _ => true,
    }
}

/// The rest of a text after one or more digits; none if it does not begin with one.
fn after_digits(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < text.len()).then_some(rest)
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

/// An integer in the notation of Go's literals that fits 64 bits.
fn is_integer(text: &str) -> bool {
    let digits = unsigned(text);
    let prefixed = |prefixes: [&str; 2]| prefixes.iter().find_map(|prefix| digits.strip_prefix(prefix));
    let (digits, radix) = if let Some(digits) = prefixed(["0x", "0X"]) {
        (digits, 16)
    } else if let Some(digits) = prefixed(["0b", "0B"]) {
        (digits, 2)
    } else if let Some(digits) = prefixed(["0o", "0O"]) {
        (digits, 8)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (digits, 8)
    } else {
        (digits, 10)
    };
    if digits.starts_with(['+', '-']) {
        return false;
    }
    let most = match text.as_bytes().first() {
        Some(b'-') => 1 << 63,
        Some(b'+') => i64::MAX.cast_unsigned(),
        _ => u64::MAX,
    };
    u64::from_str_radix(digits, radix).is_ok_and(|value| value <= most)
}

fn is_float(text: &str) -> bool {
    let body = unsigned(text);
    let mantissa = match body.strip_prefix('.') {
        Some(rest) => after_digits(rest),
        None => after_digits(body).map(|rest| match rest.strip_prefix('.') {
            Some(rest) => after_digits(rest).unwrap_or(rest),
            None => rest,
        }),
    };
    let Some(rest) = mantissa else { return false };
    let whole = match rest.strip_prefix(['e', 'E']) {
        Some(exponent) => after_digits(unsigned(exponent)) == Some(""),
        None => rest.is_empty(),
    };
    whole && text.parse::<f64>().is_ok_and(f64::is_finite)
}

fn is_base_60(text: &str) -> bool {
    let mut parts = unsigned(text).split(':');
    let first = parts.next().unwrap_or_default();
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    if !first.starts_with(|c: char| c.is_ascii_digit()) || !digits(first) {
        return false;
    }
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else { return false };
    let part = |text: &str| match text.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [tens, digit] => (b'0'..=b'5').contains(tens) && digit.is_ascii_digit(),
        _ => false,
    };
    let (last, fraction) = last.split_once('.').unwrap_or((last, ""));
    middle.iter().all(|text| part(text)) && part(last) && digits(fraction)
}

/// One or two digits of at most this value, and the rest.
fn small(text: &str, most: u32) -> Option<(u32, &str)> {
    let digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let value = text[..digits].parse().ok().filter(|value| *value <= most)?;
    Some((value, &text[digits..]))
}

/// A date, alone or with a time of day.
fn is_time(text: &str) -> bool {
    let rest = || {
        let year = text.get(..4)?.parse::<u32>().ok().filter(|_| !text.starts_with('+'))?;
        let (month, rest) = small(text[4..].strip_prefix('-')?, 12)?;
        let (day, rest) = small(rest.strip_prefix('-')?, 31)?;
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        (day > 0 && day <= days[(month as usize).checked_sub(1)?]).then_some(rest)
    };
    let Some(rest) = rest() else { return false };
    rest.is_empty() || is_time_of_day(rest).unwrap_or(false)
}

fn is_time_of_day(text: &str) -> Option<bool> {
    let zoned = text.starts_with(['T', 't']);
    let (_, rest) = small(text.strip_prefix(['T', 't', ' '])?, 23)?;
    let (_, rest) = small(rest.strip_prefix(':')?, 59)?;
    let (_, rest) = small(rest.strip_prefix(':')?, 59)?;
    let rest = rest.strip_prefix(['.', ',']).map_or(Some(rest), after_digits)?;
    if !zoned || rest == "Z" {
        return Some(if zoned { rest == "Z" } else { rest.is_empty() });
    }
    let zone = rest.strip_prefix(['+', '-'])?.as_bytes();
    let digits = |at: usize| zone.get(at).is_some_and(u8::is_ascii_digit);
    Some(zone.len() == 5 && zone[2] == b':' && [0, 1, 3, 4].into_iter().all(digits))
}

#[test]
fn a_text_that_go_reads_as_something_else_is_quoted() {
    let texts = "a 1.2.3 v1 0x +1x 1:99 e1 12e _1 2026-13-01 2026-02-30 - + . .. 1e999 nope Y1 0b2 10.0.0.1 99999999999999999999x";
    for text in texts.split(' ') {
        assert!(is_text(text, Version::Second), "{text}");
    }
    let others = "1 -1 +1 0x1f 0b11 0o17 017 1_000 1.5 .5 1. 1e3 -1.5E-3 08 12:30 1:30:00.5 2026-01-02 2026-1-2T3:4:5Z \
        2026-01-02T03:04:05.123456Z 2026-01-02T03:04:05+02:00 y No TRUE off ~ null .inf -.INF 99999999999999999999";
    for text in others.split_whitespace().chain(["", "2026-01-02 03:04:05"]) {
        assert!(!is_text(text, Version::Second), "{text}");
    }
}
