//! Prints the table of the controllers: medians, and the goals.
//!
//! Answers "how do the controllers compare?" It measures nothing. Invariant:
//! 1. Every figure is the median of that figure over the rounds.
//! 2. A ratio is the median of the ratios of each round, with the least and the greatest of them.
//!
//! Read next: `drive.rs`, what is measured.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::drive::Report;
use super::{Client, Plan, name};

/// The reports of each client, one for each round.
pub(super) type Reports = BTreeMap<Client, Vec<Report>>;

/// A row: what it says, digits behind the point, and the figure.
type Row = (&'static str, usize, fn(&Report, &Plan) -> f64);

const ROWS: [Row; 25] = [
    ("first convergence: wall s", 2, |report, _| report.first.wall),
    ("  CPU s", 2, |report, _| report.first.cpu),
    ("  CPU us an object", 0, |report, plan| report.first.cpu * 1e6 / plan.objects as f64),
    ("  reconciles an object", 2, |report, plan| report.first.reconciles / plan.objects as f64),
    ("  CPU of the server s", 2, |report, _| report.first.server_cpu),
    ("  MiB resident after it", 1, |report, _| mib(report.resident_kib)),
    ("  MiB of it no file's", 1, |report, _| mib(report.anonymous_kib)),
    ("  MiB peak until then", 1, |report, _| mib(report.peak_kib)),
    ("at rest: CPU ms/s", 2, |report, _| report.idle_cpu),
    ("changes: made a second", 0, |report, plan| plan.changes() as f64 / report.changing),
    ("  wall s until in order", 2, |report, _| report.changes.wall),
    ("  CPU us a change", 0, |report, plan| report.changes.cpu * 1e6 / plan.changes() as f64),
    ("  reconciles a change", 2, |report, plan| report.changes.reconciles / plan.changes() as f64),
    ("  reconciles a second", 0, |report, _| report.changes.reconciles / report.changes.wall),
    ("  CPU of the server s", 2, |report, _| report.changes.server_cpu),
    ("deleted children: wall s", 3, |report, _| report.deleted.wall),
    ("  CPU us a child", 0, |report, plan| report.deleted.cpu * 1e6 / plan.deleted().max(1) as f64),
    ("  reconciles a child", 2, |report, plan| report.deleted.reconciles / plan.deleted().max(1) as f64),
    ("410 of all watches: wall s", 3, |report, _| report.gone.wall),
    ("  CPU s", 3, |report, _| report.gone.cpu),
    ("  reconciles", 0, |report, _| report.gone.reconciles),
    ("server restart: wall s", 3, |report, _| report.restart.wall),
    ("  CPU s", 3, |report, _| report.restart.cpu),
    ("  reconciles", 0, |report, _| report.restart.reconciles),
    ("MiB peak until the end", 1, |report, _| mib(report.last_peak_kib)),
];

/// Who is compared: as both come, with what both documentations advise, and with what only ours has.
const PAIRS: [(Client, Client); 6] = [
    (Client::Informer, Client::Kube),
    (Client::InformerLazy, Client::Kube),
    (Client::InformerTuned, Client::Kube),
    (Client::InformerTuned, Client::KubeTuned),
    (Client::InformerChildren, Client::Kube),
    (Client::InformerChildren, Client::KubeTuned),
];

/// The goals, to a client of kube-rs: the row, and the most that the ratio may be.
const GOALS: [(usize, f64); 6] = [(1, 0.5), (3, 1.0), (5, 1.0 / 3.0), (6, 1.0 / 3.0), (11, 0.5), (12, 1.0)];

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

/// The table of these reports.
pub(super) fn table(plan: &Plan, reports: &Reports) -> String {
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{}", line.trim_end()).expect("a String takes every text");
    line(format!(
        "{} objects with 3 children, {} changes at {} a second, {} workers, {}; medians of {} rounds",
        plan.objects,
        plan.changes(),
        plan.changes_per_second,
        plan.workers,
        crate::ALLOCATOR_NAME,
        plan.rounds
    ));
    let headings: String = reports.keys().map(|client| format!("{:>18}", name(*client))).collect();
    line(format!("{:<28}{headings}", ""));
    for row @ (what, digits, _) in &ROWS {
        let figures = reports.values().map(|reports| median(plan, row, reports));
        let cells: String = figures.map(|figure| format!("{figure:>18.*}", *digits)).collect();
        line(format!("{what:<28}{cells}"));
    }
    let errors = reports.values().map(|reports| reports.iter().map(failed).fold(0.0, f64::max));
    line(format!(
        "{:<28}{}",
        "most failed in a round",
        errors.map(|most| format!("{most:>18.0}")).collect::<String>()
    ));
    for (ours, theirs) in PAIRS {
        let (Some(our), Some(their)) = (reports.get(&ours), reports.get(&theirs)) else { continue };
        for (row, most) in GOALS {
            let figure = ROWS[row].2;
            let pairs = our.iter().zip(their);
            let ratios = sorted(pairs.map(|(our, their)| figure(our, plan) / figure(their, plan)));
            let (Some(least), Some(greatest), ratio) = (ratios.first(), ratios.last(), middle(&ratios))
            else {
                continue;
            };
            let reached = if ratio <= most { "reached" } else { "missed" };
            let (ours, theirs, what) = (name(ours), name(theirs), full_name(row));
            line(format!(
                "{ours} to {theirs}, {what}: {ratio:.2} ({least:.2} to {greatest:.2}), at most {most:.2} wanted: {reached}"
            ));
        }
    }
    text
}

/// The row with its stretch.
fn full_name(row: usize) -> String {
    let what = ROWS[row].0;
    let stretch = ROWS[..row].iter().rev().find_map(|row| row.0.split_once(": ")).map(|(stretch, _)| stretch);
    match (what.strip_prefix("  "), stretch) {
        (Some(what), Some(stretch)) => format!("{stretch}, {what}"),
        _ => what.to_owned(),
    }
}

fn failed(report: &Report) -> f64 {
    let Report { first, changes, deleted, gone, restart, .. } = report;
    [first, changes, deleted, gone, restart].iter().map(|stretch| stretch.errors).sum()
}

fn median(plan: &Plan, (_, _, figure): &Row, reports: &[Report]) -> f64 {
    middle(&sorted(reports.iter().map(|report| figure(report, plan))))
}

fn sorted(figures: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures
}

fn middle(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
