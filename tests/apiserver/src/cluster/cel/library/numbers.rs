//! Quantities and versions.
//!
//! Answers: what is the result of `quantity` and `semver` for a text, and how are two of them compared?
use super::{Given, Library, int, no_overload, text};
use crate::cluster::cel::quantity::Quantity;
use crate::cluster::cel::semver::Version;
use crate::cluster::cel::value::Value;

pub(super) fn add(library: &mut Library) {
    quantities(library);
    library.globals(&[
        ("string_to_semver", "semver", "string", "semver", semver),
        ("string_bool_to_semver", "semver", "string, bool", "semver", semver),
        ("is_semver_string", "isSemver", "string", "bool", |given| Ok(Value::Bool(semver(given).is_ok()))),
        ("is_semver_string_bool", "isSemver", "string, bool", "bool", |given| {
            Ok(Value::Bool(semver(given).is_ok()))
        }),
    ]);
    library.members(&[
        ("semver_is_greater_than", "isGreaterThan", "semver, semver", "bool", |given| {
            versions(given).map(|order| Value::Bool(order > 0))
        }),
        ("semver_is_less_than", "isLessThan", "semver, semver", "bool", |given| {
            versions(given).map(|order| Value::Bool(order < 0))
        }),
        ("semver_compare_to", "compareTo", "semver, semver", "int", |given| versions(given).map(Value::Int)),
        ("semver_major", "major", "semver", "int", |given| part(given, |version| version.major)),
        ("semver_minor", "minor", "semver", "int", |given| part(given, |version| version.minor)),
        ("semver_patch", "patch", "semver", "int", |given| part(given, |version| version.patch)),
    ]);
}

fn quantities(library: &mut Library) {
    library.globals(&[
        ("string_to_quantity", "quantity", "string", "quantity", |given| {
            Quantity::read(text(&given[0])).map(|quantity| Value::Quantity(quantity.into()))
        }),
        ("is_quantity_string", "isQuantity", "string", "bool", |given| {
            Ok(Value::Bool(Quantity::read(text(&given[0])).is_ok()))
        }),
        ("quantity_sign", "sign", "quantity", "int", |given| {
            of(given, |quantity| Value::Int(quantity.sign()))
        }),
    ]);
    library.members(&[
        ("quantity_is_greater_than", "isGreaterThan", "quantity, quantity", "bool", |given| {
            both(given).map(|(a, b)| Value::Bool(a.compare(b).is_gt()))
        }),
        ("quantity_is_less_than", "isLessThan", "quantity, quantity", "bool", |given| {
            both(given).map(|(a, b)| Value::Bool(a.compare(b).is_lt()))
        }),
        ("quantity_compare_to", "compareTo", "quantity, quantity", "int", |given| {
            both(given).map(|(a, b)| Value::Int(a.compare(b) as i64))
        }),
        ("quantity_get_float", "asApproximateFloat", "quantity", "double", |given| {
            of(given, |quantity| Value::Double(quantity.float()))
        }),
        ("quantity_get_int", "asInteger", "quantity", "int", |given| match given {
            [Value::Quantity(quantity)] => {
                quantity.integer().map(Value::Int).ok_or_else(|| "cannot convert value to integer".to_owned())
            }
            _ => no_overload(),
        }),
        ("quantity_is_integer", "isInteger", "quantity", "bool", |given| {
            of(given, |quantity| Value::Bool(quantity.integer().is_some()))
        }),
        ("quantity_add", "add", "quantity, quantity", "quantity", |given| {
            both(given).map(|(a, b)| Value::Quantity(a.plus(b).into()))
        }),
        ("quantity_add_int", "add", "quantity, int", "quantity", |given| match given {
            [Value::Quantity(own), by] => Ok(Value::Quantity(own.plus(&Quantity::whole(int(by))).into())),
            _ => no_overload(),
        }),
        ("quantity_sub", "sub", "quantity, quantity", "quantity", |given| {
            both(given).map(|(a, b)| Value::Quantity(a.plus(&b.negated()).into()))
        }),
        ("quantity_sub_int", "sub", "quantity, int", "quantity", |given| match given {
            [Value::Quantity(own), by] => {
                Ok(Value::Quantity(own.plus(&Quantity::whole(int(by)).negated()).into()))
            }
            _ => no_overload(),
        }),
    ]);
}

fn of(given: &[Value], of: fn(&Quantity) -> Value) -> Given {
    match given.first() {
        Some(Value::Quantity(quantity)) => Ok(of(quantity)),
        _ => no_overload(),
    }
}

fn both(given: &[Value]) -> Result<(&Quantity, &Quantity), String> {
    match given {
        [Value::Quantity(a), Value::Quantity(b)] => Ok((a, b)),
        _ => Err("no such overload".to_owned()),
    }
}

fn semver(given: &[Value]) -> Given {
    let lenient = matches!(given.get(1), Some(Value::Bool(true)));
    let read =
        if lenient { Version::read_leniently(text(&given[0])) } else { Version::read(text(&given[0])) };
    read.map(|version| Value::Semver(version.into()))
}

fn versions(given: &[Value]) -> Result<i64, String> {
    match given {
        [Value::Semver(a), Value::Semver(b)] => Ok(a.compare(b) as i64),
        _ => Err("no such overload".to_owned()),
    }
}

fn part(given: &[Value], of: fn(&Version) -> u64) -> Given {
    match given {
        [Value::Semver(version)] => Ok(Value::Int(i64::try_from(of(version)).unwrap_or(i64::MAX))),
        _ => no_overload(),
    }
}
