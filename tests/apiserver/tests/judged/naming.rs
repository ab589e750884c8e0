//! Names of definitions that are in use, numbers, texts, events, leases: rows of the list of public reports.
//!
//! They answer: what becomes of two definitions that want the same name? And of numbers that Go writes in its own way?
use serde_json::{Value, json};

use crate::definitions::{define, definition, widgets};
use crate::harness::{Answer, Request, judge};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/{group}/v1/namespaces/{ns}/widgets";

fn reason(answer: &Answer) -> String {
    let conditions = answer.json()["status"]["conditions"].clone();
    let named = |one: &&Value| one["type"] == "NamesAccepted";
    let found = conditions.as_array().and_then(|all| all.iter().find(named).cloned());
    found.map_or_else(String::new, |one| one["reason"].as_str().unwrap_or_default().to_owned())
}

/// The conditions without their times, and the accepted names.
fn told(answer: &Answer) -> Value {
    let status = answer.json()["status"].clone();
    let short = |one: &Value| json!([one["type"], one["status"], one["reason"], one["message"]]);
    let conditions: Vec<Value> = status["conditions"].as_array().into_iter().flatten().map(short).collect();
    json!([conditions, status["acceptedNames"]])
}

#[test]
fn bugs_7_short_names_in_use() {
    judge(|s| {
        define(s, &definition());
        let path = format!("{DEFINITIONS}/widgets.{{group}}");
        for (names, expected) in [
            (json!(["wg"]), "NoConflicts"),
            (json!(["widget", "wd"]), "ShortNamesConflict"),
            (json!(["wd"]), "NoConflicts"),
        ] {
            let patch = json!({"spec": {"names": {"shortNames": names}}}).to_string();
            s.prepare(Request::new("PATCH", &path).body("application/merge-patch+json", patch));
            let is_there = |answer: &Answer| {
                reason(answer) == expected
                    && (expected != "NoConflicts"
                        || answer.json()["status"]["acceptedNames"]["shortNames"] == names)
            };
            s.until(&Request::new("GET", &path), is_there);
            let found = s.prepare(Request::new("GET", &path));
            s.note(&format!("short names {names}"), told(&found));
        }
    });
}

#[test]
fn bugs_9_a_kind_in_use() {
    judge(|s| {
        widgets(s);
        let mut second = definition();
        second["metadata"]["name"] = json!("gadgets.{group}");
        second["spec"]["names"] =
            json!({"plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "WidgetList"});
        s.prepare(Request::new("POST", DEFINITIONS).json(&second));
        let gadgets = Request::new("GET", format!("{DEFINITIONS}/gadgets.{{group}}"));
        s.until(&gadgets, |answer| !reason(answer).is_empty());
        let found = s.prepare(gadgets.clone());
        s.note("two of one kind", told(&found));
        s.get("/apis/{group}/v1/namespaces/{ns}/gadgets");
        s.delete(format!("{DEFINITIONS}/widgets.{{group}}"));
        s.until(&gadgets, |answer| reason(answer) == "NoConflicts");
        let served = Request::new("GET", "/apis/{group}/v1/namespaces/{ns}/gadgets");
        s.until(&served, |answer| answer.code() == 200);
        let found = s.prepare(gadgets);
        s.note("the first is removed", told(&found));
    });
}

#[test]
fn bugs_10_numbers_of_custom_objects() {
    judge(|s| {
        widgets(s);
        let numbers = [
            "1e3",
            "1.0",
            "-0",
            "1.50",
            "0.0000001",
            "1e21",
            "9223372036854775807",
            "9223372036854775808",
            "18446744073709551615",
            "-9223372036854775809",
            "9007199254740993",
        ];
        for (at, number) in numbers.iter().enumerate() {
            let body = format!(
                r#"{{"apiVersion":"{{group}}/v1","kind":"Widget","metadata":{{"name":"w{at}"}},"spec":{{"n":{number}}}}}"#
            );
            s.prepare(Request::new("POST", WIDGETS).body("application/json", body));
            let found = s.prepare(Request::new("GET", format!("{WIDGETS}/w{at}")));
            let text = String::from_utf8_lossy(&found.body).into_owned();
            let written = text.split_once(r#""n":"#).and_then(|(_, rest)| rest.split_once('}'));
            s.note(number, written.map_or("", |(number, _)| number));
        }
    });
}

#[test]
fn bugs_12_texts_that_are_no_unicode() {
    judge(|s| {
        let texts: [&[u8]; 5] =
            [b"a\xff\xfeb", b"\xe2\x82", br"\ud83d", br"\ude00\ud83d", br"\ud83d\ud83d\ude00"];
        for (at, text) in texts.into_iter().enumerate() {
            let head = format!(r#"{{"metadata": {{"name": "m{at}"}}, "data": {{"k": ""#);
            let body = [head.as_bytes(), text, br#""}}"#].concat();
            s.send(Request::new("POST", "/api/v1/namespaces/{ns}/configmaps").body("application/json", body));
        }
    });
}

#[test]
fn bugs_16_beginnings_of_names() {
    judge(|s| {
        for prefix in ["a".repeat(260), "a_".to_owned(), "A-".to_owned(), "_a-".to_owned(), "a-".to_owned()] {
            let map = json!({"metadata": {"generateName": prefix}});
            let answer = s
                .answer(&Request::new("POST", "/api/v1/namespaces/{ns}/configmaps").json(&map))
                .expect("an answer");
            let causes = answer.json()["details"]["causes"].as_array().cloned().unwrap_or_default();
            let fields: Vec<Value> = causes.iter().map(|cause| cause["field"].clone()).collect();
            s.note(&prefix, json!([answer.code(), fields]));
        }
    });
}

#[test]
fn bugs_17_events_about_objects_of_other_namespaces() {
    judge(|s| {
        for (name, about, time) in [
            ("a", "elsewhere", json!("2020-01-02T03:04:05.000006Z")),
            ("b", "", json!("2020-01-02T03:04:05.000006Z")),
            ("c", "elsewhere", json!(null)),
        ] {
            let event = json!({"metadata": {"name": name}, "reason": "Tested", "type": "Normal", "action": "Test",
                "regarding": {"kind": "Pod", "name": "p", "namespace": about}, "reportingController": "c",
                "reportingInstance": "c-1", "eventTime": time});
            s.post("/apis/events.k8s.io/v1/namespaces/{ns}/events", &event);
            let event = json!({"metadata": {"name": format!("{name}-core")}, "reason": "Tested", "action": "Test",
                "involvedObject": {"kind": "Pod", "name": "p", "namespace": about}, "reportingComponent": "c",
                "reportingInstance": "c-1", "eventTime": time});
            s.post("/api/v1/namespaces/{ns}/events", &event);
        }
    });
}

#[test]
fn bugs_client_a_lease_that_was_deleted_is_written_again() {
    judge(|s| {
        let leases = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases";
        let made = s.post(leases, &json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}));
        s.delete(format!("{leases}/l"));
        let mut lease = made.json();
        s.put(format!("{leases}/l"), &lease);
        if let Some(metadata) = lease["metadata"].as_object_mut() {
            metadata.remove("uid");
        }
        s.put(format!("{leases}/l"), &lease);
        if let Some(metadata) = lease["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        s.put(format!("{leases}/l"), &lease);
    });
}
