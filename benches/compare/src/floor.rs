//! Measures the cost of the actors: an informer that keeps nothing and a client without actors read the same bytes.
//!
//! Answers "how much of the cost is caused by the actors?" The floor is one blocking thread: socket, chunks, lines, a
//! scan of each object's metadata, and a hash map of names to versions. The informer's representation also keeps nothing
//! of an object. Both read a watch-list and the same events. Invariants:
//! 1. Each has a server of its own; both end when they have the last version, and then have the same number of objects.
//! 2. Neither decodes objects.

use std::time::Duration;

use actix_informer::client::Config;
use actix_informer::prelude::*;
use actix_informer::representation::{DecodeError, Encoded, Prune, Representation};
use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Pod;

use crate::clients::bare::{Bare, Told};
use crate::meter::Meter;
use crate::run::{Plan, Serving};
use crate::server::Server;

const LONG: Duration = Duration::from_secs(600);

/// CPU seconds of the first list and of the events; or what one cost, divided by what the other did.
type Costs = (f64, f64);

/// Measures both in turn, `plan.rounds` times, and prints what each costs an object and an event: medians, and of the
/// quotients of each round the lowest and the highest, too.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    ensure!(plan.rounds > 0, "nothing to measure");
    let (mut floors, mut informers, mut quotients) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        let floor = {
            let (_serving, server) = Serving::start(plan)?;
            floor(plan, &server)?
        };
        let informer = {
            let (_serving, server) = Serving::start(plan)?;
            let main = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            main.block_on(informer(plan, &server))?
        };
        quotients.push((informer.0 / floor.0, informer.1 / floor.1));
        floors.push(floor);
        informers.push(informer);
    }
    println!("{:<44} {:>14} {:>14}", "CPU us, nothing decoded", "a listed pod", "an event");
    let row = |what: &str, costs: &[Costs]| {
        let (sync, events) = (spread(costs, |cost| cost.0).1, spread(costs, |cost| cost.1).1);
        let (listed, event) = (sync * 1e6 / plan.pods as f64, events * 1e6 / plan.events as f64);
        println!("{what:<44} {listed:>14.2} {event:>14.2}");
    };
    row("floor: transport, split, scan, a map", &floors);
    row("actix-informer, keeping nothing", &informers);
    let (list, events) = (spread(&quotients, |both| both.0), spread(&quotients, |both| both.1));
    println!("{:<44} {:>14.2} {:>14.2}", "  to the floor, the median of the rounds", list.1, events.1);
    println!("{:<44} {:>14.2} {:>14.2}", "    the lowest", list.0, events.0);
    println!("{:<44} {:>14.2} {:>14.2}", "    the highest", list.2, events.2);
    Ok(())
}

/// The lowest, the median and the highest.
fn spread(costs: &[Costs], of: impl Fn(&Costs) -> f64) -> (f64, f64, f64) {
    let mut figures: Vec<f64> = costs.iter().map(of).collect();
    figures.sort_unstable_by(f64::total_cmp);
    let at = |at: usize| figures.get(at).copied().unwrap_or(f64::NAN);
    (at(0), at(figures.len() / 2), at(figures.len().saturating_sub(1)))
}

/// Keeps nothing of an object.
#[derive(Clone)]
struct Nothing;

impl Representation for Nothing {
    type Body = ();

    fn keep(&self, _object: &Encoded<'_>, _prune: &Prune) -> Result<(), DecodeError> {
        Ok(())
    }
}

async fn informer(plan: &Plan, server: &Server) -> anyhow::Result<Costs> {
    let last = server.version()? + plan.events;
    let last = ResourceVersion::from_number(last).context("a version is not zero")?;
    let meter = Meter::start();
    let runtime = Runtime::threads().start()?;
    let client = Client::new(Config::new(server.url())?)?;
    let pods = client.resource::<Pod>().keep_as(Nothing).informer(&runtime)?.start()?;
    let subscription = pods.for_each(|_| std::future::ready(()))?;
    subscription.synced_within(LONG).await?;
    let sync = meter.cost().cpu;
    ensure!(pods.snapshot().len() == plan.pods, "not every pod is there");
    let meter = Meter::start();
    server.release_events()?;
    pods.lister().wait_for(&last, LONG).await?;
    let events = meter.cost().cpu;
    ensure!(pods.shutdown(LONG).await.is_clean(), "a subscriber did not receive everything");
    runtime.shutdown(LONG).await?;
    Ok((sync, events))
}

fn floor(plan: &Plan, server: &Server) -> anyhow::Result<Costs> {
    let last = server.version()? + plan.events;
    let meter = Meter::start();
    let mut floor = Bare::watch(server.url(), Nothing)?;
    while !matches!(floor.next()?, Told::Bookmark(_)) {}
    let sync = meter.cost().cpu;
    let pods = floor.pods();
    let there = pods.lock().map_or(0, |pods| pods.len());
    ensure!(there == plan.pods, "{there} pods are there");
    let meter = Meter::start();
    server.release_events()?;
    while floor.next()? != Told::Object(last) {}
    Ok((sync, meter.cost().cpu))
}
