//! What a text or a number must look like to be of a format: times, base64, quantities, sizes of integers.
//!
//! Answers: is this scalar sound, and if not, what does Go's decoder say about it?
//! 1. The sentences are those a client of the real server reads.
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Number;

use super::model::Format;

const TIME: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_TIME: &str = "2006-01-02T15:04:05.000000Z07:00";
const QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Whether the number is an integer of this size. `1.0` is none, as it is none to Go.
pub(super) fn fits(number: &Number, format: Format) -> bool {
    match (number.as_i64(), format) {
        (Some(value), Format::Int32) => i32::try_from(value).is_ok(),
        (Some(_), _) => true,
        (None, _) => false,
    }
}

/// Why the text is not of this format, if it is not.
pub(super) fn refuse(text: &str, format: Format) -> Option<String> {
    match format {
        Format::DateTime => (!is_time(text)).then(|| unparsed(text, TIME)),
        Format::MicroTime => (!(is_time(text) && has_micros(text))).then(|| unparsed(text, MICRO_TIME)),
        Format::Byte => STANDARD.decode(text).err().map(|error| {
            let at = match error {
                base64::DecodeError::InvalidByte(at, _) => at,
                base64::DecodeError::InvalidLastSymbol { offset, .. } => offset,
                base64::DecodeError::InvalidLength(at) => at / 4 * 4,
                base64::DecodeError::InvalidPadding => text.trim_end_matches('=').len(),
            };
            format!("illegal base64 data at input byte {at}")
        }),
        _ => None,
    }
}

fn is_time(text: &str) -> bool {
    text.as_bytes().get(10) == Some(&b'T') && text.parse::<jiff::Timestamp>().is_ok()
}

fn has_micros(text: &str) -> bool {
    let fraction = text.get(19..).and_then(|rest| rest.strip_prefix('.')).unwrap_or_default();
    fraction.bytes().take_while(u8::is_ascii_digit).count() == 6
}

/// Go names the first part of the layout that does not fit.
fn unparsed(text: &str, layout: &str) -> String {
    const PARTS: [(usize, &str); 11] = [
        (4, "2006"),
        (1, "-"),
        (2, "01"),
        (1, "-"),
        (2, "02"),
        (1, "T"),
        (2, "15"),
        (1, ":"),
        (2, "04"),
        (1, ":"),
        (2, "05"),
    ];
    let mut rest = text;
    for (length, part) in PARTS {
        let fits = |head: &str| match part.as_bytes()[0].is_ascii_digit() {
            true => head.bytes().all(|byte| byte.is_ascii_digit()),
            false => head == part,
        };
        match rest.get(..length).filter(|head| fits(head)) {
            Some(_) => rest = &rest[length..],
            None => return format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}"),
        }
    }
    let micros = rest
        .get(7..)
        .filter(|_| rest.starts_with('.') && rest.as_bytes()[1..7].iter().all(u8::is_ascii_digit));
    let (rest, part) = match micros {
        Some(rest) => (rest, "Z07:00"),
        None if layout == MICRO_TIME => (rest, ".000000"),
        None => (rest, "Z07:00"),
    };
    format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}")
}

/// Why the text is not a quantity, if it is not.
pub(super) fn refuse_quantity(text: &str) -> Option<String> {
    (!is_quantity(text)).then(|| QUANTITY.to_owned())
}

/// Whether the text is a quantity: a number with a unit or an exponent.
pub(crate) fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits =
        unsigned.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(digits);
    let sound = number.bytes().any(|byte| byte.is_ascii_digit()) && number.matches('.').count() <= 1;
    let known = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let exponent = suffix.strip_prefix(['e', 'E']).map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest));
    let exponent =
        exponent.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()));
    sound && (known.contains(&suffix) || exponent)
}
