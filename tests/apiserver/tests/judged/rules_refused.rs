//! Rules that no definition may carry, on one server at least: E10.
//!
//! They answer: with which text does a real server refuse this rule? Where ours does not compute types and costs, or does not
//! evaluate a function, DIFFERENCES.md says so. Nothing is stored.
//! 1. One rule each, because several would be reported together.
use serde_json::{Value, json};

use crate::definitions::with_spec;
use crate::harness::{Request, Session, judge};
use crate::rules::fields;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";

fn post(s: &mut Session, spec: &Value) {
    s.send(Request::new("POST", DEFINITIONS).json(&with_spec(spec)));
}

fn each(s: &mut Session, rules: &[Value]) {
    for rule in rules {
        post(s, &json!({"type": "object", "properties": fields(), "x-kubernetes-validations": [rule]}));
    }
}

fn each_text(s: &mut Session, rules: &[&str]) {
    let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
    each(s, &rules);
}

const UNSOUND: &[&str] = &[
    "self.nope == 1",
    "nope == 1",
    "nope(self.text)",
    "self.text.nope()",
    "self.text",
    "1",
    "self.text.x == 1",
    "has(self.nope)",
    "has(self)",
    "self.numbers.all(1, true)",
    "self.port + 1 == 2 && self.port.nope()",
    "self.in.namespace == 'x'",
    "self.gone.y == 1",
    "oldSelf.nope == 1",
    "cel.bind(x, 1, x == 1)",
    "math.greatest(1, 2) == 2",
];

/// What is found where types are computed before a run.
const TYPED: &[&str] = &[
    "self.text == 1",
    "self.text + 1 == 'x'",
    "self.number == 1",
    "self.n > 1.5",
    "self.text > 1",
    "self.text && true",
    "!self.text",
    "self.n ? true : false",
    "self.flag ? 1 : 'x'",
    "self.numbers[0] == 'x'",
    "self.numbers['x'] == 1",
    "self.map[1] == 1",
    "'x' in self.numbers",
    "self.numbers.all(n, n)",
    "self.numbers.all(n, n == 'x')",
    "self.n.all(x, true)",
    "self.numbers.map(n, n.x) == []",
    "self.text.startsWith(1)",
    "size(self.n) == 1",
    "self.n.size() == 1",
    "[1, 'x'] == []",
    "{'a': 1, 'b': 'x'} == {}",
    "{1: 1, 'b': 2} == {}",
    "self.numbers.sum() == 1.5",
    "self.names.sum() == 1",
    "duration('x') == self.lasts",
    "timestamp('x') == self.when",
    "self.text.matches('[')",
    "quantity(self.n) == quantity('1')",
    "quantity(self.size) == '1'",
    "ip(self.ip) == self.ip",
    "int(self.flag) == 1",
    "'%d'.format([self.text]) == ''",
    "'%s'.format([]) == ''",
    "'%s'.format(['a', 'b']) == ''",
    "'%q'.format(['a']) == ''",
    "self.?text == 'x'",
    "optional.of(1).value() == 'x'",
    "self.numbers.sort() == 1",
    "type(self.n) == 'int'",
    "null == self.n",
];

/// What only a real server evaluates.
const ABSENT: &[&str] = &[
    "self.numbers.all(i, n, i < 3 && n > 0) && self.map.all(k, v, v > 0)",
    "self.numbers.exists(i, n, i == 2 && n == 2) && self.map.exists(k, v, k == 'two' && v == 2)",
    "self.numbers.existsOne(i, n, n > 2) && self.map.exists_one(k, v, v > 1)",
    "self.numbers.transformList(i, n, i * n) == [0, 1, 4] && self.map.transformList(k, v, v > 1, k) == ['two']",
    "self.map.transformMap(k, v, v * 10)['two'] == 20 && self.numbers.transformMap(i, n, n > 2, n) == {0: 3}",
    "self.map.transformMapEntry(k, v, {v: k})[1] == 'one' && self.names.transformMapEntry(i, n, {n: i}).size() == 3",
    "isSemver(self.version) && !isSemver('1.0') && isSemver('v1.0', true) && !isSemver('01.0.0')",
    "semver(self.version).major() == 1 && semver(self.version).minor() == 2 && semver(self.version).patch() == 3",
    "semver(self.version).isLessThan(semver('1.2.3')) && semver('1.10.0').isGreaterThan(semver('1.9.0')) && semver('1.0.0').compareTo(semver('1.0.0')) == 0",
    "semver('1.0.0+build') == semver('1.0.0') && semver('v01.1', true) == semver('1.1.0')",
    "semver('1.0') == semver('1.0.0')",
    "semver('1.0.0-') == semver('1.0.0')",
    "semver(self.text).major() == 1",
];

