//! A server at its limit of requests in flight, on both: behaviour 21.
//!
//! They answer: what does a request above the limit get, and which requests are always admitted?
//! 1. Both servers answer one reading and one changing request at a time; a list of a version far in the future takes
//!    the only place for three seconds.
use serde_json::json;

use crate::harness::servers;
use crate::harness::{Request, Session, judge_on};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}";
const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";

/// Lets the powerless user read config maps.
fn empower(s: &mut Session) {
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]});
    let role = json!({"metadata": {"name": "reader"}, "rules": [rule]});
    s.prepare(Request::new("POST", format!("{RBAC}/roles")).json(&role));
    let group = "rbac.authorization.k8s.io";
    let binding = json!({"metadata": {"name": "reader"}, "roleRef": {"apiGroup": group, "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "powerless"}]});
    s.prepare(Request::new("POST", format!("{RBAC}/rolebindings")).json(&binding));
}

/// Whether the only place for readers is taken.
fn is_taken(s: &Session) -> bool {
    s.answer(&Request::new("GET", MAPS).powerlessly()).expect("an answer").code() == 429
}

/// Lets a request wait in the only place for readers, until it is there.
fn take_the_place(s: &Session) {
    let future = format!("{MAPS}?resourceVersion=999999999&resourceVersionMatch=NotOlderThan");
    while !is_taken(s) {
        let taken = s.elsewhere(Request::new("GET", &*future).powerlessly());
        // One of these lists may have had the place.
        while !taken.is_finished() && !is_taken(s) {}
    }
}

#[test]
fn api_21_an_overloaded_server_answers_in_plain_text() {
    // A real server's own writes take places too: with one place for writers the answer to a write would be chance.
    let ours =
        servers::ours_with(|builder| builder.max_requests_inflight(1).max_mutating_requests_inflight(50));
    let flags = [
        "--enable-priority-and-fairness=false",
        "--max-requests-inflight=1",
        "--max-mutating-requests-inflight=50",
    ];
    judge_on(
        &ours.subject,
        || servers::alone(&flags),
        |s| {
            empower(s);
            let list = || Request::new("GET", MAPS).powerlessly();
            // It also waits until the right is known everywhere.
            while s.answer(&list()).expect("an answer").code() != 200 {}
            for request in [
                list(),
                Request::new("GET", "/version").powerlessly(),
                Request::new("GET", "/readyz").powerlessly(),
                Request::new("GET", "/api/v1/namespaces/{ns}/secrets").powerlessly(),
                Request::new("GET", MAPS),
                Request::new("POST", MAPS).powerlessly().json(&json!({"metadata": {"name": "a"}})),
                Request::new("GET", MAPS).header("Authorization", "Bearer wrong"),
            ] {
                // The waiting list keeps its place for three seconds, which a loaded machine may need for one request.
                s.send_while(request, take_the_place, is_taken);
            }
        },
    );
}
