//! Names of resources for fault switches and the handle.
//!
//! They answer: can a fault be set for something that does not exist, or never take effect, so that a test passes and
//! proves nothing?
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use informer_apiserver::{ApiServer, Faults};
use serde_json::{Value, json};

use crate::client::{config_map, get, open, post, server, watch};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// The text with which a call panics; empty if it does not.
fn panic_of(call: impl FnOnce()) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(call)) else { return String::new() };
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn a_fault_affects_a_resource_under_every_name_that_kubectl_accepts() {
    let server = server();
    for name in ["deployments.apps", "deployments", "deployment", "deploy", "Deployment"] {
        server.faults().of(name).fail_next(1, 503);
        assert_eq!(get(&server, DEPLOYMENTS).code, 503, "{name}");
    }
    assert_eq!(get(&server, DEPLOYMENTS).code, 200);
}

#[test]
fn a_fault_of_an_unknown_resource_is_refused_with_the_most_similar_name() {
    let server = server();
    let faults = server.faults();
    let received = [
        panic_of(|| faults.of("deploymnets").fail_next(1, 503)),
        panic_of(|| faults.freeze("deploymnets")),
        panic_of(|| faults.deny("list", "deploymnets")),
        panic_of(|| faults.send_raw("deploymnets", "x")),
        panic_of(|| assert_eq!(server.watches("deploymnets"), 0)),
        panic_of(|| drop(server.chaos(1, &["deploymnets"]))),
        faults.try_of("deploymnets").unwrap_err().to_string(),
    ];
    assert!(received.iter().all(|why| why.contains("did you mean deployments.apps?")), "{received:?}");
    let nothing_near = panic_of(|| faults.of("nonsense").compact());
    assert!(nothing_near.contains("no resource \"nonsense\";"), "{nothing_near}");
    assert!(panic_of(|| faults.deny("lsit", "pods")).contains("the verb \"lsit\""));
    assert_eq!(faults.counts(), []);
}

#[test]
fn the_handle_finds_an_object_under_every_name_that_kubectl_accepts() {
    let server = ApiServer::builder().validation(false).start_blocking().unwrap();
    server.create(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}})).unwrap();
    for name in ["deployments.apps", "deployments", "deploy"] {
        assert_eq!(server.get(name, "default", "a").unwrap()["metadata"]["name"], "a", "{name}");
    }
    let refused = server.get("deploymnets", "default", "a").unwrap_err();
    assert_eq!(refused.code(), 404);
    assert!(refused.message().ends_with("(did you mean deployments.apps?)"), "{}", refused.message());
}

fn widgets() -> Value {
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]}}})
}

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

#[test]
fn a_fault_can_be_set_for_a_kind_that_a_definition_adds_later() {
    let server = server();
    let faults = server.faults();
    assert!(panic_of(|| drop(faults.of("widgets.example.com"))).contains("announced by expect_resource"));
    for wrong in ["widgets", "widgets.", ".example.com", "widgets.example"] {
        faults.expect_resource(wrong).unwrap_err();
    }
    faults.expect_resource("widgets.example.com").unwrap();
    faults.of("widgets.example.com").fail_next(1, 503);
    faults.deny("watch", "widgets.example.com");
    server.create(widgets()).unwrap();
    assert_eq!([get(&server, WIDGETS).code, get(&server, WIDGETS).code], [503, 200]);
    assert_eq!(faults.of("wd").total_count(), 1);
}

#[test]
fn a_fault_of_a_kind_whose_definition_is_deleted_can_be_ended() {
    let server = server();
    server.create(widgets()).unwrap();
    server.faults().freeze("widgets.example.com");
    server.delete("customresourcedefinitions", "", "widgets.example.com").unwrap();
    server.faults().thaw("widgets.example.com");
    assert_eq!(server.watches("widgets.example.com"), 0);
}

/// The faults that took effect at the resource, and how often.
fn counts(faults: &Faults) -> Vec<(String, u64)> {
    faults.counts().into_iter().map(|found| (found.fault, found.count)).collect()
}

