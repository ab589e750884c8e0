//! Quantities as rules compute with them: `200M`, `1.5Gi`, `100m`.
//!
//! Answers: how large is it, is it a whole number, how do two compare? Sums are exact to a nano.
//! 1. Whether a quantity counts as an integer depends on how it was written, as in Go: `1000m` does not.
use std::cmp::Ordering;

use cel::ExecutionError;
use cel::common::types::{CelDouble, INT_TYPE, STRING_TYPE};
use cel::common::value::{CowVal, Val};

use super::functions::{Library, failed, give, int, number, of, text, truth, value};
use crate::cluster::schema::quantity::{QuantityError, measured};

value!(Amount(Quantity), "kubernetes.Quantity");

pub(super) fn add(library: &mut Library) {
    library.global("quantity", &[STRING_TYPE], |given| {
        give(Amount(Quantity::read(text(&given, 0)?).map_err(failed)?))
    });
    library.global("isQuantity", &[STRING_TYPE], |given| truth(Quantity::read(text(&given, 0)?).is_ok()));
    let own = || Amount::cel_type().to_owned();
    let two = [own(), own()];
    library.global("sign", &[own()], |given| {
        number(i64::try_from(amount(&given, 0)?.nanos.signum()).unwrap_or_default())
    });
    library.member("isGreaterThan", &two, |given| truth(compare(&given)?.is_gt()));
    library.member("isLessThan", &two, |given| truth(compare(&given)?.is_lt()));
    library.member("compareTo", &two, |given| number(compare(&given)? as i64));
    library.member("asApproximateFloat", &[own()], |given| give(CelDouble::from(amount(&given, 0)?.float())));
    library.member("asInteger", &[own()], |given| {
        number(amount(&given, 0)?.integer().ok_or_else(|| failed("cannot convert value to integer"))?)
    });
    library.member("isInteger", &[own()], |given| truth(amount(&given, 0)?.integer().is_some()));
    library.member("add", &two, |given| give(Amount(amount(&given, 0)?.plus(amount(&given, 1)?))));
    library.member("sub", &two, |given| give(Amount(amount(&given, 0)?.plus(&amount(&given, 1)?.negated()))));
    library.member("add", &[own(), INT_TYPE], |given| {
        give(Amount(amount(&given, 0)?.plus(&Quantity::whole(int(&given, 1)?))))
    });
    library.member("sub", &[own(), INT_TYPE], |given| {
        give(Amount(amount(&given, 0)?.plus(&Quantity::whole(int(&given, 1)?).negated())))
    });
}

fn amount<'b>(given: &'b [CowVal<'_, '_>], at: usize) -> Result<&'b Quantity, ExecutionError> {
    of::<Amount>(given, at).map(|amount| &amount.0)
}

fn compare(given: &[CowVal<'_, '_>]) -> Result<Ordering, ExecutionError> {
    Ok(amount(given, 0)?.nanos.cmp(&amount(given, 1)?.nanos))
}

/// An amount.
#[derive(Debug, Clone)]
pub(crate) struct Quantity {
    nanos: i128,
    /// The power of ten of the last written digit, unless the amount is too large or too fine for that.
    scale: Option<i64>,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Quantity {
    pub(super) fn read(text: &str) -> Result<Self, QuantityError> {
        measured(text).map(|(nanos, scale)| Self { nanos, scale })
    }

    pub(super) fn whole(value: i64) -> Self {
        Self { nanos: i128::from(value) * 1_000_000_000, scale: Some(0) }
    }

    pub(super) fn negated(&self) -> Self {
        Self { nanos: -self.nanos, scale: self.scale }
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
