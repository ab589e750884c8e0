//! Quantities in the form of the API: `100m`, `1Gi`, `12e6`.
//!
//! Answers: is this text a quantity, and how does a Go server write it again? `1024Mi` comes back as `1Gi`, `0.5` as
//! `500m`.
//! 1. The written quantity is the same amount, rounded up to a billionth; an amount in binary units ends at 2^63-1.
//! 2. A text without trailing zeros that could move into its unit is kept unchanged, `+1` and `1.500` too.
//! 3. No digit is lost by floating point, and the work is bounded by the length of the text.
use std::borrow::Cow;

const FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NUMERIC: &str = "unable to parse numeric part of quantity";
const SUFFIX: &str = "unable to parse quantity's suffix";

/// The units of ten, by their powers of a thousand from -3 on.
const DECIMAL_UNITS: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// The units of 1024, by their powers from 1 on.
const BINARY_UNITS: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// Amounts of no more digits are kept in an integer, which keeps their spelling.
const INTEGER_DIGITS: i64 = 18;
const NANO: i64 = -9;
const MILLI: i64 = -3;

/// Why a text is not an amount, with the text of the real server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct QuantityError(&'static str);

/// How an amount was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Decimal,
    Binary,
    Exponent,
}

/// The parts of the text of an amount.
struct Parts<'a> {
    negative: bool,
    /// Before the point, without leading zeros; `0` if nothing is left.
    whole: &'a str,
    fraction: &'a str,
    unit: &'a str,
}

/// An amount: digits and a power of ten.
struct Amount {
    negative: bool,
    /// Most significant first, without leading zeros; empty for zero.
    digits: Vec<u8>,
    power: i64,
    format: Format,
}

/// The same amount as the API writes it.
///
/// # Errors
/// If the text is not an amount.
pub(crate) fn canonical(text: &str) -> Result<Cow<'_, str>, QuantityError> {
    let text = text.trim();
    if text == "0" {
        return Ok(Cow::Borrowed(text));
    }
    match amount(text)? {
        (_, true) => Ok(Cow::Borrowed(text)),
        (amount, false) => Ok(Cow::Owned(amount.text())),
    }
}

/// The same, rounded up to a thousandth, as amounts of resources are.
///
/// # Errors
/// If the text is not an amount.
pub(crate) fn canonical_milli(text: &str) -> Result<Cow<'_, str>, QuantityError> {
    let (mut milli, _) = amount(text.trim())?;
    if milli.power >= MILLI {
        return canonical(text);
    }
    milli.round_up(MILLI);
    Ok(Cow::Owned(milli.text()))
}

/// How many billionths an amount is; none for a text that is not an amount, or is too large.
pub(crate) fn nanos(text: &str) -> Option<i128> {
    let (amount, _) = amount(text.trim()).ok()?;
    let mut value = 0_i128;
    for digit in &amount.digits {
        value = value.checked_mul(10)?.checked_add(i128::from(*digit))?;
    }
    let scale = 10_i128.checked_pow(u32::try_from(amount.power - NANO).ok()?)?;
    value.checked_mul(if amount.negative { -scale } else { scale })
}

/// How many billionths an amount is, and the power of ten of its last digit, if a Go server keeps it in an
/// integer.
///
/// # Errors
/// If the text is not an amount, or it is too large.
#[cfg(feature = "cel")]
pub(crate) fn measured(text: &str) -> Result<(i128, Option<i64>), QuantityError> {
    let parts = Parts::read(text)?;
    let (format, exponent) = unit(parts.unit)?;
    let power = parts.integer(format, exponent)?.map(|amount| amount.power);
    Ok((nanos(text).ok_or(QuantityError(NUMERIC))?, power))
}

/// The sum of two amounts, in the unit of the first; only the first if one of them is not an amount.
pub(crate) fn add(one: &str, other: &str) -> String {
    let sum = || {
        let (mut amount, _) = amount(one.trim()).ok()?;
        let sum = nanos(one)?.checked_add(nanos(other)?)?;
        let digits = if sum == 0 { String::new() } else { sum.unsigned_abs().to_string() };
        amount.digits = digits.bytes().map(|digit| digit - b'0').collect();
        (amount.negative, amount.power) = (sum < 0, NANO);
        Some(amount.text())
    };
    sum().unwrap_or_else(|| one.to_owned())
}

