//! Runs and measures one client: sync, events, lone events, relist.
//!
//! Answers "what is measured, from when to when?" with the same code for each client that is written in Rust. Invariants:
//! 1. A measurement begins before the client, or the server, is started, and ends when the cache is complete and the
//!    client's subscriber has received the last object or event.
//! 2. Memory is read after a pause, so that freed memory has been returned to the system. The peak of the relist is
//!    counted from the memory before it.
//! 3. After each stretch the cache is compared with the server, outside of every measurement.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use crate::clients::{self, Subject};
use crate::meter::{self, Cost, Meter};
use crate::server::Server;
use crate::state::State;

/// How many events come alone, how many of them in a second, and which part of the objects a relist finds changed.
pub(crate) const LONE: u64 = 250;
pub(crate) const LONE_RATE: u64 = 50;
pub(crate) const CHANGED: usize = 100;

/// How much each stretch has.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Stages {
    /// Changes as fast as they are read.
    #[arg(long)]
    pub(crate) events: u64,
    /// Changes that come alone.
    #[arg(long)]
    pub(crate) lone: u64,
    /// Objects that a second list finds changed.
    #[arg(long)]
    pub(crate) changed: u64,
    /// How long a client rests before its memory is read.
    #[arg(long, default_value_t = 1_000)]
    pub(crate) settle_ms: u64,
}

/// A client that fills a cache.
pub(crate) trait Cache {
    /// Waits until the first list is in the cache.
    async fn synced(&mut self) -> anyhow::Result<()>;

    /// Waits until the last event of a stretch is in the cache: that of this version.
    async fn caught_up(&mut self, end: u64) -> anyhow::Result<()>;

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
    /// Until the last lone event was in the cache.
    pub(crate) lone: Cost,
    /// Resident after it and before the relist, in KiB.
    pub(crate) steady_kib: u64,
    /// From the 410 until the cache was replaced.
    pub(crate) relist: Cost,
    /// The most that was resident meanwhile, in KiB.
    pub(crate) peak_kib: u64,
}

/// Runs one client against a fresh server and prints its report.
pub(crate) fn client(url: &str, stages: Stages, subject: Subject) -> anyhow::Result<()> {
    // What `#[tokio::main]` makes.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let server = Server::at(url);
    let report = runtime.block_on(clients::measure(&server, stages, subject))?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

/// Measures the client that `start` starts; it is given the versions with which the two stretches of events end.
pub(crate) async fn drive<C: Cache>(
    server: &Server,
    stages: Stages,
    start: impl AsyncFnOnce([u64; 2]) -> anyhow::Result<C>,
) -> anyhow::Result<Report> {
    let rest = Duration::from_millis(stages.settle_ms);
    let last = server.version()? + stages.events;
    let ends = [last, last + stages.lone];

    let meter = Meter::start();
    let mut cache = start(ends).await?;
    cache.synced().await?;
    let sync = meter.cost();
    tokio::time::sleep(rest).await;
    let synced_kib = meter::resident()?;
    compare(&cache, server).context("after the first list")?;

    let meter = Meter::start();
    server.release(stages.events)?;
    cache.caught_up(ends[0]).await?;
    let events = meter.cost();
    compare(&cache, server).context("after the events")?;

    let meter = Meter::start();
    server.release_paced(Some(stages.lone), LONE_RATE)?;
    cache.caught_up(ends[1]).await?;
    let lone = meter.cost();
    compare(&cache, server).context("after the lone events")?;
    tokio::time::sleep(rest).await;

    let steady_kib = meter::resident()?;
    meter::forget_peak()?;
    let meter = Meter::start();
    server.expire(stages.changed)?;
    cache.relisted(ends[1] + stages.changed + 1).await?;
    let relist = meter.cost();
    let peak_kib = meter::peak()?;
    compare(&cache, server).context("after the second list")?;
    Ok(Report { sync, synced_kib, events, lone, steady_kib, relist, peak_kib })
}

fn compare(cache: &impl Cache, server: &Server) -> anyhow::Result<()> {
    let (ours, theirs) = (cache.state()?, server.state()?);
    ensure!(ours == theirs, "the cache is not the server's state: {ours:?}, {theirs:?}");
    Ok(())
}
