//! The rules of a schema (`x-kubernetes-validations`), in the Common Expression Language.
//!
//! Answers: which rules does this object break? The language is the `cel` crate's, with its lists, math and strings
//! extensions; `cel_library.rs` adds the functions of Kubernetes that can be added.
//! 1. A rule that speaks of `oldSelf` is judged only where there is an old value; a value that did not change is not
//!    judged again.
//! 2. Rules are compiled once per definition. There is no estimate of costs, and types are checked as rules run.
//! 3. Where the schema's own checks have failed badly, no rule is judged; one cause says so.
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use cel::objects::{Key, Map};
use cel::{Context, Env, ExecutionError, Program, Value as Cel};
use serde_json::Value;

use super::cel_library;
use super::validate::{below, same_item};
use crate::cluster::schema::source::{Others, Rule, Source};
use crate::cluster::status::Cause;

/// The compiled expressions of a schema, by their text.
pub(super) type Programs = BTreeMap<String, Program>;

static LANGUAGE: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    let added = [
        env.add_extension(cel::extensions::strings),
        env.add_extension(cel::extensions::lists),
        env.add_extension(cel::extensions::math),
    ];
    debug_assert!(added.iter().all(Result::is_ok), "the crate's extensions do not contradict each other");
    Arc::new(env)
});

/// Compiles an expression.
///
/// # Errors
/// The words of the parser.
pub(super) fn compile(text: &str) -> Result<Program, String> {
    LANGUAGE.compile(text).map_err(|errors| errors.to_string())
}

/// Compiles every expression of a schema that can be compiled.
pub(super) fn programs(source: &Source) -> Programs {
    let mut programs = Programs::new();
    source.each(&mut |source| {
        for text in source.rules.iter().flat_map(|rule| [&rule.rule, &rule.message_expression]) {
            if let (false, Ok(program)) = (text.is_empty(), compile(text)) {
                programs.insert(text.clone(), program);
            }
        }
    });
    programs
}

/// The cause that stands for all rules where the schema's own checks have failed in such a way.
pub(super) fn unchecked(causes: &[Cause]) -> Option<Cause> {
    let blocking = [
        "FieldValueTypeInvalid",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueNotSupported",
    ];
    let message = "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    let blocked = causes.iter().any(|cause| blocking.contains(&cause.reason));
    blocked.then(|| Cause {
        reason: "FieldValueInvalid",
        message: message.to_owned(),
        field: "<nil>".to_owned(),
    })
}

/// One place of the walk.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) path: &'a str,
    pub(super) value: &'a Value,
    pub(super) old: Option<&'a Value>,
}

/// Judges the rules at a place and below it.
pub(super) fn check(source: &Source, programs: &Programs, place: Place<'_>, causes: &mut Vec<Cause>) {
    if place.old == Some(place.value) || place.value.is_null() {
        return;
    }
    for rule in &source.rules {
        causes.extend(
            programs.get(&rule.rule).and_then(|program| broken(source, programs, (rule, program), place)),
        );
    }
    match place.value {
        Value::Array(items) => {
            let Some(of) = &source.items else { return };
            for (index, value) in items.iter().enumerate() {
                let old = same_item(source, place.old, index, value);
                check(of, programs, Place { path: &format!("{}[{index}]", place.path), value, old }, causes);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                let old = place.old.and_then(|old| old.get(name));
                let (of, path) = match (source.properties.get(name.as_str()), &source.additional_properties) {
                    (Some(of), _) => (of, below(place.path, name)),
                    (None, Some(Others::Typed(of))) => (&**of, format!("{}[{name}]", place.path)),
                    (None, _) => continue,
                };
                check(of, programs, Place { path: &path, value, old }, causes);
            }
        }
        _ => {}
    }
}

/// The cause of a rule that does not hold.
fn broken(
    source: &Source,
    programs: &Programs,
    (rule, program): (&Rule, &Program),
    place: Place<'_>,
) -> Option<Cause> {
    let transition = program.references().has_variable("oldSelf");
    if transition && place.old.is_none() && !rule.optional_old_self {
        return None;
    }
    let mut context = Context::with_env(Arc::clone(&LANGUAGE));
    cel_library::add(&mut context);
    context.add_variable_from_value("self", to_cel(source, place.value, place.path.is_empty()));
    if transition {
        let old = place.old.map(|old| to_cel(source, old, place.path.is_empty()));
        context.add_variable_from_value("oldSelf", old.unwrap_or(Cel::Null));
    }
    let field = match place.path {
        "" if rule.field_path.is_empty() => "<nil>".to_owned(),
        "" => rule.field_path.trim_start_matches('.').to_owned(),
        path => format!("{path}{}", rule.field_path),
    };
    match program.execute(&context) {
        Ok(Cel::Bool(true)) => None,
        Ok(Cel::Bool(false)) => {
            let words = words(rule, programs, &context);
            Some(cause(rule, field, shown(place.value), &words))
        }
        Ok(_) => Some(cause(rule, field, format!("{:?}: ", source.kind), "rule is not a truth value")),
        Err(error) => {
            let words = format!("{} evaluating rule: {}", error_words(&error), rule.rule);
            let message = format!("Invalid value: {:?}: {words}", source.kind);
            Some(Cause { reason: "FieldValueInvalid", message, field })
        }
    }
}

