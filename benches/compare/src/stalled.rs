//! Measures how one subscriber that is stalled forever affects nine others.
//!
//! Answers "does a stalled subscriber slow down the others, or cost memory?" Each case is an informer with ten subscribed
//! closures; in the second case one of them never returns from its first event. Invariants:
//! 1. A case ends when every subscriber that is not stalled has received the last event.
//! 2. Both cases get the same events from a server in a process of its own.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix_informer::client::Config;
use actix_informer::prelude::*;
use anyhow::Context;
use futures_util::future::Either;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;

use crate::meter::{self, Cost, Meter};
use crate::run::{Plan, Serving};
use crate::server::Server;

const SUBSCRIBERS: usize = 10;
const LONG: Duration = Duration::from_secs(600);

/// What one case has cost.
struct Case {
    events: Cost,
    /// To the subscribers that are not stalled.
    delivered: u64,
    /// The most that was resident, above what was after the first list.
    grown_kib: u64,
}

/// Runs both cases and prints them.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    let main = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!(
        "{:<28} {:>8} {:>8} {:>10} {:>12} {:>10}",
        "ten subscribers", "CPU s", "wall s", "delivered", "delivered/s", "MiB grown"
    );
    for (name, stalled) in [("none stalled", 0), ("one stalled for ever", 1)] {
        let (_serving, server) = Serving::start(plan)?;
        let case = main.block_on(measured(&server, plan, stalled)).context(name)?;
        let Case { events: Cost { cpu, wall, .. }, delivered, grown_kib } = case;
        let (rate, grown) = (delivered as f64 / wall, grown_kib >> 10);
        println!("{name:<28} {cpu:>8.2} {wall:>8.2} {delivered:>10} {rate:>12.0} {grown:>10}");
    }
    Ok(())
}

async fn measured(server: &Server, plan: &Plan, stalled: usize) -> anyhow::Result<Case> {
    let last = server.version()? + plan.events;
    let last = ResourceVersion::from_number(last).context("a version is not zero")?;
    let runtime = Runtime::threads().start()?;
    let client = Client::new(Config::new(server.url())?)?;
    let pods = client.resource::<Pod>().informer(&runtime)?.start()?;
    let well: Vec<_> =
        (stalled..SUBSCRIBERS).map(|_| Counting::start(&pods, &last)).collect::<anyhow::Result<_>>()?;
    let stuck: Vec<_> = (0..stalled).map(|_| stuck(&pods)).collect::<anyhow::Result<_>>()?;
    for subscriber in &well {
        subscriber.subscription.synced_within(LONG).await?;
    }
    let synced_kib = meter::resident()?;
    meter::forget_peak()?;
    let meter = Meter::start();
    server.release_events()?;
    for subscriber in &well {
        subscriber.last.clone().wait_for(|has_come| *has_come).await?;
    }
    let (events, grown_kib) = (meter.cost(), meter::peak()?.saturating_sub(synced_kib));
    let delivered = well.iter().map(|subscriber| subscriber.count.load(Ordering::Relaxed)).sum();
    drop((well, stuck));
    pods.shutdown(Duration::from_secs(1)).await;
    runtime.shutdown(Duration::from_secs(1)).await?;
    Ok(Case { events, delivered, grown_kib })
}

/// A subscriber that handles each event at once and counts it.
struct Counting {
    subscription: Subscription<Pod>,
    last: watch::Receiver<bool>,
    count: Arc<AtomicU64>,
}

impl Counting {
    fn start(pods: &Informer<Pod>, last: &ResourceVersion) -> anyhow::Result<Self> {
        let (sender, last_has_come) = watch::channel(false);
        let (awaited, count) = (last.clone(), Arc::<AtomicU64>::default());
        let counted = Arc::clone(&count);
        let subscription = pods.for_each(move |notify| {
            if let Notify::Updated { object, .. } = notify {
                counted.fetch_add(1, Ordering::Relaxed);
                if *object.version() == awaited {
                    sender.send_replace(true);
                }
            }
            std::future::ready(())
        })?;
        Ok(Self { subscription, last: last_has_come, count })
    }
}

/// A subscriber that does not return from its first change.
fn stuck(pods: &Informer<Pod>) -> anyhow::Result<Subscription<Pod>> {
    Ok(pods.for_each(|notify| match notify {
        Notify::Updated { .. } => Either::Left(pending()),
        _ => Either::Right(std::future::ready(())),
    })?)
}
