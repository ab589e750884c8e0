//! A simulation that includes its API server: informers, writes, watch timeouts and outages on the paused clock.
//!
//! Answers "does a test of an operator need real time, a socket or luck?" No test here waits for anything real, and each
//! run of a seed is like the other.

use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use actix_informer::client::{Error, TransportError};
use actix_informer::prelude::*;
use futures_util::StreamExt;
use http::{Method, Request};
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

async fn served(runtime: &Runtime, seed: u64) -> (ApiServer, Client) {
    let server = ApiServer::builder().seed(seed).in_process(runtime.wall_time()).start().await.unwrap();
    let client = Client::in_process(runtime, server.service());
    (server, client)
}

fn map(name: &str) -> Option<(&'static str, Vec<u8>)> {
    Some(("application/json", json!({"metadata": {"name": name}}).to_string().into()))
}

/// Writes config maps until the hour is over, at times that the seed chooses.
async fn write(client: Client, seed: u64, writer: u64) {
    let mut dice = fastrand::Rng::with_seed(seed ^ writer);
    loop {
        tokio::time::sleep(Duration::from_millis(dice.u64(1..120_000))).await;
        let name = format!("map-{}", dice.u64(0..5));
        let path = format!("{MAPS}/{name}");
        let patch =
            json!({"data": {"by": writer.to_string(), "drawn": dice.u64(0..9).to_string()}}).to_string();
        let written = match dice.u64(0..4) {
            0 => client.request(Method::POST, MAPS, map(&name)).await,
            1 => client.request(Method::DELETE, &path, None).await,
            _ => {
                let patch = Some(("application/merge-patch+json", patch.into()));
                client.request(Method::PATCH, &path, patch).await
            }
        };
        // The writers do not know of each other: some of what they ask is refused.
        assert!(written.is_ok() || matches!(written, Err(Error::Refused(_))), "{written:?}");
    }
}

/// What a subscriber receives within an hour of three writers, with the simulated time of each event, and how many
/// watches were opened for it.
fn hour(seed: u64) -> (Vec<String>, u64) {
    Runtime::simulated(seed).run(|runtime| async move {
        let (server, client) = served(&runtime, seed).await;
        // Watches end at their timeouts alone: a silent one is not renewed earlier.
        let maps = client.resource::<ConfigMap>().settings(|settings| settings.renew_after = 2 * HOUR);
        let maps = maps.informer(&runtime).unwrap().start().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let (record, clock) = (Arc::clone(&received), runtime.clone());
        let resynced = SubscribeOptions::new().resync_every(10 * MINUTE);
        let each = move |notify: Notify<ConfigMap>| {
            let (cause, version) = (notify.cause(), notify.subject().version());
            let line = format!("{:?} {cause:?} {}@{version}", clock.now(), notify.key());
            record.lock().unwrap().push(line);
            async {}
        };
        let subscription = maps.subscribe_with(resynced, Subscriber::each(each)).unwrap();
        for writer in 0..3 {
            actix_rt::spawn(write(client.clone(), seed, writer));
        }
        tokio::time::sleep(HOUR).await;
        let watches = maps.status().sources[0].counters.watches;
        let held =
            maps.snapshot().iter().map(|map| format!("{}@{}", map.key(), map.version())).collect::<Vec<_>>();
        let listed = server.list("configmaps").unwrap();
        let text = |map: &serde_json::Value, field: &str| map["metadata"][field].as_str().unwrap().to_owned();
        let listed = listed.iter().map(|map| {
            format!("{}/{}@{}", text(map, "namespace"), text(map, "name"), text(map, "resourceVersion"))
        });
        assert_eq!(held, listed.collect::<Vec<_>>());
        drop(subscription);
        let received = std::mem::take(&mut *received.lock().unwrap());
        (received, watches)
    })
}

#[test]
fn an_hour_of_writes_watch_timeouts_and_resyncs_passes_at_once_and_the_same_way_for_each_seed() {
    let (received, watches) = hour(7);
    let resyncs = received.iter().filter(|line| line.contains("Resync")).count();
    assert!((6..=13).contains(&watches), "a watch lasts 5 to 10 minutes: {watches} in an hour");
    assert!(resyncs > 0 && received.len() > 2 * resyncs, "{received:#?}");
    assert_eq!(hour(7), (received.clone(), watches));
    assert_ne!(hour(8).0, received);
}

