//! The objects of a new server, before the first write.
//!
//! They answer: which objects does a server create by itself, as far as a client would notice?
//! 1. Two objects of a real server are left out, because they belong to one process and one day: its lease, and the
//!    map of tokens.
//! 2. The real server is started only for this script, so that nothing else has written to it. It creates its objects
//!    asynchronously; the script waits for each kind.
use serde_json::Value;

use crate::harness::{Answer, Request, judge_alone};

fn items(answer: &Answer) -> Vec<Value> {
    answer.json()["items"].as_array().cloned().unwrap_or_default()
}

#[test]
fn api_44_a_server_begins_with_objects_of_its_own() {
    judge_alone(&[], |s| {
        for (path, count, has_status) in [
            ("/api/v1/namespaces", 5, true),
            ("/api/v1/services", 1, true),
            ("/api/v1/endpoints", 0, false),
            ("/api/v1/serviceaccounts", 0, false),
            ("/apis/discovery.k8s.io/v1/endpointslices", 0, false),
            ("/apis/scheduling.k8s.io/v1/priorityclasses", 2, false),
            ("/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", 8, false),
            ("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", 11, true),
            ("/apis/networking.k8s.io/v1/servicecidrs", 1, true),
            ("/apis/networking.k8s.io/v1/ipaddresses", 1, false),
            ("/apis/apiregistration.k8s.io/v1/apiservices", 21, true),
        ] {
            let list = Request::new("GET", path);
            let is_told = |item: &Value| item["status"].as_object().is_some_and(|status| !status.is_empty());
            s.until(&list, |answer| {
                let items = items(answer);
                items.len() == count && (!has_status || items.iter().all(is_told))
            });
            for item in items(&s.answer(&list).expect("an answer")) {
                let place =
                    |namespace: &str| path.replace("/services", &format!("/namespaces/{namespace}/services"));
                let path = item["metadata"]["namespace"].as_str().map_or_else(|| path.to_owned(), place);
                s.get(format!("{path}/{}", item["metadata"]["name"].as_str().expect("a name")));
            }
        }
    });
}
