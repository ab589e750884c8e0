//! What discovery asks of a server, and what it makes of the answers.
//!
//! Answers "are two requests enough, what does a failing group take along, and when is the server asked again?" The time
//! of the tests is paused: what is too old becomes so at once.

use std::time::Duration;

use actix_informer::client::discovery::ServerResources;
use actix_informer::client::{Client, Config, DiscoveryError};
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::{advance, timeout};

use crate::discovery_server::*;
use crate::logs;
use crate::raw_server::*;

const WIDGETS: (&str, &str, &str) = ("example.org", "widgets", "Widget");
const DEPLOYMENTS: (&str, &str, &str) = ("apps", "deployments", "Deployment");
const MINUTE: Duration = Duration::from_secs(60);

fn names(resources: &ServerResources) -> Vec<String> {
    resources.all().map(|resource| resource.full_name()).collect()
}

fn failed(resources: &ServerResources) -> Vec<String> {
    resources.failed.iter().map(|failed| format!("{}/{}", failed.group, failed.version)).collect()
}

async fn resources(client: &Client) -> std::sync::Arc<ServerResources> {
    client.discovery().resources().await.unwrap()
}

async fn full_name(client: &Client, name: &str) -> String {
    client.resource_named(name).await.unwrap().full_name()
}

#[tokio::test(start_paused = true)]
async fn dyn_03_aggregated_discovery_takes_two_requests_in_both_of_its_versions() {
    for version in ["v2", "v2beta1"] {
        let server = Documents::start().await;
        server.set("/api", &aggregated(version, &[("", "pods", "Pod"), ("", "nodes", "Node")]));
        server.set("/apis", &aggregated(version, &[DEPLOYMENTS, WIDGETS]));
        let client = server.client();
        let found = resources(&client).await;
        assert_eq!(
            names(&found),
            ["pods.v1", "nodes.v1", "deployments.v1.apps", "widgets.v1.example.org"],
            "{version}"
        );
        assert!(found.complete().is_ok() && client.discovery().status().is_aggregated);
        for name in ["pods", "node", "Deployment", "widgets.example.org"] {
            full_name(&client, name).await;
        }
        assert_eq!(server.asked(), ["/api", "/apis"], "two requests give everything");
    }
}

// DYN-03: given aggregated discovery, in its version v2 or v2beta1, when available, then 2 requests give
// everything; when not, the old form, one request for each version of each group.
// - a aggregated discovery takes 2 requests in both of its versions:
//   `dyn_03_aggregated_discovery_takes_two_requests_in_both_of_its_versions`
// - b a server of the old form is asked for each version of each group
// - c so is one that refuses the header of the new form:
//   `dyn_03_a_server_that_refuses_the_header_of_the_new_form_is_asked_for_the_old_one`
#[tokio::test(start_paused = true)]
async fn dyn_03_a_server_of_the_old_form_is_asked_for_each_version_of_each_group() {
    let server = Documents::old().await;
    let client = server.client();
    assert_eq!(names(&*resources(&client).await), ["pods.v1", "deployments.v1.apps"]);
    assert_eq!(server.asked(), ["/api", "/api/v1", "/apis", "/apis/apps/v1"]);
    assert!(!client.discovery().status().is_aggregated);
}

#[tokio::test(start_paused = true)]
async fn dyn_03_a_server_that_refuses_the_header_of_the_new_form_is_asked_for_the_old_one() {
    let server = Documents::old().await;
    for path in ["/api", "/apis"] {
        let body = if path == "/api" {
            json!({"kind": "APIVersions", "versions": ["v1"]})
        } else {
            groups(&["apps/v1"])
        };
        let accept = Some("application/json");
        server.put(path, Document { status: 200, body: body.to_string(), etag: None, accept });
    }
    assert_eq!(names(&*resources(&server.client()).await), ["pods.v1", "deployments.v1.apps"]);
    assert_eq!(server.asked(), ["/api", "/api", "/api/v1", "/apis", "/apis", "/apis/apps/v1"]);
}

