//! Fifty requests a second and two informers, while something is changed each second.
//!
//! Answers "does any request fail, is any event lost, is any watch away for longer than one reconnect?" Invariants:
//! 1. It lasts ten seconds, or as many as `INFORMER_ROTATION_SECONDS` says.
//! 2. An object is created with every fifth request; each informer must report each of them once, without a failure and
//!    without a second list.

use std::time::Duration;

use actix::Actor as _;
use actix_informer::client::Client;
use actix_informer::prelude::*;
use actix_informer::testing::{Recorder, RecorderHandle};
use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

const REQUESTS_A_SECOND: u32 = 50;
const REQUESTS_AN_OBJECT: u32 = 5;
/// A limit that a healthy wait never comes near.
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn seconds() -> u32 {
    let chosen = std::env::var("INFORMER_ROTATION_SECONDS").ok();
    chosen.map_or(10, |seconds| seconds.parse().expect("INFORMER_ROTATION_SECONDS is a number of seconds"))
}

/// Sends requests by turns through `clients`, follows the config maps of `default` with each of `followers`, creates
/// objects with `create` and calls `rotate` each second. Panics if anything fails or is lost.
pub(crate) async fn under_load(
    clients: &[Client],
    followers: [Client; 2],
    create: impl Fn(String) + Clone + Send + 'static,
    rotate: impl Fn(u32) + Clone + Send + 'static,
) {
    let runtime = Runtime::threads().start().expect("threads");
    let followed: Vec<_> = followers.iter().map(|client| follow(&runtime, client)).collect();
    for (informer, ..) in &followed {
        informer.synced_within(LIMIT).await.expect("the first list comes");
    }
    let total = seconds() * REQUESTS_A_SECOND;
    let mut ticks = interval(Duration::from_secs(1) / REQUESTS_A_SECOND);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut requests, mut changes) = (JoinSet::new(), JoinSet::new());
    for (number, client) in (0..total).zip(clients.iter().cycle()) {
        ticks.tick().await;
        if number % REQUESTS_A_SECOND == 0 {
            let rotate = rotate.clone();
            changes.spawn_blocking(move || rotate(number / REQUESTS_A_SECOND));
        }
        if number % REQUESTS_AN_OBJECT == 0 {
            let create = create.clone();
            changes.spawn_blocking(move || create(format!("made-{number}")));
        }
        let client = client.clone();
        requests.spawn(async move {
            let path = "/api/v1/namespaces/default/configmaps?limit=1";
            client
                .request(Method::GET, path, None)
                .await
                .map(drop)
                .map_err(|error| format!("{number}: {error}"))
        });
    }
    while let Some(done) = changes.join_next().await {
        done.expect("the change is made");
    }
    let failed: Vec<_> = requests.join_all().await.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{} of {total} requests failed, first {:?}", failed.len(), failed.first());
    for (informer, received, _subscription) in &followed {
        has_everything(informer, received, total / REQUESTS_AN_OBJECT).await;
    }
    runtime.shutdown(LIMIT).await.expect("it ends");
}

type Followed = (Informer<ConfigMap>, RecorderHandle<ConfigMap>, Subscription<ConfigMap>);

fn follow(runtime: &Runtime, client: &Client) -> Followed {
    let source = client.resource::<ConfigMap>().namespace("default");
    let informer = source.informer(runtime).expect("a namespace").start().expect("a description");
    let (recorder, received) = Recorder::new();
    let subscription = informer.subscribe_with(SubscribeOptions::new(), recorder.start()).expect("it runs");
    (informer, received, subscription)
}

async fn has_everything(informer: &Informer<ConfigMap>, received: &RecorderHandle<ConfigMap>, count: u32) {
    let made = || {
        let lines = received.lines();
        lines.iter().filter(|line| line.starts_with("Added") && line.contains("default/made-")).count()
    };
    let count = count as usize;
    let all_there = async {
        while made() < count {
            tokio::task::yield_now().await;
        }
    };
    let in_time = tokio::time::timeout(LIMIT, all_there).await;
    let counters = informer.status().sources[0].counters.clone();
    assert!(in_time.is_ok(), "{} of {count} events came: {counters:?}", made());
    assert_eq!(made(), count, "no event comes twice");
    received.agrees_with(&informer.snapshot()).expect("the events add up to the store");
    assert_eq!((counters.failures, counters.relists), (0, 0), "{counters:?}");
}