#[test]
fn a_fault_that_was_set_and_never_took_effect_is_listed_with_count_zero() {
    let server = server();
    let maps = server.faults().of("configmaps");
    maps.fail_next(5, 503);
    maps.drop_bookmarks(true);
    server.faults().deny("list", "cm");
    server.faults().of("pods").fail_next(1, 500);
    let zero = |name: &str| (name.to_owned(), 0);
    assert_eq!(counts(&maps), [zero("deny list"), zero("drop-bookmarks"), zero("fail-next")]);
    assert_eq!((maps.total_count(), counts(&server.faults()).len()), (0, 4));

    assert_eq!([get(&server, MAPS).code, get(&server, &format!("{MAPS}/a")).code], [403, 503]);
    server.faults().clear();
    assert_eq!(get(&server, MAPS).code, 200);
    let once = |name: &str| (name.to_owned(), 1);
    assert_eq!(counts(&maps), [once("deny list"), zero("drop-bookmarks"), once("fail-next")]);
    assert_eq!(server.faults().of("pods").total_count(), 0);
    server.faults().clear_counts();
    assert_eq!(counts(&server.faults()), []);
}

#[test]
fn each_fault_counts_its_effects() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    let maps = server.faults().of("configmaps");
    let list = || assert_eq!(get(&server, MAPS).code, 200);
    maps.slow_lists(Some(1 << 30));
    maps.pad_lists(Some(5));
    maps.delay_requests(Some(Duration::from_millis(1)));
    list();
    maps.limit_lists(Some(1));
    assert_eq!(get(&server, MAPS).code, 500);
    server.faults().plain_text_errors(true);
    get(&server, &format!("{MAPS}/none"));
    server.faults().clear();

    maps.refuse_watch_list(true);
    let begin = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    assert_eq!(open(&server, "GET", &format!("{MAPS}?{begin}"), &[], "").head.code, 422);
    let mut stream = watch(&server, &format!("{MAPS}?watch=1&resourceVersion={}", server.revision()));
    maps.duplicate_events(true);
    server.create(config_map("b", "x")).unwrap();
    assert_eq!(stream.next_event(), stream.next_event());
    server.faults().clear();
    maps.freeze_watches(true);
    while maps.counts().iter().all(|found| found.fault != "freeze-watches" || found.count == 0) {
        std::thread::yield_now();
    }
    maps.freeze_watches(false);
    maps.end_watches();
    assert_eq!(stream.event().unwrap(), None);
    maps.reset_watches();

    let count =
        |name: &str| counts(&server.faults()).into_iter().filter(|(fault, _)| fault == name).collect();
    let received: Vec<Vec<(String, u64)>> = [
        "slow-lists",
        "pad-lists",
        "delay-requests",
        "limit-lists",
        "plain-text-errors",
        "refuse-watch-list",
        "duplicate-events",
        "freeze-watches",
        "end-watches",
        "reset-watches",
    ]
    .map(count)
    .to_vec();
    let received: Vec<u64> = received.into_iter().flatten().map(|(_, count)| count).collect();
    assert_eq!(received, [2, 2, 3, 1, 1, 1, 1, 1, 1, 0]);
}

#[test]
fn bugs_16_the_beginning_of_a_name_is_judged_before_it_is_cut() {
    let server = server();
    let refused = |prefix: &str| {
        let made = post(&server, MAPS, &json!({"metadata": {"generateName": prefix}}));
        let causes = made.json()["details"]["causes"].as_array().cloned().unwrap_or_default();
        let fields: Vec<String> =
            causes.iter().map(|cause| cause["field"].as_str().unwrap_or_default().to_owned()).collect();
        (made.code, fields)
    };
    let named =
        |fields: &[&str]| (422, fields.iter().map(|field| format!("metadata.{field}")).collect::<Vec<_>>());
    assert_eq!(refused(&"a".repeat(260)), named(&["generateName"]));
    assert_eq!(refused("a_"), named(&["generateName", "name"]));
    assert_eq!((refused("a-").0, refused(&"a".repeat(250)).0), (201, 201));
}
