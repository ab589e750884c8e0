//! Runs and measures one client: sync, events, relist.
//!
//! Answers "what is measured, from when to when?" with the same code for both clients. Invariants:
//! 1. A measurement begins before the client, or the server, is started, and ends when the cache is complete and the
//!    client's subscriber has received the last object or event.
//! 2. Memory is read after a pause, so that freed memory has been returned to the system. The peak of the relist is
//!    counted from the memory before it.
//! 3. The cache is compared outside of every measurement.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clients::{self, Subject};
use crate::meter::{self, Cost, Meter};
use crate::server::Server;
use crate::state::State;

/// A client that fills a cache.
pub(crate) trait Cache {
    /// Waits until the first list is in the cache.
    async fn synced(&mut self) -> anyhow::Result<()>;

    /// Waits until the last event is in the cache.
    async fn caught_up(&mut self) -> anyhow::Result<()>;

    /// Waits until a second list, of this version, has replaced the cache.
    async fn relisted(&mut self, version: u64) -> anyhow::Result<()>;

    /// What is in the cache.
    fn state(&self) -> anyhow::Result<State>;
}

/// What one client has cost.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Until the first list was in the cache.
    pub(crate) sync: Cost,
    /// Resident after it, in KiB.
    pub(crate) synced_kib: u64,
    /// Until the last event was in the cache.
    pub(crate) events: Cost,
    /// Resident after it and before the relist, in KiB.
    pub(crate) steady_kib: u64,
    /// From the 410 until the cache was replaced.
    pub(crate) relist: Cost,
    /// The most that was resident meanwhile, in KiB.
    pub(crate) peak_kib: u64,
    /// What was in the cache after each of the three.
    pub(crate) states: [State; 3],
}

/// Runs one client against a fresh server and prints its report.
pub(crate) fn client(url: &str, events: u64, subject: Subject, rest: Duration) -> anyhow::Result<()> {
    // What `#[tokio::main]` makes.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let server = Server::at(url);
    let report = runtime.block_on(clients::measure(&server, events, subject, rest))?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

/// Measures the client that `start` starts; it is given the version of the last event.
pub(crate) async fn drive<C: Cache>(
    server: &Server,
    events: u64,
    rest: Duration,
    start: impl AsyncFnOnce(u64) -> anyhow::Result<C>,
) -> anyhow::Result<Report> {
    let last = server.version()? + events;

    let meter = Meter::start();
    let mut cache = start(last).await?;
    cache.synced().await?;
    let sync = meter.cost();
    tokio::time::sleep(rest).await;
    let synced_kib = meter::resident()?;
    let listed = cache.state()?;

    let meter = Meter::start();
    server.release_events()?;
    cache.caught_up().await?;
    let events = meter.cost();
    let caught_up = cache.state()?;
    tokio::time::sleep(rest).await;

    let steady_kib = meter::resident()?;
    meter::forget_peak()?;
    let meter = Meter::start();
    server.expire()?;
    cache.relisted(last + 1).await?;
    let relist = meter.cost();
    let peak_kib = meter::peak()?;
    let states = [listed, caught_up, cache.state()?];
    Ok(Report { sync, synced_kib, events, steady_kib, relist, peak_kib, states })
}
