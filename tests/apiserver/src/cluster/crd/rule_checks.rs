//! The rules of a new definition: do they compile, what may they cost, are their texts valid?
//!
//! Answers: can this rule check an object at all, and cheaply enough? `rules.rs` checks objects by them.
//! 1. A rule costs its own estimate times the number of its places in an object.
use serde::Deserialize;
use serde_json::{Value, json};

use super::causes::{Found, escaped, given, list, text};
use super::field_path;
use super::keywords::{At, Keywords};
use super::rules::variables;
use crate::cluster::cel::{Declared, Expression, Type};
use crate::cluster::schema::source::{Rule, Source};

/// The highest cost of one rule.
const PER_RULE: u64 = 10_000_000;
/// The most all rules of a schema may cost.
const PER_SCHEMA: u64 = 100_000_000;
const ADVICE: &str = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)";
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// How often a place of a schema may occur in an object; none if it is not bounded.
#[derive(Debug, Clone)]
pub(super) struct Scope(Option<u64>);

impl Scope {
    pub(super) fn root() -> Self {
        Self(Some(1))
    }

    /// How often the places below this schema may occur.
    pub(super) fn below(&self, schema: &Value) -> Self {
        let most = |name: &str| schema.get(name).map(|most| most.as_u64().unwrap_or(0));
        let factor = match text(schema, "type") {
            "object" if given(schema, "additionalProperties").is_some() => most("maxProperties"),
            "array" => most("maxItems"),
            _ => Some(1),
        };
        Self(self.0.zip(factor).map(|(own, factor)| own.saturating_mul(factor)))
    }
}

/// The cost of all rules of a schema.
#[derive(Debug, Default)]
pub(super) struct Costs {
    total: u64,
    most: Vec<(String, u64)>,
}

impl Costs {
    fn observe(&mut self, field: String, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost >= PER_SCHEMA / 100 {
            self.most.push((field, cost));
            self.most.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
            self.most.truncate(4);
        }
    }

    /// The causes of a too high total cost.
    pub(super) fn judge(&self, found: &mut Found, path: &str) {
        if self.total <= PER_SCHEMA {
            return;
        }
        for (field, _) in &self.most {
            let why =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            found.forbidden(field.clone(), why);
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        found.forbidden(path.to_owned(), &exceeded(what, self.total, PER_SCHEMA));
    }
}

#[expect(clippy::cast_precision_loss, reason = "only the words tell the factor")]
fn exceeded(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!("{what} exceeds budget by factor of {factor} {ADVICE}")
}

/// A rule as Go marshals it.
fn marshalled(rule: &Value) -> String {
    let words = |name: &str| json!(text(rule, name)).to_string();
    let shown = format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
        words("rule"),
        words("message"),
        words("messageExpression"),
        rule["reason"],
        words("fieldPath"),
        rule["optionalOldSelf"]
    );
    escaped(&shown)
}

fn refuse_rule(found: &mut Found, field: String, rule: &Value, why: &str) {
    let message = format!("Invalid value: {}: {why}", marshalled(rule));
    found.0.push(crate::cluster::status::Cause { reason: "FieldValueInvalid", message, field });
}

