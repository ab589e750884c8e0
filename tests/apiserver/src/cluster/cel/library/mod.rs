//! The functions that expressions may call, by name.
//!
//! Answers: which overloads has this function, and what is its result for these arguments? Arguments have the types of
//! the overload; what may be evaluated out of order (`&&`, `?:`, `orValue`) is in `eval.rs`.
//! 1. A row is an overload: its id, name, types of arguments and result as text, and the function.
//! 2. Ids are those of a real server, because costs depend on them.
//!
//! Next: `standard.rs` has the operators.
mod conversions;
pub(super) mod format;
mod lists;
mod net;
mod numbers;
mod optional;
pub(super) mod printf;
mod standard;
mod strings;
mod times;

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::types::{Type, split};
use super::value::Value;
pub(super) use standard::index;

/// The result of a function, or why it fails.
pub(super) type Given = Result<Value, String>;
/// A function of values.
pub(super) type Run = fn(&[Value]) -> Given;
/// A row of a table: id, name, arguments, result, function.
pub(super) type Row = (&'static str, &'static str, &'static str, &'static str, Run);

/// One function for arguments of certain types.
#[derive(Debug)]
pub(crate) struct Overload {
    pub(super) id: String,
    /// Whether it is called on its first argument: `x.f(y)`.
    pub(super) member: bool,
    pub(super) args: Vec<Type>,
    pub(super) result: Type,
    pub(super) run: Run,
}

static LIBRARY: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut library = Library::default();
    standard::add(&mut library);
    conversions::add(&mut library);
    strings::add(&mut library);
    lists::add(&mut library);
    optional::add(&mut library);
    times::add(&mut library);
    numbers::add(&mut library);
    net::add(&mut library);
    format::add(&mut library);
    library.functions
});

/// The overloads of a function; none if there is no such function.
pub(super) fn named(name: &str) -> Option<&'static [Overload]> {
    LIBRARY.get(name).map(Vec::as_slice)
}

#[derive(Default)]
struct Library {
    functions: HashMap<&'static str, Vec<Overload>>,
}

impl Library {
    fn globals(&mut self, rows: &[Row]) {
        rows.iter().for_each(|row| self.row(false, *row));
    }

    fn members(&mut self, rows: &[Row]) {
        rows.iter().for_each(|row| self.row(true, *row));
    }

    fn row(&mut self, member: bool, (id, name, args, result, run): Row) {
        let args = split(args).into_iter().map(Type::read).collect();
        let overload = Overload { id: id.to_owned(), member, args, result: Type::read(result), run };
        self.functions.entry(name).or_default().push(overload);
    }

    /// A member function of lists of several types; `result` is `T` for that type.
    fn of_lists(&mut self, name: &'static str, (of, extra, result): (&[&str], &str, &str), run: Run) {
        for one in of {
            let mut args = vec![Type::list(Type::read(one))];
            args.extend(split(&extra.replace('T', one)).into_iter().map(Type::read));
            let result = Type::read(&result.replace('T', one));
            let id = format!("list_{one}_{name}");
            self.functions.entry(name).or_default().push(Overload { id, member: true, args, result, run });
        }
    }
}

/// The types that have an order.
const ORDERED: [&str; 8] = ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"];

/// The error of a function for arguments that its overload does not accept.
fn no_overload() -> Given {
    Err("no such overload".to_owned())
}

/// A pattern, or Go's error text for it.
///
/// # Errors
/// The words.
pub(super) fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|_| crate::cluster::crd::pattern_words(text))
}

fn text(value: &Value) -> &str {
    match value {
        Value::Text(text) => text,
        _ => "",
    }
}

fn int(value: &Value) -> i64 {
    match value {
        Value::Int(value) => *value,
        _ => 0,
    }
}

/// A position in a text or a list.
fn position(value: i64) -> Option<usize> {
    usize::try_from(value).ok()
}

/// A size as a value of the language.
fn size(count: usize) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}
