//! Events over HTTP, in both groups that have them: behaviour E16.
//!
//! They answer: does a client of either group see every event, in the shape of its group, with one version?
use serde_json::json;

use crate::client::{get, post, server, watch};

const CORE: &str = "/api/v1/namespaces/default/events";
const GROUP: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

#[test]
fn e16_an_event_of_one_group_is_read_listed_and_watched_in_the_other() {
    let server = server();
    let from = server.revision();
    let event = json!({"metadata": {"name": "a"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Tested", "message": "text", "type": "Normal", "count": 3, "source": {"component": "c"}});
    let made = post(&server, CORE, &event).json();

    let received = get(&server, &format!("{GROUP}/a")).json();
    assert_eq!(received["apiVersion"], "events.k8s.io/v1");
    assert_eq!(received["metadata"], made["metadata"], "one object, one version");
    assert_eq!((&received["note"], &received["deprecatedCount"]), (&json!("text"), &json!(3)));
    assert_eq!(
        (&received["regarding"], &received["deprecatedSource"]),
        (&made["involvedObject"], &made["source"])
    );
    assert!(received.get("message").is_none() && received.get("reportingController").is_none());

    let listed = get(&server, &format!("{GROUP}?fieldSelector=regarding.name%3Dp")).json();
    assert_eq!(listed["items"][0]["note"], "text");
    for _ in 0..2 {
        // The lines of one group must not reach watches of the other.
        let line = |path: &str| {
            let mut stream = watch(&server, &format!("{path}?watch=1&resourceVersion={from}"));
            stream.event().unwrap().unwrap()["object"].clone()
        };
        assert_eq!(line(GROUP), received);
        assert_eq!(line(CORE), made);
    }
}

#[test]
fn e16_a_selector_of_core_finds_what_was_made_in_the_other_group() {
    let server = server();
    let event = json!({"metadata": {"name": "a"}, "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Tested", "note": "text", "type": "Normal", "action": "Test", "reportingController": "example.com/c",
        "reportingInstance": "c-1", "eventTime": "2020-01-02T03:04:05.000006Z"});
    assert_eq!(post(&server, GROUP, &event).code, 201);
    let listed = get(
        &server,
        &format!("{CORE}?fieldSelector=involvedObject.name%3Dp,reportingComponent%3Dexample.com/c"),
    )
    .json();
    assert_eq!(listed["items"][0]["message"], "text");
    assert_eq!(listed["items"][0]["reportingComponent"], "example.com/c");
}

#[test]
fn bugs_17_an_event_with_a_time_may_be_about_an_object_in_another_namespace() {
    let server = server();
    let event = |about: &str, time: &serde_json::Value| {
        json!({"metadata": {"generateName": "a"}, "regarding": {"kind": "Pod", "name": "p", "namespace": about},
            "reason": "Tested", "type": "Normal", "action": "Test", "reportingController": "c", "reportingInstance": "c-1",
            "eventTime": time})
    };
    let of_core = |about: &str, time: &serde_json::Value| {
        json!({"metadata": {"generateName": "a"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": about},
            "reason": "Tested", "action": "Test", "reportingComponent": "c", "reportingInstance": "c-1", "eventTime": time})
    };
    let (time, none) = (json!("2020-01-02T03:04:05.000006Z"), json!(null));
    for (about, time, code) in
        [("elsewhere", &time, 201), ("default", &time, 201), ("", &time, 201), ("elsewhere", &none, 422)]
    {
        assert_eq!(post(&server, GROUP, &event(about, time)).code, code, "{about} {time}");
        assert_eq!(post(&server, CORE, &of_core(about, time)).code, code, "{about} {time}");
    }
    for (namespace, code) in [("kube-system", 201), ("kube-public", 422)] {
        let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
        assert_eq!(post(&server, &path, &event("", &time)).code, code, "about nothing, in {namespace}");
    }
}
