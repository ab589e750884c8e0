//! Measures how late other tasks on an informer's arbiter run while a large list arrives.
//!
//! Answers "can a subscribed actor share the arbiter?": a task there should run each millisecond, before, during and
//! after the list. An actor in its place would be as late as this task. The limit is 10 ms. Invariants:
//! 1. The ticks run on the arbiter of the reflector: the source starts them where it is made.
//! 2. A tick that is late delays the next one and is counted once.

use std::fmt::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_informer::client::Config;
use actix_informer::prelude::*;
use actix_informer::source::SourceSpec;
use actix_informer::work_queue::WorkQueue;
use k8s_openapi::api::core::v1::Pod;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::server::Server;

const EVERY: Duration = Duration::from_millis(1);
/// The bar.
const BAR: Duration = Duration::from_millis(10);
/// How long the ticks are watched while nothing else happens.
const CALM: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(600);
/// How many keys of a work queue are due at the same time.
const DUE_AT_ONCE: u32 = 200_000;

/// How late the ticks since the last look were.
#[derive(Debug, Clone, Default)]
struct Ticks(Arc<Mutex<Vec<Duration>>>);

/// Lists everything that the server has, twice, and prints how late the ticks were meanwhile.
pub(crate) fn run(server: &Server) -> anyhow::Result<()> {
    let main = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    print!("{}", main.block_on(measured(server))?);
    Ok(())
}

async fn measured(server: &Server) -> anyhow::Result<String> {
    let mut table = format!(
        "{:<34} {:>8} {:>10} {:>10} {:>10}\n",
        "a tick each ms on the arbiter", "ticks", "median ms", "99 % ms", "latest ms"
    );
    for watch_list in [false, true] {
        let ticks = Ticks::default();
        let runtime = Runtime::threads().start()?;
        let client = Client::new(Config::new(server.url())?)?;
        let source = client.resource::<Pod>().settings(|settings| settings.watch_list = watch_list);
        let source = source.source(&runtime)?;
        let pods = Informer::builder(&runtime, "pods").source_with(ticking(source, &ticks)).start()?;
        pods.synced_within(LONG).await?;
        let by = if watch_list { "watch-list" } else { "list" };
        row(&mut table, &format!("while {} pods come by {by}", pods.snapshot().len()), &ticks)?;
        sleep(CALM).await;
        row(&mut table, "with nothing to do", &ticks)?;
        hand_out_due(&runtime).await;
        row(&mut table, &format!("while {DUE_AT_ONCE} keys are due at once"), &ticks)?;
        pods.shutdown(LONG).await;
        runtime.shutdown(LONG).await?;
    }
    Ok(table)
}

/// Hands out keys of a work queue that are all due at the same time, to four workers.
async fn hand_out_due(runtime: &Runtime) {
    let queue = WorkQueue::builder(runtime, "due at once").start();
    let due = tokio::time::Instant::now() + CALM;
    for key in 0..DUE_AT_ONCE {
        queue.postpone(key, due.saturating_duration_since(tokio::time::Instant::now()));
    }
    let handed_out = AtomicU32::new(0);
    let worker = || async {
        while handed_out.fetch_add(1, Ordering::Relaxed) < DUE_AT_ONCE
            && let Some(item) = queue.next().await
        {
            item.done();
        }
    };
    tokio::join!(worker(), worker(), worker(), worker());
    queue.shut_down();
}

/// The same source, which starts the ticks on the arbiter where it is first made.
fn ticking(mut source: SourceSpec<Pod>, ticks: &Ticks) -> SourceSpec<Pod> {
    let (connect, unstarted) = (Arc::clone(&source.connect), Mutex::new(Some(ticks.clone())));
    source.connect = Arc::new(move || {
        if let Some(ticks) = unstarted.lock().unwrap_or_else(PoisonError::into_inner).take() {
            tokio::task::spawn_local(ticks.run());
        }
        connect()
    });
    source
}

impl Ticks {
    async fn run(self) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let due = ticks.tick().await;
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(due.elapsed());
        }
    }

    fn take(&self) -> Vec<Duration> {
        let mut late = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        late.sort_unstable();
        late
    }
}

fn row(table: &mut String, what: &str, ticks: &Ticks) -> anyhow::Result<()> {
    let late = ticks.take();
    let at = |share: usize| late.get((late.len() * share / 100).min(late.len().saturating_sub(1)));
    let ms = |late: Option<&Duration>| late.map_or(f64::NAN, |late| late.as_secs_f64() * 1e3);
    let latest = late.last().copied().unwrap_or_default();
    let verdict = if latest <= BAR { "" } else { "  above the bar of 10 ms" };
    let (ticks, median, most) = (late.len(), ms(at(50)), ms(at(99)));
    writeln!(table, "{what:<34} {ticks:>8} {median:>10.2} {most:>10.2} {:>10.2}{verdict}", ms(late.last()))?;
    Ok(())
}
