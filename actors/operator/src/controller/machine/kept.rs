//! What the slot of a key in the queue of a controller carries, and what is kept of all its keys together.
//!
//! Answers "what is known of this key, and what has to go so that it stays bounded?". [`Why`] is handed out with the key; the
//! rest is known of it until the book says otherwise. Invariants:
//! 1. A slot stays as long as its key rests, or has a last state. Of last states at most as many are kept as the tally says:
//!    beyond that the one that was kept first goes, and is counted. For each key the newest one is kept.
//! 2. No last state is dropped here, but given back: its drop is code of a user. No note that is merged brings one.
//!
//! Read next: `book.rs`, which decides.

use std::collections::BTreeMap;

use super::writes::{Answered, Place};
use super::{Arrival, Failing, Failure, Reason, Repeated, Why};
use crate::queue::machine::Merge;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, Uid};

/// How many last states of deleted objects are kept.
pub const MOST_DELETED: usize = 4_096;

/// How many keys rest after a terminal error. A further one does not rest: it is reconciled again when anything leads to it.
pub const MOST_RESTING: usize = 65_536;

/// How many answers to writes are kept whose events have not come. For a further one the oldest is forgotten: its event
/// then leads to a reconcile.
pub const MOST_ANSWERED: usize = 4_096;

/// What belongs to a key: why it waits, and what is known of it.
pub struct Kept<S> {
    pub(super) why: Why,
    known: Option<Box<Known<S>>>,
}

/// What is known of a key whether it waits or not.
pub(super) struct Known<S> {
    /// The reconcile under way.
    pub(super) run: Option<Run>,
    /// The state of its object that has failed terminally, while it rests.
    pub(super) rest: Option<State>,
    pub(super) last: Option<Last<S>>,
}

/// A state of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) uid: Option<Uid>,
    pub(super) version: ResourceVersion,
}

/// What came during a reconcile.
#[derive(Clone, Default)]
pub(super) struct Run {
    pub(super) news: News,
    /// What came of owned objects before its writes were known.
    pub(super) early: Vec<(Place, ResourceVersion, Reason)>,
    /// They are known.
    pub(super) is_answered: bool,
}

/// What has come since a reconcile has seen a state of its object.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing but what it has made.
    #[default]
    Nothing,
    /// Its object, in this state.
    Told(State),
    /// What it cannot know.
    Certain,
}

/// The last state of an object that is gone or has left what is followed, until its reconcile is done.
pub(super) struct Last<S> {
    number: u64,
    pub(super) state: Object<S>,
    /// Whether the object may live on.
    pub(super) has_left: bool,
}

/// What is kept, and what was left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptFigures {
    /// Keys that rest after a terminal error.
    pub resting: usize,
    /// Arrivals that did not lead to a reconcile since their key rested.
    pub ignored: u64,
    /// Last states of objects that are kept: of those that are gone, and of those that have left.
    pub deleted: usize,
    /// Last states that were dropped: more than [`MOST_DELETED`] were waiting.
    pub deleted_dropped: u64,
    /// Events of owned objects that led to no reconcile, since they showed what the last one had been answered.
    pub answered: u64,
}

/// What is kept of all keys of a controller together.
#[derive(Clone)]
pub struct Tally {
    /// Keys that have a last state, by the number under which it came.
    lasts: BTreeMap<u64, ObjectKey>,
    number: u64,
    pub(super) most_deleted: usize,
    pub(crate) figures: KeptFigures,
    pub(super) answered: Answered,
    pub(crate) failing: Failing,
    pub(crate) last_failure: Option<Failure>,
    /// Writes that the cache of an informer did not show in time, by its number.
    pub(super) not_seen: BTreeMap<usize, Repeated>,
}

impl<S> Kept<S> {
    /// What is known of the key, if anything is.
    pub(super) fn known(&mut self) -> Option<&mut Known<S>> {
        self.known.as_deref_mut()
    }

    /// What is known of the key from now on.
    pub(super) fn know(&mut self) -> &mut Known<S> {
        self.known.get_or_insert_with(|| Box::new(Known { run: None, rest: None, last: None }))
    }
}

