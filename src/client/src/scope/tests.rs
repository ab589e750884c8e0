//! What a scope refuses, and the paths and queries of its requests.

use super::*;
use informer_core::meta::ResourceVersion;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use std::time::Duration;

fn pods() -> Scope {
    Scope::new(ApiResource::erase::<Pod>(&()))
}

fn list(version: AskedVersion) -> ListRequest {
    ListRequest { version, limit: None, token: None, name: None }
}

fn at(number: u64) -> AskedVersion {
    AskedVersion::From(ResourceVersion::from_number(number).unwrap())
}

#[test]
fn lists_ask_for_the_version_or_continue_a_page() {
    assert_eq!(pods().list(&list(AskedVersion::Latest)), "/api/v1/pods");
    assert_eq!(pods().list(&list(AskedVersion::Any)), "/api/v1/pods?resourceVersion=0");
    let first = ListRequest { limit: Some(500), ..list(at(10)) };
    let not_older = "resourceVersion=10&resourceVersionMatch=NotOlderThan";
    assert_eq!(pods().list(&first), format!("/api/v1/pods?limit=500&{not_older}"));
    let second = ListRequest { token: Some("a b/=".to_owned()), ..first };
    assert_eq!(pods().list(&second), "/api/v1/pods?limit=500&continue=a%20b%2F%3D");
}

#[test]
fn wl_17_selectors_stand_in_every_request_and_a_name_joins_the_fields() {
    let mut scope = Scope::new(ApiResource::erase::<Deployment>(&()));
    scope.namespace = Some("web".to_owned());
    scope.labels = Some("app in (a,b)".to_owned());
    scope.fields = Some("metadata.name!=x".to_owned());
    let selected = "labelSelector=app%20in%20%28a%2Cb%29&fieldSelector=metadata.name%21%3Dx";
    let page = ListRequest { token: Some("t".to_owned()), ..list(AskedVersion::Any) };
    let path = "/apis/apps/v1/namespaces/web/deployments";
    assert_eq!(scope.list(&page), format!("{path}?{selected}&continue=t"));
    let named = ListRequest { name: Some("y".to_owned()), ..list(AskedVersion::Latest) };
    assert_eq!(scope.list(&named), format!("{path}?{selected}%2Cmetadata.name%3Dy"));
    let watch = WatchRequest { version: at(7), initial_events: false, timeout: Duration::from_secs(300) };
    assert_eq!(
        scope.watch(&watch),
        format!("{path}?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&{selected}&resourceVersion=7")
    );
    assert_eq!((scope.name().as_str(), pods().name().as_str()), ("deployments.apps", "pods"));
}

#[test]
fn inf_55_the_longest_requested_watch_is_one_that_servers_can_count() {
    let watch = |timeout| WatchRequest { version: at(7), initial_events: false, timeout };
    for (timeout, seconds) in
        [(Duration::ZERO, "1"), (Duration::MAX, "2147483647"), (Duration::from_secs(u64::MAX), "2147483647")]
    {
        let asked = pods().watch(&watch(timeout));
        assert!(asked.contains(&format!("&timeoutSeconds={seconds}&")), "{timeout:?}: {asked}");
    }
}

#[test]
fn wl_01_a_watch_list_asks_for_initial_events_not_older_than_its_version() {
    let first =
        WatchRequest { version: AskedVersion::Latest, initial_events: true, timeout: Duration::from_secs(9) };
    let plain = "/api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=9";
    let initial = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    assert_eq!(pods().watch(&first), format!("{plain}{initial}"));
    let later = WatchRequest { version: at(10), ..first };
    assert_eq!(pods().watch(&later), format!("{plain}&resourceVersion=10{initial}"));
}

#[test]
fn rest_14_a_name_that_would_change_the_path_is_refused() {
    for name in ["", ".", "..", "a/b", "a%b", "a%2Fb"] {
        let refused = [pods().object(Some("a"), name), pods().list_one(Some("a"), name)];
        assert!(refused.iter().all(|one| matches!(one, Err(Error::Name { what: "name", .. }))), "{name}");
    }
    for name in ["", ".", "..", "a/b", "a%b", "a?b", "a#b", "a b", "é"] {
        assert!(
            matches!(pods().object(Some(name), "a"), Err(Error::Name { what: "namespace", .. })),
            "{name}"
        );
    }
    let path = |name| pods().object(None, name).unwrap();
    assert_eq!(path("system:node-role"), "/api/v1/pods/system:node-role");
    assert_eq!(path("a b?é#\n"), "/api/v1/pods/a%20b%3F%C3%A9%23%0A");
    let one = pods().list_one(None, r"a,b=c\d").unwrap();
    assert_eq!(one, "/api/v1/pods?fieldSelector=metadata.name%3Da%5C%2Cb%5C%3Dc%5C%5Cd");
}
