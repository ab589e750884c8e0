//! The rules of a schema (`x-kubernetes-validations`), evaluated on an object.
//!
//! Answers: which rules does this object break, and with which texts? `cluster/cel` is the language, `rule_checks.rs`
//! checks the rules themselves.
//! 1. Rules are compiled once per definition; all rules of one request share a budget.
//! 2. A rule that uses `oldSelf` is evaluated only if there is an old value, or if the rule does not need one.
//! 3. Other rules are not evaluated on values that did not change.
//! 4. If basic checks of the schema have failed, no rule is evaluated; one cause says so.
use std::collections::BTreeMap;

use serde_json::Value;

use super::field_path;
use super::validate::{below, same_item};
use super::values::seen;
use crate::cluster::cel::{Declared, Expression, Failure, Type, Value as Cel};
use crate::cluster::schema::source::{Others, Rule, Source};
use crate::cluster::status::Cause;

/// The highest cost of one rule.
const PER_RULE: u64 = 1_000_000;
/// The highest cost of all rules on one object.
const BUDGET: u64 = 10_000_000;
/// The longest message an expression may give.
const LONGEST: usize = 5 * 1024;
const SPENT: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The compiled rules of one place of a schema, and of the places below it.
#[derive(Debug, Default)]
pub(super) struct Rules {
    own: Vec<Compiled>,
    items: Option<Box<Self>>,
    others: Option<Box<Self>>,
    fields: BTreeMap<Box<str>, Self>,
}

#[derive(Debug)]
struct Compiled {
    rule: Rule,
    program: Result<Expression, String>,
    message: Option<Expression>,
    transition: bool,
    /// The place of the fault according to the rule, below its own place.
    field: String,
}

impl Rules {
    /// Compiles the rules of a schema; none if there are none.
    pub(super) fn compile(source: &Source) -> Option<Self> {
        let mut any = false;
        source.each(&mut |source| any |= !source.rules.is_empty());
        any.then(|| Declared::read(source, true, "self"))
            .flatten()
            .and_then(|declared| Self::at(source, &declared))
    }

    fn at(source: &Source, declared: &Declared) -> Option<Self> {
        let own: Vec<Compiled> =
            source.rules.iter().map(|rule| Compiled::new(source, declared, rule)).collect();
        let element = declared.element.as_deref();
        let below = |of: Option<&Source>| {
            of.zip(element).and_then(|(of, element)| Self::at(of, element)).map(Box::new)
        };
        let others = match &source.additional_properties {
            Some(Others::Typed(of)) => Some(&**of),
            _ => None,
        };
        let fields = source.properties.iter().filter_map(|(name, of)| {
            let declared = crate::cluster::cel::escape(name).and_then(|name| declared.fields.get(&name))?;
            Some((name.clone(), Self::at(of, declared)?))
        });
        let rules = Self {
            own,
            items: below(source.items.as_deref()),
            others: below(others),
            fields: fields.collect(),
        };
        let empty = rules.own.is_empty()
            && rules.items.is_none()
            && rules.others.is_none()
            && rules.fields.is_empty();
        (!empty).then_some(rules)
    }
}

/// The variables that a rule of a place may use.
pub(super) fn variables(declared: &Declared, rule: &Rule) -> [(&'static str, Type); 2] {
    let own = declared.of.clone();
    let old = if rule.optional_old_self == Some(true) { Type::optional(own.clone()) } else { own.clone() };
    [("self", own), ("oldSelf", old)]
}

impl Compiled {
    fn new(source: &Source, declared: &Declared, rule: &Rule) -> Self {
        let variables = variables(declared, rule);
        let program = Expression::compile(&rule.rule, &variables);
        let message = Some(&rule.message_expression).filter(|text| !text.trim().is_empty());
        let message = message.and_then(|text| Expression::compile(text, &variables).ok());
        let transition = program.as_ref().is_ok_and(|program| program.mentions("oldSelf"));
        let field =
            field_path::read(&rule.field_path, source, true).map(|(path, _)| path).unwrap_or_default();
        Self { rule: rule.clone(), program, message, transition, field }
    }
}

/// The cause that replaces all rules if basic checks of the schema have failed.
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
    /// Whether the value around this place did not change.
    pub(super) unchanged: bool,
}

/// The check of one object.
pub(super) struct Judge {
    left: Option<u64>,
    pub(super) causes: Vec<Cause>,
}

impl Judge {
    pub(super) fn new() -> Self {
        Self { left: Some(BUDGET), causes: Vec::new() }
    }

    /// Evaluates the rules at a place and below it.
    pub(super) fn judge(&mut self, source: &Source, rules: &Rules, place: Place<'_>) {
        if place.value.is_null() {
            return;
        }
        let unchanged = place.old.map_or(place.unchanged, |old| old == place.value);
        let place = Place { unchanged, ..place };
        self.own(source, rules, place);
        match place.value {
            Value::Array(items) => {
                let (Some(of), Some(rules)) = (&source.items, &rules.items) else { return };
                for (index, value) in items.iter().enumerate() {
                    let old = same_item(source, place.old, index, value);
                    let path = format!("{}[{index}]", place.path);
                    self.judge(of, rules, Place { path: &path, value, old, unchanged });
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    let old = place.old.and_then(|old| old.get(name));
                    let known = source.properties.get(name.as_str()).zip(rules.fields.get(name.as_str()));
                    let (of, rules, path) = match (known, &source.additional_properties, &rules.others) {
                        (Some((of, rules)), ..) => (of, rules, below(place.path, name)),
                        (None, Some(Others::Typed(of)), Some(rules)) => {
                            (&**of, &**rules, format!("{}[{name}]", place.path))
                        }
                        _ => continue,
                    };
                    self.judge(of, rules, Place { path: &path, value, old, unchanged });
                }
            }
            _ => {}
        }
    }

