//! Rules about objects: nulls, fields of no schema, names that rules cannot write: E10.
//!
//! They answer: when are two objects equal to a rule, what is no value, and which old value is none?
//! 1. Pairs of objects are elements of one list, since a rule only compares objects of one schema.
use serde_json::{Value, json};

use crate::definitions::{define, define_rules, widget, with_spec};
use crate::harness::{Request, Session, judge};

const WIDGETS: &str = "/apis/{group}/v1/namespaces/{ns}/widgets";
const WIDGET: &str = "/apis/{group}/v1/namespaces/{ns}/widgets/w";

fn post(s: &mut Session, spec: &Value) {
    s.send(Request::new("POST", format!("{WIDGETS}?dryRun=All")).json(&widget(spec)));
}

fn element() -> Value {
    let text = json!({"type": "string", "maxLength": 5});
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "k": text, "1a": text, "a-b": text, "n": {"type": "integer", "nullable": true},
        "o": {"type": "object", "nullable": true, "properties": {"x": {"type": "integer"}}}, "open": open,
        "any": {"x-kubernetes-preserve-unknown-fields": true},
        "m": {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "integer", "nullable": true}},
    }})
}

#[test]
fn e10_fields_that_rules_cannot_read_take_part_in_equality() {
    judge(|s| {
        let all = json!({"type": "array", "maxItems": 3, "items": element()});
        let rule = json!([{"rule": "self.all[0] == self.all[1]", "message": "they differ"}]);
        let spec = json!({"type": "object", "properties": {"all": all}, "x-kubernetes-validations": rule});
        define(s, &with_spec(&spec));
        for (one, other) in [
            (json!({"k": "x", "u": 1}), json!({"k": "x", "u": 1})),
            (json!({"k": "x", "u": 1}), json!({"k": "x", "u": 2})),
            (json!({"k": "x", "u": {"v": [1, null]}}), json!({"k": "x", "u": {"v": [1, null]}})),
            (json!({"k": "x", "u": {"v": [1, null]}}), json!({"k": "x", "u": {"v": [1]}})),
            // Fields of no schema are only compared where both have them, and are counted.
            (json!({"k": "x", "u": 1}), json!({"k": "x", "v": 2})),
            (json!({"k": "x", "u": 1}), json!({"k": "x"})),
            (json!({"u": 1}), json!({"k": "x"})),
            (json!({"k": "x"}), json!({"u": 1})),
            (json!({"u": null}), json!({"u": 1})),
            (json!({"u": null}), json!({"v": 1})),
            (json!({"k": "x", "n": null}), json!({"k": "x", "n": null})),
            (json!({"k": "x", "n": null}), json!({"k": "x"})),
            (json!({"k": "x", "n": null}), json!({"k": "x", "n": 1})),
            (json!({"k": "x", "n": 1}), json!({"k": "x", "n": null})),
            (json!({"k": "x", "n": null}), json!({"k": "x", "u": 1})),
            (json!({"n": null}), json!({"o": null})),
            (json!({"o": null}), json!({"o": {"x": 1}})),
            (json!({"o": {"x": 1}}), json!({"o": null})),
            (json!({"o": {"x": 1}}), json!({"o": {"x": 2}})),
            (json!({"1a": "p"}), json!({"1a": "p"})),
            (json!({"1a": "p"}), json!({"1a": "q"})),
            (json!({"a-b": "p"}), json!({"a-b": "q"})),
            (json!({"open": {"x": 1}}), json!({"open": {"x": 2}})),
            (json!({"open": {"x": 1}}), json!({"open": {"y": 2}})),
            (json!({"any": {"x": [1]}}), json!({"any": {"x": [1]}})),
            (json!({"any": {"x": [1]}}), json!({"any": {"x": [2]}})),
            (json!({"any": {"x": 1}}), json!({"any": {"y": 1}})),
            (json!({"any": 1}), json!({"any": "1"})),
            (json!({"m": {"a": null}}), json!({"m": {"a": null}})),
            (json!({"m": {"a": null}}), json!({"m": {"b": null}})),
        ] {
            post(s, &json!({"all": [one, other]}));
        }
    });
}

const NULLS: &[&str] = &[
    "!has(self.it.n) && !has(self.it.o)",
    "self.it.n == 1",
    "self.it.?n.orValue(7) == 7",
    "has(self.it.m.a) && 'a' in self.it.m && self.it.m.size() == 1",
    "self.it in [self.it] && [self.it, self.it].distinct().size() == 1",
];

