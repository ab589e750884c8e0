//! The language on a few values: `tests/judged/rules.rs` compares its results with a real server.
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::*;
use crate::cluster::definition::seen;

fn run(rule: &str, schema: &Json, value: &Json) -> Result<Value, String> {
    let source = Source::deserialize(schema).unwrap();
    let read = Expression::read(rule, &source, false)?;
    read.run(&variables(seen(&source, value, false), None))
}

#[test]
fn what_is_not_there_is_refused_before_a_run() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "in": {"type": "object", "properties": {"b-c": {"type": "integer"}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"y": {"type": "integer"}}}}}});
    for (rule, why) in [
        ("self.nope == 1", "undefined field 'nope'"),
        ("has(self.__in__.nope)", "undefined field 'nope'"),
        ("self.?nope.hasValue()", "undefined field 'nope'"),
        ("self.a.b == ''", "type 'string' does not support field selection"),
        ("self.list[0].nope == 1", "undefined field 'nope'"),
        ("self.list.all(i, i.nope > 1)", "undefined field 'nope'"),
        ("self.map['k'].nope == 1", "undefined field 'nope'"),
        ("self.map.k.nope == 1", "undefined field 'nope'"),
        ("nope == 1", "undeclared reference to 'nope' (in container '')"),
        ("nope(self.a)", "undeclared reference to 'nope' (in container '')"),
        ("self.a.nope()", "undeclared reference to 'nope' (in container '')"),
        ("semver(self.a).major() == 1", "this server does not evaluate 'semver': see its DIFFERENCES.md"),
        ("self.list.all(i, v, i > 0)", "this server does not evaluate 'all': see its DIFFERENCES.md"),
    ] {
        let told = run(rule, &schema, &json!({})).unwrap_err();
        assert!(told.contains(why), "{rule}: {told}");
    }
    for rule in [
        "self.__in__.b__dash__c == 1 || true",
        "self.list.exists(i, i.x == 1) || self.map.all(k, self.map[k].y > 0 && self.map.k.y > 0)",
        "type(self.a) == string || type(self.list) == google.protobuf.Timestamp",
        "self.list.filter(i, i.x > 1).map(i, i.x).sum() == 0 && sets.contains(['a'], [self.a])",
        "optional.of(self.a).optMap(a, a.size()).orValue(1) == 1 && self.?a.orValue('b') == 'b'",
    ] {
        let source = Source::deserialize(&schema).unwrap();
        assert_eq!(Expression::read(rule, &source, false).err(), None, "{rule}");
    }
}

#[test]
fn an_error_counts_only_where_no_other_part_decides() {
    let schema =
        json!({"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}});
    let value = json!([{}, {"x": 1}]);
    for (rule, result) in [
        ("self.exists(i, i.x == 1)", Ok(Value::Bool(true))),
        ("self.all(i, i.x == 2)", Ok(Value::Bool(false))),
        ("self.all(i, i.x == 1)", Err("no such key: x".to_owned())),
        ("self[0].x == 1 || true", Ok(Value::Bool(true))),
        ("self[5].x == 1", Err("index out of bounds: 5".to_owned())),
        ("1 / (self.size() - 2) == 0", Err("division by zero".to_owned())),
    ] {
        assert_eq!(run(rule, &schema, &value), result, "{rule}");
    }
}

#[test]
fn a_deep_rule_is_evaluated_or_refused_and_ends_no_thread() {
    let sum = |count: usize| vec!["1"; count].join(" + ") + " > 0";
    let lists = |depth: usize| format!("size({}1{}) == 1", "[".repeat(depth), "]".repeat(depth));
    let told = |rule: &str| apart(|| run(rule, &json!({"type": "object"}), &json!({})).map(|_| ()));
    for rule in [sum(200), lists(60)] {
        assert_eq!(told(&rule), Ok(()), "{rule}");
    }
    for rule in [sum(1_000), lists(1_000), "x".repeat(LONGEST + 1)] {
        assert!(told(&rule).is_err());
    }
}

#[test]
fn what_rules_cannot_read_of_objects_takes_part_in_their_equality() {
    let text = json!({"type": "string"});
    let element = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "k": text, "1a": text, "n": {"type": "integer", "nullable": true},
        "o": {"type": "object", "nullable": true, "properties": {"x": {"type": "integer"}}},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "any": {"x-kubernetes-preserve-unknown-fields": true}}});
    let schema = json!({"type": "array", "items": element});
    for (one, other, equal) in [
        (json!({"k": "x", "u": 1}), json!({"k": "x", "u": 1}), true),
        (json!({"k": "x", "u": 1}), json!({"k": "x", "u": 2}), false),
        (json!({"k": "x", "u": 1}), json!({"k": "x", "v": 2}), true),
        (json!({"k": "x", "u": 1}), json!({"k": "x"}), false),
        (json!({"u": 1}), json!({"k": "x"}), true),
        (json!({"k": "x"}), json!({"u": 1}), false),
        (json!({"n": null}), json!({}), false),
        (json!({"n": null}), json!({"n": 1}), false),
        (json!({"n": 1}), json!({"n": null}), false),
        (json!({"n": null}), json!({"o": null}), true),
        (json!({"o": null}), json!({"o": {"x": 1}}), false),
        (json!({"1a": "p"}), json!({"1a": "q"}), false),
        (json!({"open": {"x": 1}}), json!({"open": {"x": 2}}), false),
        (json!({"any": {"x": 1}}), json!({"any": {"y": 1}}), false),
    ] {
        let given = json!([one, other]);
        assert_eq!(run("self[0] == self[1]", &schema, &given), Ok(equal.into()), "{given}");
        assert_eq!(run("self[0] in [self[1]]", &schema, &given), Ok(equal.into()), "{given}");
    }
    let null = json!([{"n": null, "k": "x"}]);
    assert_eq!(run("has(self[0].n) || self[0].?n.hasValue()", &schema, &null), Ok(false.into()));
    assert_eq!(run("self[0].n == 1", &schema, &null), Err("no such key: n".to_owned()));
}