#[tokio::test(start_paused = true)]
async fn dyn_04_of_a_failing_group_the_others_are_found_and_its_versions_are_named() {
    let server = Documents::old().await;
    server.set("/apis", &groups(&["apps/v1", "metrics.k8s.io/v1beta1", "broken.example.com/v1"]));
    server.fail("/apis/metrics.k8s.io/v1beta1", 503);
    server.set("/apis/broken.example.com/v1", &json!({"kind": "Status"}));
    let client = server.client();
    let found = resources(&client).await;
    assert_eq!(names(&found), ["pods.v1", "deployments.v1.apps"]);
    assert_eq!(failed(&found), ["metrics.k8s.io/v1beta1", "broken.example.com/v1"]);
    let error = found.complete().unwrap_err().to_string();
    assert!(error.contains("metrics.k8s.io/v1beta1") && error.contains("broken.example.com/v1"), "{error}");
    let unknown = client.resource_named("nodemetrics").await.unwrap_err().to_string();
    assert!(unknown.contains("metrics.k8s.io/v1beta1"), "the name may be there: {unknown}");
    assert_eq!(full_name(&client, "deployments").await, "deployments.v1.apps");
}

// DYN-04: given one failing group, when discovering, then the others are returned beside an error that names
// the versions that failed, and they are asked for again soon.
// - a the others are returned and the failed versions are named:
//   `dyn_04_of_a_failing_group_the_others_are_found_and_its_versions_are_named`
// - b a stale version of aggregated discovery is a failed one
// - c they are asked for again after 30 s
#[tokio::test(start_paused = true)]
async fn dyn_04_a_stale_version_of_aggregated_discovery_is_a_failed_one_and_is_asked_again_after_thirty_seconds()
 {
    let server = Documents::new(&[DEPLOYMENTS, WIDGETS]).await;
    let mut document = aggregated("v2", &[DEPLOYMENTS, WIDGETS]);
    document["items"][1]["versions"][0]["freshness"] = json!("Stale");
    server.tagged("/apis", &document, "stale");
    let client = server.client();
    let found = resources(&client).await;
    assert_eq!(
        (names(&found), failed(&found)),
        (vec!["pods.v1".into(), "deployments.v1.apps".into()], vec!["example.org/v1".into()])
    );
    advance(Duration::from_secs(29)).await;
    resources(&client).await;
    assert_eq!(server.asked().len(), 2, "it serves for a while");
    server.serve(&[DEPLOYMENTS, WIDGETS]);
    advance(Duration::from_secs(1)).await;
    assert!(resources(&client).await.complete().is_ok());
}

// DYN-05: given /api 404, when discovering, then the groups still load; /apis failing is an error.
// - a without a core group the others are found, in both forms
// - b /apis failing is an error
#[tokio::test(start_paused = true)]
async fn dyn_05_without_a_core_group_the_others_are_found_and_without_the_others_it_is_an_error() {
    for server in [Documents::new(&[DEPLOYMENTS]).await, Documents::old().await] {
        server.fail("/api", 404);
        assert_eq!(names(&*resources(&server.client()).await), ["deployments.v1.apps"]);
        for status in [404, 500] {
            server.fail("/apis", status);
            let error = server.client().discovery().resources().await.unwrap_err();
            assert!(
                matches!(error, DiscoveryError::Request(_)) && error.to_string().contains("/apis"),
                "{error}"
            );
        }
    }
    let server = Documents::new(&[DEPLOYMENTS]).await;
    server.fail("/api", 500);
    assert!(
        server.client().discovery().resources().await.is_err(),
        "only a core group that is absent is none"
    );
}

