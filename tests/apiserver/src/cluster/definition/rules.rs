//! The rules of a schema (`x-kubernetes-validations`), evaluated on an object.
//!
//! Answers: which rules does this object break, and with which texts? `cluster/cel` is the language, `rule_checks.rs`
//! checks the rules themselves.
//! 1. Rules are compiled once per definition.
//! 2. A rule that uses `oldSelf` is evaluated only if there is an old value, or if the rule does not need one. A null is none.
//! 3. Values that did not change may break other rules, which yet may not fail.
//! 4. If basic checks of the schema have failed, no rule is evaluated; one cause says so.
use std::collections::BTreeMap;

use cel::{Context, Value as Cel};
use serde_json::Value;

use super::field_path;
use super::validate::{Stored, below, is_type, same};
use super::values::seen;
use crate::cluster::cel::{Expression, apart, is_seen, optional, variables};
use crate::cluster::schema::source::{Others, Rule, Source};
use crate::cluster::status::Cause;

/// The longest message an expression may give.
const LONGEST: usize = 5 * 1024;

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
        Self::at(source, true)
    }

    fn at(source: &Source, whole: bool) -> Option<Self> {
        if !is_seen(source, whole) {
            return None;
        }
        let own: Vec<Compiled> = source.rules.iter().map(|rule| Compiled::new(source, whole, rule)).collect();
        let below = |of: &Source| Self::at(of, of.embedded);
        let others = match &source.additional_properties {
            Some(Others::Typed(of)) if !whole => below(of),
            _ => None,
        };
        let fields = source.properties.iter().filter_map(|(name, of)| Some((name.clone(), below(of)?)));
        let rules = Self {
            own,
            items: source.items.as_deref().and_then(below).map(Box::new),
            others: others.map(Box::new),
            fields: fields.collect(),
        };
        let empty = rules.own.is_empty()
            && rules.items.is_none()
            && rules.others.is_none()
            && rules.fields.is_empty();
        (!empty).then_some(rules)
    }
}

impl Compiled {
    fn new(source: &Source, whole: bool, rule: &Rule) -> Self {
        let program = Expression::read(&rule.rule, source, whole);
        let message = Some(&rule.message_expression).filter(|text| !text.trim().is_empty());
        let message = message.and_then(|text| Expression::read(text, source, whole).ok());
        let transition = program.as_ref().is_ok_and(|program| program.mentions("oldSelf"));
        let field =
            field_path::read(&rule.field_path, source, true).map(|(path, _)| path).unwrap_or_default();
        Self { rule: rule.clone(), program, message, transition, field }
    }
}