#[test]
fn e10_rules_must_compile() {
    judge(|s| {
        each_text(s, UNSOUND);
    });
}

#[test]
fn e10_rules_of_wrong_types_are_refused_where_types_are_computed() {
    judge(|s| {
        each_text(s, TYPED);
    });
}

#[test]
fn e10_rules_with_functions_that_are_not_everywhere() {
    judge(|s| {
        each_text(s, ABSENT);
    });
}

const UNREADABLE: &[&str] = &[
    "",
    " ",
    "self.text ==",
    "== 1",
    "self..text",
    "(self.flag",
    "self.flag)",
    "self.flag === true",
    "'abc",
    "self.n == 1 2",
    "self.text == \"a\nb\"",
    "a b c",
    "self.flag &&",
    "@x",
    "self.numbers[",
    "{'a': }",
];

#[test]
fn e10_rules_must_be_well_formed() {
    judge(|s| {
        each_text(s, UNREADABLE);
        each(
            s,
            &[
                json!({"rule": "true", "message": " "}),
                json!({"rule": "true", "message": "a\nb"}),
                json!({"rule": "self.flag &&\nself.flag"}),
                json!({"rule": "self.flag &&\nself.flag", "message": "x"}),
                json!({"rule": "self.flag &&\nself.nope", "message": "x"}),
                json!({"rule": "true", "messageExpression": " "}),
                json!({"rule": "true", "messageExpression": "1"}),
                json!({"rule": "true", "messageExpression": "self.nope"}),
                json!({"rule": "true", "messageExpression": "'a' + self.text"}),
                json!({"rule": "true", "reason": "FieldValueNope"}),
                json!({"rule": "true", "reason": "FieldValueForbidden"}),
                json!({"rule": "true", "fieldPath": ".nope"}),
                json!({"rule": "true", "fieldPath": "text"}),
                json!({"rule": "true", "fieldPath": ".text.x"}),
                json!({"rule": "true", "fieldPath": ".map['a']"}),
                json!({"rule": "true", "fieldPath": ".map.a"}),
                json!({"rule": "true", "fieldPath": ".in['a-b']"}),
                json!({"rule": "true", "fieldPath": ".numbers[0]"}),
                json!({"rule": "true", "fieldPath": " "}),
                json!({"rule": "true", "optionalOldSelf": true}),
                json!({"rule": "self.nope == oldSelf.hasValue()", "optionalOldSelf": true}),
                json!({"rule": "oldSelf.hasValue() || self.n == 1", "optionalOldSelf": true}),
                json!({"rule": "!oldSelf.hasValue() || self.n == oldSelf.value().n", "optionalOldSelf": true}),
                json!({"rule": "self.n == oldSelf.n", "optionalOldSelf": false}),
            ],
        );
        for (list, rule) in
            [("atomic", "self == oldSelf"), ("set", "self == oldSelf"), ("atomic", "self != ''")]
        {
            post(
                s,
                &json!({"type": "object", "properties": {"l": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": list, "items":
                {"type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": rule}]}}}}),
            );
        }
        post(
            s,
            &json!({"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": [{"rule": "true"}]}),
        );
    });
}

/// A schema of a field with a rule.
fn with(schema: Value, text: &str) -> Value {
    let mut schema = schema;
    schema["x-kubernetes-validations"] = rule(text);
    json!({"type": "object", "properties": {"f": schema}})
}

