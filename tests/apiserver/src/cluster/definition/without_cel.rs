//! What stands in for rules (`x-kubernetes-validations`) where the feature `cel` is off.
//!
//! Answers: what becomes of a rule that this server cannot read? It is refused, never passed over.
//! 1. A definition with rules is refused.
//! 2. An object of a kind that was stored with rules, by a server that reads them, is refused too.
//!
//! `rules.rs` and `rule_checks.rs` are what stands here where the feature is on.
use serde_json::Value;

use super::keywords::{At, Keywords};
use super::list;
use crate::cluster::schema::source::Source;
use crate::cluster::status::Cause;

const WHY: &str = "this server judges no rules: it is built without the feature `cel`";

/// Whether a schema has rules.
#[derive(Debug)]
pub(super) struct Rules;

impl Rules {
    pub(super) fn compile(source: &Source) -> Option<Self> {
        let mut any = false;
        source.each(&mut |source| any |= !source.rules.is_empty());
        any.then_some(Self)
    }
}

/// Tests that a definition with rules is refused with the reason that no rule is checked.
pub(super) fn unchecked(_causes: &[Cause], _named: bool) -> Option<Cause> {
    None
}

/// The object whose rules would be judged.
pub(super) struct Place<'a> {
    pub(super) path: &'a str,
    pub(super) value: &'a Value,
    pub(super) old: Option<&'a Value>,
    pub(super) unchanged: bool,
}

/// Refuses the object, unless it is as it was.
pub(super) fn judge(_source: &Source, _rules: &Rules, place: Place<'_>) -> Vec<Cause> {
    if place.unchanged || place.old == Some(place.value) {
        return Vec::new();
    }
    let field = if place.path.is_empty() { "<nil>" } else { place.path }.to_owned();
    vec![Cause { reason: "FieldValueForbidden", message: format!("Forbidden: {WHY}"), field }]
}

impl Keywords<'_> {
    /// Refuses the rules of one place.
    pub(super) fn rules(&mut self, schema: &Value, at: &At, _before: usize) {
        if !list(schema, "x-kubernetes-validations").is_empty() {
            self.of_rules.forbidden(at.at("x-kubernetes-validations"), WHY);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Definition;
    use super::super::schema_checks::causes;
    use super::WHY;

    #[test]
    fn a_rule_is_refused_with_the_feature_it_needs_and_so_is_an_object_of_a_kind_that_has_one() {
        let rule = json!({"rule": "self > 0"});
        let size = json!({"type": "integer", "x-kubernetes-validations": [rule]});
        let schema = json!({"type": "object", "properties": {"size": size}});
        let found = causes(&schema, "schema", false);
        let told: Vec<_> = found.iter().map(|cause| (&*cause.field, &*cause.message)).collect();
        let message = format!("Forbidden: {WHY}");
        assert_eq!(told, [("schema.properties[size].x-kubernetes-validations", &*message)]);

        let stored = Definition::new(&schema).unwrap();
        let (old, new) = (json!({"size": 1}), json!({"size": 2}));
        assert_eq!(stored.judge(&new, Some(&old), true).len(), 1);
        assert!(stored.judge(&old, Some(&old), true).is_empty(), "what is as it was is not judged");
        let plain = Definition::new(&json!({"type": "object"})).unwrap();
        assert!(plain.judge(&new, None, true).is_empty());
    }
}
