//! Lists that are sets or maps, in rules: `tests/judged/rules_of_lists.rs` compares the same with a real server.
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::cluster::cel::{Expression, variables};
use crate::cluster::definition::seen;
use crate::cluster::schema::source::Source;

fn schema() -> Json {
    let text = json!({"type": "string"});
    let moment = json!({"type": "string", "format": "date-time"});
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": text});
    let element = json!({"type": "object", "required": ["k"],
        "properties": {"k": text, "v": {"type": "integer"}, "tags": set}});
    let map = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": element});
    json!({"type": "object", "properties": {
        "set": set, "same": set, "other": set, "list": map, "turned": map, "changed": map,
        "plain": {"type": "array", "items": text},
        "atomic": {"type": "array", "x-kubernetes-list-type": "atomic", "items": text},
        "within": {"type": "object", "properties": {"set": set, "list": map}},
        "sets": {"type": "array", "items": set},
        "named": {"type": "object", "additionalProperties": set},
        "two": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "v"], "items": element},
        "dashed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a-b"],
            "items": {"type": "object", "required": ["a-b"], "properties": {"a-b": text}}},
        "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}},
        "times": {"type": "array", "x-kubernetes-list-type": "set", "items": moment},
        "moments": {"type": "array", "items": moment},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["at"],
            "items": {"type": "object", "required": ["at"], "properties": {"at": moment}}},
        "maps": {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}}},
        "port": {"x-kubernetes-int-or-string": true}, "when": moment, "text": text,
        "objects": {"type": "array", "x-kubernetes-list-type": "set",
            "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"k": text}}},
    }})
}

fn value() -> Json {
    json!({
        "set": ["x", "y"], "same": ["y", "x"], "other": ["x", "z"],
        "list": [{"k": "a", "v": 1, "tags": ["p", "q"]}, {"k": "b", "v": 2}],
        "turned": [{"k": "b", "v": 2}, {"k": "a", "v": 1, "tags": ["q", "p"]}],
        "changed": [{"k": "c", "v": 3}, {"k": "b", "v": 9}],
        "plain": ["x", "y"], "atomic": ["y", "x"],
        "within": {"set": ["x", "y"], "list": [{"k": "a", "v": 1}, {"k": "b", "v": 2}]},
        "sets": [["x", "y"], ["z", "x"]],
        "named": {"one": ["x", "y"], "two": ["y", "x"], "three": ["z"]},
        "two": [{"k": "a", "v": 1}, {"k": "a", "v": 2}],
        "dashed": [{"a-b": "1"}, {"a-b": "2"}],
        "numbers": [1.5, 2.5], "times": ["2024-01-01T00:00:00Z"], "objects": [{"k": "a"}],
        "moments": ["2024-01-01T00:00:00Z"], "keyed": [{"at": "2024-01-01T00:00:00Z"}], "maps": [{"a": 1}],
        "port": 1, "when": "2024-01-01T00:00:00Z", "text": "a,b",
    })
}

/// What a rule says of a value, and of an old one.
fn compared(rule: &str, own: &Json, old: &Json) -> Result<bool, String> {
    let source = Source::deserialize(schema()).unwrap();
    let read = Expression::read(rule, &source, false)?;
    let (own, old) = (seen(&source, own, false), seen(&source, old, false));
    read.run(&variables(own, Some(old))).map(|said| said == true.into())
}

fn told(rule: &str) -> Result<bool, String> {
    compared(rule, &value(), &value())
}

#[track_caller]
fn all_hold(rules: &[&str]) {
    for rule in rules {
        assert_eq!(told(rule), Ok(true), "{rule}");
    }
}

#[test]
fn sets_are_equal_in_any_order() {
    all_hold(&[
        "self.set == self.same && !(self.set != self.same)",
        "self.set == ['y', 'x']",
        "self.set == self.same.map(t, t)",
        "self.set != self.other && !(self.set == self.other)",
        "self.set != ['x'] && self.set != ['x', 'y', 'y'] && self.set != []",
        "self.sets[0] == self.same && self.sets[0] != self.sets[1]",
        "self.named.one == self.named['two'] && self.named.one != self.named.three",
        "self.?set.orValue([]) == self.same && self.?set == optional.of(self.same)",
    ]);
}

#[test]
fn lists_without_a_kind_are_equal_in_one_order() {
    all_hold(&[
        "self.plain == ['x', 'y'] && self.plain != ['y', 'x']",
        "self.atomic == ['y', 'x'] && self.atomic != ['x', 'y'] && self.plain != self.atomic",
        // The first operand decides.
        "['y', 'x'] != self.set && ['x', 'y'] == self.set && self.plain != self.same && self.same == self.plain",
        "self.set.map(t, t) != self.same && self.set.filter(t, true) == ['x', 'y']",
    ]);
}

