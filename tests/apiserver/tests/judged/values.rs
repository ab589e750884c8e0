//! What is stored from a request: behaviours 22, 23, 28 and 44, from lists of requests in `values/`.
//!
//! They answer: what do defaults, types and owners do to a body, and which warnings does a client get? One line of a
//! list is a request: a method or a language of patches, a path, and a body; the whole answer is compared.
//! 1. Kinds that would change what other scripts see (webhooks, policies) are only sent with `dryRun`.
//!
//! Next: `values/*.json`.
use serde_json::Value;

use crate::harness::{Request, Session, judge};

fn send_all(session: &mut Session, requests: &str) {
    let requests: Vec<Value> = serde_json::from_str(requests).expect("a list of requests");
    for request in requests {
        let text = |at: usize| request[at].as_str().unwrap_or_default().to_owned();
        let (method, path, body) = (text(0), text(1), &request[2]);
        match method.as_str() {
            "GET" => session.get(path),
            "DELETE" => session.delete(path),
            "POST" => session.post(path, body),
            "PUT" => session.put(path, body),
            "YAML" => session.send(Request::new("PATCH", path).body("application/apply-patch+yaml", text(2))),
            "apply" => session.apply(path, body),
            language => session.patch(language, path, body),
        };
    }
}

#[test]
fn api_22_a_small_object_of_every_kind_is_stored_as_a_real_server_stores_it() {
    judge(|s| send_all(s, include_str!("values/minimal.json")));
}

#[test]
fn api_22_objects_as_they_are_used_are_stored_as_a_real_server_stores_them() {
    judge(|s| send_all(s, include_str!("values/usual.json")));
}

#[test]
fn api_22_empty_and_zero_members_are_kept_or_dropped_as_by_their_types() {
    judge(|s| send_all(s, include_str!("values/lists.json")));
}

#[test]
fn api_44_amounts_are_written_as_in_go() {
    judge(|s| send_all(s, include_str!("values/amounts.json")));
}

#[test]
fn api_44_times_are_written_in_utc_with_the_digits_of_their_type() {
    judge(|s| send_all(s, include_str!("values/times.json")));
}

#[test]
fn api_28_deprecated_ignored_and_surprising_fields_get_warnings() {
    judge(|s| send_all(s, include_str!("values/warnings.json")));
}

#[test]
fn e16_the_manager_of_an_event_in_one_group_is_lost_by_a_write_in_the_other() {
    judge(|s| send_all(s, include_str!("values/events.json")));
}