#[test]
fn an_outage_in_process_is_met_with_backoff_and_ends_with_a_true_store() {
    Runtime::simulated(7).run(|runtime| async move {
        let (mut server, client) = served(&runtime, 7).await;
        let maps = client.resource::<ConfigMap>().informer(&runtime).unwrap().start().unwrap();
        maps.synced_within(MINUTE).await.unwrap();
        server.stop();
        tokio::time::sleep(10 * MINUTE).await;
        let state = maps.state();
        assert!(matches!(state, SourceState::Backoff { .. }), "{state:?}");
        let refused = client.request(Method::GET, MAPS, None).await.unwrap_err();
        assert!(matches!(refused, Error::Transport(TransportError::Connect { .. })), "{refused}");
        server.start_again().unwrap();
        let made = client.request(Method::POST, MAPS, map("a")).await.unwrap();
        let made: ConfigMap = serde_json::from_slice(made.body()).unwrap();
        let version = made.metadata.resource_version.unwrap().parse().unwrap();
        maps.lister().wait_for(&version, MINUTE).await.unwrap();
    });
}

#[test]
fn the_deadlines_of_requests_in_process_are_met_in_simulated_time() {
    Runtime::simulated(7).run(|runtime| async move {
        let (server, client) = served(&runtime, 7).await;
        server.faults().freeze_server(true);
        let asked = runtime.now();
        let late = client.request(Method::GET, MAPS, None).await.unwrap_err();
        assert!(matches!(late, Error::Transport(TransportError::Timeout { .. })), "{late}");
        assert_eq!(runtime.now() - asked, Duration::from_secs(65), "a list");
        server.faults().freeze_server(false);
        let watch = Request::get(format!("{MAPS}?watch=1&timeoutSeconds=3600")).body(Vec::new()).unwrap();
        let mut lines = client.stream(watch, 2 * MINUTE).await.unwrap().into_body();
        let asked = runtime.now();
        let late = lines.next().await.unwrap().unwrap_err();
        assert!(matches!(late, TransportError::Timeout { .. }), "{late}");
        assert_eq!(runtime.now() - asked, 2 * MINUTE);
    });
}

#[test]
fn in_simulation_the_callers_thread_carries_single_requests_whichever_task_sends_them() {
    let called_on: Vec<ThreadId> = Runtime::simulated(7).run(|runtime| async move {
        let (server, _) = served(&runtime, 7).await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (serve, noted) = (server.service(), Arc::clone(&seen));
        let client = Client::in_process(&runtime, move |request| {
            noted.lock().unwrap().push(std::thread::current().id());
            serve(request)
        });
        client.request(Method::POST, MAPS, map("own")).await.unwrap();
        // A task that may move between threads, and one on a thread without any runtime of ours.
        let moved = client.clone();
        tokio::spawn(async move { moved.request(Method::POST, MAPS, map("task")).await })
            .await
            .unwrap()
            .unwrap();
        let elsewhere = client.clone();
        let (done, result) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || {
            let waited = futures_util::FutureExt::boxed(async move {
                elsewhere.request(Method::POST, MAPS, map("thread")).await.map(drop)
            });
            drop(done.send(tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(waited)));
        });
        result.await.unwrap().unwrap();
        thread.join().unwrap();
        seen.lock().unwrap().clone()
    });
    assert_eq!(called_on, [std::thread::current().id(); 3]);
}

#[test]
fn after_the_end_of_its_runtime_a_client_in_process_refuses_requests() {
    Runtime::simulated(7).run(|runtime| async move {
        let (server, client) = served(&runtime, 7).await;
        server.faults().freeze_server(true);
        let waiting = actix_rt::spawn({
            let client = client.clone();
            async move { client.request(Method::GET, MAPS, None).await.map(drop) }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        runtime.shutdown(MINUTE).await.unwrap();
        for late in [waiting.await.unwrap(), client.request(Method::GET, MAPS, None).await.map(drop)] {
            assert!(matches!(late, Err(Error::Stopped)), "{late:?}");
        }
    });
}
