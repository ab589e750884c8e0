//! Expressions: their results, their costs, and their errors.
//!
//! They answer the questions of `cluster/cel`, without a definition; `tests/judged/rules.rs` compares the same with a
//! real server.
use serde::Deserialize;
use serde_json::json;

use super::{Declared, Expression, Failure, Type, Value};
use crate::cluster::schema::source::Source;

fn run(text: &str) -> Result<Value, Failure> {
    let variables = [("self", Type::Dyn)];
    let expression = Expression::compile(text, &variables).unwrap_or_else(|words| panic!("{text}: {words}"));
    let own = super::from_json(&json!({"n": 3, "text": "Hello", "list": [3, 1, 2], "map": {"a": 1}}));
    expression.run(&[("self", own)], 1_000_000).result
}

fn holds(text: &str) {
    assert_eq!(run(text), Ok(Value::Bool(true)), "{text}");
}

fn fails(text: &str, words: &str) {
    assert_eq!(run(text), Err(Failure::Error(words.to_owned())), "{text}");
}

#[test]
fn either_side_of_a_disjunction_may_decide_though_the_other_fails() {
    holds("1 / (self.n - 3) == 1 || true");
    holds("!(1 / (self.n - 3) == 1 && false)");
    holds("self.list.exists(n, 6 / (n - 1) == 3)");
    fails("self.list.all(n, 6 / (n - 1) > 0)", "division by zero");
}

#[test]
fn values_are_optional_where_they_are_requested_as_optional() {
    holds("!self.?none.hasValue() && self.?text.orValue('') == 'Hello'");
    holds("[?self.?none].size() == 0 && self.?map.?a.orValue(0) == 1");
    holds("optional.of(1).optMap(x, x + 1).value() == 2");
    fails("self.?none.value() == 1", "optional.none() dereference");
}

#[test]
fn two_variables_walk_lists_and_maps() {
    holds("self.list.all(i, n, i < 3 && n > 0) && self.map.exists(k, v, k == 'a' && v == 1)");
    holds("self.list.transformList(i, n, n > 1, i * n) == [0, 4]");
    holds("self.map.transformMap(k, v, v * 10)['a'] == 10");
    fails("[1, 1].transformMapEntry(i, n, {n: i}).size() == 1", "insert failed: key 1 already exists");
}

#[test]
fn quantities_are_compared_and_added() {
    holds("quantity('1.5Gi').isGreaterThan(quantity('1G')) && quantity('1') == quantity('1000m')");
    holds("quantity('1Ki').asInteger() == 1024 && quantity('200M').add(1).sub(1) == quantity('200M')");
    // As in Go, how a quantity is written decides whether it is an integer.
    holds("quantity('1k').isInteger() && !quantity('1000m').isInteger() && !quantity('1.0').isInteger()");
    holds("sign(quantity('-0.5')) == -1 && quantity('1500m').asApproximateFloat() == 1.5");
}

#[test]
fn versions_are_ordered_and_prereleases_come_first() {
    holds(
        "semver('1.10.0').isGreaterThan(semver('1.9.0')) && semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))",
    );
    holds(
        "semver('1.0.0-a.2').isLessThan(semver('1.0.0-a.10')) && semver('1.0.0-1').isLessThan(semver('1.0.0-a'))",
    );
    holds("semver('v01.1', true) == semver('1.1.0') && !isSemver('01.0.0') && isSemver('1.0.0+x')");
    fails("semver('1.0').major() == 1", "No Major.Minor.Patch elements found");
}

#[test]
fn networks_hold_addresses_of_their_own_family() {
    holds("cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP('::1')");
    holds(
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR('10.0.0.0/8')",
    );
    holds(
        "cidr('192.168.0.5/24').masked() == cidr('192.168.0.0/24') && cidr('0.0.0.0/0').containsIP('1.1.1.1')",
    );
    holds(
        "!isIP('01.2.3.4') && !isIP('::ffff:1.2.3.4') && !isCIDR('1.2.3.4/033') && ip('::1').family() == 6",
    );
}

#[test]
fn urls_are_split_into_parts() {
    holds("url('https://u@h:1/a%20b?k=1&k=2#f').getHost() == 'h:1' && url('/p').getScheme() == ''");
    holds(
        "url('https://[::1]:80/').getHostname() == '::1' && url('http://h?x=%20y+z').getQuery()['x'] == [' y z']",
    );
    fails(
        "url('http://h/%zz').getHost() == ''",
        "URL parse error during conversion from string: parse \"http://h/%zz\": invalid URL escape \"%zz\"",
    );
}

#[test]
fn what_does_not_fit_is_refused_before_it_runs() {
    let refused = |text: &str| Expression::compile(text, &[("self", Type::Text)]).unwrap_err();
    assert_eq!(
        refused("self == 1"),
        "ERROR: <input>:1:6: found no matching overload for '_==_' applied to '(string, int)'\n | self == 1\n | .....^"
    );
    assert!(refused("nope").contains("undeclared reference to 'nope' (in container '')"));
    assert!(refused("[1, 'x'].size() == 2").contains("expected type 'int' but found 'string'"));
    assert!(refused("self.matches('[')").contains("invalid matches argument"));
    assert!(refused("'%d'.format([self]) == ''").contains("decimal clause can only be used on integers"));
}

#[test]
fn a_run_ends_when_it_costs_too_much() {
    let expression = Expression::compile("lists.range(1000).all(a, a >= 0)", &[]).unwrap();
    assert_eq!(expression.run(&[], 500).result, Err(Failure::TooExpensive));
    assert_eq!(expression.run(&[], 100_000).result, Ok(Value::Bool(true)));
}

fn estimate(schema: &serde_json::Value, text: &str) -> u64 {
    let declared = Declared::read(&Source::deserialize(schema).unwrap(), false, "self").unwrap();
    Expression::compile(text, &[("self", declared.of.clone())]).unwrap().estimate(&declared)
}

#[test]
fn estimates_grow_with_the_sizes_that_schemas_allow() {
    let list = |most: u64| json!({"type": "array", "maxItems": most, "items": {"type": "integer"}});
    let nested = "self.all(a, self.all(b, a == b))";
    assert_eq!(estimate(&json!({"type": "integer"}), "self > 1"), 2);
    assert!(estimate(&list(100), nested) > 90 * estimate(&list(10), nested));
    let open = json!({"type": "array", "items": {"type": "string"}});
    assert!(estimate(&open, nested) > 1_000_000_000);
    assert!(estimate(&json!({"type": "string", "maxLength": 10}), "self.contains(self)") < 100);
}

#[test]
fn lists_that_are_sets_or_maps_are_equal_in_any_order() {
    let list = |merge, items: &serde_json::Value| match super::from_json(items) {
        Value::List(list) => Value::List(super::List { merge, ..list }),
        other => other,
    };
    let [ab, ba] = [json!(["a", "b"]), json!(["b", "a"])];
    assert!(list(super::Merge::Set, &ab).equals(&list(super::Merge::Atomic, &ba)));
    assert!(!list(super::Merge::Atomic, &ab).equals(&list(super::Merge::Atomic, &ba)));
    let by_k = || super::Merge::Map(["k".into()].into());
    let [first, second] = [json!([{"k": 1, "v": 1}, {"k": 2}]), json!([{"k": 2}, {"k": 1, "v": 1}])];
    assert!(list(by_k(), &first).equals(&list(by_k(), &second)));
    assert!(!list(by_k(), &first).equals(&list(by_k(), &json!([{"k": 2}, {"k": 1, "v": 2}]))));
}
