//! Rules about lists that are sets or maps: E10.
//!
//! They answer: when are two such lists equal to a rule, what is their sum, and what do objects around them?
//! 1. One object is stored; each step changes the order of its lists, and selects a rule with `n`.
//! 2. A list whose rule says `self == oldSelf` stands alone.
use serde_json::{Value, json};

use crate::definitions::{define, define_rules, widget, with_spec};
use crate::harness::{Request, Session, judge};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
const WIDGETS: &str = "/apis/{group}/v1/namespaces/{ns}/widgets";
const WIDGET: &str = "/apis/{group}/v1/namespaces/{ns}/widgets/w?dryRun=All";

fn fields() -> Value {
    let text = json!({"type": "string", "maxLength": 5});
    let list = |of: &Value| json!({"type": "array", "maxItems": 4, "items": of});
    let set =
        |of: &Value| json!({"type": "array", "maxItems": 4, "x-kubernetes-list-type": "set", "items": of});
    let map = |keys: &[&str], of: &Value| {
        json!({"type": "array", "maxItems": 4, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": keys, "items": {"type": "object", "required": keys, "properties": of}})
    };
    let element = json!({"k": text, "v": {"type": "integer"}, "tags": set(&text)});
    json!({
        "n": {"type": "integer"}, "plain": list(&text), "set": set(&text), "more": set(&text),
        "list": map(&["k"], &element), "two": map(&["k", "v"], &element), "dashed": map(&["a-b"], &json!({"a-b": text})),
        "times": map(&["at"], &json!({"at": {"type": "string", "format": "date-time"}, "v": {"type": "integer"}})),
        "within": {"type": "object", "properties": {"set": set(&text), "list": map(&["k"], &element)}},
        "sets": list(&set(&text)),
        "named": {"type": "object", "maxProperties": 3, "additionalProperties": set(&text)},
        "ints": set(&json!({"type": "integer"})), "numbers": set(&json!({"type": "number"})),
        "whole": set(&json!({"type": "number"})), "flags": set(&json!({"type": "boolean"})),
        "whens": set(&json!({"type": "string", "format": "date-time"})),
        "moments": list(&json!({"type": "string", "format": "date-time"})),
        "either": set(&json!({"x-kubernetes-int-or-string": true})),
    })
}

fn stored() -> Value {
    json!({
        "n": -1, "plain": ["x", "y"], "set": ["x", "y"], "more": ["y", "z"],
        "list": [{"k": "a", "v": 1, "tags": ["p", "q"]}, {"k": "b", "v": 2}],
        "two": [{"k": "a", "v": 1}, {"k": "a", "v": 2}], "dashed": [{"a-b": "1"}, {"a-b": "2"}],
        "times": [{"at": "2024-01-01T00:00:00Z", "v": 1}, {"at": "2024-01-02T00:00:00Z", "v": 2}],
        "within": {"set": ["x", "y"], "list": [{"k": "a"}, {"k": "b"}]},
        "sets": [["x", "y"], ["z", "x"]], "named": {"one": ["x", "y"], "two": ["z"]},
        "ints": [1, 2], "numbers": [1.5, 2.5], "whole": [1, 2.5], "flags": [true, false], "either": [1, "1"],
        "whens": ["2024-01-01T00:00:00Z"],
    })
}

/// The same in another order.
fn turned() -> Value {
    json!({
        "plain": ["y", "x"], "set": ["y", "x"], "more": ["z", "w"],
        "list": [{"k": "b", "v": 2}, {"k": "a", "v": 1, "tags": ["q", "p"]}],
        "two": [{"k": "a", "v": 2}, {"k": "a", "v": 1}], "dashed": [{"a-b": "2"}, {"a-b": "1"}],
        "times": [{"at": "2024-01-02T00:00:00Z", "v": 2}, {"at": "2024-01-01T00:00:00Z", "v": 1}],
        "within": {"set": ["y", "x"], "list": [{"k": "b"}, {"k": "a"}]},
        "sets": [["y", "x"], ["x", "z"]], "named": {"one": ["y", "x"], "two": ["z"]},
        "ints": [2, 1], "numbers": [2.5, 1.5], "whole": [2.5, 1], "flags": [false, true], "either": ["1", 1],
    })
}

fn table(s: &mut Session, rules: &[&str]) {
    define_rules(s, fields(), rules);
    s.post(WIDGETS, &widget(&stored()));
    for n in 0..rules.len() {
        let mut changed = turned();
        changed["n"] = json!(n);
        s.patch("merge", WIDGET, &json!({"spec": changed}));
    }
}

const EQUAL: &[&str] = &[
    "self.set == oldSelf.set",
    "self.set != oldSelf.set",
    "self.set == ['x', 'y'] && self.set == ['y', 'x']",
    "['x', 'y'] == self.set",
    "['y', 'x'] == self.set",
    "self.set == ['y'] || self.set == ['y', 'y', 'x'] || self.set == []",
    "self.set == ['y', 'y']",
    "self.more != oldSelf.more",
    "self.set == oldSelf.plain",
    "self.plain == oldSelf.set",
    "self.plain == oldSelf.plain",
    "self.set.map(t, t) == oldSelf.set",
    "self.set == oldSelf.set.filter(t, true)",
    "self.list == oldSelf.list",
    "self.list.filter(i, true) == oldSelf.list",
    "self.list == oldSelf.list.filter(i, true)",
    "self.list == self.list.filter(i, i.k == 'a')",
    "self.list[1] == oldSelf.list[0] && self.list[0] != oldSelf.list[0]",
    "self.list[1].tags == oldSelf.list[0].tags",
    "self.two == oldSelf.two",
    "self.two != self.two.reverse()",
    "self.dashed == oldSelf.dashed",
    "self.times == oldSelf.times",
    "self.within == oldSelf.within",
    "self.within.set == oldSelf.within.set && self.within.list == oldSelf.within.list",
    "self.sets == oldSelf.sets",
    "self.sets[0] == oldSelf.sets[0] && self.sets[0] != self.sets[1]",
    "self.named.all(n, self.named[n] == ['x', 'y'] || n == 'two')",
    "self.ints == oldSelf.ints && self.ints == [1, 2]",
    "self.numbers == oldSelf.numbers && self.numbers == [1.5, 2.5]",
    "self.whole == oldSelf.whole",
    "self.whole == [1.0, 2.5]",
    "self.flags == oldSelf.flags && self.flags == [true, false]",
    "self.either == oldSelf.either",
    "self.whens == oldSelf.whens",
    "self.whens[0] == oldSelf.whens[0] && self.whens.all(w, w in self.whens)",
];

#[test]
fn e10_rules_compare_sets_and_maps() {
    judge(|s| {
        table(s, EQUAL);
    });
}

const JOINED: &[&str] = &[
    "(self.set + oldSelf.set).map(t, t) == ['y', 'x']",
    "(self.set + ['z', 'y', 'z']).map(t, t) == ['y', 'x', 'z']",
    "(self.set + oldSelf.more).map(t, t) == ['y', 'x', 'z'] && self.set + self.more == ['w', 'x', 'y', 'z']",
    "self.set + oldSelf.set == self.set && self.set + [] == oldSelf.set",
    "(self.plain + self.set).size() == 4 && ['y'] + self.set == ['y', 'y', 'x']",
    "self.set + self.more + ['x', 'q'] == ['q', 'w', 'x', 'y', 'z']",
    "'z' in self.set + ['z'] && (self.set + ['z'])[2] == 'z' && (self.set + ['z']).size() == 3",
    "(self.list + oldSelf.list).map(i, i.k) == ['b', 'a'] && self.list + oldSelf.list == self.list",
    "(self.list + self.list.filter(i, i.k == 'a')).size() == 2",
    "(self.list.filter(i, i.k == 'a') + self.list).size() == 3",
    "(self.two + oldSelf.two).map(i, i.v) == [2, 1]",
    "(self.times + oldSelf.times).size() == 2",
    "(self.dashed + oldSelf.dashed).size() == 2",
    "(self.ints + [2, 3]).size() == 3 && (self.numbers + [1.5, 3.0]).size() == 3",
    "(self.whole + self.whole).size() == 2",
    "(self.whole + [1.0]).size() == 2",
    "oldSelf.sets[0] in self.sets && ['x', 'y'] in self.sets && !(['x'] in self.sets)",
    "oldSelf.set in [self.set] && oldSelf.set in [['y', 'x']]",
    "['x', 'y'] in [self.set]",
    "['x', 'y'] in self.sets.filter(s, true)",
    "oldSelf.sets[0] in self.sets.filter(s, true) && !(['y'] in self.sets)",
    "sets.contains([['x', 'y']], [self.set])",
    "sets.contains([self.set], [['x', 'y']])",
    "sets.intersects(self.sets, [['x', 'y']])",
    "sets.intersects([['x', 'y']], self.sets)",
    "'one' in self.named && !('four' in self.named)",
    "oldSelf.list[0] in self.list && !(oldSelf.list[0] in self.list.filter(i, i.k == 'b'))",
    "sets.contains(self.sets, [['x', 'y']]) && sets.equivalent(self.sets, oldSelf.sets) && sets.intersects(oldSelf.sets, self.sets)",
    "self.sets.indexOf(['z', 'x']) == 1 && self.sets.lastIndexOf(['q']) == -1",
    "[self.set, oldSelf.set, self.more].distinct().size() == 2",
    "self.sets.exists(s, s == oldSelf.set) && self.sets.exists_one(s, s == ['x', 'y'])",
    "self.sets.all(s, s + ['x'] == s)",
    "self.sets.map(s, s + ['n'])[0] == ['n', 'x', 'y'] && self.sets.filter(s, s == oldSelf.set).size() == 1",
    "self.list.exists(i, has(i.tags) && i.tags == ['p', 'q'])",
    "self.list.all(i, oldSelf.list.exists(o, o == i)) && self.named.exists(n, self.named[n] == ['x', 'y'])",
    "self.set.sort() == ['x', 'y'] && self.set.reverse() == ['x', 'y'] && self.set.slice(0, 1) == ['y'] && self.set.join() == 'yx'",
    "[self.set].flatten() == ['y', 'x'] && self.set.first().orValue('') == 'y' && self.sets.flatten() == ['y', 'x', 'x', 'z']",
    "type(self.set) == list && size(self.set) == 2 && self.set[?5].orValue('n') == 'n' && self.set[1] == 'x'",
    "self.set[2] == 'x'",
    "(self.sets + oldSelf.sets).size() == 4 && (self.sets + oldSelf.sets)[3] == ['x', 'z'] && (self.sets + [])[0] == ['x', 'y']",
    "([['x']] + self.sets)[2] == ['z', 'x'] && ([['x']] + self.sets)[0] != ['y', 'x']",
    "(self.flags[0] ? self.set[0] : 'a') + (self.flags[1] ? self.set[1] : 'b') == 'ax'",
];

#[test]
fn e10_rules_join_and_search_sets_and_maps() {
    judge(|s| {
        table(s, JOINED);
    });
}

#[test]
fn e10_rules_compare_sets_of_objects_with_an_error() {
    judge(|s| {
        let of = json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"k": {"type": "string", "maxLength": 5}}});
        let rules = [
            "self.objects != oldSelf.objects",
            "(self.objects + oldSelf.objects).size() == 2",
            "oldSelf.objects[0] in self.objects",
        ];
        let objects = json!({"type": "array", "maxItems": 4, "x-kubernetes-list-type": "set", "items": of});
        define_rules(s, json!({"objects": objects}), &rules);
        s.post(WIDGETS, &widget(&json!({"n": -1, "objects": [{"k": "a"}, {"k": "b"}]})));
        for n in 0..rules.len() {
            s.patch("merge", WIDGET, &json!({"spec": {"n": n, "objects": [{"k": "b"}, {"k": "a"}]}}));
        }
    });
}

