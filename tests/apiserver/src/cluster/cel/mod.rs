//! The rules of schemas in the Common Expression Language.
//!
//! Answers: can this expression be evaluated here, and what is its result for these values? Grammar, values and the run
//! are the `cel` crate's; Kubernetes' functions are added here.
//! 1. An expression is read once, and never changes.
//! 2. What is not there (a variable, a function, a field of the schema) is refused before any run. Types and costs are
//!    not computed: an operator that does not fit fails when the rule is evaluated.
//! 3. Error texts are those of a real server, as far as the crate tells the cause. An issue of an expression is shown with
//!    its line and a mark under its place.
//!
//! Next: `check.rs` looks for what is not there; `library.rs`, `net.rs` and `quantity.rs` have the functions; `lists.rs` has
//! lists that are sets or maps, `object.rs` has objects, `search.rs` searches in both.

/// How a value that stands for one of the crate's own is read: as that one, which this field holds.
macro_rules! as_inner {
    ($inner:ident) => {
        fn as_container(&self) -> Option<&dyn Container> {
            self.$inner.as_container()
        }

        fn as_indexer<'b, 'w>(&'b self) -> Option<&'b (dyn Indexer + 'w)>
        where
            Self: 'w,
        {
            self.$inner.as_indexer()
        }

        fn into_indexer<'w>(self: Box<Self>) -> Option<Box<dyn Indexer + 'w>>
        where
            Self: 'w,
        {
            Box::new(self.$inner).into_indexer()
        }

        fn as_iterable<'b, 'w>(&'b self) -> Option<&'b (dyn Iterable + 'w)>
        where
            Self: 'w,
        {
            self.$inner.as_iterable()
        }

        fn as_sizer(&self) -> Option<&dyn Sizer> {
            self.$inner.as_sizer()
        }

        fn as_zeroer(&self) -> Option<&dyn Zeroer> {
            self.$inner.as_zeroer()
        }
    };
}

mod check;
mod functions;
mod library;
mod lists;
mod net;
mod object;
mod quantity;
mod search;
mod url;

use cel::common::ast::SourceInfo;
use cel::{Context, ExecutionError, IdedExpr, ParseErrors, Value};

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use cel::common::types::{CelOptional, CelString};
use cel::common::value::{CowVal, Val};

use crate::cluster::schema::source::Source;

pub(crate) use lists::list;
pub(crate) use object::{escape, is_seen, object};

/// How many characters an expression may have, as on a real server.
const LONGEST: usize = 100_000;
/// A level of an expression takes the crate up to 180 KiB to read, and 80 KiB to run, without optimization. A usual thread of
/// 2 MiB would only read nine brackets within each other, so that a limit of depth cannot replace the stack.
const STACK: usize = 128 * 1024 * 1024;

/// Works on a thread with a large stack.
pub(crate) fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        thread
            .expect("a thread can be started")
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A value that expressions work with.
pub(crate) type Cel = Box<dyn Val>;

/// An expression that was read.
#[derive(Debug)]
pub(crate) struct Expression {
    tree: IdedExpr,
    variables: BTreeSet<String>,
    /// The name of its result's type, where that is evident.
    pub(crate) result: Option<&'static str>,
}

impl Expression {
    /// Reads an expression about values of a schema; `whole` objects have a type and a name, whatever it says.
    ///
    /// # Errors What is wrong with it, with the places, in the form of a real server.
    pub(crate) fn read(text: &str, source: &Source, whole: bool) -> Result<Self, String> {
        if text.chars().nth(LONGEST).is_some() {
            return Err(format!("expression code point size exceeds limit: {LONGEST}"));
        }
        apart(|| {
            let program = library::LANGUAGE.compile(text).map_err(|errors| of_syntax(text, &errors))?;
            let (variables, result) = check::check(&program, source, whole)?;
            let mut tree = program.expression().clone();
            search::replace(&mut tree);
            Ok(Self { tree, variables, result })
        })
    }

    /// Whether it uses a variable.
    pub(crate) fn mentions(&self, variable: &str) -> bool {
        self.variables.contains(variable)
    }

    /// Evaluates it.
    ///
    /// # Errors Why it has no result.
    pub(crate) fn run(&self, variables: &Context<'_, 'static>) -> Result<Value, String> {
        lists::hashed(|| Value::resolve(&self.tree, variables).map_err(words))
    }
}

/// The variables of a rule: the value of its place, and the one before.
pub(crate) fn variables(own: Cel, old: Option<Cel>) -> Context<'static, 'static> {
    let mut context = Context::with_env(Arc::clone(&library::LANGUAGE));
    context.add_variable_as_val("self", own);
    if let Some(old) = old {
        context.add_variable_as_val("oldSelf", old);
    }
    context
}

/// A value that may be missing.
pub(crate) fn optional(value: Option<Cel>) -> Cel {
    Box::new(CelOptional::from(value))
}

/// What a function of the language makes of a text; none if it refuses it.
pub(crate) fn converted(function: &str, text: &str) -> Option<Cel> {
    let given = vec![CowVal::owned(CelString::from(text.to_owned()))];
    let run = library::LANGUAGE.find_overload(function, &given)?;
    Some(run(given).ok()?.into_owned())
}

fn words(error: ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(Value::Int(at)) => format!("index out of bounds: {at}"),
        ExecutionError::FunctionError { function, message } => {
            // A real server does not tell why a text cannot be converted.
            let to = match function.as_str() {
                "int" | "uint" | "double" | "bool" if !message.ends_with("integer overflow") => &function,
                "duration" => "google.protobuf.Duration",
                "timestamp" => "google.protobuf.Timestamp",
                _ => return message,
            };
            format!("type conversion error from 'string' to '{to}'")
        }
        ExecutionError::NoSuchOverload(_)
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::ValuesNotComparable(..) => "no such overload".to_owned(),
        other => other.to_string(),
    }
}

/// The issues in the order of their places.
fn tell(source: &SourceInfo, mut issues: Vec<(u64, String)>) -> String {
    issues.sort_by_key(|(id, _)| place(source, *id));
    let told: Vec<String> =
        issues.iter().map(|(id, words)| told(&source.source, place(source, *id), words)).collect();
    told.join("\n")
}

/// Errors of the parser.
fn of_syntax(text: &str, errors: &ParseErrors) -> String {
    let told = errors.errors.iter().filter_map(|error| {
        let (place, words) = worded(error.pos, &error.msg)?;
        Some(told(text, place, &words))
    });
    told.collect::<Vec<_>>().join("\n")
}

/// The parser's error text and place in the form of Go's parser; none if Go's parser reports nothing.
fn worded((line, column): (isize, isize), words: &str) -> Option<((isize, isize), String)> {
    if words.starts_with("Incomplete `") {
        return None;
    }
    if let Some(name) = words.strip_prefix("reserved identifier: .") {
        return Some(((line, column - 1), format!("reserved identifier: {name}")));
    }
    let words = match words.split_once(" expecting {<EOF>, ") {
        Some((before, _)) => format!("{before} expecting <EOF>"),
        None => words.to_owned(),
    };
    Some(((line, column), words))
}

fn place(source: &SourceInfo, id: u64) -> (isize, isize) {
    let start = source.offset_for(id).map_or(0, |(start, _)| start as usize);
    let before: String = source.source.chars().take(start).collect();
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count());
    (isize::try_from(line + 1).unwrap_or(1), isize::try_from(column + 1).unwrap_or(1))
}

/// One issue with its line and a mark under its place.
fn told(text: &str, (line, column): (isize, isize), words: &str) -> String {
    let shown =
        usize::try_from(line - 1).ok().and_then(|line| text.split('\n').nth(line)).unwrap_or_default();
    let dots = ".".repeat(usize::try_from(column - 1).unwrap_or_default());
    format!("ERROR: <input>:{line}:{column}: {words}\n | {shown}\n | {dots}^")
}
