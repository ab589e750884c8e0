//! Prints a line for each change of an informer's state, and a status line at intervals. The last line says that the informer has
//! stopped. Lines wait for room in the output; ticks that pass meanwhile make one line.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::config::{Format, OutputConfig};
use crate::follow::{Printer, RunningKind};
use crate::lines::{hints, state_name};
use actix_informer::status::InformerStatus;

/// Whatever is configured for text.
const JSON_INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn start(
    kinds: &[Arc<RunningKind>],
    printer: &Printer,
    config: &OutputConfig,
) -> Vec<JoinHandle<()>> {
    let interval = match config.format {
        Format::Json => JSON_INTERVAL,
        Format::Text => config.status_every,
    };
    kinds.iter().map(|kind| tokio::spawn(report(Arc::clone(kind), printer.clone(), interval))).collect()
}

/// A change is printed at once.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ReportedState {
    state: &'static str,
    attempts: u32,
    synced: bool,
    restarts: u64,
    failed: bool,
    hints: Vec<String>,
}

impl ReportedState {
    fn of(status: &InformerStatus) -> Self {
        let state = status.state();
        let attempts = state.attempts();
        let failed = status.failed.is_some();
        let (synced, restarts, hints) = (status.synced, status.restarts, hints(status));
        Self { state: state_name(&state), attempts, synced, restarts, failed, hints }
    }
}

async fn report(kind: Arc<RunningKind>, printer: Printer, interval: Duration) {
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut reported, mut delivered) = (None::<ReportedState>, kind.delivered_count());
    loop {
        let before = reported.clone();
        let has_changed = move |status: &InformerStatus| before.as_ref() != Some(&ReportedState::of(status));
        tokio::select! {
            biased;
            status = kind.wait_until(has_changed) => {
                let current = kind.status();
                reported = Some(ReportedState::of(&current.informer));
                printer.output.line(printer.style.state(kind.name(), &current)).await;
                if status.map_or(true, |status| status.stopped) {
                    return;
                }
            }
            _ = ticks.tick() => {
                let now = kind.delivered_count();
                let rate = (now - std::mem::replace(&mut delivered, now)) as f64 / interval.as_secs_f64();
                printer.output.line(printer.style.status(kind.name(), &kind.status(), rate)).await;
            }
        }
    }
}
