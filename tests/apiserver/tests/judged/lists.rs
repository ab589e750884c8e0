//! Lists: behaviours 4 to 9, 18 and E3.
//!
//! They answer: with which version, pages and form is a list answered?
use serde_json::json;

use crate::definitions::widgets;
use crate::harness::{Request, Session, judge};

const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";

pub(crate) fn maps(s: &mut Session, names: &[&str]) {
    for name in names {
        s.prepare(Request::new("POST", MAPS).json(&json!({"metadata": {"name": name}})));
    }
}

#[test]
fn api_04_a_version_ahead_of_the_store_is_504_after_a_while() {
    judge(|s| {
        let made = s.post(MAPS, &json!({"metadata": {"name": "a"}}));
        let ahead = made.version().parse::<u64>().unwrap_or(0) + 1_000_000;
        s.get(format!("{MAPS}?resourceVersion={ahead}"));
        s.get(format!("{MAPS}?resourceVersion={ahead}&resourceVersionMatch=Exact"));
        s.get(format!("{MAPS}/a?resourceVersion={ahead}"));
        s.get(format!("/api/v1/namespaces/{{ns}}/events?resourceVersion={ahead}"));
    });
}

#[test]
fn api_04_a_list_is_at_least_as_new_as_it_was_asked_to_be() {
    judge(|s| {
        maps(s, &["a"]);
        let made = s.post(MAPS, &json!({"metadata": {"name": "b"}})).version();
        s.get(MAPS);
        s.get(format!("{MAPS}?resourceVersion={made}"));
        s.get(format!("{MAPS}?resourceVersion={made}&resourceVersionMatch=NotOlderThan"));
        s.get(format!("{MAPS}?resourceVersion=0&resourceVersionMatch=NotOlderThan"));
        s.get(format!("{MAPS}?resourceVersion=0"));
        s.get(format!("{MAPS}/b?resourceVersion={made}"));
    });
}

#[test]
fn api_05_an_exact_list_is_the_state_at_that_version() {
    judge(|s| {
        maps(s, &["a"]);
        let then = s.post(MAPS, &json!({"metadata": {"name": "b"}})).version();
        s.delete(format!("{MAPS}/a"));
        s.post(MAPS, &json!({"metadata": {"name": "c"}}));
        s.get(format!("{MAPS}?resourceVersion={then}&resourceVersionMatch=Exact"));
        let page = s.get(format!("{MAPS}?resourceVersion={then}&limit=1"));
        s.note("a limit makes it exact", page.version() == then);
        s.get(format!("{MAPS}?resourceVersion={then}&limit=1&resourceVersionMatch=NotOlderThan"));
    });
}

#[test]
fn api_06_combinations_that_make_no_sense_are_refused() {
    judge(|s| {
        maps(s, &["a", "b"]);
        let token = s.get(format!("{MAPS}?limit=1")).text("/metadata/continue");
        for query in [
            "resourceVersionMatch=Exact",
            "resourceVersionMatch=NotOlderThan",
            "resourceVersion=0&resourceVersionMatch=Exact",
            "resourceVersion=1&resourceVersionMatch=Nearly",
            "sendInitialEvents=true",
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
            "resourceVersion=abc",
            "watch=1&resourceVersion=abc",
            "watch=1&sendInitialEvents=true",
            "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact",
            "watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=1",
            "limit=abc",
            "limit=-1",
            "continue=abc",
            "labelSelector=a%20in",
            "fieldSelector=a",
        ] {
            s.get(format!("{MAPS}?{query}"));
        }
        s.get(format!("{MAPS}?continue={token}&resourceVersion=5"));
        s.get(format!("{MAPS}?continue={token}&resourceVersion=0"));
        s.get(format!("{MAPS}?continue={token}&resourceVersion=5&resourceVersionMatch=Exact"));
        s.get(format!("{MAPS}/a?resourceVersion=abc"));
        let body = json!({"metadata": {"name": "c", "resourceVersion": "abc"}});
        s.post(MAPS, &body);
        s.put(format!("{MAPS}/a"), &json!({"metadata": {"name": "a", "resourceVersion": "abc"}}));
    });
}