/// The amount of a text, and whether its form is kept.
fn amount(text: &str) -> Result<(Amount, bool), QuantityError> {
    let parts = Parts::read(text)?;
    let (format, exponent) = unit(parts.unit)?;
    Ok(match parts.integer(format, exponent)? {
        Some(amount) => {
            let kept = parts.is_kept(&amount, exponent);
            (amount, kept)
        }
        None => (parts.decimal(format, exponent), false),
    })
}

impl<'a> Parts<'a> {
    fn read(text: &'a str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError(FORMAT));
        }
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (_, rest) = split(unsigned, |letter| letter == '0');
        let (whole, rest) = split(rest, |letter| letter.is_ascii_digit());
        // A number of only zeros is zero, in any form.
        let whole = if whole.is_empty() { "0" } else { whole };
        let (fraction, unit) = match rest.strip_prefix('.') {
            Some(rest) => split(rest, |letter| letter.is_ascii_digit()),
            None => ("", rest),
        };
        let (_, rest) = split(unit, |letter| "eEinumkKMGTP".contains(letter));
        let (_, rest) =
            split(rest.strip_prefix(['+', '-']).unwrap_or(rest), |letter| letter.is_ascii_digit());
        if !rest.is_empty() {
            return Err(QuantityError(FORMAT));
        }
        Ok(Self { negative: text.starts_with('-'), whole, fraction, unit })
    }

    fn digits(&self) -> Vec<u8> {
        let digits = self.whole.bytes().chain(self.fraction.bytes()).map(|digit| digit - b'0');
        digits.skip_while(|digit| *digit == 0).collect()
    }

    /// The amount as a Go server keeps it in an integer, if it does: few digits, and no more than nine places.
    fn integer(&self, format: Format, exponent: i64) -> Result<Option<Amount>, QuantityError> {
        let given = count(self.whole) + count(self.fraction);
        let (room, power) = match format {
            Format::Binary if self.fraction.is_empty() => (15 - count(self.whole) - exponent * 3 / 10 - 1, 0),
            Format::Binary => (-1, 0),
            Format::Decimal | Format::Exponent => (INTEGER_DIGITS - given, exponent - count(self.fraction)),
        };
        if room < 0 || power < NANO {
            return Ok(None);
        }
        let digits = self.digits();
        let value = digits
            .iter()
            .try_fold(0_i64, |value, digit| value.checked_mul(10)?.checked_add(i64::from(*digit)));
        let value = value.ok_or(QuantityError(NUMERIC))?;
        let value = if format == Format::Binary { value.checked_mul(1 << exponent) } else { Some(value) };
        let digits = value.map(digits_of);
        Ok(digits.map(|digits| Amount { negative: self.negative, digits, power, format }))
    }

    /// Whether a Go server keeps the spelling of an amount that it has in an integer.
    fn is_kept(&self, amount: &Amount, exponent: i64) -> bool {
        let shifted = [self.whole, self.fraction].concat();
        match amount.format {
            Format::Binary => {
                let last =
                    self.digits().iter().fold(0_u64, |value, digit| (value * 10 + u64::from(*digit)) % 8);
                exponent % 10 == 0 && last != 0
            }
            Format::Decimal | Format::Exponent => {
                amount.power % 3 == 0 && !shifted.ends_with("000") && !shifted.starts_with('0')
            }
        }
    }

    /// The amount with all its digits.
    fn decimal(&self, format: Format, exponent: i64) -> Amount {
        let power = -count(self.fraction);
        let mut amount = Amount { negative: self.negative, digits: self.digits(), power, format };
        if format == Format::Binary {
            (0..exponent / 10).for_each(|_| amount.multiply(1_024));
        } else {
            amount.power += exponent;
        }
        amount.round_up(NANO);
        if format == Format::Binary {
            amount.cap();
            if amount.is_below_one() {
                amount.format = Format::Decimal;
            }
        }
        amount
    }
}

fn count(digits: &str) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX / 4)
}

fn split(text: &str, of: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|letter| !of(letter)).unwrap_or(text.len()))
}

fn digits_of(value: i64) -> Vec<u8> {
    let text = if value == 0 { String::new() } else { value.to_string() };
    text.bytes().map(|digit| digit - b'0').collect()
}