// DYN-07: given a refresh whose caller stops waiting, or is kept and not polled, when another caller asks,
// then it succeeds: the cancellation is not kept.
// - a it succeeds and no failure is counted
// - b so it does where the first caller is not polled:
//   `dyn_07_a_question_that_is_kept_and_not_polled_stops_no_other`
// - c what is answered meanwhile is as old as its question:
//   `what_was_answered_to_a_question_that_is_not_polled_is_as_old_as_the_question`
#[tokio::test(start_paused = true)]
async fn dyn_07_a_question_that_is_given_up_leaves_nothing_behind() {
    let server = Documents::new(&[DEPLOYMENTS]).await;
    let client = server.client();
    drop(kept(&server, &client).await);
    assert_eq!(full_name(&client, "deployments").await, "deployments.v1.apps");
    let status = client.discovery().status();
    assert_eq!((status.refreshes, status.failures), (2, 0));
}

/// A caller that has asked and is not polled any more: nothing was answered to it.
async fn kept(server: &Documents, client: &Client) -> impl Future<Output = Resources> + use<> {
    server.close_gate();
    let discovery = client.discovery();
    let mut kept = Box::pin(async move { discovery.resources().await });
    while server.count() < 2 {
        assert!(timeout(Duration::from_millis(1), &mut kept).await.is_err(), "nothing is answered");
    }
    server.open_gate();
    kept
}

type Resources = Result<std::sync::Arc<ServerResources>, DiscoveryError>;

#[tokio::test(start_paused = true)]
async fn dyn_07_a_question_that_is_kept_and_not_polled_stops_no_other() {
    let server = Documents::new(&[DEPLOYMENTS]).await;
    let client = server.client();
    let kept = kept(&server, &client).await;
    assert_eq!(full_name(&client, "deployments").await, "deployments.v1.apps");
    assert_eq!(kept.await.unwrap().all().count(), 2);
    assert_eq!(client.discovery().status().refreshes, 1, "they share the answer");
}

