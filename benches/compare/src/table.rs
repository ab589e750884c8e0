//! Prints the table: medians, ratios, and the goals.
//!
//! Answers "how do the clients compare?" It starts no process and measures nothing. Invariants:
//! 1. Every figure is the median of that figure over the rounds.
//! 2. A ratio is of actix-informer to another client, of the medians above it.
//! 3. The bare clients come first: no goal is below 1.2 times what the bare client of the form reaches.

use std::fmt::Write as _;

use clap::ValueEnum;

use crate::clients::{By, Client, Subject};
use crate::drive::{LONE, LONE_RATE, Report};
use crate::run::{Plan, Reports};

/// The columns: heading, digits behind the point, and the figure.
type Column = (&'static str, usize, fn(&Report, f64) -> f64);

const COLUMNS: [Column; 11] = [
    ("sync user s", 2, |report, _| report.sync.user),
    ("CPU s", 2, |report, _| report.sync.cpu),
    ("wall s", 2, |report, _| report.sync.wall),
    ("MiB synced", 0, |report, _| mib(report.synced_kib)),
    ("event CPU us", 1, |report, events| report.events.cpu * 1e6 / events),
    ("wall s", 2, |report, _| report.events.wall),
    ("lone CPU us", 0, |report, _| report.lone.cpu * 1e6 / LONE as f64),
    ("relist CPU s", 2, |report, _| report.relist.cpu),
    ("MiB before", 0, |report, _| mib(report.steady_kib)),
    ("MiB peak", 0, |report, _| mib(report.peak_kib)),
    ("peak/before", 2, |report, _| report.peak_kib as f64 / report.steady_kib as f64),
];
const SYNC_USER: usize = 0;
const SYNC_WALL: usize = 2;
const MEMORY: usize = 3;
const EVENT: usize = 4;
const LONE_EVENT: usize = 6;
const PEAK: usize = 10;

/// Columns, and the part of kube-rs's figure that is wanted.
type Goals = [(usize, f64); 5];

/// Ours, the bare client of the same form, and the goals as parts of kube-rs's figures, as it comes, by list.
const GOALS: [(Client, Client, Goals); 3] = [
    (
        Client::Informer,
        Client::BareTyped,
        [(SYNC_USER, 0.42), (SYNC_WALL, 1.0 / 5.0), (MEMORY, 0.46), (EVENT, 1.0 / 2.2), (LONE_EVENT, 0.8)],
    ),
    (
        Client::Lazy,
        Client::BareLazy,
        [
            (SYNC_USER, 1.0 / 10.0),
            (SYNC_WALL, 1.0 / 12.0),
            (MEMORY, 1.0 / 9.0),
            (EVENT, 1.0 / 12.0),
            (LONE_EVENT, 0.6),
        ],
    ),
    (
        Client::Packed,
        Client::BarePacked,
        [
            (SYNC_USER, 1.0 / 6.0),
            (SYNC_WALL, 1.0 / 10.0),
            (MEMORY, 1.0 / 60.0),
            (EVENT, 1.0 / 8.0),
            (LONE_EVENT, 0.6),
        ],
    ),
];
/// A goal is at least this much of what the bare client reaches.
const ABOVE_BARE: f64 = 1.2;
/// At a relist, ours alone.
const MOST_PEAK: f64 = 1.1;

type Figures = [f64; COLUMNS.len()];

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

/// The table of these reports.
pub(crate) fn table(plan: &Plan, reports: &Reports) -> String {
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{}", line.trim_end()).expect("a String takes every text");
    line(format!(
        "{} pods of 8.9 KB, {} watch events over loopback, {LONE} more at {LONE_RATE} a second, then a list of which a hundredth \
         has changed; medians of {} rounds; CPU of the client's process; {}",
        plan.pods,
        plan.events,
        plan.rounds,
        crate::ALLOCATOR_NAME
    ));
    let headings = COLUMNS.map(|(heading, ..)| format!("{heading:>13}")).concat();
    line(format!("{:<52}{headings}", ""));
    let figures = |client, by| medians(plan, reports, Subject { client, by });
    for &by in By::value_variants().iter().rev() {
        for &client in Client::value_variants() {
            if let Some(figures) = figures(client, by) {
                line(row(&format!("{client}, {by}"), &figures, |column| COLUMNS[column].1));
            }
        }
        for &ours in Client::value_variants().iter().filter(|client| client.is_ours()) {
            for theirs in ours.peers() {
                if let Some((ours_figures, figures)) = figures(ours, by).zip(figures(theirs, by)) {
                    let ratios = std::array::from_fn(|column| ours_figures[column] / figures[column]);
                    line(row(&format!("  {ours} to {theirs}"), &ratios, |_| 2));
                }
            }
        }
    }
    let Some(theirs) = figures(Client::Kube, By::List) else { return text };
    for (client, bare, goals) in GOALS {
        let Some(ours) = figures(client, By::List) else { continue };
        let bare = figures(bare, By::WatchList);
        for (column, wanted) in goals {
            let (reached, what) = (ours[column] / theirs[column], COLUMNS[column].0);
            let least = bare.map_or(0.0, |bare| ABOVE_BARE * bare[column] / theirs[column]);
            let (goal, why) = if least > wanted {
                (least, format!(" (1.2 times the bare client; the wish was {wanted:.3})"))
            } else {
                (wanted, String::new())
            };
            line(format!(
                "{client}, {what}: {reached:.3} of kube-rs, at most {goal:.3} wanted{why}: {}",
                verdict(reached <= goal)
            ));
        }
        line(format!(
            "{client}, peak of a relist: {:.2}, at most {MOST_PEAK} wanted: {}",
            ours[PEAK],
            verdict(ours[PEAK] <= MOST_PEAK)
        ));
    }
    text
}

fn verdict(holds: bool) -> &'static str {
    if holds { "reached" } else { "missed" }
}

fn row(name: &str, figures: &Figures, digits: impl Fn(usize) -> usize) -> String {
    let figures = figures.iter().enumerate();
    let cells: String = figures.map(|(column, figure)| format!("{figure:>13.*}", digits(column))).collect();
    format!("{name:<52}{cells}")
}

fn medians(plan: &Plan, reports: &Reports, subject: Subject) -> Option<Figures> {
    let reports = reports.get(&subject)?;
    Some(COLUMNS.map(|(.., figure)| {
        let mut figures: Vec<f64> = reports.iter().map(|report| figure(report, plan.events as f64)).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
    }))
}
