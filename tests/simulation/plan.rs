//! What is drawn before a run begins: its runtime, its informer, its sources, and where its actors are killed.
//!
//! Answers "in which environment does this informer run?". Invariants:
//! 1. Every public setting that is a duration is drawn ordinary, zero or `Duration::MAX`.
//! 2. A plan with a setting that may rightly keep an informer from following (it never asks again, or no answer is in
//!    time) sets `may_stay_behind`: such a run is not required to catch up, only to stay consistent and to end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use informer_actors::testing::{Faults, Site};
use informer_core::delta_fifo::{Bounds, QueueOrder};
use informer_core::reflector::ReflectorConfig;
use informer_core::restart::RestartPolicy;
use tokio::sync::mpsc::UnboundedSender;

use crate::dice::Dice;

/// Where an actor may be killed: at its start, and before or after each message that it handles.
const SITES: [Site; 16] = [
    Site::ReflectorStarted,
    Site::ReflectorReceived,
    Site::DeltaFifoStarted,
    Site::DeltaFifoPush,
    Site::DeltaFifoPop,
    Site::IndexerStarted,
    Site::IndexerApply,
    Site::IndexerReplace,
    Site::IndexerPublished,
    Site::ProcessorStarted,
    Site::ProcessorChanges,
    Site::ProcessorFannedOut,
    Site::ListenerStarted,
    Site::ListenerChanges,
    Site::SupervisorExited,
    Site::NamespacesPlanned,
];
/// Where one may be killed while sources take over from each other.
pub(crate) const IN_EXCHANGES: [Site; 7] = [
    Site::ReflectorReceived,
    Site::DeltaFifoPush,
    Site::DeltaFifoPop,
    Site::IndexerApply,
    Site::IndexerReplace,
    Site::IndexerPublished,
    Site::NamespacesPlanned,
];
/// How the text of a planned panic begins.
pub(crate) const KILLED: &str = "killed";
/// What tests of extremes have in common.
const EXTREMES: [Duration; 2] = [Duration::ZERO, Duration::MAX];

const ENDINGS: [Ending; 6] =
    [Ending::Judged, Ending::Judged, Ending::Judged, Ending::Judged, Ending::RuntimeFirst, Ending::Dropped];

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The servers recover, everything must become right, the informer is shut down.
    Judged,
    /// The runtime ends first, in the middle of whatever happens.
    RuntimeFirst,
    /// Every handle is dropped, in the middle of whatever happens.
    Dropped,
}

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) ending: Ending,
    /// Whether it may rightly never catch up.
    pub(crate) may_stay_behind: bool,
    pub(crate) jitter: Duration,
    pub(crate) lists_at_once: usize,
    pub(crate) queue_order: QueueOrder,
    pub(crate) bounds: Bounds,
    pub(crate) restarts: RestartPolicy,
    pub(crate) sources: Vec<Source>,
    /// A cluster of which some namespaces are followed, beside these.
    pub(crate) cluster: Option<Source>,
    pub(crate) steps: usize,
}

/// One source, and what its server holds at the beginning.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) config: ReflectorConfig,
    pub(crate) objects: usize,
    pub(crate) objects_per_part: usize,
    pub(crate) serves_watch_list: bool,
    /// Whether lists are cut into pages of what is asked for.
    pub(crate) pages: bool,
    pub(crate) answers_after: Duration,
}