#[test]
fn lists_that_are_maps_are_equal_in_any_order_if_the_elements_of_each_key_are() {
    all_hold(&[
        "self.list == self.turned && !(self.list != self.turned)",
        "self.list != self.changed && self.list != self.within.list",
        "self.list == self.turned.filter(i, true) && self.list.filter(i, true) != self.turned",
        "self.two == self.two.reverse() && self.two != self.two.filter(i, i.v == 1)",
    ]);
}

#[test]
fn objects_are_equal_if_the_lists_within_are() {
    let own = json!({"within": {"set": ["x", "y"], "list": [{"k": "a", "tags": ["p", "q"]}, {"k": "b"}]}, "named": {"one": ["x", "y"]}});
    let mut old = json!({"within": {"set": ["y", "x"], "list": [{"k": "b"}, {"k": "a", "tags": ["q", "p"]}]}, "named": {"one": ["y", "x"]}});
    for rule in
        ["self == oldSelf", "self.within == oldSelf.within && self.named == oldSelf.named", "oldSelf == self"]
    {
        assert_eq!(compared(rule, &own, &old), Ok(true), "{rule}");
    }
    old["within"]["list"][1]["tags"] = json!(["q"]);
    for rule in ["self == oldSelf", "self.within == oldSelf.within"] {
        assert_eq!(compared(rule, &own, &old), Ok(false), "{rule}");
    }
}

#[test]
fn a_set_that_may_not_change_may_change_its_order() {
    let source = Source::deserialize(&schema()["properties"]["set"]).unwrap();
    let read = Expression::read("self == oldSelf", &source, false).unwrap();
    for (new, old, same) in
        [(json!(["x", "y"]), json!(["y", "x"]), true), (json!(["x", "y"]), json!(["x", "z"]), false)]
    {
        let run = read.run(&variables(seen(&source, &new, false), Some(seen(&source, &old, false))));
        assert_eq!(run, Ok(same.into()), "{new} {old}");
    }
}

#[test]
fn a_sum_of_sets_has_each_element_once() {
    all_hold(&[
        "(self.set + ['y', 'z', 'z']).map(t, t) == ['x', 'y', 'z']",
        "(self.set + self.other).size() == 3 && (self.set + self.same).size() == 2",
        "self.set + ['z'] == ['z', 'y', 'x'] && self.set + self.other + ['a', 'x'] == ['a', 'x', 'y', 'z']",
        "(self.plain + self.set).size() == 4 && (['x'] + self.set) == ['x', 'x', 'y']",
        "(self.set + [])[1] == 'y' && 'z' in self.set + ['z']",
    ]);
}

#[test]
fn a_sum_of_lists_that_are_maps_has_each_key_once_with_the_last_value() {
    all_hold(&[
        "(self.list + self.changed).map(i, i.k) == ['a', 'b', 'c']",
        "(self.list + self.changed).map(i, i.v) == [1, 9, 3]",
        "self.list + self.turned == self.list && self.list + self.changed != self.list",
        "self.list + self.changed == self.changed + self.list.filter(i, i.k == 'a')",
        "(self.two + self.two).size() == 2 && (self.list.filter(i, true) + self.list).size() == 4",
    ]);
}

#[test]
fn elements_are_found_in_lists_by_their_own_equality() {
    all_hold(&[
        "self.same in self.sets && ['y', 'x'] in self.sets && !(['x'] in self.sets)",
        "self.same in [self.set] && self.set in [['y', 'x']] && !(['y', 'x'] in [self.set])",
        "['y', 'x'] in self.sets && !(['y', 'x'] in self.sets.filter(s, true))",
        "sets.contains([['y', 'x']], [self.set]) && !sets.contains([self.set], [['y', 'x']])",
        "'one' in self.named && !('four' in self.named) && !(self.set in [])",
        "self.turned[1] in self.list && !(self.changed[1] in self.list)",
        "'x' in self.set && !('z' in self.set)",
        "sets.contains(self.sets, [['y', 'x']]) && self.sets.indexOf(['x', 'z']) == 1",
        "[self.set, self.same, self.other].distinct().size() == 2",
    ]);
}

#[test]
fn variables_of_loops_are_lists_as_their_schema_says() {
    all_hold(&[
        "self.sets.exists(s, s == self.same) && self.sets.exists_one(s, s == ['y', 'x'])",
        "self.sets.all(s, s + ['x'] == s)",
        "self.sets.map(s, s + ['n'])[0] == ['n', 'y', 'x'] && self.sets.filter(s, s == self.same).size() == 1",
        "self.list.exists(i, has(i.tags) && i.tags == ['q', 'p'])",
        "self.list.all(i, self.turned.exists(t, t == i)) && self.named.exists(n, self.named[n] == ['y', 'x'])",
    ]);
}

