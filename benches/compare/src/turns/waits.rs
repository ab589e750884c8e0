//! What an event costs while many tasks wait, and the turns in which they are woken.
//!
//! Answers "does an event cost the same with no wait and with 16,000?" and "how long is the longest turn when one event ends
//! all of them?". Half of them wait for a version, half for one object. Invariants:
//! 1. The events are the same with and without waits, each is waited for before the next, and the waits for others.
//! 2. CPU is that of the process, so what waking costs is in it.
//! 3. Two informers of one kind are measured in turns, one with the waits and one without: what a thread does between two
//!    events, sleep or spin, changes an event's cost by three times, and changes for both. Of each the least counts.

use std::time::Duration;

use actix_informer::prelude::*;
use actix_informer::testing::Server;
use anyhow::{Context, ensure};
use tokio::task::JoinSet;

use super::measure::{Longest, Turns};
use super::{LONG, version};
use crate::meter::Meter;

/// How many wait.
const WAITS: usize = 16_000;
/// How many events are measured, over how many objects.
const EVENTS: usize = 4_000;
const OBJECTS: usize = 1_000;
/// How often each informer is measured.
const ROUNDS: usize = 8;
/// A version that is reached only behind all measured events.
const LATE: usize = OBJECTS + (ROUNDS + 1) * EVENTS;
/// What an event may cost with all the waits, compared with none.
const MOST: f64 = 1.3;

/// One informer, and its server.
struct Case {
    runtime: Runtime,
    server: Server<String>,
    texts: Informer<String>,
}

impl Case {
    async fn start(turns: &Turns) -> anyhow::Result<Self> {
        let (runtime, server) = (Runtime::threads().faults(turns.faults(|_| {})).start()?, Server::new());
        (0..OBJECTS).for_each(|n| drop(server.apply(&format!("a/{n:04}"), String::new())));
        let connected = server.clone();
        let texts = Informer::builder(&runtime, "texts").source(move || connected.clone()).start()?;
        texts.synced_within(LONG).await?;
        Ok(Self { runtime, server, texts })
    }

    /// What an event costs, in microseconds of CPU.
    async fn event(&self) -> anyhow::Result<f64> {
        let (lister, meter) = (self.texts.lister(), Meter::start());
        for n in 0..EVENTS {
            let version = self.server.apply(&format!("a/{:04}", n % OBJECTS), String::new());
            lister.wait_for(&version, LONG).await?;
        }
        Ok(meter.cost().cpu * 1e6 / EVENTS as f64)
    }

    /// Tasks that wait: for a late version, or for an object that there is not yet.
    fn wait(&self) -> JoinSet<bool> {
        let mut waits = JoinSet::new();
        for n in 0..WAITS / 2 {
            let (lister, texts) = (self.texts.lister(), self.texts.clone());
            waits.spawn(async move { lister.wait_for(&version(LATE + n % 100), LONG).await.is_ok() });
            waits.spawn(async move {
                let key = ObjectKey::namespaced("b", "late");
                texts.until(&key, |text: Option<&Object<String>>| text.is_some(), LONG).await.is_ok()
            });
        }
        waits
    }
}

/// Prints what an event costs, and gives the longest turn when all waits end.
pub(super) async fn run() -> anyhow::Result<Longest> {
    let turns = Turns::default();
    let (other, case) = (Case::start(&Turns::default()).await?, Case::start(&turns).await?);
    let mut waits = case.wait();
    // Each has begun when the runtime has polled it, which it does in order.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut least = [f64::MAX; 2];
    for _ in 0..ROUNDS {
        for (least, case) in least.iter_mut().zip([&other, &case]) {
            *least = least.min(case.event().await?);
        }
    }
    let [alone, beside] = least;
    turns.take();
    while case.server.apply("b/late", String::new()) < version(LATE + 100) {}
    while let Some(ended) = waits.join_next().await {
        ensure!(ended.context("a wait panicked")?, "a wait failed");
    }
    let ratio = beside / alone;
    let verdict = if ratio > MOST { "  above the bar" } else { "" };
    println!(
        "an event: {alone:.1} us of CPU, beside {WAITS} waits {beside:.1} us, {ratio:.2} times{verdict}"
    );
    let longest = turns.take();
    for Case { runtime, texts, .. } in [other, case] {
        drop(texts);
        runtime.shutdown(LONG).await?;
    }
    Ok(longest)
}
