//! The watch stream and the waits of `client::Api` when connections end, break, are refused and expire.
//!
//! Answers "is every event delivered once and in order, and is every failure shown?"

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_informer::client::api::{ListParams, Watch, WatchEvent, WatchParams, conditions};
use actix_informer::client::{Api, Client, Config, Error};
use futures_util::{FutureExt, StreamExt};
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::harness::{config_map, event};
use crate::raw_server::*;

const LONG: Duration = Duration::from_secs(30);

fn maps(url: &str) -> Api<ConfigMap> {
    Client::new(Config::new(url).unwrap()).unwrap().api::<ConfigMap>().namespaced("default")
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
}

/// The next item: `+name`, `~name`, `-name`, `=` for a bookmark, `!` and the error.
async fn next(watch: &mut Watch<ConfigMap>) -> String {
    let name = |map: ConfigMap| map.metadata.name.unwrap();
    match tokio::time::timeout(LONG, watch.next()).await.expect("in time") {
        Some(Ok(WatchEvent::Added(map))) => format!("+{}", name(map)),
        Some(Ok(WatchEvent::Modified(map))) => format!("~{}", name(map)),
        Some(Ok(WatchEvent::Deleted(map))) => format!("-{}", name(map)),
        Some(Ok(_)) => "=".to_owned(),
        Some(Err(error)) => format!("!{error}"),
        None => "end".to_owned(),
    }
}

/// The next item that is no bookmark.
async fn next_event(watch: &mut Watch<ConfigMap>) -> String {
    loop {
        let item = next(watch).await;
        if item != "=" {
            return item;
        }
    }
}

/// The next item that is an event; before it, errors of connections.
async fn next_after_errors(watch: &mut Watch<ConfigMap>) -> String {
    loop {
        let item = next_event(watch).await;
        if !item.starts_with('!') {
            return item;
        }
    }
}

async fn newest(maps: &Api<ConfigMap>) -> String {
    maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap()
}

#[tokio::test]
async fn a_watch_goes_on_without_loss_or_repetition_after_its_connection_ends_breaks_or_the_server_restarts()
{
    let mut server = ApiServer::builder().start().await.unwrap();
    let maps = maps(&server.url());
    let mut watch = maps.watch(&WatchParams::default(), &newest(&maps).await).unwrap();
    server.create(map("a")).unwrap();
    assert_eq!(next_event(&mut watch).await, "+a");
    server.faults().end_watches();
    server.create(map("b")).unwrap();
    server.delete("configmaps", "default", "a").unwrap();
    assert_eq!([next_after_errors(&mut watch).await, next_after_errors(&mut watch).await], ["+b", "-a"]);
    server.faults().reset_watches();
    server.create(map("c")).unwrap();
    assert!(next_event(&mut watch).await.starts_with('!'), "a broken connection is shown");
    assert_eq!(next_after_errors(&mut watch).await, "+c");
    server.stop();
    server.create(map("d")).unwrap();
    server.start_again().unwrap();
    assert_eq!(next_after_errors(&mut watch).await, "+d");
    server.update(map("d")).unwrap();
    server.create(map("e")).unwrap();
    assert_eq!(next_after_errors(&mut watch).await, "+e");
}

#[tokio::test]
async fn an_expired_watch_says_so_and_goes_on_where_its_reader_says() {
    let mut server = ApiServer::builder().start().await.unwrap();
    let maps = maps(&server.url());
    let mut watch = maps.watch(&WatchParams::default(), &newest(&maps).await).unwrap();
    server.create(map("a")).unwrap();
    assert_eq!(next_event(&mut watch).await, "+a");
    server.stop();
    server.create(map("b")).unwrap();
    server.faults().compact();
    server.start_again().unwrap();
    let expired = loop {
        match watch.next().await.unwrap() {
            Err(error) if error.is_expired() => break error,
            _ => continue,
        }
    };
    assert!(expired.to_string().contains("/api/v1/namespaces/default/configmaps"), "{expired}");
    assert!(watch.resume_from("0").is_err() && watch.resume_from("").is_err());
    watch.resume_from(newest(&maps).await).unwrap();
    server.create(map("c")).unwrap();
    assert_eq!(next_event(&mut watch).await, "+c");
}