/// How a unit is written, and its power of ten or of two.
fn unit(unit: &str) -> Result<(Format, i64), QuantityError> {
    let place =
        |units: &[&str]| units.iter().position(|known| *known == unit).and_then(|at| i64::try_from(at).ok());
    if let Some(at) = place(&DECIMAL_UNITS) {
        return Ok((Format::Decimal, (at - 3) * 3));
    }
    if let Some(at) = place(&BINARY_UNITS) {
        return Ok((Format::Binary, (at + 1) * 10));
    }
    let exponent = unit.strip_prefix(['e', 'E']).and_then(|exponent| exponent.parse::<i64>().ok());
    // A Go server keeps the lower half of what it reads.
    exponent.map(|exponent| (Format::Exponent, i64::from(exponent as i32))).ok_or(QuantityError(SUFFIX))
}

impl Amount {
    fn multiply(&mut self, factor: u32) {
        let mut carry = 0_u32;
        for digit in self.digits.iter_mut().rev() {
            let product = u32::from(*digit) * factor + carry;
            *digit = u8::try_from(product % 10).expect("a digit is below ten");
            carry = product / 10;
        }
        while carry > 0 {
            self.digits.insert(0, u8::try_from(carry % 10).expect("a digit is below ten"));
            carry /= 10;
        }
    }

    /// Rounds away from zero to a power of ten.
    fn round_up(&mut self, power: i64) {
        let excess = power - self.power;
        if excess <= 0 || self.digits.is_empty() {
            return;
        }
        let kept = self.digits.len().saturating_sub(usize::try_from(excess).unwrap_or(usize::MAX));
        let lost = self.digits.split_off(kept);
        self.power = power;
        if lost.iter().any(|digit| *digit != 0) {
            self.increment();
        }
    }

    fn increment(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            if *digit < 9 {
                *digit += 1;
                return;
            }
            *digit = 0;
        }
        self.digits.insert(0, 1);
    }

    /// How many digits stand before the point.
    fn magnitude(&self) -> i64 {
        i64::try_from(self.digits.len()).unwrap_or(i64::MAX / 4) + self.power
    }

    fn is_below_one(&self) -> bool {
        !self.digits.is_empty() && self.magnitude() <= 0
    }

    /// The amount as an integer, if it is one and not too large for Go's.
    fn whole(&self) -> Option<i64> {
        let mut value = 0_i64;
        for at in 0..self.magnitude().max(0) {
            let digit = usize::try_from(at).ok().and_then(|at| self.digits.get(at)).copied().unwrap_or(0);
            value = value.checked_mul(10)?.checked_add(i64::from(digit))?;
        }
        let places = usize::try_from(self.magnitude().max(0)).unwrap_or(usize::MAX);
        let exact = self.digits.iter().skip(places).all(|digit| *digit == 0);
        (exact && (self.magnitude() > 0 || self.digits.is_empty())).then_some(value)
    }

    fn cap(&mut self) {
        let most = digits_of(i64::MAX);
        let length = i64::try_from(most.len()).unwrap_or(i64::MAX);
        let beyond = |amount: &Self| {
            let head: Vec<u8> =
                amount.digits.iter().copied().chain(std::iter::repeat(0)).take(most.len()).collect();
            let more = amount.digits.iter().skip(most.len()).any(|digit| *digit != 0);
            head > most || (head == most && more)
        };
        if self.magnitude() > length || (self.magnitude() == length && beyond(self)) {
            (self.digits, self.power) = (most, 0);
        }
    }

    fn text(mut self) -> String {
        if self.digits.is_empty() {
            return "0".to_owned();
        }
        let sign = if self.negative { "-" } else { "" };
        if self.format == Format::Binary {
            match self.whole() {
                Some(whole) if whole >= 1_024 => return format!("{sign}{}", binary(whole)),
                _ => self.format = Format::Decimal,
            }
        }
        while self.digits.last() == Some(&0) {
            self.digits.pop();
            self.power += 1;
        }
        while self.power % 3 != 0 {
            self.digits.push(0);
            self.power -= 1;
        }
        let number: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let unit = match (self.format, self.power) {
            (Format::Exponent, 0) => String::new(),
            (Format::Exponent, power) => format!("e{power}"),
            // Beyond the largest unit a Go server writes none.
            (_, power) => {
                let unit = usize::try_from(power / 3 + 3).ok().and_then(|at| DECIMAL_UNITS.get(at));
                unit.copied().unwrap_or_default().to_owned()
            }
        };
        format!("{sign}{number}{unit}")
    }
}

/// A whole number with the largest unit of 1024 that divides it.
fn binary(mut whole: i64) -> String {
    let mut unit = "";
    for larger in BINARY_UNITS {
        if whole % 1_024 != 0 {
            break;
        }
        whole /= 1_024;
        unit = larger;
    }
    format!("{whole}{unit}")
}

#[cfg(test)]
mod tests;