/// The cause that replaces all rules if basic checks of the schema have failed.
pub(super) fn unchecked(causes: &[Cause], named: bool) -> Option<Cause> {
    let blocking = [
        "FieldValueTypeInvalid",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueNotSupported",
    ];
    let message = "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    let blocked = !named || causes.iter().any(|cause| blocking.contains(&cause.reason));
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

/// What the rules at a place and below it say.
pub(super) fn judge(source: &Source, rules: &Rules, place: Place<'_>) -> Vec<Cause> {
    apart(|| {
        let mut judge = Judge { causes: Vec::new() };
        judge.walk(source, rules, place);
        judge.causes
    })
}

/// The check of one object.
struct Judge {
    causes: Vec<Cause>,
}

impl Judge {
    fn walk(&mut self, source: &Source, rules: &Rules, place: Place<'_>) {
        if place.value.is_null() {
            return;
        }
        let same = |old| !is_type(place.path) && same(source, old, place.value);
        let unchanged = place.old.map_or(place.unchanged, same);
        let place = Place { unchanged, ..place };
        self.own(source, rules, place);
        match place.value {
            Value::Array(items) => {
                let (Some(of), Some(rules)) = (&source.items, &rules.items) else { return };
                let stored = Stored::new(source, place.old);
                for (index, value) in items.iter().enumerate() {
                    let old = stored.get(value);
                    let path = format!("{}[{index}]", place.path);
                    self.walk(of, rules, Place { path: &path, value, old, unchanged });
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
                    self.walk(of, rules, Place { path: &path, value, old, unchanged });
                }
            }
            _ => {}
        }
    }

    fn own(&mut self, source: &Source, rules: &Rules, place: Place<'_>) {
        if rules.own.is_empty() {
            return;
        }
        let whole = place.path.is_empty() || source.embedded;
        let place = Place { old: place.old.filter(|old| !old.is_null()), ..place };
        let old = || place.old.map(|old| seen(source, old, whole));
        let context = variables(seen(source, place.value, whole), old());
        for compiled in &rules.own {
            let may_be_new = compiled.rule.optional_old_self == Some(true);
            if compiled.transition && place.old.is_none() && !may_be_new {
                continue;
            }
            let mut context = context.new_inner_scope();
            if may_be_new {
                context.add_variable_as_val("oldSelf", optional(old()));
            }
            self.rule(source, compiled, place, &context);
        }
    }

    fn push(&mut self, path: &str, source: &Source, words: &str) {
        let field = if path.is_empty() { "<nil>" } else { path }.to_owned();
        let message = format!("Invalid value: {:?}: {words}", source.kind);
        self.causes.push(Cause { reason: "FieldValueInvalid", message, field });
    }

    fn rule(
        &mut self,
        source: &Source,
        compiled: &Compiled,
        place: Place<'_>,
        context: &Context<'_, 'static>,
    ) {
        let rule = &compiled.rule;
        let shown = if rule.message.is_empty() { rule.rule.trim() } else { rule.message.trim() };
        let words = match &compiled.program {
            Ok(program) => match program.run(context) {
                Ok(Cel::Bool(true)) => return,
                Ok(_) if place.unchanged && !compiled.transition => return,
                Ok(_) => return self.broken(compiled, place, context),
                Err(words) if words == "no such overload" => format!(
                    "'{words}': call arguments did not match a supported operator, function or macro signature for rule: {shown}"
                ),
                Err(words) => format!("{words} evaluating rule: {shown}"),
            },
            Err(words) => format!("rule compile error: compilation failed: {words}"),
        };
        self.push(place.path, source, &words);
    }

    fn broken(&mut self, compiled: &Compiled, place: Place<'_>, context: &Context<'_, 'static>) {
        let rule = &compiled.rule;
        let field = if compiled.field.is_empty() {
            place.path.to_owned()
        } else {
            below(place.path, &compiled.field)
        };
        let expressed = compiled.message.as_ref().and_then(|message| expressed(message, context));
        let words = expressed.unwrap_or_else(|| match rule.message.as_str() {
            "" => format!("failed rule: {}", rule.rule.trim()),
            message => message.trim().to_owned(),
        });
        let field = if field.is_empty() { "<nil>".to_owned() } else { field };
        self.causes.push(cause(rule, field, shown(place.value), &words));
    }
}

/// The message that an expression returns, if it is valid.
fn expressed(message: &Expression, context: &Context<'_, 'static>) -> Option<String> {
    let Ok(Cel::String(text)) = message.run(context) else { return None };
    let text = text.trim();
    let sound = !text.is_empty() && !text.contains('\n') && text.len() <= LONGEST;
    sound.then(|| text.to_owned())
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Definition;

    fn causes(rule: &str, new: &Value, old: &Value) -> usize {
        let tags = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
        let element = json!({"type": "object", "properties": {"k": {"type": "string"}, "tags": tags}});
        let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": element});
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let spec = json!({"type": "object", "properties": {"list": list, "open": open}, "x-kubernetes-validations": [{"rule": rule}]});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        Definition::new(&schema)
            .unwrap()
            .judge(&json!({"spec": new}), Some(&json!({"spec": old})), true)
            .len()
    }

    #[test]
    fn a_value_that_only_changed_the_order_of_a_list_of_keys_may_break_a_rule() {
        let old = json!({"list": [{"k": "a", "tags": ["p", "q"]}, {"k": "b"}]});
        let turned = json!({"list": [{"k": "b"}, {"k": "a", "tags": ["p", "q"]}]});
        let changed = json!({"list": [{"k": "b"}, {"k": "a", "tags": ["q", "p"]}]});
        assert_eq!(causes("self.list.size() == 0", &turned, &old), 0, "only the order changed");
        assert_eq!(causes("self.list.size() == 0", &changed, &old), 1, "the order within an element changed");
        let open = json!({"open": {"a": 1}});
        assert_eq!(causes("has(self.list)", &open, &open), 1, "a field of no schema is always a change");
    }

    #[test]
    fn a_rule_that_fails_refuses_also_a_value_that_did_not_change() {
        let same = json!({"list": [{"k": "a"}]});
        assert_eq!(causes("self.list[5].k == 'a'", &same, &same), 1, "the rule cannot be evaluated");
        assert_eq!(causes("self.list[0].k == 'b'", &same, &same), 0, "the rule is only broken");
    }
}