#[test]
fn e10_sums_that_a_real_server_reads_anew_are_refused_here() {
    judge(|s| {
        for rule in ["(self.sets + [['x']]).size() == 3", "(self.moments + self.moments).size() == 2"] {
            let rules = json!([{"rule": rule}]);
            let spec = json!({"type": "object", "properties": fields(), "x-kubernetes-validations": rules});
            s.send(Request::new("POST", DEFINITIONS).json(&with_spec(&spec)));
        }
    });
}

#[test]
fn e10_a_list_that_may_not_change_may_change_its_order_if_it_is_no_plain_list() {
    judge(|s| {
        let mut all = fields();
        let names = ["plain", "set", "list", "within", "sets", "named"];
        for name in names {
            all[name]["x-kubernetes-validations"] =
                json!([{"rule": "self == oldSelf", "message": "it is fixed"}]);
        }
        define(s, &with_spec(&json!({"type": "object", "properties": all})));
        s.post(WIDGETS, &widget(&stored()));
        for name in names {
            s.patch("merge", WIDGET, &json!({"spec": {name: turned()[name]}}));
        }
        for (name, other) in [
            ("set", json!(["x", "z"])),
            ("list", json!([{"k": "b", "v": 2}, {"k": "a", "v": 1, "tags": ["q"]}])),
            ("within", json!({"set": ["y", "z"]})),
            ("sets", json!([["x", "z"], ["y", "x"]])),
            ("named", json!({"one": ["y"]})),
        ] {
            s.patch("merge", WIDGET, &json!({"spec": {name: other}}));
        }
    });
}

