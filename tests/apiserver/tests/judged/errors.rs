//! Refusals: behaviours 20 and 21, and E8, E9, E15, E17.
//!
//! They answer: which code, text and headers does a request get that cannot be answered?
use serde_json::json;

use crate::harness::{Request, judge};

const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";

#[test]
fn api_20_a_missing_path_is_404_with_the_text_of_its_owner() {
    judge(|s| {
        for path in [
            "/nope",
            "/apis/none.example.com",
            "/apis/none.example.com/v1/things",
            "/api/v2",
            "/api/v1/nopes",
            "/apis/apps/v9",
            "/apis/apps/v9/deployments",
            "/apis/apps/v1/nopes",
        ] {
            s.get(path);
        }
        s.prepare(Request::new("POST", MAPS).json(&json!({"metadata": {"name": "a"}})));
        s.get(format!("{MAPS}/none"));
        s.get(format!("{MAPS}/a/nope"));
        s.delete(format!("{MAPS}/none"));
        s.patch("merge", format!("{MAPS}/none"), &json!({}));
        s.put(format!("{MAPS}/a/status"), &json!({"metadata": {"name": "a"}}));
        s.post("/api/v1/namespaces/nowhere-at-all/configmaps", &json!({"metadata": {"name": "a"}}));
    });
}

#[test]
fn api_20_a_conflict_and_a_second_creation_are_both_409() {
    judge(|s| {
        let made = s.post(MAPS, &json!({"metadata": {"name": "a"}}));
        s.post(MAPS, &json!({"metadata": {"name": "a"}}));
        s.patch("merge", format!("{MAPS}/a"), &json!({"data": {"k": "v"}}));
        s.put(format!("{MAPS}/a"), &made.json());
        let body = json!({"preconditions": {"uid": "11111111-2222-4333-8444-555555555555"}});
        s.send(Request::new("DELETE", format!("{MAPS}/a")).json(&body));
        let body = json!({"preconditions": {"resourceVersion": "1"}});
        s.send(Request::new("DELETE", format!("{MAPS}/a")).json(&body));
    });
}

#[test]
fn api_20_unsupported_media_types_are_406_and_415() {
    judge(|s| {
        s.prepare(Request::new("POST", MAPS).json(&json!({"metadata": {"name": "a"}})));
        s.send(Request::new("GET", MAPS).header("Accept", "text/html"));
        s.send(Request::new("POST", MAPS).body("text/plain", "{}"));
        s.send(Request::new("PATCH", format!("{MAPS}/a")).body("text/plain", "{}"));
    });
}

#[test]
fn e8_the_type_of_a_body_may_be_left_out_but_not_be_wrong() {
    judge(|s| {
        s.post(MAPS, &json!({"metadata": {"name": "a"}}));
        s.post(MAPS, &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}}));
        s.post(MAPS, &json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "c"}}));
        s.send(Request::new("POST", MAPS).body("application/json", "{"));
        s.send(Request::new("POST", MAPS).body("application/json", "[]"));
        s.send(Request::new("POST", MAPS).body("application/json", ""));
    });
}

#[test]
fn e9_accept_and_content_type_are_read_as_a_real_server_reads_them() {
    judge(|s| {
        s.prepare(Request::new("POST", MAPS).json(&json!({"metadata": {"name": "a"}})));
        for accept in
            ["application/*", "*/*", "application/json;charset=utf-8", "text/html, application/json;q=0.1"]
        {
            s.send(Request::new("GET", format!("{MAPS}/a")).header("Accept", accept));
        }
        s.send(Request::new("POST", MAPS).bare(json!({"metadata": {"name": "b"}}).to_string()));
        s.send(Request::new("PATCH", format!("{MAPS}/a")).bare("{}"));
        s.send(Request::new("PATCH", format!("{MAPS}/a")).body("application/json", "{}"));
    });
}

#[test]
fn e15_methods_that_a_path_does_not_have_are_405() {
    judge(|s| {
        for method in ["HEAD", "OPTIONS", "PUT", "PATCH"] {
            s.send(Request::new(method, MAPS));
        }
        s.send(Request::new("POST", format!("{MAPS}/a")));
        s.send(Request::new("HEAD", "/readyz"));
        s.get(format!("{MAPS}/"));
    });
}

#[test]
fn e17_a_wrong_token_is_401_and_none_is_the_anonymous_user() {
    judge(|s| {
        s.send(Request::new("GET", MAPS).header("Authorization", "Bearer wrong"));
        s.send(Request::new("GET", MAPS).anonymously());
        s.send(Request::new("GET", "/api/v1/nodes/n").anonymously());
        s.send(Request::new("GET", "/version").anonymously());
        s.send(Request::new("GET", "/apis").anonymously());
        s.send(Request::new("GET", "/readyz").anonymously());
    });
}

#[test]
fn api_20_a_user_without_rights_is_403_before_anything_else() {
    judge(|s| {
        s.send(Request::new("GET", MAPS).powerlessly());
        s.send(Request::new("GET", "/api/v1/nopes").powerlessly());
        s.send(Request::new("POST", MAPS).body("application/json", "{").powerlessly());
        s.send(Request::new("DELETE", format!("{MAPS}/none")).powerlessly());
        s.send(Request::new("GET", "/apis/apps/v1/deployments").powerlessly());
    });
}