#[tokio::test]
async fn dyn_13_an_expired_watch_is_an_error_and_ends_unless_its_reader_says_where_to_go_on() {
    let server = ApiServer::builder().start().await.unwrap();
    let maps = maps(&server.url());
    for n in 0..3 {
        server.create(map(&format!("n{n}"))).unwrap();
    }
    server.faults().compact();
    let mut watch = maps.watch(&WatchParams::default(), "1").unwrap();
    assert!(watch.next().await.unwrap().unwrap_err().is_expired());
    assert_eq!(next(&mut watch).await, "end");
}

#[tokio::test]
async fn initial_events_come_first_and_only_after_their_end_is_a_version_kept() {
    let server = ApiServer::builder().start().await.unwrap();
    for name in ["a", "b"] {
        server.create(map(name)).unwrap();
    }
    let maps = maps(&server.url());
    let mut watch = maps.watch(&WatchParams::default().initial_events(), "").unwrap();
    let mut found = Vec::new();
    while watch.version().is_empty() {
        found.push(next(&mut watch).await);
    }
    assert!(found.contains(&"+a".to_owned()) && found.contains(&"+b".to_owned()), "{found:?}");
    assert_eq!(found.last().map(String::as_str), Some("="));
    server.faults().end_watches();
    server.create(map("c")).unwrap();
    assert_eq!(next_after_errors(&mut watch).await, "+c", "the initial objects are not sent again");
}

/// A server whose connections are scripted by number, and the versions that its watches were asked for.
async fn scripted(
    script: impl Fn(usize) -> String + Send + Sync + 'static,
) -> (RawServer, Arc<Mutex<Vec<String>>>) {
    let script = Arc::new(script);
    let versions = Arc::new(Mutex::new(Vec::new()));
    let (seen, count) = (Arc::clone(&versions), Arc::new(AtomicUsize::new(0)));
    let server = RawServer::start(move |mut connection: Connection| {
        let (seen, count, script) = (Arc::clone(&seen), Arc::clone(&count), Arc::clone(&script));
        async move {
            let Some(head) = connection.request().await else { return };
            let query = head.lines().next().unwrap().split(['&', ' ']);
            let version = query.filter_map(|pair| pair.strip_prefix("resourceVersion=")).next().unwrap();
            seen.lock().unwrap().push(version.to_owned());
            connection.write(script(count.fetch_add(1, Ordering::SeqCst))).await;
            connection.close().await;
        }
    })
    .await;
    (server, versions)
}

#[tokio::test]
async fn every_failure_of_a_watch_is_an_item_and_the_next_connection_goes_on_after_the_last_event() {
    let (server, versions) = scripted(|number| match number {
        0 => format!(
            "{CHUNKED}{}",
            chunk(&format!("{}{{\"type\":\"MOD", event("ADDED", &config_map("a", 11))))
        ),
        1 => answer("500 Oops", "", "broken"),
        2 => {
            let not_a_map = r#"{"metadata":{"name":"odd","resourceVersion":"12"},"data":"hunter2"}"#;
            let error = r#"{"kind":"Status","code":429,"reason":"TooManyRequests","message":"later"}"#;
            let lines =
                event("ADDED", not_a_map) + &event("ADDED", &config_map("b", 13)) + &event("ERROR", error);
            format!("{CHUNKED}{}", chunk(&lines))
        }
        _ => {
            let bookmark = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"20"}}"#;
            format!("{CHUNKED}{}{LAST_CHUNK}", chunk(&event("BOOKMARK", bookmark)))
        }
    })
    .await;
    let mut watch = maps(&server.url()).watch(&WatchParams::default(), "10").unwrap();
    assert_eq!(next(&mut watch).await, "+a");
    assert_eq!(next(&mut watch).await, "!the body was cut off");
    let broken = next(&mut watch).await;
    assert!(
        broken.starts_with("!the server answered 500 to GET /api/v1/namespaces/default/configmaps"),
        "{broken}"
    );
    let odd = next(&mut watch).await;
    assert!(odd.contains("does not decode: data") && !odd.contains("hunter2"), "{odd}");
    assert_eq!(next(&mut watch).await, "+b");
    assert!(next(&mut watch).await.contains("429"));
    assert_eq!(next(&mut watch).await, "=");
    assert_eq!(next(&mut watch).await, "=", "it ended in good order and is opened again");
    assert_eq!(versions.lock().unwrap()[..5], ["10", "11", "11", "13", "20"]);
}

