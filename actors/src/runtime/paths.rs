//! The marks that objects leave on their path through a runtime.
//!
//! 1. Off, a place costs one load and one branch.
//! 2. A batch makes its marks under one short lock. While keys are followed, each batch costs this lock at each
//!    place.
//! 3. In a simulation everything leaves marks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use informer_core::meta::{ObjectKey, ResourceVersion};
use informer_core::path::{
    Choice, History, MOST_KEYS, Mark, Marks, Passage, PastBody, PastState, Path, SLOW, SLOW_EVERY,
};
use informer_core::words::Brief;
use tracing::Span;

use super::clock::Clock;
use super::locked::Guarded;
use super::saved::{SavedCell, SavedNote};
use super::sizes::Sizes;
use super::spans::Spans;

/// The paths of objects through one runtime. Cloning copies a pointer.
///
/// ```
/// # use informer_actors::face as actix_informer;
/// use actix_informer::object::ObjectKey;
/// use actix_informer::runtime::Runtime;
///
/// let runtime = Runtime::threads().start()?;
/// let key = ObjectKey::namespaced("shop", "web");
/// runtime.paths().follow(&key)?; // or sample(64): one of 64 changes
/// // … and later, to see where the time goes:
/// println!("{}", runtime.paths().of(&key));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Paths(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    choice: AtomicU64,
    marks: Guarded<Marks>,
    history: Guarded<History>,
    spans: Spans,
    clock: Clock,
}

/// Too many keys are followed: [`Paths::unfollow`] one of them first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the path of {0} is not followed: {MOST_KEYS} keys are followed already")]
pub struct TooManyKeys(ObjectKey);

impl Paths {
    pub(super) fn new(clock: Clock, choice: Choice) -> Self {
        let (choice, marks, history) = (AtomicU64::new(choice.0), Guarded::default(), Guarded::default());
        Self(Arc::new(Inner { choice, marks, history, spans: Spans::default(), clock }))
    }

    /// From now on one of so many changes leaves marks, rounded up to a power of two. 1: all; 0, the default:
    /// only those of keys that are followed. In a simulation the default is 1.
    ///
    /// With 64 an event takes less than 1 % more instructions, with 1 some 13 %. `benches/instructions.sh` and
    /// `benches/seeing.rs` show it.
    pub fn sample(&self, one_of: u32) {
        self.choose(|choice, _| choice.sampling(one_of));
    }

    /// From now on each change of an object with this key leaves marks, in every informer, and its newest states
    /// are kept.
    ///
    /// # Errors
    /// If 64 keys are followed.
    pub fn follow(&self, key: &ObjectKey) -> Result<(), TooManyKeys> {
        let mut is_followed = false;
        self.choose(|choice, marks| {
            is_followed = marks.follow(key);
            choice.with_keys(true)
        });
        if is_followed { Ok(()) } else { Err(TooManyKeys(key.clone())) }
    }

    /// The reverse of [`Self::follow`]. Marks that were made stay, and states go.
    pub fn unfollow(&self, key: &ObjectKey) {
        self.choose(|choice, marks| choice.with_keys(marks.unfollow(key)));
        self.0.history.with(|history| history.forget(key));
    }

    /// Whether this key is followed.
    pub fn is_followed(&self, key: &ObjectKey) -> bool {
        self.0.marks.with(|marks| marks.follows(key))
    }

    /// The marks of this object, and of keys and writes that name it. O(marks that are kept).
    pub fn of(&self, key: &ObjectKey) -> Path {
        self.0.marks.with(|marks| marks.of(key))
    }

    /// The newest 20 states that sources have brought of this object since it is followed, the oldest first, up to
    /// 128 KiB; of a Secret without values.
    pub fn states(&self, key: &ObjectKey) -> Vec<PastState> {
        self.0.history.with(|history| history.of(key))
    }

    /// All marks that are kept: those of 1,024 changes of each informer, and 4,096 of each controller.
    pub fn all(&self) -> Path {
        self.0.marks.with(|marks| marks.all())
    }

    fn choose(&self, choose: impl FnOnce(Choice, &mut Marks) -> Choice) {
        self.0.marks.with(|marks| {
            let choice = choose(self.choice(), marks);
            self.0.choice.store(choice.0, Ordering::Relaxed);
        });
    }

    fn choice(&self) -> Choice {
        Choice(self.0.choice.load(Ordering::Relaxed))
    }
}

impl Paths {
    /// Whether anything leaves marks.
    #[doc(hidden)]
    #[inline]
    pub fn is_on(&self) -> bool {
        self.choice().is_on()
    }

    /// Whether this change leaves marks. Ask [`Self::is_on`] first.
    #[doc(hidden)]
    pub fn chooses(&self, key: &ObjectKey, version: &ResourceVersion) -> bool {
        let choice = self.choice();
        choice.samples(version) || (choice.has_keys() && self.0.marks.with(|marks| marks.follows(key)))
    }