    fn own(&mut self, source: &Source, rules: &Rules, place: Place<'_>) {
        if rules.own.is_empty() || self.left.is_none() {
            return;
        }
        let whole = place.path.is_empty() || source.embedded;
        let own = seen(source, place.value, whole);
        let old = place.old.map(|old| seen(source, old, whole));
        for compiled in &rules.own {
            let optional = compiled.rule.optional_old_self == Some(true);
            let skipped = if compiled.transition { old.is_none() && !optional } else { place.unchanged };
            if skipped {
                continue;
            }
            let before = match (&old, optional) {
                (Some(old), true) => Cel::some(old.clone()),
                (Some(old), false) => old.clone(),
                (None, _) => Cel::Optional(None),
            };
            self.rule(source, compiled, place, &[("self", own.clone()), ("oldSelf", before)]);
            if self.left.is_none() {
                return;
            }
        }
    }

    fn push(&mut self, path: &str, source: &Source, words: &str) {
        let field = if path.is_empty() { "<nil>" } else { path }.to_owned();
        let message = format!("Invalid value: {:?}: {words}", source.kind);
        self.causes.push(Cause { reason: "FieldValueInvalid", message, field });
    }

    /// Takes a cost from the budget.
    fn spend(&mut self, cost: u64) -> bool {
        self.left = self.left.and_then(|left| left.checked_sub(cost));
        self.left.is_some()
    }

    fn rule(&mut self, source: &Source, compiled: &Compiled, place: Place<'_>, variables: &[(&str, Cel)]) {
        let rule = &compiled.rule;
        let shown = if rule.message.is_empty() { rule.rule.trim() } else { rule.message.trim() };
        let program = match &compiled.program {
            Ok(program) => program,
            Err(words) => {
                let words = format!("rule compile error: compilation failed: {words}");
                return self.push(place.path, source, &words);
            }
        };
        if self.left == Some(0) {
            self.left = None;
            return self.push(place.path, source, SPENT);
        }
        let outcome = program.run(variables, PER_RULE);
        if !self.spend(outcome.cost) {
            return self.push(place.path, source, SPENT);
        }
        match outcome.result {
            Ok(Cel::Bool(true)) => {}
            Ok(_) => self.broken(source, compiled, place, variables),
            Err(Failure::TooExpensive) => {
                let words = format!(
                    "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: {shown}"
                );
                self.push(place.path, source, &words);
                self.left = None;
            }
            Err(Failure::Error(words)) if words.starts_with("no such overload") => {
                let words = format!(
                    "'{words}': call arguments did not match a supported operator, function or macro signature for rule: {shown}"
                );
                self.push(place.path, source, &words);
            }
            Err(Failure::Error(words)) => {
                self.push(place.path, source, &format!("{words} evaluating rule: {shown}"));
            }
        }
    }

    fn broken(&mut self, source: &Source, compiled: &Compiled, place: Place<'_>, variables: &[(&str, Cel)]) {
        let rule = &compiled.rule;
        let field = if compiled.field.is_empty() {
            place.path.to_owned()
        } else {
            below(place.path, &compiled.field)
        };
        let expressed = match &compiled.message {
            Some(message) => match self.expressed(message, variables) {
                Ok(words) => words,
                Err(words) => {
                    let words = format!("{words}{:?}", rule.message_expression);
                    return self.push(&field, source, words.trim_end_matches("\"\""));
                }
            },
            None => None,
        };
        let words = expressed.unwrap_or_else(|| match rule.message.as_str() {
            "" => format!("failed rule: {}", rule.rule.trim()),
            message => message.trim().to_owned(),
        });
        let field = if field.is_empty() { "<nil>".to_owned() } else { field };
        self.causes.push(cause(rule, field, shown(place.value), &words));
    }

    /// The message that an expression returns, if it is valid.
    ///
    /// # Errors The beginning of the text, if the budget is used up.
    fn expressed(
        &mut self,
        message: &Expression,
        variables: &[(&str, Cel)],
    ) -> Result<Option<String>, &'static str> {
        let outcome = message.run(variables, PER_RULE);
        if !self.spend(outcome.cost) {
            return Err(
                "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run",
            );
        }
        Ok(match outcome.result {
            Ok(Cel::Text(text)) => {
                let text = text.trim();
                let sound = !text.is_empty() && !text.contains('\n') && text.len() <= LONGEST;
                sound.then(|| text.to_owned())
            }
            Err(Failure::TooExpensive) => {
                self.left = None;
                return Err(
                    "no further validation rules will be run due to call cost exceeds limit for messageExpression: ",
                );
            }
            _ => None,
        })
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
