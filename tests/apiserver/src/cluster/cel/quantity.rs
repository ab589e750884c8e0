//! Quantities as rules compute with them: `200M`, `1.5Gi`, `100m`.
//!
//! Answers: how large is it, is it a whole number, how do two compare? Sums are exact to a nano.
//! 1. Whether a quantity counts as an integer depends on how it was written, as in Go: `1000m` does not.
use std::cmp::Ordering;

use crate::cluster::schema::is_quantity;

const REFUSED: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// An amount.
#[derive(Debug, Clone)]
pub(crate) struct Quantity {
    nanos: i128,
    /// The power of ten of the last written digit, unless the amount is too large or too fine for that.
    scale: Option<i32>,
}

impl Quantity {
    /// Reads a quantity.
    ///
    /// # Errors
    /// The words of a real server.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let refused = || REFUSED.to_owned();
        if !is_quantity(text) {
            return Err(refused());
        }
        let (negative, bare) = match text.strip_prefix('-') {
            Some(bare) => (true, bare),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = bare.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(bare.len());
        let (digits, suffix) = bare.split_at(end);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let whole = whole.trim_start_matches('0');
        let (ten, two) = powers(suffix).ok_or_else(refused)?;
        let length = i32::try_from(fraction.len()).map_err(|_| refused())?;
        let digits: i128 = format!("0{whole}{fraction}").parse().map_err(|_| refused())?;
        let scaled = digits.checked_shl(two).filter(|scaled| scaled >> two == digits);
        let nanos = scaled.and_then(|scaled| power(scaled, ten - length + 9)).ok_or_else(refused)?;
        let short = whole.len() + fraction.len() <= if two > 0 { 15 } else { 18 };
        let exact = short && (two == 0 || fraction.is_empty());
        let scale = exact.then_some(ten - length).filter(|scale| *scale >= -9);
        Ok(Self { nanos: if negative { -nanos } else { nanos }, scale })
    }

    pub(super) fn whole(value: i64) -> Self {
        Self { nanos: i128::from(value) * 1_000_000_000, scale: Some(0) }
    }

    pub(super) fn sign(&self) -> i64 {
        i64::try_from(self.nanos.signum()).unwrap_or_default()
    }

    pub(super) fn negated(&self) -> Self {
        Self { nanos: -self.nanos, scale: self.scale }
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        let nanos = self.nanos.saturating_add(other.nanos);
        let scale = match (self.nanos, other.nanos) {
            (_, 0) => self.scale,
            (0, _) => other.scale,
            _ => self.scale.zip(other.scale).map(|(a, b)| a.min(b)),
        };
        Self { nanos, scale }
    }

    /// The amount, if it was written as a whole number that fits.
    pub(super) fn integer(&self) -> Option<i64> {
        self.scale.filter(|scale| *scale >= 0)?;
        i64::try_from(self.nanos / 1_000_000_000).ok()
    }

    #[expect(clippy::cast_precision_loss, reason = "the float is said to be approximate")]
    pub(super) fn float(&self) -> f64 {
        self.nanos as f64 / 1e9
    }
}

/// The powers of ten and of two of a suffix.
fn powers(suffix: &str) -> Option<(i32, u32)> {
    Some(match suffix {
        "" => (0, 0),
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        other => (other.strip_prefix(['e', 'E'])?.parse().ok()?, 0),
    })
}

/// A number times a power of ten; parts finer than a nano are rounded up.
fn power(value: i128, exponent: i32) -> Option<i128> {
    let by = 10_i128.checked_pow(exponent.unsigned_abs());
    if exponent >= 0 { value.checked_mul(by?) } else { Some(by.map_or(0, |by| (value + by - 1) / by)) }
}
