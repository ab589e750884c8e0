//! The rules of a new definition: can they be evaluated, are their texts valid?
//!
//! Answers: can this rule check an object at all? `rules.rs` checks objects by them.
use serde::Deserialize;
use serde_json::{Value, json};

use super::keywords::{At, Keywords};
use super::{Found, escaped, field_path, given, list, text};
use crate::cluster::cel::{Expression, is_seen};
use crate::cluster::schema::source::{Rule, Source};

const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

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
        if !(at.compiled && self.sound && self.found.0.len() == before) {
            return;
        }
        let whole = std::ptr::eq(schema, self.root) || source.embedded;
        if !is_seen(&source, whole) {
            let message = "Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
            let field = at.at("x-kubernetes-validations");
            let cause =
                crate::cluster::status::Cause { reason: "InternalError", message: message.to_owned(), field };
            return self.of_rules.0.push(cause);
        }
        for (index, rule) in rules.iter().enumerate() {
            self.compiled(rule, (&source, whole), at, index);
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

    fn compiled(&mut self, rule: &Value, (source, whole): (&Source, bool), at: &At, index: usize) {
        let field = |name: &str| at.at(&format!("x-kubernetes-validations[{index}].{name}"));
        let Ok(read) = Rule::deserialize(rule) else { return };
        if read.rule.trim().is_empty() {
            return;
        }
        let program = match compile(&read.rule, (source, whole), "bool") {
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
        self.message(rule, &read, (source, whole), field("messageExpression"));
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

    fn message(&mut self, rule: &Value, read: &Rule, about: (&Source, bool), field: String) {
        if read.message_expression.is_empty() {
            return;
        }
        let why = match compile(&read.message_expression, about, "string") {
            Ok(_) => return,
            Err(Refused::Words(words)) => format!("messageExpression compilation failed: {words}"),
            Err(Refused::Type) => "messageExpression must evaluate to a string".to_owned(),
        };
        refuse_rule(&mut self.of_rules, field, rule, &why);
    }
}

/// Why an expression cannot be used.
enum Refused {
    Words(String),
    /// Its result has another type.
    Type,
}

fn compile(text: &str, (source, whole): (&Source, bool), wanted: &str) -> Result<Expression, Refused> {
    let program = Expression::read(text, source, whole).map_err(Refused::Words)?;
    if program.result.is_none_or(|result| result == wanted) { Ok(program) } else { Err(Refused::Type) }
}