fn rule(text: &str) -> Value {
    json!([{"rule": text}])
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

#[test]
fn e10_rules_must_not_cost_too_much() {
    judge(|s| {
        let text = json!({"type": "string"});
        for spec in [
            with(list(text.clone()), "self.all(a, self.all(b, a == b))"),
            with(list(text.clone()), "self.all(a, a.startsWith('x'))"),
            with(list(text.clone()), "self.all(a, a.contains('xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'))"),
            with(list(json!({"type": "integer"})), "self.all(a, self.exists(b, a == b))"),
            with(list(json!({"type": "integer"})), "self.all(a, a > 1)"),
            with(list(json!({"type": "integer"})), "self.sort() == self"),
            with(list(json!({"type": "integer"})), "self.distinct() == self"),
            with(text.clone(), "self.matches('^[a-z]+$')"),
            with(text.clone(), "self.contains(self)"),
            with(text.clone(), "self.split('').all(a, self.contains(a))"),
            with(text.clone(), "self.replace('a', 'bbbb').contains(self)"),
            with(
                json!({"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 10}}),
                "self.all(a, self.all(b, a == b))",
            ),
            with(
                json!({"type": "array", "maxItems": 500, "items": {"type": "integer"}}),
                "self.all(a, self.all(b, a == b && self.all(c, c == a)))",
            ),
            with(json!({"type": "object", "additionalProperties": text}), "self.all(k, self[k] == k)"),
            with(
                json!({"type": "object", "additionalProperties": text}),
                "self.all(k, self.all(l, self[k] == self[l]))",
            ),
            with(
                list(
                    json!({"type": "string", "x-kubernetes-validations": rule("self.startsWith('a') && self.contains('b')")}),
                ),
                "true",
            ),
            with(
                list(
                    json!({"type": "string", "maxLength": 63, "x-kubernetes-validations": rule("self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")}),
                ),
                "true",
            ),
        ] {
            post(s, &spec);
        }
    });
}

#[test]
fn e10_rules_inside_of_lists_must_not_cost_too_much() {
    judge(|s| {
        let text = json!({"type": "string"});
        for spec in [
            with(
                list(
                    json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "x-kubernetes-validations": rule("self.a < self.b")}),
                ),
                "true",
            ),
            with(
                list(list(json!({"type": "integer", "x-kubernetes-validations": rule("self > 1")}))),
                "true",
            ),
            with(list(text.clone()), "isURL(self[0]) && url(self[0]).getHost() == 'x'"),
            with(
                list(json!({"type": "string", "enum": ["a", "bb"]})),
                "self.all(a, self.exists_one(b, a == b))",
            ),
            with(list(text.clone()), "self.map(a, a + a).join(',').size() > 1"),
            with(
                list(text.clone()),
                "self.filter(a, a.size() > 1).map(a, a.lowerAscii()).all(b, b.find('x+') != '')",
            ),
            with(
                json!({"x-kubernetes-int-or-string": true}),
                "type(self) == string ? self.matches('x') : self > 1",
            ),
            with(list(text.clone()), "self.isSorted()"),
            with(list(text.clone()), "sets.contains(self, ['a', 'b', 'c'])"),
            with(list(text.clone()), "self.exists(a, a in ['x', 'y'])"),
            with(
                json!({"type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 253}}),
                "self.all(a, self.exists_one(b, a == b)) && self.all(a, a.matches('^[a-z]+$'))",
            ),
        ] {
            post(s, &spec);
        }
    });
}

#[test]
fn e10_rules_together_must_not_cost_too_much() {
    judge(|s| {
        // Each is cheap enough, all together are not.
        let each = |n: usize| {
            json!({"type": "array", "maxItems": 64, "items": {"type": "string", "maxLength": 2800 + 10 * n},
            "x-kubernetes-validations": rule("self.all(a, self.all(b, a == b || a.contains('x')))")})
        };
        let many: serde_json::Map<String, Value> = (0..14).map(|n| (format!("f{n:02}"), each(n))).collect();
        post(s, &json!({"type": "object", "properties": many}));
    });
}