// DYN-12: given a watch by hand and 4 ends of its connection, while the server sends events again or from
// before, when it is read, then each event comes once, and nothing at or below the last version.
// - a each connection asks from the version of the last event
// - b each event comes once, also over a restart of the server
// - c nothing at or below the last version comes, and what is left out is counted
#[tokio::test]
async fn dyn_12_each_event_comes_once_and_nothing_at_or_below_the_last_version_whatever_the_server_repeats() {
    let added = |events: &[(&str, u32)]| -> String {
        events.iter().map(|(name, version)| event("ADDED", &config_map(name, (*version).into()))).collect()
    };
    let answers = [
        added(&[("a", 11), ("b", 150)]),
        added(&[("b", 150), ("a", 11), ("c", 2000)]),
        added(&[("d", 9), ("e", 30000)]),
        added(&[("e", 30000), ("f", 400_000)]),
    ];
    let answers = answers.map(|lines| format!("{CHUNKED}{}{LAST_CHUNK}", chunk(&lines)));
    let (server, versions) = scripted(move |number| answers[number.min(3)].clone()).await;
    let mut watch = maps(&server.url()).watch(&WatchParams::default(), "10").unwrap();
    let mut found = Vec::new();
    while found.len() < 5 {
        found.push(next(&mut watch).await);
    }
    assert_eq!(found, ["+a", "+b", "+c", "+e", "+f"]);
    assert_eq!((watch.version(), watch.repeated()), ("400000", 4));
    assert_eq!(versions.lock().unwrap()[..4], ["10", "150", "2000", "30000"]);
}

// DYN-13: given a 410 for a watch by hand, as its answer or as an event in it, when it is received, then it
// is delivered as an error and the watch ends, unless its reader has listed again and says from where to go
// on.
// - a it is delivered as an error, and the watch ends
// - b it goes on where its reader says: `an_expired_watch_says_so_and_goes_on_where_its_reader_says`
#[tokio::test]
async fn dyn_13_a_410_as_an_answer_or_as_an_event_is_delivered_as_an_error_and_ends_the_watch() {
    let gone = r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old"}"#;
    let as_event = format!(
        "{CHUNKED}{}",
        chunk(&(event("ADDED", &config_map("a", 11)) + &event("ERROR", gone) + &event("ADDED", "{}")))
    );
    for (script, before) in [(as_event, 1), (answer("410 Gone", "", gone), 0)] {
        let (server, versions) = scripted(move |_| script.clone()).await;
        let mut watch = maps(&server.url()).watch(&WatchParams::default(), "10").unwrap();
        for _ in 0..before {
            assert_eq!(next(&mut watch).await, "+a");
        }
        assert!(watch.next().await.unwrap().unwrap_err().is_expired());
        assert_eq!(next(&mut watch).await, "end");
        assert_eq!(versions.lock().unwrap().len(), 1, "it is not asked again");
    }
}

// DYN-14: given the version "" or "0" and no initial events, when a watch by hand is made, then it is refused
// and nothing is sent.
// - a it is refused
// - b nothing is sent
#[tokio::test]
async fn dyn_14_a_watch_from_no_version_or_from_0_is_refused_before_any_request() {
    let (server, versions) = scripted(|_| String::new()).await;
    let maps = maps(&server.url());
    for version in ["", "0"] {
        let refused = maps.watch(&WatchParams::default(), version).unwrap_err();
        assert!(matches!(refused, Error::Request(_)), "{refused}");
        assert!(refused.to_string().contains("begins at the version of a list"), "{refused}");
    }
    assert_eq!((versions.lock().unwrap().len(), server.accepted()), (0, 0));
}