    /// Whether this key of a controller's queue leaves marks.
    #[doc(hidden)]
    pub fn chooses_work(&self, controller: &Arc<str>, key: &ObjectKey) -> bool {
        let choice = self.choice();
        choice.is_all()
            || (choice.is_on()
                && self.0.marks.with(|marks| marks.has_work(controller, key) || marks.follows(key)))
    }

    /// Notes a mark of a controller, now.
    #[doc(hidden)]
    pub fn note(&self, mark: Mark) {
        let at = self.0.clock.now();
        self.0.marks.with(|marks| marks.note(mark.at(at)));
    }

    /// Each change says whether it is live.
    pub(crate) fn pass<'a>(
        &self,
        informer: &Arc<str>,
        step: Passage<'_>,
        changes: impl Iterator<Item = (&'a ObjectKey, &'a ResourceVersion, bool)>,
    ) {
        let choice = self.choice();
        if !choice.is_on() {
            return;
        }
        // The lock is taken for the first one that leaves a mark.
        let mut changes = changes;
        let first = match choice.has_keys() {
            true => changes.next(),
            false => changes.find(|(_, version, _)| choice.samples(version)),
        };
        if let Some(first) = first {
            let (at, all) = (self.0.clock.now(), std::iter::once(first).chain(changes));
            self.0.marks.with(|marks| marks.pass(choice, informer, (step, at), all));
        }
    }

    pub(crate) fn handled(&self, informer: &Arc<str>, subscription: &Arc<str>) {
        let at = self.0.clock.now();
        if let Some(path) = self.0.marks.with(|marks| marks.handled(at, informer, subscription)) {
            let (limit, quiet) = (Brief(SLOW), Brief(SLOW_EVERY));
            tracing::warn!(target: "actix_informer::informer", %informer, %subscription, "informer {informer}: a change took longer than {limit} until {subscription} had handled it; others are not told for {quiet}:\n{path}");
        }
    }

    pub(crate) fn forget_subscription(&self, informer: &Arc<str>, subscription: &Arc<str>) {
        self.0.marks.with(|marks| marks.forget_subscription(informer, subscription));
    }

    pub(crate) fn followed(&self) -> Vec<ObjectKey> {
        if !self.choice().has_keys() {
            return Vec::new();
        }
        self.0.marks.with(|marks| marks.followed().cloned().collect())
    }

    pub(crate) fn forget_informer(&self, informer: &Arc<str>) {
        self.0.marks.with(|marks| marks.forget_informer(informer));
    }

    /// Forgets a controller that has ended.
    #[doc(hidden)]
    pub fn forget_controller(&self, controller: &Arc<str>) {
        self.0.marks.with(|marks| marks.forget_controller(controller));
        self.0.spans.forget_controller(controller);
    }
}

/// `tracing` spans of changes; `spans.rs` has the rules.
#[doc(hidden)]
impl Paths {
    /// All of them.
    pub fn spans(&self) -> &Spans {
        &self.0.spans
    }

    /// The span of the change that has added this key.
    pub fn take_span(&self, controller: &Arc<str>, key: &ObjectKey) -> Option<Arc<Span>> {
        if !self.is_on() {
            return None;
        }
        self.0.spans.take(controller, key)
    }
}

/// When the newest bytes of a watch were read and cut into events.
#[derive(Debug)]
pub(crate) struct Arrival {
    times: Guarded<Option<(Duration, Duration)>>,
    clock: Clock,
    paths: Paths,
    informer: Arc<str>,
    sizes: Arc<Sizes>,
    saved: Arc<SavedCell>,
}

impl Arrival {
    pub(crate) fn new(
        clock: Clock,
        paths: Paths,
        informer: Arc<str>,
        (sizes, saved): (Arc<Sizes>, Arc<SavedCell>),
    ) -> Self {
        Self { times: Guarded::default(), clock, paths, informer, sizes, saved }
    }

    pub(crate) fn note_saved(&self, note: SavedNote) {
        self.saved.note(note, (self.clock.now(), &self.informer));
    }

    pub(crate) fn wall_time(&self) -> SystemTime {
        self.clock.wall_time()
    }

    pub(crate) fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    pub(crate) fn keeps_states_of(&self, key: &ObjectKey) -> bool {
        self.paths.choice().has_keys() && self.paths.is_followed(key)
    }

    pub(crate) fn note_state(&self, key: &ObjectKey, version: &ResourceVersion, body: PastBody) {
        let state = PastState::new(self.clock.now(), Arc::clone(&self.informer), version.clone(), body);
        // Under the lock of the keys: a key that is not followed keeps no state.
        self.paths.0.marks.with(|marks| {
            if marks.follows(key) {
                self.paths.0.history.with(|history| history.add(key, state));
            }
        });
    }

    pub(crate) fn now(&self) -> Option<Duration> {
        self.paths.is_on().then(|| self.clock.now())
    }

    pub(crate) fn times(&self) -> Option<(Duration, Duration)> {
        self.times.with(|times| *times)
    }

    /// `None` if nobody asked for paths when the bytes were read.
    pub(crate) fn note(&self, now: Option<(Duration, Duration)>) {
        self.times.with(|times| *times = now);
    }
}