#[test]
fn e10_a_null_field_is_absent_and_a_null_of_a_map_is_there() {
    judge(|s| {
        define_rules(s, json!({"it": element()}), NULLS);
        for n in 0..NULLS.len() {
            post(s, &json!({"n": n, "it": {"n": null, "o": null, "m": {"a": null}}}));
        }
    });
}

#[test]
fn e10_an_old_null_is_no_old_value() {
    judge(|s| {
        let fixed = json!([{"rule": "self == oldSelf", "message": "it is fixed"}]);
        let first =
            json!([{"rule": "!oldSelf.hasValue() || self == oldSelf.value()", "optionalOldSelf": true}]);
        let field = |rules: &Value| json!({"type": "string", "maxLength": 5, "nullable": true, "x-kubernetes-validations": rules});
        let inner = json!({"type": "object", "nullable": true, "properties": {"deep": field(&fixed)},
            "x-kubernetes-validations": [{"rule": "self.deep == oldSelf.deep"}]});
        let all = json!({"fixed": field(&fixed), "first": field(&first), "inner": inner});
        define(s, &with_spec(&json!({"type": "object", "properties": all})));
        s.post(WIDGETS, &widget(&json!({"fixed": null, "first": null, "inner": null})));
        for spec in [json!({"fixed": "a"}), json!({"first": "a"}), json!({"inner": {"deep": "a"}})] {
            s.patch("merge", WIDGET, &json!({"spec": spec}));
            s.send(Request::new("GET", WIDGET));
        }
        s.patch("merge", WIDGET, &json!({"spec": {"fixed": "b"}}));
        s.patch("merge", WIDGET, &json!({"spec": {"first": "b"}}));
        s.patch("merge", WIDGET, &json!({"spec": {"inner": {"deep": "b"}}}));
    });
}

#[test]
fn e10_rules_below_names_that_rules_cannot_write_are_checked() {
    judge(|s| {
        let small = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self < 3", "message": "it is large"}]});
        let all = json!({"1a": small, "b$": {"type": "object", "properties": {"c": small}}, "a-b": small});
        define(s, &with_spec(&json!({"type": "object", "properties": all})));
        for spec in
            [json!({"1a": 1, "b$": {"c": 1}}), json!({"1a": 5}), json!({"b$": {"c": 5}}), json!({"a-b": 5})]
        {
            post(s, &spec);
        }
    });
}

const KEYS: &[&str] = &[
    "self.times == oldSelf.times",
    "self.times != oldSelf.times",
    "(self.times + oldSelf.times).size() == 2",
    "(self.times + oldSelf.times).size() == 3",
    "self.times[0].at == oldSelf.times[0].at",
    "self.odd == oldSelf.odd",
    "(self.odd + oldSelf.odd).map(i, i.v) == [2, 1]",
    "self == oldSelf || self.times != oldSelf.times",
];

#[test]
fn e10_keys_of_lists_are_compared_as_they_are_written() {
    judge(|s| {
        let map = |key: &str, of: &Value| {
            json!({"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key],
                "items": {"type": "object", "required": [key], "properties": {key: of, "v": {"type": "integer"}}}})
        };
        let odd = map("1a", &json!({"type": "string", "maxLength": 5}));
        let times = map("at", &json!({"type": "string", "format": "date-time"}));
        define_rules(s, json!({"times": times, "odd": odd}), KEYS);
        let spec = |n: i64, at: &str, odd: [(&str, i64); 2]| {
            let odd = odd.map(|(key, v)| json!({"1a": key, "v": v}));
            json!({"n": n, "times": [{"at": at}, {"at": "2025-01-01T00:00:00Z"}], "odd": odd})
        };
        s.post(WIDGETS, &widget(&spec(-1, "2024-01-01T00:00:00Z", [("x", 1), ("y", 2)])));
        for n in 0..i64::try_from(KEYS.len()).unwrap() {
            let changed = spec(n, "2024-01-01T00:00:00.000Z", [("y", 2), ("x", 1)]);
            s.patch("merge", format!("{WIDGET}?dryRun=All"), &json!({"spec": changed}));
        }
    });
}

#[test]
fn e10_whole_objects_are_compared_with_all_of_their_metadata() {
    judge(|s| {
        let mut made =
            with_spec(&json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}}}));
        made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] = json!([{"rule": "self == oldSelf", "message": "it is fixed"}, {"rule": "self.kind == oldSelf.kind"}]);
        define(s, &made);
        s.post(WIDGETS, &widget(&json!({"a": "x"})));
        s.patch("merge", WIDGET, &json!({"spec": {"a": "x"}}));
        s.patch("merge", WIDGET, &json!({"spec": {"a": "y"}}));
        s.patch("merge", WIDGET, &json!({"metadata": {"labels": {"l": "1"}}}));
    });
}
