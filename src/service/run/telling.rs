//! Who tells how the informers are doing: each change of state, and a status from time to time.
//!
//! Answers "when is a line about an informer due?". Invariants:
//! 1. A change of state is told once, with its reason; progress inside a state is not told.
//! 2. A teller ends when its informer does: that it has stopped is the last thing it says.
//! 3. A line waits for room as any other does; ticks that pass meanwhile are not made up for.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::core::reflector::SourceState;
use crate::service::config::{Format, OutputConfig};
use crate::service::follow::{Followed, Printer};
use crate::service::lines::state_name;
use crate::status::InformerStatus;

/// JSON tells the status so often, whatever is configured for text.
const JSON_EVERY: Duration = Duration::from_secs(1);

/// One task for each informer.
pub(super) fn start(
    followed: &[Arc<dyn Followed>],
    printer: &Printer,
    config: &OutputConfig,
) -> Vec<JoinHandle<()>> {
    let every = match config.format {
        Format::Json => JSON_EVERY,
        Format::Text => config.status_every,
    };
    followed.iter().map(|one| tokio::spawn(tell(Arc::clone(one), printer.clone(), every))).collect()
}

/// What makes a state another one for a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    state: &'static str,
    attempts: u32,
    synced: bool,
    restarts: u64,
    failed: bool,
}

impl Mark {
    fn of(status: &InformerStatus) -> Self {
        let state = status.state();
        let attempts = match &state {
            SourceState::Backoff { attempts, .. } => *attempts,
            _ => 0,
        };
        let failed = status.failed.is_some();
        Self { state: state_name(&state), attempts, synced: status.synced, restarts: status.restarts, failed }
    }
}

async fn tell(followed: Arc<dyn Followed>, printer: Printer, every: Duration) {
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut seen, mut told) = (None::<Mark>, followed.told());
    loop {
        let before = seen.clone();
        let changed = followed.wait_until(Box::new(move |status| before.as_ref() != Some(&Mark::of(status))));
        tokio::select! {
            biased;
            status = changed => {
                let doing = followed.doing();
                seen = Some(Mark::of(&doing.status));
                printer.output.line(printer.style.state(followed.kind(), &doing)).await;
                if status.map_or(true, |status| status.stopped) {
                    return;
                }
            }
            _ = ticks.tick() => {
                let now = followed.told();
                let rate = (now - std::mem::replace(&mut told, now)) as f64 / every.as_secs_f64();
                printer.output.line(printer.style.status(followed.kind(), &followed.doing(), rate)).await;
            }
        }
    }
}
