//! Measures single requests: a typed get of one pod, by actix-informer's `Api` and by kube-rs's.
//!
//! Answers "what does a request cost, and how long does it take?" with one request at a time and with 32 tasks that each
//! send one after another. Invariants:
//! 1. Both ask the same server, in this process, on one multi-threaded tokio runtime, in alternating stretches: what is
//!    compared ran one right after the other. The server is another process.
//! 2. Every answer is decoded to a `Pod` and compared with the first one.
//! 3. Processor time is that of the whole process, with the client's own threads.
//!
//! Read next: `table.rs` for the other comparisons.

use std::future::Future;
use std::time::Instant;

use anyhow::ensure;
use k8s_openapi::api::core::v1::Pod;

use crate::meter::Meter;
use crate::run::{Plan, Serving};
use crate::server::Server;

const IN_FLIGHT: [usize; 2] = [1, 32];
/// Before anything is measured: connections and buffers are made.
const WARM_UP: usize = 200;

/// Microseconds of one stretch.
#[derive(Debug, Clone, Copy)]
struct Figures {
    cpu: f64,
    median: f64,
    high: f64,
}

/// Measures `rounds` pairs of stretches of so many requests, and prints their medians.
pub(crate) fn run(requests: usize, rounds: usize) -> anyhow::Result<()> {
    ensure!(requests > 0 && rounds > 0, "nothing to compare");
    let (_serving, server) = Serving::start(&Plan::of(1, 1))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(compare(&server, requests, rounds))
}

async fn compare(server: &Server, requests: usize, rounds: usize) -> anyhow::Result<()> {
    let config = actix_informer::client::Config::new(server.url())?;
    let ours = actix_informer::client::Client::new(config)?.api::<Pod>().namespaced("a");
    let theirs = kube_client::Client::try_from(kube_client::Config::new(server.url().parse()?))?;
    let theirs = kube_client::Api::<Pod>::namespaced(theirs, "a");
    let expected = theirs.get("b").await?;
    let by_us = move || {
        let ours = ours.clone();
        async move { anyhow::Ok(ours.get("b").await?) }
    };
    let by_them = move || {
        let theirs = theirs.clone();
        async move { anyhow::Ok(theirs.get("b").await?) }
    };
    println!(
        "{:<10} {:>9} {:>16} {:>12} {:>10}   medians of {rounds} rounds of {requests} requests, us",
        "client", "in flight", "CPU a request", "median", "p99"
    );
    for in_flight in IN_FLIGHT {
        stretch(WARM_UP, in_flight, &expected, &by_us).await?;
        stretch(WARM_UP, in_flight, &expected, &by_them).await?;
        let (mut us, mut them) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            // Who is first changes from round to round.
            if round % 2 == 0 {
                us.push(stretch(requests, in_flight, &expected, &by_us).await?);
                them.push(stretch(requests, in_flight, &expected, &by_them).await?);
            } else {
                them.push(stretch(requests, in_flight, &expected, &by_them).await?);
                us.push(stretch(requests, in_flight, &expected, &by_us).await?);
            }
        }
        print("informer", in_flight, &us);
        print("kube-rs", in_flight, &them);
        let of = |figure: fn(&Figures) -> f64| {
            median(us.iter().zip(&them).map(|(us, them)| figure(us) / figure(them)).collect())
        };
        let (cpu, mid, high) = (of(|all| all.cpu), of(|all| all.median), of(|all| all.high));
        println!("{:<10} {in_flight:>9} {cpu:>16.2} {mid:>12.2} {high:>10.2}", "  ratio");
    }
    Ok(())
}

/// Sends so many requests, by as many tasks as shall be in flight.
async fn stretch<F>(
    requests: usize,
    in_flight: usize,
    expected: &Pod,
    get: &(impl Fn() -> F + Clone + Send + 'static),
) -> anyhow::Result<Figures>
where
    F: Future<Output = anyhow::Result<Pod>> + Send,
{
    let meter = Meter::start();
    let task = || {
        let (get, expected) = (get.clone(), expected.clone());
        tokio::spawn(async move {
            let mut took = Vec::with_capacity(requests / in_flight);
            for _ in 0..requests / in_flight {
                let began = now();
                let pod = get().await?;
                took.push(began.elapsed());
                ensure!(pod == expected, "another pod was answered");
            }
            anyhow::Ok(took)
        })
    };
    let tasks: Vec<_> = (0..in_flight).map(|_| task()).collect();
    let mut took = Vec::new();
    for task in tasks {
        took.extend(task.await??);
    }
    let cpu = meter.cost().cpu * 1e6 / took.len() as f64;
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    Ok(Figures { cpu, median: at(0.5), high: at(0.99) })
}

#[expect(clippy::disallowed_methods, reason = "it measures time on the wall")]
fn now() -> Instant {
    Instant::now()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn print(client: &str, in_flight: usize, all: &[Figures]) {
    let of = |figure: fn(&Figures) -> f64| median(all.iter().map(figure).collect());
    let (cpu, mid, high) = (of(|all| all.cpu), of(|all| all.median), of(|all| all.high));
    println!("{client:<10} {in_flight:>9} {cpu:>16.1} {mid:>12.1} {high:>10.1}");
}
