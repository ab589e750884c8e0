//! Answers about versions that the server has compacted: behaviours 5, 8 and 12.
//!
//! They answer: are requests for lost history refused, with the texts that clients understand?
//! 1. The script has a real server of its own, because other scripts would lose their history too: etcd is compacted,
//!    or the server started again, which empties its watch cache.
//! 2. Exact lists and pages are requested from a real server without a watch cache: the cache keeps snapshots of its
//!    own and hides a compaction for a while.
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use crate::harness::{Request, Session, judge, judge_alone};
use crate::lists::maps;

const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";

/// Compacts after a write, and returns the version before it.
fn compact(s: &mut Session) -> String {
    let before = s.post(MAPS, &json!({"metadata": {"name": "y"}})).version();
    s.prepare(Request::new("DELETE", format!("{MAPS}/y")));
    let now = s.post(MAPS, &json!({"metadata": {"name": "z"}})).version();
    s.compact(&now);
    before
}

#[test]
fn api_08_an_expired_token_comes_with_a_fresh_one_that_goes_on_at_the_latest_version() {
    judge_alone(&["--watch-cache=false"], |s| {
        maps(s, &["a", "b", "c"]);
        let token = s.get(format!("{MAPS}?limit=1")).text("/metadata/continue");
        compact(s);
        let expired = s.get(format!("{MAPS}?limit=1&continue={token}"));
        let fresh = expired.text("/metadata/continue");
        s.note("a fresh token", !fresh.is_empty() && fresh != token);
        let page = s.get(format!("{MAPS}?limit=2&continue={fresh}"));
        let next = page.text("/metadata/continue");
        s.get(format!("{MAPS}?limit=2&continue={next}"));
    });
}

#[test]
fn api_08_an_invalid_token_is_refused_with_its_fault() {
    judge(|s| {
        let json = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let texts = ["nonsense", "a", "a*", "aa*aaa", "====", "a-_b"].map(str::to_owned);
        let documents = [
            "{}",
            "null",
            "[1]",
            "xyz",
            "{\"v\":1}",
            "{\"v\":\"meta.k8s.io/v2\",\"rv\":1,\"start\":\"a\"}",
            "{\"v\":\"meta.k8s.io/v1\",\"rv\":5,\"start\":\"\"}",
            "{\"v\":\"meta.k8s.io/v1\",\"rv\":1",
            "{\"v\":\"meta.k8s.io/v1\",\"rv\":0,\"start\":\"a\"}",
            "{\"v\":\"meta.k8s.io/v1\",\"rv\":\"x\",\"start\":\"a\"}",
        ];
        for (number, token) in texts.into_iter().chain(documents.map(json)).enumerate() {
            s.get(format!("{MAPS}?limit={}&continue={token}", number + 1));
        }
    });
}

#[test]
fn api_05_an_exact_list_of_a_compacted_version_is_410() {
    judge_alone(&["--watch-cache=false"], |s| {
        maps(s, &["a"]);
        let before = compact(s);
        s.get(format!("{MAPS}?resourceVersion={before}&resourceVersionMatch=Exact"));
        s.get(format!("{MAPS}?resourceVersion={before}&limit=1"));
        s.get(format!("{MAPS}?resourceVersion={before}&resourceVersionMatch=NotOlderThan"));
        s.get(format!("{MAPS}/a?resourceVersion={before}"));
    });
}

#[test]
fn api_12_a_watch_of_a_compacted_version_is_an_error_within_a_200() {
    judge_alone(&[], |s| {
        maps(s, &["a"]);
        let before = s.post(MAPS, &json!({"metadata": {"name": "b"}})).version();
        s.prepare(Request::new("POST", MAPS).json(&json!({"metadata": {"name": "c"}})));
        s.forget_events();
        s.watch(format!("{MAPS}?watch=1&resourceVersion={before}")).end(s);
        s.watch(format!("{MAPS}?watch=1&resourceVersion={before}&allowWatchBookmarks=true")).end(s);
        let initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
        let again = format!("{MAPS}?watch=1&resourceVersion={before}&{initial}");
        s.watch(again).events_until(s, "BOOKMARK");
    });
}

#[test]
fn api_12_also_where_no_watch_cache_answers() {
    judge_alone(&["--watch-cache=false"], |s| {
        maps(s, &["a"]);
        let before = compact(s);
        s.watch(format!("/api/v1/namespaces/{{ns}}/events?watch=1&resourceVersion={before}")).end(s);
    });
}
