//! Disasters of the server: restarted, killed, frozen, restored from a backup, and compacted.
//!
//! Answers "what does a disaster of the server do to an informer, while everything changes?" A disaster affects every
//! client of the server, so each runs on a server of its own.

use std::time::Duration;

use informer_core::reflector::{SourceCounters, SourceState};
use tokio::time::Instant;

use crate::relay::Relay;
use crate::server::Server;
use crate::stage::{Stage, until};
use crate::trial::{Observer, Trial};

/// The longest time from the reconnect to a restored server until the store shows its history.
const REWIND: Duration = Duration::from_secs(10);

pub(crate) async fn a_restarted_server(stage: Stage) {
    let trial = Trial::begin(stage).await;
    trial.stage.server.restart().await;
    trial.ends().await;
}

pub(crate) async fn a_server_that_is_down_for_five_seconds(stage: Stage) {
    let trial = Trial::begin(stage).await;
    trial.stage.server.kill().await;
    trial.lasts(Duration::from_secs(5)).await;
    trial.stage.server.start().await;
    trial.ends().await;
}

/// The in-memory server is a thread of this process, and no thread can be frozen from outside. Seen from an
/// informer, a relay that holds every byte is the same; here the cluster even goes on changing behind it.
pub(crate) async fn a_server_that_is_frozen_for_twenty_seconds(stage: Stage) {
    let trial = Trial::begin(stage).await;
    match &*trial.stage.server {
        Server::Memory(_) => trial.wires(Relay::hold),
        Server::Real(plane) => plane.freeze_apiserver().expect("it runs"),
    }
    trial.lasts(Duration::from_secs(20)).await;
    match &*trial.stage.server {
        Server::Memory(_) => trial.wires(Relay::mend),
        Server::Real(plane) => plane.thaw_apiserver().expect("it runs"),
    }
    trial.ends().await;
}

pub(crate) async fn ref_36_an_older_copy_of_etcd(stage: Stage) {
    let trial = Trial::begin(stage).await;
    let backup = trial.stage.server.backup().await;
    // A starting kube-apiserver writes some objects of its own: the lost history must be longer than that.
    let lost = trial.mark().await;
    trial.workload.goes_on(600).await;
    trial.arrives(&lost).await;

    trial.wires(Relay::cut);
    trial.stage.server.restore(backup).await;
    let mark = trial.mark().await;
    trial.wires(Relay::mend);
    let each = trial.observers.iter().map(|observer| async {
        let before = observer.wire.received();
        until("it reconnects", || observer.wire.received() > before).await;
        let reconnected = Instant::now();
        let lister = observer.pods.informer.lister();
        let rewound = || lister.get(&lost.key).is_none() && lister.get(&mark.key).is_some();
        until("the store goes back", rewound).await;
        let took = reconnected.elapsed();
        assert!(took <= REWIND, "{}: {took:?} after it had reconnected", observer.name);
        assert_eq!(observer.pods.counters().rewinds, 1, "{:?}", observer.pods.counters());
    });
    futures_util::future::join_all(each).await;
    trial.ends().await;
}

/// 410 inside the stream: a watch from a version that is compacted.
pub(crate) async fn versions_that_are_compacted_in_a_gap(stage: Stage) {
    let trial = Trial::begin(stage).await;
    // A watch that is up to date needs no old versions, but etcd may end one that is just catching up.
    trial.stage.server.compact(&trial.stage.api).await;
    let mark = trial.mark().await;
    trial.arrives(&mark).await;

    let before: Vec<u64> = trial.observers.iter().map(expired).collect();
    trial.wires(Relay::cut);
    trial.workload.goes_on(60).await;
    trial.stage.server.compact(&trial.stage.api).await;
    trial.wires(Relay::mend);
    for (observer, before) in trial.observers.iter().zip(before) {
        until("the expired watch is noticed", || expired(observer) > before).await;
    }
    trial.ends().await;
}

/// 410 in place of an answer: the next page of a list whose version is compacted meanwhile.
pub(crate) async fn versions_that_are_compacted_between_two_pages(stage: Stage) {
    let trial = Trial::begin(stage).await;
    let paged = trial.observers.iter().find(|observer| observer.name == "listed").expect("it is there");
    paged.wire.cut();
    trial.workload.goes_on(60).await;
    trial.stage.server.compact(&trial.stage.api).await;
    paged.wire.slow(20_000);
    // The watch is expired, and the list that follows is slow enough that the compaction comes between its
    // pages.
    paged.pods.state(|state| matches!(state, SourceState::Listing { received } if *received > 0)).await;
    let before = expired(paged);
    trial.stage.server.compact(&trial.stage.api).await;
    until("the expired page is noticed", || expired(paged) > before).await;
    paged.wire.mend();
    trial.ends().await;
}

fn expired(observer: &Observer) -> u64 {
    let SourceCounters { expired, .. } = observer.pods.counters();
    expired
}