impl<S> Merge for Kept<S> {
    type Tally = Tally;

    fn merge(&mut self, later: Self) {
        self.why.merge(later.why);
        // No add says what is known.
        self.known = self.known.take().or(later.known);
    }

    fn is_large(&self) -> bool {
        self.why.is_large()
    }

    fn cut(&mut self) {
        self.why.cut();
    }

    fn hand_out(&mut self) -> Self {
        std::mem::take(&mut self.why).into()
    }

    fn stays(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.rest.is_some() || known.last.is_some())
    }
}

impl<S> Known<S> {
    /// Keeps this state, and gives an older one of the key, which is not kept any more for that.
    pub(super) fn keep(&mut self, state: &Object<S>, has_left: bool, tally: &mut Tally) -> Option<Object<S>> {
        let former = self.take_last(tally);
        tally.number += 1;
        tally.figures.deleted += 1;
        tally.lasts.insert(tally.number, state.key().clone());
        self.last = Some(Last { number: tally.number, state: state.clone(), has_left });
        former
    }

    /// The last state, which is kept no more.
    pub(super) fn take_last(&mut self, tally: &mut Tally) -> Option<Object<S>> {
        let last = self.last.take()?;
        tally.figures.deleted -= 1;
        tally.lasts.remove(&last.number);
        Some(last.state)
    }

    /// It rests no more. In which state it did.
    pub(super) fn take_rest(&mut self, tally: &mut Tally) -> Option<State> {
        let rest = self.rest.take();
        tally.figures.resting -= usize::from(rest.is_some());
        rest
    }
}

impl State {
    pub(super) fn of(Meta { uid, version, .. }: &Meta) -> Self {
        Self { uid: uid.clone(), version: version.clone() }
    }
}

impl News {
    pub(super) fn of<S>(arrival: &Arrival<'_, S>) -> Self {
        match arrival {
            Arrival::Present { meta, is_rewound: false } => Self::Told(State::of(meta)),
            Arrival::Present { .. } | Arrival::Gone(_) | Arrival::Left(_) | Arrival::Input => Self::Certain,
            Arrival::Output | Arrival::Made { .. } | Arrival::Unmade { .. } => Self::Nothing,
        }
    }

    /// Takes in what came later: of states the newest counts.
    pub(super) fn add(&mut self, later: Self) {
        if *self != Self::Certain && later != Self::Nothing {
            *self = later;
        }
    }

    /// Whether this tells more than a reconcile knew that was given this state.
    pub(super) fn is_to(&self, state: &State) -> bool {
        match self {
            Self::Nothing => false,
            Self::Told(told) => told.uid != state.uid || told.version > state.version,
            Self::Certain => true,
        }
    }
}

impl Tally {
    /// The key whose last state goes, which is counted, if too many are kept.
    pub(super) fn oldest(&mut self) -> Option<ObjectKey> {
        let oldest = self.lasts.first_key_value().filter(|_| self.lasts.len() > self.most_deleted);
        self.figures.deleted_dropped += u64::from(oldest.is_some());
        oldest.map(|(_, key)| key.clone())
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            lasts: BTreeMap::new(),
            number: 0,
            most_deleted: MOST_DELETED,
            figures: KeptFigures::default(),
            answered: Answered::new(MOST_ANSWERED),
            failing: Failing::default(),
            last_failure: None,
            not_seen: BTreeMap::new(),
        }
    }
}

impl<S> From<Why> for Kept<S> {
    fn from(why: Why) -> Self {
        Self { why, known: None }
    }
}

impl<S> From<Reason> for Kept<S> {
    fn from(reason: Reason) -> Self {
        Why::from(reason).into()
    }
}

impl<S> Default for Kept<S> {
    fn default() -> Self {
        Why::default().into()
    }
}

informer_core::clone_of!([S] Kept<S> { why, known });
informer_core::clone_of!([S] Known<S> { run, rest, last });
informer_core::clone_of!([S] Last<S> { number, state, has_left });

informer_core::debug_as!([S] Kept<S>, self, why = self.why, stays = self.stays());
informer_core::debug_as!(Tally, self, figures = self.figures);