#[test]
fn sets_are_compared_as_they_are_written() {
    all_hold(&[
        "self.numbers == [2.5, 1.5] && self.numbers + [1.5] == self.numbers",
        // A real server compares the written text with a time.
        "self.times != self.times && self.times[0] == timestamp('2024-01-01T00:00:00Z')",
        // It looks for a key by its name in rules, and finds none.
        "self.dashed != self.dashed",
    ]);
}

#[test]
fn sets_of_objects_end_a_rule_as_on_a_real_server() {
    let why = "internal error: runtime error: hash of unhashable type map[string]interface {}";
    for rule in [
        "(self.objects + self.objects).size() == 1",
        "self.objects == self.objects",
        "self.objects != self.objects || true",
        "self.objects == self.objects || self.objects != self.objects",
    ] {
        assert_eq!(told(rule), Err(why.to_owned()), "{rule}");
    }
    all_hold(&[
        "true || self.objects == self.objects",
        "self.objects[0] in self.objects && self.objects != []",
    ]);
}

#[test]
fn a_set_is_not_joined_with_a_text() {
    assert_eq!(told("self.set + 'x' == self.set"), Err("no such overload".to_owned()));
}

#[test]
fn elements_of_a_map_are_found_by_keys_as_they_are_written() {
    let mut old = value();
    old["keyed"] = json!([{"at": "2024-01-01T00:00:00.000Z"}]);
    for (rule, said) in [
        ("self.keyed[0].at == oldSelf.keyed[0].at", true),
        ("self.keyed == oldSelf.keyed", false),
        ("(self.keyed + oldSelf.keyed).size() == 2", true),
        ("(self.keyed + self.keyed).size() == 1", true),
    ] {
        assert_eq!(compared(rule, &value(), &old), Ok(said), "{rule}");
    }
}

#[test]
fn a_sum_is_not_refused_where_the_real_server_reads_the_same_elements() {
    all_hold(&[
        "size(self.set) + size(self.plain) == 4 && self.sets.map(s, s.size() + 1) == [3, 3]",
        "self.?plain.orValue(['a'])[0] + 'b' == 'xb' && (self.plain.filter(t, true) + ['z']).size() == 3",
        "(self.plain + self.plain + ['z']).size() == 5 && (['a'] + ['b']).size() == 2",
        "(self.sets + self.sets)[2] == self.same && (self.sets + []).size() == 2 && ([['x']] + self.sets).size() == 3",
        "(self.list + self.list.filter(i, true)).size() == 2 && (self.keyed + self.keyed).size() == 1",
        "([timestamp('2025-01-01T00:00:00Z')] + self.moments).size() == 2 && (self.moments + []).size() == 1",
        "self.named.all(k, k + k != k) && (has(self.set) ? self.set[0] : 'a') + (has(self.plain) ? self.plain[0] : 'b') == 'xx'",
        "self.?text.orValue('') + self.?text.value() == 'a,ba,b' && self.text.split(',')[0] + self.text.split(',')[1] == 'ab'",
        "[duration('1h')].all(d, self.when + d > self.when && d + self.when > self.when) && self.port + self.port == 2",
    ]);
}

#[test]
fn a_sum_is_refused_where_the_real_server_reads_other_elements() {
    for rule in [
        "(self.sets + [['x']]).size() == 3",
        "((true ? self.sets : []) + [['x']]).size() == 3",
        "((false ? [] : self.sets) + [['x']]).size() == 3",
        "(self.?sets.orValue([]) + [['x']]).size() == 3",
        "[self.sets].all(s, (s + s).size() == 4)",
        "(self.moments + self.moments).size() == 2",
        "(self.times + [timestamp('2025-01-01T00:00:00Z')]).size() == 2",
        "(self.moments + [] + self.moments).size() == 2",
        "(self.maps + [{'a': 1}]).size() == 2",
    ] {
        let why = told(rule).unwrap_err();
        let words =
            "this server does not evaluate '+' of lists of lists, maps or times: see its DIFFERENCES.md";
        assert!(why.contains(words), "{rule}: {why}");
    }
}

#[test]
fn large_sets_and_maps_are_compared_and_joined() {
    // Compared one by one this would take minutes.
    let names: Vec<String> = (0..50_000).map(|name| format!("{name:06}")).collect();
    let list: Vec<Json> = names.iter().map(|name| json!({"k": name})).collect();
    let mut turned = json!({"set": names, "list": list});
    let own = turned.clone();
    for name in ["set", "list"] {
        turned[name].as_array_mut().unwrap().reverse();
        for rule in [
            format!("self.{name} == oldSelf.{name}"),
            format!("(self.{name} + oldSelf.{name}).size() == 50000"),
        ] {
            assert_eq!(compared(&rule, &own, &turned), Ok(true), "{rule}");
        }
    }
}
