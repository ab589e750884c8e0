//! Prints the table: medians, ratios, and the goals.
//!
//! Answers "how do the clients compare?" It starts no process and measures nothing. Invariants:
//! 1. Every figure is the median of that figure over the rounds.
//! 2. A ratio is actix-informer to kube-rs, of the medians above it.

use std::fmt::Write as _;

use clap::ValueEnum;

use crate::clients::{By, Client, Subject};
use crate::drive::Report;
use crate::run::{Plan, Reports};

/// The columns: heading, digits behind the point, and the figure.
type Column = (&'static str, usize, fn(&Report, f64) -> f64);

const COLUMNS: [Column; 10] = [
    ("sync CPU s", 2, |report, _| report.sync.cpu),
    ("wall s", 2, |report, _| report.sync.wall),
    ("MiB synced", 0, |report, _| mib(report.synced_kib)),
    ("events CPU s", 2, |report, _| report.events.cpu),
    ("wall s", 2, |report, _| report.events.wall),
    ("events/CPU s", 0, |report, events| events / report.events.cpu),
    ("relist CPU s", 2, |report, _| report.relist.cpu),
    ("MiB before", 0, |report, _| mib(report.steady_kib)),
    ("MiB peak", 0, |report, _| mib(report.peak_kib)),
    ("peak/before", 2, |report, _| report.peak_kib as f64 / report.steady_kib as f64),
];
const SYNC_CPU: usize = 0;
const MEMORY: usize = 2;
const EVENT_RATE: usize = 5;
const PEAK: usize = 9;

/// The goals, all against kube-rs as it comes, by list.
const BAR: [(Client, &str, usize, Goal); 12] = [
    (Client::Informer, "sync CPU", SYNC_CPU, Goal::AtMost(1.0 / 3.0)),
    (Client::Informer, "memory after sync", MEMORY, Goal::AtMost(0.6)),
    (Client::Informer, "watch events per CPU second", EVENT_RATE, Goal::AtLeast(2.5)),
    (Client::Informer, "peak at a relist to steady memory, ours alone", PEAK, Goal::Alone(1.1)),
    (Client::Lazy, "sync CPU", SYNC_CPU, Goal::AtMost(1.0 / 10.0)),
    (Client::Lazy, "memory after sync", MEMORY, Goal::AtMost(1.0 / 9.0)),
    (Client::Lazy, "watch events per CPU second", EVENT_RATE, Goal::AtLeast(12.0)),
    (Client::Lazy, "peak at a relist to steady memory, ours alone", PEAK, Goal::Alone(1.1)),
    (Client::Packed, "sync CPU", SYNC_CPU, Goal::AtMost(1.0 / 6.0)),
    (Client::Packed, "memory after sync", MEMORY, Goal::AtMost(1.0 / 60.0)),
    (Client::Packed, "watch events per CPU second", EVENT_RATE, Goal::AtLeast(8.0)),
    (Client::Packed, "peak at a relist to steady memory, ours alone", PEAK, Goal::Alone(1.1)),
];

/// What a ratio should be.
enum Goal {
    AtMost(f64),
    AtLeast(f64),
    /// No ratio to theirs: our own figure, at most.
    Alone(f64),
}

type Figures = [f64; COLUMNS.len()];

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

/// The table of these reports.
pub(crate) fn table(plan: &Plan, reports: &Reports) -> String {
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{}", line.trim_end()).expect("a String takes every text");
    line(format!(
        "{} pods of 8.9 KB, {} watch events over loopback; medians of {} rounds; CPU of the client's process",
        plan.pods, plan.events, plan.rounds
    ));
    let headings = COLUMNS.map(|(heading, ..)| format!("{heading:>13}")).concat();
    line(format!("{:<64}{headings}", ""));
    for &by in By::value_variants() {
        let figures = |client| medians(plan, reports, Subject { client, by });
        for &client in Client::value_variants() {
            line(row(&format!("{client}, {by}"), &figures(client), |column| COLUMNS[column].1));
        }
        for ours in [Client::Informer, Client::Lazy, Client::Packed] {
            for client in [Client::Kube, Client::KubeCleared] {
                let ratios = ratios(&figures(ours), &figures(client));
                line(row(&format!("  {ours} to {client}"), &ratios, |_| 2));
            }
        }
    }
    let theirs = medians(plan, reports, Subject { client: Client::Kube, by: By::List });
    for (client, what, column, goal) in BAR {
        let ours = medians(plan, reports, Subject { client, by: By::List });
        line(verdict(&format!("{client}: {what}"), &goal, ours[column], theirs[column]));
    }
    text
}

fn verdict(what: &str, goal: &Goal, ours: f64, theirs: f64) -> String {
    let (bar, reached, holds) = match goal {
        Goal::AtMost(bar) => (format!("at most {bar:.2}"), ours / theirs, ours / theirs <= *bar),
        Goal::AtLeast(bar) => (format!("at least {bar:.2}"), ours / theirs, ours / theirs >= *bar),
        Goal::Alone(bar) => (format!("at most {bar:.2}"), ours, ours <= *bar),
    };
    let holds = if holds { "reached" } else { "missed" };
    format!("{what}: {reached:.2}, {bar} wanted: {holds}")
}

fn row(name: &str, figures: &Figures, digits: impl Fn(usize) -> usize) -> String {
    let figures = figures.iter().enumerate();
    let cells: String = figures.map(|(column, figure)| format!("{figure:>13.*}", digits(column))).collect();
    format!("{name:<64}{cells}")
}

fn medians(plan: &Plan, reports: &Reports, subject: Subject) -> Figures {
    let reports = reports.get(&subject).map_or(&[][..], Vec::as_slice);
    COLUMNS.map(|(.., figure)| {
        let mut figures: Vec<f64> = reports.iter().map(|report| figure(report, plan.events as f64)).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
    })
}

fn ratios(ours: &Figures, theirs: &Figures) -> Figures {
    std::array::from_fn(|column| ours[column] / theirs[column])
}