#[tokio::test(start_paused = true)]
async fn what_was_answered_to_a_question_that_is_not_polled_is_as_old_as_the_question() {
    let server = Documents::new(&[DEPLOYMENTS]).await;
    let client = server.client();
    let kept = kept(&server, &client).await;
    advance(10 * MINUTE).await;
    server.serve(&[DEPLOYMENTS, WIDGETS]);
    assert_eq!(resources(&client).await.all().count(), 3, "it is asked again");
    assert!(kept.await.is_ok(), "its own answer is good for the question");
    assert_eq!(client.discovery().status().refreshes, 2);
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_answer_serves_from_when_it_arrives_however_long_it_took() {
    let server = Documents::new(&[DEPLOYMENTS, WIDGETS]).await;
    let mut document = aggregated("v2", &[DEPLOYMENTS, WIDGETS]);
    document["items"][1]["versions"][0]["freshness"] = json!("Stale");
    server.tagged("/apis", &document, "stale");
    let client = server.client();
    server.close_gate();
    let asking = tokio::spawn({
        let client = client.clone();
        async move { client.resource_named("widgets").await }
    });
    while server.count() < 2 {
        tokio::task::yield_now().await;
    }
    advance(Duration::from_secs(32)).await;
    server.open_gate();
    assert!(asking.await.unwrap().unwrap_err().is_unknown_name());
    assert_eq!(failed(&*resources(&client).await), ["example.org/v1"]);
    assert_eq!(server.asked().len(), 2, "once for both questions, though it is incomplete");
}

#[tokio::test(start_paused = true)]
async fn questions_that_want_nothing_old_share_an_answer_that_is_newer_than_they_are() {
    let server = Documents::new(&[DEPLOYMENTS]).await;
    let strict = server.client().discovery().ttl(Duration::ZERO);
    assert!(strict.resource_named("widgets").await.unwrap_err().is_unknown_name());
    assert_eq!(server.asked().len(), 2, "once for one question");
    let found = join_all((0..20).map(|_| strict.resources())).await;
    assert!(found.iter().all(Result::is_ok));
    assert_eq!(
        server.asked().len(),
        4,
        "once for the first, and once for those that came while it was asked"
    );
}

#[tokio::test(start_paused = true)]
async fn callers_that_ask_at_once_share_one_answer_and_one_error() {
    let server = Documents::new(&[DEPLOYMENTS]).await;
    let client = server.client();
    let found = join_all((0..20).map(|_| full_name(&client, "deployments"))).await;
    assert!(found.iter().all(|name| name == "deployments.v1.apps"));
    assert_eq!(server.asked().len(), 2);
    server.fail("/apis", 500);
    client.discovery().invalidate();
    let errors = join_all((0..20).map(|_| client.resource_named("deployments"))).await;
    assert!(errors.iter().all(|error| matches!(error, Err(DiscoveryError::Request(_)))));
    assert_eq!(server.asked().len(), 2);
}

// DYN-08: given a name that is missing in what is known, when asked, then the server is asked once and the
// name is looked up again; if it is still missing, it is an error without another request. (client-go asks
// only if its cache is stale: see DYN-18.)
// - a the server is asked once more
// - b so it is for a name that is missing in a cache on disk:
//   `dyn_08_a_name_that_is_missing_in_a_cache_on_disk_is_asked_for_once`
// - c what is newer than the question is not asked for again
#[tokio::test(start_paused = true)]
async fn dyn_08_a_name_that_is_missing_in_what_is_known_asks_once_more_and_then_is_an_error() {
    let server = Documents::new(&[DEPLOYMENTS]).await;
    let client = server.client();
    assert_eq!(full_name(&client, "deployments").await, "deployments.v1.apps");
    assert_eq!(server.asked().len(), 2);
    let error = client.resource_named("widgets").await.unwrap_err();
    assert!(error.is_unknown_name());
    assert_eq!(server.asked().len(), 2, "what was known is older than the question: once more, and no more");
    // Nothing is known yet: what is found is newer than the question.
    let client = server.client();
    assert!(client.resource_named("widgets").await.unwrap_err().is_unknown_name());
    assert_eq!(server.asked().len(), 2, "not asked again");
}

#[tokio::test(start_paused = true)]
async fn dyn_18_a_kind_that_is_defined_later_is_found_by_one_refresh_without_a_reset() {
    let server = Documents::new(&[DEPLOYMENTS]).await;
    let client = server.client();
    full_name(&client, "deployments").await;
    server.asked();
    server.serve(&[DEPLOYMENTS, WIDGETS]);
    for name in ["widget", "widgets.v1.example.org"] {
        assert_eq!(full_name(&client.clone(), name).await, "widgets.v1.example.org");
    }
    assert_eq!(server.asked(), ["/api", "/apis"], "one refresh");
    let status = client.discovery().status();
    assert_eq!((status.refreshes, status.misses, status.unchanged), (2, 1, 1), "/api has not changed");
}

#[tokio::test(start_paused = true)]
async fn dyn_18_names_that_do_not_exist_cannot_make_a_client_ask_without_bound() {
    let server = Documents::new(&[DEPLOYMENTS]).await;
    let client = server.client();
    full_name(&client, "deployments").await;
    for _ in 0..100 {
        client.resource_named("widgets").await.unwrap_err();
    }
    assert_eq!(client.discovery().status().misses, 8);
    assert_eq!(client.discovery().status().misses_held_back, 92);
    let Err(DiscoveryError::Unknown(unknown)) = client.resource_named("widgets").await else { panic!() };
    assert_eq!(unknown.asks_again_in, Some(Duration::from_secs(2)), "it is not silent about that");
    assert_eq!(full_name(&client, "deployments").await, "deployments.v1.apps", "known names are answered");
    server.serve(&[DEPLOYMENTS, WIDGETS]);
    advance(Duration::from_secs(2)).await;
    assert_eq!(full_name(&client, "widgets").await, "widgets.v1.example.org");
}

#[tokio::test(start_paused = true)]
async fn what_is_too_old_is_asked_for_again_and_what_has_not_changed_is_not_sent_again() {
    let server = Documents::new(&[DEPLOYMENTS]).await;
    let client = server.client();
    let first = resources(&client).await;
    advance(9 * MINUTE).await;
    resources(&client).await;
    assert_eq!(server.asked().len(), 2, "ten minutes are not over");
    advance(MINUTE).await;
    let second = resources(&client).await;
    assert_eq!(
        (server.asked().len(), client.discovery().status().unchanged),
        (2, 2),
        "both were answered with 304"
    );
    assert_eq!(names(&first), names(&second));
    client.clone().discovery().ttl(MINUTE).resources().await.unwrap();
    advance(MINUTE).await;
    client.discovery().ttl(MINUTE).resources().await.unwrap();
    assert_eq!(server.asked().len(), 2, "a shorter time is kept");
    client.discovery().invalidate();
    resources(&client).await;
    resources(&client).await;
    assert_eq!(server.asked().len(), 2, "once after it was invalidated");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_discovery_document_is_an_error_that_names_the_path() {
    let server = Documents::new(&[DEPLOYMENTS]).await;
    server.set("/apis", &json!({"kind": "PodList", "items": []}));
    let error = server.client().discovery().resources().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the answer to GET /apis is no discovery document: it is of another kind than a discovery document"
    );
}

#[tokio::test]
async fn client_a_discovery_document_without_an_end_is_an_error_and_its_connection_closes() {
    let (closed, end) = tokio::sync::oneshot::channel();
    let closed = std::sync::Mutex::new(Some(closed));
    let server = RawServer::start(move |mut connection: Connection| {
        let closed = closed.lock().unwrap().take();
        async move {
            connection.request().await;
            connection.write(CHUNKED).await;
            connection.write(chunk(r#"{"kind":"APIGroupDiscoveryList","items":["#)).await;
            let piece = chunk(&" ".repeat(1 << 20));
            while connection.is_written(&piece).await {}
            if let Some(closed) = closed {
                let _ = closed.send(());
            }
        }
    })
    .await;
    let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
    let error = client.discovery().resources().await.unwrap_err();
    assert!(error.to_string().contains("larger than"), "{error}");
    timeout(MINUTE, end).await.expect("the connection closes").unwrap();
}

// DYN-10: given an ambiguous short name, when expanded, then the group of highest priority wins with a
// warning; short names of definitions resolve after a refresh.
// - a the group of highest priority wins and the others are named:
//   `dyn_10_of_an_ambiguous_short_name_the_group_of_highest_priority_wins_and_the_others_are_named`
// - b kubectl chooses and warns alike, on both servers:
//   `dyn_10_of_an_ambiguous_short_name_kubectl_and_this_client_choose_and_warn_alike`
// - c it is logged
// - d the short name of a new definition resolves
#[tokio::test(start_paused = true)]
async fn dyn_10_the_short_name_of_a_new_definition_resolves_and_an_ambiguous_one_is_logged() {
    logs::keep();
    let server = Documents::new(&[DEPLOYMENTS]).await;
    let client = server.client();
    full_name(&client, "deployments").await;
    let mut document = aggregated("v2", &[DEPLOYMENTS, WIDGETS]);
    document["items"][1]["versions"][0]["resources"][0]["shortNames"] = json!(["dyn10"]);
    server.tagged("/apis", &document, "one");
    let widgets = client.resource_named("dyn10").await.unwrap();
    assert_eq!(
        (widgets.full_name().as_str(), widgets.also_named()),
        ("widgets.v1.example.org", [].as_slice())
    );
    document["items"][0]["versions"][0]["resources"][0]["shortNames"] = json!(["dyn10"]);
    server.tagged("/apis", &document, "both");
    client.discovery().invalidate();
    let deployments = client.resource_named("dyn10").await.unwrap();
    assert_eq!(deployments.full_name(), "deployments.v1.apps");
    assert_eq!(deployments.also_named(), ["widgets.example.org"]);
    let logged = logs::kept();
    let line = logged.lines().find(|line| line.contains("\"dyn10\"")).expect("a warning");
    assert!(line.contains("deployments.apps") && line.contains("widgets.example.org"), "{line}");
}