impl Keywords<'_> {
    /// Checks the rules of one place; `before` is how many causes there were before it.
    pub(super) fn rules(&mut self, schema: &Value, at: &At, before: usize) {
        let rules = list(schema, "x-kubernetes-validations");
        let Some(source) = Source::deserialize(schema).ok().filter(|_| !rules.is_empty()) else { return };
        for (index, rule) in rules.iter().enumerate() {
            self.texts(rule, &at.at(&format!("x-kubernetes-validations[{index}]")), &source);
        }
        let Some(scope) = at.scope.as_ref().filter(|_| self.sound && self.found.0.len() == before) else {
            return;
        };
        let whole = std::ptr::eq(schema, self.root) || source.embedded;
        let Some(declared) = Declared::read(&source, whole, "selfType") else {
            let message = "Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
            let field = at.at("x-kubernetes-validations");
            let cause =
                crate::cluster::status::Cause { reason: "InternalError", message: message.to_owned(), field };
            return self.of_rules.0.push(cause);
        };
        let times = scope.0.unwrap_or_else(|| declared.most_in_a_request());
        for (index, rule) in rules.iter().enumerate() {
            self.compiled(rule, (&declared, times), at, index);
        }
    }

    fn texts(&mut self, rule: &Value, path: &str, source: &Source) {
        let field = |name: &str| format!("{path}.{name}");
        let breaks = |text: &str| text.contains(['\n', '\r']);
        let (words, trimmed) = (text(rule, "message"), text(rule, "message").trim());
        let expression = text(rule, "rule").trim();
        if expression.is_empty() {
            self.found.required(field("rule"), "rule is not specified");
        } else if !words.is_empty() && trimmed.is_empty() {
            self.found.invalid(field("message"), &json!(words), "must be non-empty if specified");
        } else if breaks(trimmed) {
            self.found.invalid(field("message"), &json!(words), "must not contain line breaks");
        } else if breaks(expression) && trimmed.is_empty() {
            let why = "message must be specified if rule contains line breaks";
            self.found.required(field("message"), why);
        }
        let message = text(rule, "messageExpression");
        if !message.is_empty() && message.trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            self.found.required(field("messageExpression"), why);
        }
        if let Some(reason) =
            given(rule, "reason").filter(|reason| !REASONS.iter().any(|known| *reason == *known))
        {
            self.found.unsupported(field("reason"), reason, &REASONS);
        }
        let written = text(rule, "fieldPath");
        if written.is_empty() {
            return;
        }
        if written.trim().is_empty() {
            self.found.invalid(field("fieldPath"), &json!(written), "must be non-empty if specified");
        }
        if breaks(written) {
            self.found.invalid(field("fieldPath"), &json!(written), "must not contain line breaks");
        }
        if field_path::read(written, source, true).is_err() {
            self.found.invalid(field("fieldPath"), &json!(written), "must be a valid path");
        }
    }

    fn compiled(&mut self, rule: &Value, (declared, times): (&Declared, u64), at: &At, index: usize) {
        let field = |name: &str| at.at(&format!("x-kubernetes-validations[{index}].{name}"));
        let Ok(read) = Rule::deserialize(rule) else { return };
        if read.rule.trim().is_empty() {
            return;
        }
        let variables = variables(declared, &read);
        let program = match compile(&read.rule, &variables, &Type::Bool) {
            Ok(program) => program,
            Err(refused) => {
                let why = match refused {
                    Refused::Words(words) => format!("compilation failed: {words}"),
                    Refused::Type => "cel expression must evaluate to a bool".to_owned(),
                };
                refuse_rule(&mut self.of_rules, field("rule"), rule, &why);
                return self.unused_option(&read, field("optionalOldSelf"));
            }
        };
        let cost = program.estimate(declared).saturating_mul(times);
        if cost > PER_RULE && !self.accepted {
            let why = exceeded("estimated rule cost", cost, PER_RULE);
            self.of_rules.forbidden(field("rule"), &why);
        }
        self.costs.observe(field("rule"), cost);
        self.message(rule, &read, (declared, &variables), &field("messageExpression"));
        if program.mentions("oldSelf") {
            if let Some(list) = &at.uncorrelated {
                let why = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                );
                self.of_rules.invalid(field("rule"), &json!(read.rule), &why);
            }
        } else {
            self.unused_option(&read, field("optionalOldSelf"));
        }
    }

    fn unused_option(&mut self, rule: &Rule, field: String) {
        if let Some(optional) = rule.optional_old_self {
            let why = "may not be set if oldSelf is not used in rule";
            self.of_rules.invalid(field, &json!(optional), why);
        }
    }

    fn message(
        &mut self,
        rule: &Value,
        read: &Rule,
        (declared, variables): (&Declared, &[(&str, Type)]),
        field: &str,
    ) {
        if read.message_expression.is_empty() {
            return;
        }
        match compile(&read.message_expression, variables, &Type::Text) {
            Ok(program) => {
                let cost = program.estimate(declared);
                if cost > PER_RULE && !self.accepted {
                    let why = exceeded("estimated messageExpression cost", cost, PER_RULE);
                    self.of_rules.forbidden(field.to_owned(), &why);
                }
                self.costs.observe(field.to_owned(), cost);
            }
            Err(Refused::Words(words)) => {
                let why = format!("messageExpression compilation failed: {words}");
                refuse_rule(&mut self.of_rules, field.to_owned(), rule, &why);
            }
            Err(Refused::Type) => {
                let why = "messageExpression must evaluate to a string";
                refuse_rule(&mut self.of_rules, field.to_owned(), rule, why);
            }
        }
    }
}

/// Why an expression cannot be used.
enum Refused {
    Words(String),
    /// Its result has another type.
    Type,
}

fn compile(text: &str, variables: &[(&str, Type)], wanted: &Type) -> Result<Expression, Refused> {
    let program = Expression::compile(text, variables).map_err(Refused::Words)?;
    if program.result() == wanted { Ok(program) } else { Err(Refused::Type) }
}
