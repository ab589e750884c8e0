//! Measures the cost of the actors: an informer that keeps nothing and a client without actors read the same bytes.
//!
//! Answers "how much of the cost is caused by the actors?" The floor is one blocking thread: socket, chunks, lines, a
//! scan of each object's metadata, and a hash map of names to versions. The informer's representation also keeps nothing
//! of an object. Both read a watch-list and the same events. Invariants:
//! 1. Each has a server of its own; both end when they have the last version, and then have the same number of objects.
//! 2. Neither decodes objects.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use actix_informer::client::Config;
use actix_informer::prelude::*;
use actix_informer::representation::{DecodeError, Encoded, Prune, Representation};
use actix_informer::unstable::meta_scan;
use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Pod;
use memchr::memchr;

use crate::meter::Meter;
use crate::run::{Plan, Serving};
use crate::server::Server;

const LONG: Duration = Duration::from_secs(600);
const WATCH_LIST: &str = "/api/v1/pods?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&\
                          resourceVersionMatch=NotOlderThan&timeoutSeconds=600";

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

/// The client without actors.
struct Floor {
    body: BufReader<TcpStream>,
    /// What is left of the chunk under way.
    chunk: usize,
    line: Vec<u8>,
    pods: HashMap<(String, String), u64>,
}

fn floor(plan: &Plan, server: &Server) -> anyhow::Result<Costs> {
    let last = server.version()? + plan.events;
    let meter = Meter::start();
    let mut floor = Floor::watch(server)?;
    while !floor.event()?.1 {}
    let sync = meter.cost().cpu;
    ensure!(floor.pods.len() == plan.pods, "{} pods are there", floor.pods.len());
    let meter = Meter::start();
    server.release_events()?;
    while floor.event()?.0 < last {}
    Ok((sync, meter.cost().cpu))
}

impl Floor {
    fn watch(server: &Server) -> anyhow::Result<Self> {
        let address = server.url().strip_prefix("http://").context("the URL is not http")?;
        let mut stream = TcpStream::connect(address)?;
        let head =
            format!("GET {WATCH_LIST} HTTP/1.1\r\nhost: {address}\r\naccept: application/json\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        let mut body = BufReader::with_capacity(32 << 10, stream);
        let mut head = String::new();
        while head.is_empty() || head.trim_end() != "" {
            head.clear();
            ensure!(body.read_line(&mut head)? > 0, "the server has closed the connection");
        }
        Ok(Self { body, chunk: 0, line: Vec::new(), pods: HashMap::new() })
    }

    /// Reads one line; gives its version, and whether it ends the initial events.
    fn event(&mut self) -> anyhow::Result<(u64, bool)> {
        self.line.clear();
        while self.line.last() != Some(&b'\n') {
            self.piece()?;
        }
        let object = object_of(&self.line).context("an event has an object")?;
        let scan = meta_scan(object);
        let version: u64 = scan.version.as_deref().context("a version")?.parse()?;
        if let Some(name) = scan.name.as_deref().filter(|name| !name.is_empty()) {
            let namespace = scan.namespace.as_deref().unwrap_or_default();
            self.pods.insert((namespace.to_owned(), name.to_owned()), version);
            return Ok((version, false));
        }
        Ok((version, self.line.starts_with(br#"{"type":"BOOKMARK""#)))
    }

    /// Takes what has arrived of the line under way.
    fn piece(&mut self) -> anyhow::Result<()> {
        if self.chunk == 0 {
            let mut size = String::new();
            self.body.read_line(&mut size)?;
            self.chunk = usize::from_str_radix(size.trim_end(), 16).context("the size of a chunk")?;
            ensure!(self.chunk > 0, "the watch has ended");
        }
        let here = self.body.fill_buf()?;
        let here = &here[..here.len().min(self.chunk)];
        let taken = memchr(b'\n', here).map_or(here.len(), |end| end + 1);
        self.line.extend_from_slice(&here[..taken]);
        self.body.consume(taken);
        self.chunk -= taken;
        if self.chunk == 0 {
            self.body.read_exact(&mut [0; 2])?;
        }
        Ok(())
    }
}

/// The object of an event, by its place in the line.
fn object_of(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let kind = rest.iter().position(|byte| *byte == b'"')?;
    rest[kind..].strip_prefix(br#"","object":"#)
}