impl Plan {
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        let mut plan = Self {
            ending: dice.pick(&ENDINGS),
            may_stay_behind: false,
            jitter: Duration::from_millis(dice.below(200) as u64),
            lists_at_once: dice.pick(&[1, 1, 2, 4]),
            queue_order: dice.pick(&[QueueOrder::InOrder, QueueOrder::PerKey]),
            bounds: Bounds { batch: dice.pick(&[250, 250, 7, 1]), ..Bounds::default() },
            restarts: RestartPolicy::default(),
            sources: Vec::new(),
            cluster: None,
            steps: 20 + dice.below(50),
        };
        let count = dice.pick(&[1, 1, 2, 3, 4]);
        let most = 400 / count;
        plan.sources = (0..count).map(|_| Source::draw(dice, most)).collect();
        plan.cluster = dice.one_in(2).then(|| Source::draw(dice, 60));
        if dice.one_in(2) {
            plan.draw_extreme(dice);
        }
        plan
    }

    /// Sets one or two durations to an extreme. With those that mean "never again" the informer may stay
    /// behind.
    fn draw_extreme(&mut self, dice: &mut Dice) {
        for _ in 0..1 + dice.below(2) {
            let extreme = dice.pick(&EXTREMES);
            let never = extreme == Duration::MAX;
            let source = dice.below(self.sources.len());
            let config = &mut self.sources[source].config;
            let stays_behind = match dice.below(14) {
                0 => set(&mut config.min_watch_timeout, extreme, false),
                1 => set(&mut config.initial_events_deadline, extreme, false),
                2 => set(&mut config.short_watch, extreme, false),
                3 => set(&mut config.reconnect_interval, extreme, never),
                4 => set(&mut config.renew_after, extreme, false),
                5 => set(&mut config.renew_at_most, extreme, false),
                6 => set(&mut config.answer_deadline, extreme, !never),
                7 => set(&mut config.refused_wait, extreme, never),
                8 => set(&mut config.backoff.base, extreme, never),
                9 => set(&mut config.backoff.cap, extreme, false),
                10 => set(&mut self.restarts.window, extreme, false),
                11 => set(&mut self.restarts.backoff.base, extreme, never),
                12 => set(&mut self.restarts.backoff.cap, extreme, false),
                _ => set(&mut self.jitter, extreme, never),
            };
            self.may_stay_behind |= stays_behind;
        }
    }
}

/// Returns whether an informer with it may stay behind.
fn set(setting: &mut Duration, to: Duration, stays_behind: bool) -> bool {
    *setting = to;
    stays_behind
}

impl Source {
    fn draw(dice: &mut Dice, most: usize) -> Self {
        let pages = dice.one_in(3);
        let config = ReflectorConfig {
            page_size: if pages { Some(1 + dice.below(90) as u32) } else { None },
            default_page_size: if pages { 37 } else { 500 },
            watch_list: !dice.one_in(3),
            ..ReflectorConfig::new("lives")
        };
        Self {
            config,
            objects: if dice.one_in(4) { 0 } else { dice.below(most) },
            objects_per_part: 1 + dice.below(80),
            serves_watch_list: !dice.one_in(3),
            pages,
            answers_after: dice.milliseconds(&[0, 1, 5, 5, 300, 7_000]),
        }
    }
}

/// Where the next kill is, once one is asked for.
pub(crate) type Armed = Arc<Mutex<Option<Site>>>;

/// At most two kills a run, each at the nth visit of a site, and those that are asked for; and at other visits, a signal
/// to do something there.
pub(crate) fn kills(dice: &mut Dice, signal: UnboundedSender<()>, armed: Armed) -> Faults {
    let deaths = dice.below(3);
    let planned: Vec<(Site, usize, bool)> =
        (0..deaths + 2).map(|n| (dice.pick(&SITES), 1 + dice.below(12), n < deaths)).collect();
    let visits = Mutex::new(vec![0_usize; planned.len()]);
    Faults::new(move |here| {
        let is_asked_for =
            armed.lock().unwrap_or_else(PoisonError::into_inner).take_if(|site| *site == here).is_some();
        assert!(!is_asked_for, "{KILLED} at {here:?}");
        let due = {
            let mut visits = visits.lock().unwrap_or_else(PoisonError::into_inner);
            let counted = planned.iter().zip(visits.iter_mut()).filter(|((site, ..), _)| *site == here);
            counted.fold((false, false), |(dies, signals), ((_, nth, deadly), visit)| {
                *visit += 1;
                let due = visit == nth;
                (dies || due && *deadly, signals || due && !*deadly)
            })
        };
        if due.1 {
            // The receiver is gone when the run is over.
            let _over = signal.send(());
        }
        assert!(!due.0, "{KILLED} at {here:?}");
    })
}