#[tokio::test]
async fn dyn_15_an_error_of_the_condition_ends_a_wait_without_an_informer() {
    let server = ApiServer::builder().start().await.unwrap();
    let maps = maps(&server.url());
    server.create(map("a")).unwrap();
    let fails = |map: Option<&ConfigMap>| if map.is_some() { Err("it is there") } else { Ok(false) };
    let error = maps.until("a", fails, LONG).await.unwrap_err();
    assert_eq!(error.to_string(), "the condition failed: it is there");
}

#[tokio::test]
async fn a_dropped_watch_ends_its_request() {
    let server = ApiServer::builder().start().await.unwrap();
    let maps = maps(&server.url());
    let mut watch = maps.watch(&WatchParams::default(), &newest(&maps).await).unwrap();
    server.create(map("a")).unwrap();
    assert_eq!(next_event(&mut watch).await, "+a");
    assert_eq!(server.watches("configmaps"), 1);
    drop(watch);
    let ended = async {
        while server.watches("configmaps") > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, ended).await.expect("the server sees it");
}

#[tokio::test]
async fn a_stream_that_is_not_read_makes_the_server_wait_and_a_cut_off_one_ends_with_an_error() {
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    let server = RawServer::start(move |mut connection: Connection| {
        let count = Arc::clone(&count);
        async move {
            let Some(_) = connection.request().await else { return };
            connection.write(CHUNKED).await;
            let piece = chunk(&"x".repeat(1 << 20));
            for _ in 0..256 {
                connection.write(&piece).await;
                count.fetch_add(1, Ordering::SeqCst);
            }
        }
    })
    .await;
    let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
    let request = http::Request::get("/log").body(Vec::new()).unwrap();
    let mut body = client.stream(request, Duration::MAX).await.unwrap().into_body();
    let first = body.next().await.unwrap().unwrap();
    assert!(!first.is_empty());
    drop(client);
    let mut bytes = first.len();
    let last = loop {
        match body.next().await.expect("an error ends it") {
            Ok(chunk) => bytes += chunk.len(),
            Err(error) => break error,
        }
        assert!(bytes + (64 << 20) > written.load(Ordering::SeqCst) << 20, "the server is far ahead");
    };
    assert_eq!((bytes, last.to_string()), (256 << 20, "the body was cut off".to_owned()));
}

#[tokio::test]
async fn dyn_15_until_sees_the_state_at_the_start_each_change_and_a_deletion_that_a_gap_has_hidden() {
    let mut server = ApiServer::builder().start().await.unwrap();
    let maps = maps(&server.url());
    let first = server.create(map("a")).unwrap();
    let uid = first["metadata"]["uid"].as_str().unwrap().to_owned();
    let found = maps.until("a", conditions::present(), LONG).await.unwrap();
    assert_eq!(found.unwrap().metadata.uid.as_deref(), Some(&*uid));

    let (waiting, started) = (maps.clone(), server.watches("configmaps"));
    let mut gone = Box::pin(async move { waiting.until("a", conditions::absent(), LONG).await });
    while server.watches("configmaps") == started {
        assert!((&mut gone).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    server.stop();
    server.delete("configmaps", "default", "a").unwrap();
    server.create(map("a")).unwrap();
    server.faults().compact();
    server.start_again().unwrap();
    assert!(gone.await.unwrap().is_none(), "the first object is gone, although another has its name");
    let another = maps.until("a", conditions::deleted(&uid), LONG).await.unwrap().unwrap();
    assert_ne!(another.metadata.uid.as_deref(), Some(&*uid));
}

#[tokio::test]
async fn dyn_15_until_waits_out_broken_connections_and_ends_at_a_refusal_that_time_does_not_mend() {
    let server = ApiServer::builder().start().await.unwrap();
    let maps = maps(&server.url());
    server.faults().of("configmaps").fail_next(1, 503);
    server.create(map("a")).unwrap();
    assert!(maps.until("a", conditions::present(), LONG).await.unwrap().is_some());
    server.faults().deny("watch", "configmaps");
    let refused = maps.until("a", conditions::absent(), LONG).await.unwrap_err();
    assert!(refused.to_string().contains("403"), "{refused}");
    let unnamed = maps.until("a/b", conditions::absent(), LONG).await.unwrap_err();
    let actix_informer::client::api::UntilError::Failed(Error::Name { .. }) = unnamed else {
        panic!("{unnamed}")
    };
}