#[test]
fn api_07_pages_come_from_one_snapshot_in_the_order_of_keys() {
    judge(|s| {
        maps(s, &["e", "a.b", "a-b", "a", "d"]);
        let mut token = String::new();
        let mut versions = Vec::new();
        loop {
            let page = s.get(format!("{MAPS}?limit=2&continue={token}"));
            versions.push(page.version());
            maps(s, &[&format!("b{}", versions.len())]);
            token = page.text("/metadata/continue");
            if token.is_empty() || versions.len() > 9 {
                break;
            }
        }
        versions.dedup();
        s.note("versions of the pages", versions.len());
        s.get(format!("{MAPS}?limit=2&labelSelector=a%3Db"));
        s.get(format!("{MAPS}?limit=2&resourceVersion=0"));
        s.get(format!("{MAPS}?limit=500"));
    });
}

#[test]
fn api_07_namespaces_are_ordered_by_the_bytes_of_the_whole_key() {
    judge(|s| {
        for name in ["{ns}-b", "{ns}.b", "{ns}0"] {
            let body = json!({"metadata": {"name": name.replace('.', "-x-")}});
            s.prepare(Request::new("POST", "/api/v1/namespaces").json(&body));
            let path = format!("/api/v1/namespaces/{}/configmaps", name.replace('.', "-x-"));
            let body = json!({"metadata": {"name": "m", "labels": {"script": "{ns}"}}});
            s.prepare(Request::new("POST", path).json(&body));
        }
        let body = json!({"metadata": {"name": "m", "labels": {"script": "{ns}"}}});
        s.prepare(Request::new("POST", MAPS).json(&body));
        s.get("/api/v1/configmaps?labelSelector=script%3D{ns}");
    });
}

#[test]
fn api_09_items_of_built_ins_carry_no_type_and_those_of_custom_kinds_do() {
    judge(|s| {
        widgets(s);
        maps(s, &["a"]);
        s.get(MAPS);
        s.get(format!("{MAPS}/a"));
        let widget = json!({"apiVersion": "{group}/v1", "kind": "Widget", "metadata": {"name": "w"}});
        let path = "/apis/{group}/v1/namespaces/{ns}/widgets";
        s.post(path, &widget);
        s.get(path);
        s.get(format!("{path}?limit=1"));
        s.get("/apis/{group}/v1beta1/widgets");
    });
}

#[test]
fn api_18_answers_from_128_kib_are_compressed_for_clients_that_accept_it() {
    judge(|s| {
        let body = json!({"metadata": {"name": "a"}, "data": {"k": "v".repeat(140_000)}});
        s.prepare(Request::new("POST", MAPS).json(&body));
        let body = json!({"metadata": {"name": "b"}, "data": {"k": "v"}});
        s.prepare(Request::new("POST", MAPS).json(&body));
        let gzip = |path: String| Request::new("GET", path).header("Accept-Encoding", "gzip");
        s.send(gzip(format!("{MAPS}/b")));
        s.send(gzip(MAPS.to_owned()));
        s.send(gzip(format!("{MAPS}/a")));
    });
}

#[test]
fn e3_a_namespace_that_is_not_there_lists_empty() {
    judge(|s| {
        s.get("/api/v1/namespaces/{ns}-none/configmaps");
        s.get("/api/v1/namespaces/{ns}-none/pods?limit=5");
        s.get("/apis/apps/v1/namespaces/{ns}-none/deployments");
        let mut watch = s.watch("/api/v1/namespaces/{ns}-late/configmaps?watch=1");
        s.prepare(
            Request::new("POST", "/api/v1/namespaces").json(&json!({"metadata": {"name": "{ns}-late"}})),
        );
        s.post("/api/v1/namespaces/{ns}-late/configmaps", &json!({"metadata": {"name": "a"}}));
        watch.events(s, 1);
    });
}
