//! The checks of formats of texts and numbers: times, base64, quantities, sizes of integers.
//!
//! Answers: is this scalar valid, and if not, what is the error of Go's decoder?
//! 1. The sentences are those of the real server.
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Number;

use super::model::Format;
use super::{quantity, time};

/// Whether the number is an integer of this size. `1.0` is not an integer, as in Go.
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
        Format::DateTime => time::time(text).err(),
        Format::MicroTime => time::micro_time(text).err(),
        Format::Byte => STANDARD.decode(text).err().map(|error| {
            let at = match error {
                base64::DecodeError::InvalidByte(at, _) => at,
                base64::DecodeError::InvalidLastSymbol(at, _) => at,
                base64::DecodeError::InvalidLength(at) => at / 4 * 4,
                base64::DecodeError::InvalidPadding => text.trim_end_matches('=').len(),
            };
            format!("illegal base64 data at input byte {at}")
        }),
        _ => None,
    }
}

/// Why the text is not a quantity, if it is not.
pub(super) fn refuse_quantity(text: &str) -> Option<String> {
    quantity::canonical(text).err().map(|error| error.to_string())
}