/// A definition that is made narrower: a rule for `within` and one for `loose`, and fewer elements of `list`.
fn narrow(s: &mut Session, spec: &Value) {
    let made = |narrow: bool| {
        let mut all = json!({"within": fields()["within"], "set": fields()["set"], "list": fields()["list"],
            "bad": {"type": "object", "properties": {"n": {"type": "integer"}}}, "loose": {"type": "object",
            "properties": {"n": {"type": "integer"}, "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}});
        if narrow {
            all["within"]["x-kubernetes-validations"] =
                json!([{"rule": "self.list.all(i, i.k == 'none')", "message": "none is good"}]);
            all["loose"]["x-kubernetes-validations"] =
                json!([{"rule": "self.n > 5", "message": "it is small"}]);
            all["list"]["maxItems"] = json!(1);
            all["bad"]["x-kubernetes-validations"] = json!([{"rule": "1 / (self.n - 1) > 0"}]);
        }
        with_spec(&json!({"type": "object", "properties": all}))
    };
    define(s, &made(false));
    let mut widget = widget(spec);
    s.post(WIDGETS, &widget);
    let narrower = json!({"spec": {"versions": made(true)["spec"]["versions"]}}).to_string();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}";
    s.prepare(Request::new("PATCH", path).body("application/merge-patch+json", narrower));
    widget["metadata"]["name"] = json!("other");
    s.until(&Request::new("POST", format!("{WIDGETS}?dryRun=All")).json(&widget), |answer| {
        answer.code() == 422
    });
}

#[test]
fn e10_a_list_that_only_changed_the_order_of_its_keys_did_not_change() {
    judge(|s| {
        let list = json!([{"k": "a", "tags": ["p", "q"]}, {"k": "b", "v": 1}]);
        narrow(s, &json!({"set": ["x", "y"], "list": list, "within": {"set": ["x", "y"], "list": list}}));
        let turned = json!([{"k": "b", "v": 1}, {"k": "a", "tags": ["p", "q"]}]);
        for spec in [
            json!({"within": {"list": turned}, "list": turned}),
            json!({"within": {"list": [{"k": "b", "v": 1}, {"k": "a", "tags": ["q", "p"]}]}}),
            json!({"within": {"list": [{"k": "b", "v": 2}, {"k": "a", "tags": ["p", "q"]}]}}),
            json!({"within": {"list": [{"k": "a", "tags": ["p", "q"]}]}}),
            json!({"within": {"set": ["y", "x"]}}),
            json!({"list": [{"k": "b", "v": 2}, {"k": "a", "tags": ["p", "q"]}]}),
            json!({"set": ["y", "x"]}),
        ] {
            s.patch("merge", WIDGET, &json!({"spec": spec}));
        }
    });
}

#[test]
fn e10_an_object_with_fields_of_no_schema_always_changed() {
    judge(|s| {
        narrow(s, &json!({"set": ["x"], "loose": {"n": 1, "open": {"a": 1}}}));
        s.patch("merge", WIDGET, &json!({"spec": {"set": ["y"]}}));
    });
}

#[test]
fn e10_a_rule_that_fails_refuses_also_what_did_not_change() {
    judge(|s| {
        narrow(s, &json!({"set": ["x"], "bad": {"n": 1}}));
        s.patch("merge", WIDGET, &json!({"spec": {"set": ["y"]}}));
        s.patch("merge", WIDGET, &json!({"spec": {"bad": {"n": 2}}}));
    });
}