/// The common errors in the words of the interpreter a real server has.
fn error_words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::IndexOutOfBounds(Cel::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::NoSuchKey(name) => format!("no such key: {name}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::NoSuchOverload(_) => "no such overload".to_owned(),
        other => other.to_string(),
    }
}

fn words(rule: &Rule, programs: &Programs, context: &Context<'_, '_>) -> String {
    let expressed = programs.get(&rule.message_expression).and_then(|program| program.execute(context).ok());
    match expressed {
        Some(Cel::String(text)) if !text.trim().is_empty() && !text.contains('\n') => text.trim().to_owned(),
        _ if !rule.message.is_empty() => rule.message.trim().to_owned(),
        _ => format!("failed rule: {}", rule.rule.trim()),
    }
}

/// The value as a cause begins with it; objects and lists are not shown.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) | Value::Array(_) => String::new(),
        other => format!("{other}: "),
    }
}

fn cause(rule: &Rule, field: String, shown: String, words: &str) -> Cause {
    let (reason, message) = match rule.reason.as_str() {
        "FieldValueForbidden" => ("FieldValueForbidden", format!("Forbidden: {words}")),
        "FieldValueRequired" => ("FieldValueRequired", format!("Required value: {words}")),
        "FieldValueDuplicate" => {
            let value = shown.trim_end_matches(": ");
            let between = if value.is_empty() { "" } else { ": " };
            ("FieldValueDuplicate", format!("Duplicate value{between}{value}"))
        }
        _ => ("FieldValueInvalid", format!("Invalid value: {shown}{words}")),
    };
    Cause { reason, message, field }
}

/// The value as the language sees it: only what the schema names, by names the language can read.
fn to_cel(source: &Source, value: &Value, root: bool) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(value) if source.kind != "number" => Cel::Int(value),
            _ => Cel::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => text_to_cel(source, text),
        Value::Array(items) => {
            let anything = Source::default();
            let of = source.items.as_deref().unwrap_or(&anything);
            Cel::List(Arc::new(items.iter().map(|item| to_cel(of, item, false)).collect()))
        }
        Value::Object(members) => {
            let anything = Source::default();
            let whole = root || source.embedded;
            let entries = members.iter().filter_map(|(name, value)| {
                let (of, key) = match (source.properties.get(name.as_str()), &source.additional_properties) {
                    _ if whole && name == "metadata" => (&anything, name.clone()),
                    (Some(of), _) => (of, escaped(name)),
                    (None, Some(Others::Typed(of))) => (&**of, name.clone()),
                    (None, Some(Others::Allowed(true))) => (&anything, name.clone()),
                    (None, _) if whole && matches!(name.as_str(), "apiVersion" | "kind") => {
                        (&anything, name.clone())
                    }
                    // Inside a value without a schema everything is seen.
                    (None, _) if source.kind.is_empty() && source.properties.is_empty() => {
                        (&anything, name.clone())
                    }
                    (None, _) => return None,
                };
                Some((Key::String(Arc::new(key)), to_cel(of, value, false)))
            });
            Cel::Map(Map { map: Arc::new(entries.collect()) })
        }
    }
}

fn text_to_cel(source: &Source, text: &str) -> Cel {
    let as_text = || Cel::String(Arc::new(text.to_owned()));
    match source.format.as_str() {
        "date-time" | "datetime" => cel_library::timestamp(text).unwrap_or_else(as_text),
        "date" => cel_library::timestamp(&format!("{text}T00:00:00Z")).unwrap_or_else(as_text),
        "duration" => cel_library::duration(text).unwrap_or_else(as_text),
        _ => as_text(),
    }
}

/// Names that are words of the language, or that it could not read, are written otherwise.
fn escaped(name: &str) -> String {
    const WORDS: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    if WORDS.contains(&name) {
        return format!("__{name}__");
    }
    let parts = name.replace("__", "__underscores__");
    parts.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
}
