//! An informer with its recording subscribers, and the one check that every scenario ends with.
//!
//! Answers "do all of them hold the same as the server?" Invariants:
//! 1. A recorder is subscribed before anything is listed, so every scenario checks all events from the first on.

use actix::Actor;
use actix_informer::prelude::*;
use actix_informer::testing::{Recorder, RecorderHandle};
use informer_core::reflector::SourceCounters;

use crate::api::{Api, Listing};
use crate::stage::{LONG, eventually, until};

/// An informer of pods, in whatever representation.
pub(crate) struct Followed<S: Send + Sync + 'static> {
    pub(crate) informer: Informer<S>,
    pub(crate) first: Watched<S>,
    namespaces: Vec<String>,
}

/// A subscription whose events are recorded and checked.
pub(crate) struct Watched<S: Send + Sync + 'static> {
    pub(crate) subscription: Subscription<S>,
    pub(crate) received: RecorderHandle<S>,
}

impl<S: Send + Sync + 'static> Followed<S> {
    /// Starts it; together its sources hold the pods of `namespaces`.
    pub(crate) fn start(builder: InformerBuilder<S>, namespaces: &[&str]) -> Self {
        let informer = builder.start().expect("the description is valid");
        let first = Watched::of(&informer, SubscribeOptions::new().name("first"));
        let namespaces = namespaces.iter().map(|&namespace| namespace.to_owned()).collect();
        Self { informer, first, namespaces }
    }

    /// Subscribes one more recorder, and waits until it has handled its first list.
    pub(crate) async fn watched(&self) -> Watched<S> {
        self.watched_with(SubscribeOptions::new()).await
    }

    /// The same with options.
    pub(crate) async fn watched_with(&self, options: SubscribeOptions<S>) -> Watched<S> {
        let watched = Watched::of(&self.informer, options);
        watched.subscription.synced_within(LONG).await.expect("the subscription syncs");
        watched
    }

    /// Waits until store and first subscriber agree with what the server lists now.
    pub(crate) async fn agrees(&self, api: &Api) {
        let namespaces: Vec<&str> = self.namespaces.iter().map(String::as_str).collect();
        self.holds(&api.pods(&namespaces).await).await;
    }

    /// Waits until store and first subscriber hold exactly this.
    pub(crate) async fn holds(&self, expected: &Listing) {
        eventually("the store is the server's list", || self.differs(expected)).await;
        self.first.agrees(&self.informer).await;
    }

    /// Whether the store equals this now; the error says what differs.
    pub(crate) fn differs(&self, expected: &Listing) -> Result<(), String> {
        differences(expected, &content(&self.informer.snapshot()))
    }

    /// Waits for a state.
    pub(crate) async fn state(&self, wanted: impl Fn(&SourceState) -> bool) -> SourceState {
        let waited = self.informer.wait_until(|status| wanted(&status.state()));
        match tokio::time::timeout(LONG, waited).await {
            Ok(status) => status.expect("the informer runs").state(),
            Err(_) => panic!("the state stays {:?}", self.informer.status()),
        }
    }

    /// Waits until it follows live.
    pub(crate) async fn streams(&self) {
        self.state(|state| matches!(state, SourceState::Streaming)).await;
    }

    /// Waits until it follows live and its watch has brought something: only then is the watch certainly
    /// open. The scenario must write meanwhile.
    pub(crate) async fn follows(&self) {
        self.streams().await;
        let frame = || self.informer.status().sources[0].last_frame_at;
        let before = frame();
        until("the watch brings something", || frame() > before).await;
    }

    /// What its first source has done so far.
    pub(crate) fn counters(&self) -> SourceCounters {
        self.informer.status().sources[0].counters.clone()
    }
}

impl<S: Send + Sync + 'static> Watched<S> {
    pub(crate) fn of(informer: &Informer<S>, options: SubscribeOptions<S>) -> Self {
        let (recorder, received) = Recorder::new();
        let subscription = informer.subscribe_with(options, recorder.start()).expect("the informer runs");
        Self { subscription, received }
    }

    /// Waits until its events, replayed, give what the informer has, and no event contradicts another.
    pub(crate) async fn agrees(&self, informer: &Informer<S>) {
        eventually("the subscriber's replay is the store", || {
            self.received.agrees_with(&informer.snapshot())
        })
        .await;
    }

    /// Waits until the newest line begins with this, removes the lines, and returns them.
    pub(crate) async fn received_at_last(&self, beginning: &str) -> Vec<String> {
        eventually("the event comes", || {
            let lines = self.received.lines();
            let come = lines.last().is_some_and(|line| line.starts_with(beginning));
            if come { Ok(()) } else { Err(format!("no {beginning:?} at the end of {lines:?}")) }
        })
        .await;
        self.next(0).await
    }

    /// Waits for the next lines, removes them, and returns them.
    pub(crate) async fn next(&self, count: usize) -> Vec<String> {
        eventually("the next events come", || {
            let come = self.received.len();
            if come >= count {
                Ok(())
            } else {
                Err(format!("{come} of {count}: {:?}", self.received.lines()))
            }
        })
        .await;
        let lines = self.received.lines();
        self.received.clear_lines();
        lines
    }
}

fn content<S>(snapshot: &Snapshot<S>) -> Listing {
    let entry = |object: &Object<S>| {
        let uid = object.object_uid().expect("objects of a server have uids").clone();
        (object.key().clone(), (uid, object.version().clone()))
    };
    snapshot.iter().map(entry).collect()
}

/// The difference, as a sentence.
fn differences(server: &Listing, store: &Listing) -> Result<(), String> {
    if server == store {
        return Ok(());
    }
    let missing: Vec<_> = server.iter().filter(|(key, at)| store.get(key) != Some(at)).take(3).collect();
    let extra: Vec<_> = store.iter().filter(|(key, at)| server.get(key) != Some(at)).take(3).collect();
    let (there, here) = (server.len(), store.len());
    Err(format!("{there} on the server, {here} here; only there: {missing:?}; only here: {extra:?}"))
}
