//! What happens to one client, from its start until its end, and what each stretch has cost.
//!
//! Answers "what is measured, and when?" Invariants:
//! 1. A stretch ends for the wall when everything is in order, as the server's store says. What it cost, and its
//!    reconciles, are counted until the client has ended no reconcile for some time after that: late and needless ones
//!    count.
//! 2. A client that does not bring everything into order within the limit has that limit as its time, and the rest of the
//!    course goes on.
//! 3. What a client says of itself is its processor time, its memory and its number of reconciles, and nothing else.
//!
//! Read next: `server.rs`, which changes and checks; `table.rs`, which shows the figures.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use super::server::{Order, Serving};
use super::subject::{Figures, LONG, Subject};
use super::{Client, Plan, name};
use crate::meter::Meter;

const LOOK: Duration = Duration::from_millis(100);
/// How long the server is away when it is restarted.
const DOWN: Duration = Duration::from_secs(1);

/// What a stretch has cost.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Stretch {
    /// Seconds until everything was in order.
    pub(super) wall: f64,
    /// Processor seconds of the client until it was quiet.
    pub(super) cpu: f64,
    /// Processor seconds of the server meanwhile.
    pub(super) server_cpu: f64,
    /// Reconciles until it was quiet.
    pub(super) reconciles: f64,
    /// Failed ones among them.
    pub(super) errors: f64,
}

/// What one client has cost.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Report {
    /// From the start of its process until all objects had their children.
    pub(super) first: Stretch,
    /// Resident then, in KiB.
    pub(super) resident_kib: u64,
    /// Without the pages of files, which are the program, in KiB.
    pub(super) anonymous_kib: u64,
    /// The most until then.
    pub(super) peak_kib: u64,
    /// Processor milliseconds a second while nothing changes.
    pub(super) idle_cpu: f64,
    /// Changes at the rate of the plan.
    pub(super) changes: Stretch,
    /// Seconds in which the changes were made: more than planned if the machine was too slow.
    pub(super) changing: f64,
    /// Children that somebody deletes.
    pub(super) deleted: Stretch,
    /// A 410 for each watch, and a change right after.
    pub(super) gone: Stretch,
    /// The server is away for a second; then a change.
    pub(super) restart: Stretch,
    /// The most resident at the end, in KiB.
    pub(super) last_peak_kib: u64,
}

/// Runs one client through all stretches.
pub(super) fn drive(plan: &Plan, client: Client, go: Option<&str>) -> anyhow::Result<Report> {
    let mut course = Course {
        serving: Serving::start(plan)?,
        subject: None,
        quiet: plan.quiet(),
        limit: Duration::from_secs(plan.limit_seconds),
    };
    let mut command = command(plan, client, go, course.serving.url())?;

    let first = course.stretch("first convergence", |course| {
        course.subject = Some(Subject::start(&mut command)?);
        Ok(())
    })?;
    let mut report = Report { first, ..Report::default() };
    let at_rest = course.report()?;
    (report.resident_kib, report.peak_kib) = (at_rest.resident_kib, at_rest.peak_kib);
    report.anonymous_kib = at_rest.anonymous_kib;

    rest(Duration::from_secs(plan.idle_seconds));
    let idle = course.report()?;
    report.idle_cpu = (idle.cpu_ms - at_rest.cpu_ms) / plan.idle_seconds.max(1) as f64;

    let (count, per_second) = (plan.changes(), plan.changes_per_second);
    report.changes = course.stretch("changes", |course| {
        let meter = Meter::start();
        course.serving.order(Order::Change { count, per_second })?;
        report.changing = meter.cost().wall;
        Ok(())
    })?;

    report.deleted =
        course.stretch("deleted children", |course| course.order(Order::Delete { count: plan.deleted() }))?;

    report.gone = course.stretch("a 410 of all watches", |course| {
        course.order(Order::Expire)?;
        course.order(Order::Change { count: 1, per_second: 0 })
    })?;

    report.restart = course.stretch("a restart of the server", |course| {
        course.order(Order::Restart { down_ms: DOWN.as_millis().try_into()? })?;
        course.order(Order::Change { count: 1, per_second: 0 })
    })?;
    report.last_peak_kib = course.report()?.peak_kib;
    Ok(report)
}

fn command(plan: &Plan, client: Client, go: Option<&str>, url: &str) -> anyhow::Result<Command> {
    let workers = plan.workers.to_string();
    let mut command = if client == Client::Go {
        let mut command = Command::new(go.context("INFORMER_GO_CLIENTS names no program")?);
        command.arg("controller-bench");
        command
    } else {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["controller-client", "--client", &name(client)]);
        command
    };
    command.args(["--server", url, "--workers", &workers]);
    Ok(command)
}

#[expect(clippy::disallowed_methods, reason = "the main thread of a program that only waits")]
fn rest(time: Duration) {
    std::thread::sleep(time);
}

/// A server and its client.
struct Course {
    subject: Option<Subject>,
    serving: Serving,
    quiet: Duration,
    limit: Duration,
}

impl Course {
    /// Does this, and waits until everything is in order and the client is quiet.
    fn stretch(
        &mut self,
        what: &str,
        begin: impl FnOnce(&mut Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<Stretch> {
        eprintln!("  {what}");
        self.measured(begin).with_context(|| what.to_owned())
    }

    fn measured(&mut self, begin: impl FnOnce(&mut Self) -> anyhow::Result<()>) -> anyhow::Result<Stretch> {
        let (before, server_before) = (self.report()?, self.serving.order(Order::Report)?.cpu);
        let meter = Meter::start();
        begin(self)?;
        let done = self.serving.order(Order::Converge { limit_ms: self.limit.as_millis().try_into()? })?;
        let wall = meter.cost().wall - done.checked;
        let after = self.quiet()?;
        let server_cpu = self.serving.order(Order::Report)?.cpu - server_before;
        Ok(Stretch {
            wall,
            cpu: (after.cpu_ms - before.cpu_ms) / 1_000.0,
            server_cpu,
            reconciles: (after.reconciles - before.reconciles) as f64,
            errors: (after.errors - before.errors) as f64,
        })
    }

    fn order(&mut self, order: Order) -> anyhow::Result<()> {
        self.serving.order(order).map(drop)
    }

    /// Nothing before the client is started.
    fn report(&mut self) -> anyhow::Result<Figures> {
        self.subject.as_mut().map_or_else(|| Ok(Figures::default()), Subject::report)
    }

    /// Waits until no reconcile has ended for some time.
    fn quiet(&mut self) -> anyhow::Result<Figures> {
        let (meter, mut since) = (Meter::start(), 0.0);
        let mut last = self.report()?;
        while meter.cost().wall - since < self.quiet.as_secs_f64() {
            ensure!(meter.cost().wall < LONG.as_secs_f64(), "the client reconciles without end");
            rest(LOOK);
            let figures = self.report()?;
            if figures.reconciles != last.reconciles {
                since = meter.cost().wall;
            }
            last = figures;
        }
        Ok(last)
    }
}
