//! What the slot of a key carries, and what is kept of all keys together. Only [`Why`] is handed out with the
//! key.
//!
//! 1. A slot stays while its key rests or has a last state. Only the newest last state of a key is kept.
//!    Beyond the bound the oldest goes and is counted.
//! 2. No last state is dropped here, but returned: its drop is user code.

use std::collections::BTreeMap;

use super::writes::{Answered, Place};
use super::{Arrival, Failing, Failure, Reason, Repeated, Why};
use crate::queue::machine::Merge;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, Uid};

/// How many last states of deleted objects are kept.
pub const MOST_DELETED: usize = 4_096;

/// How many keys rest until their objects change. A further key does not rest: anything that leads to it
/// reconciles it again.
pub const MOST_RESTING: usize = 65_536;

/// How many answers to writes are kept until their events come. Beyond that the oldest is forgotten: its
/// event then leads to a reconcile.
pub const MOST_ANSWERED: usize = 4_096;

/// What belongs to a key: why it waits, and what is known of it.
pub struct Kept<S> {
    pub(super) why: Why,
    known: Option<Box<Known<S>>>,
}

pub(super) struct Known<S> {
    pub(super) run: Option<Run>,
    /// The state that failed.
    pub(super) rest: Option<State>,
    pub(super) last: Option<Last<S>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) uid: Option<Uid>,
    pub(super) version: ResourceVersion,
}

#[derive(Clone, Default)]
pub(super) struct Run {
    pub(super) news: News,
    /// Events before its writes were known.
    pub(super) early: Vec<(Place, ResourceVersion, Reason)>,
    pub(super) is_answered: bool,
}

/// What came after its object was read.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing but its output.
    #[default]
    Nothing,
    Told(State),
    /// Something that it cannot know.
    Certain,
}

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
    /// Keys that rest until their objects change.
    pub resting: usize,
    /// Arrivals that did not lead to a reconcile since their key rested.
    pub ignored: u64,
    /// Last states of objects that are kept: of those that are gone, and of those that have left.
    pub deleted: usize,
    /// Last states that were dropped: more than [`MOST_DELETED`] were waiting.
    pub deleted_dropped: u64,
    /// Events of owned objects that led to no reconcile, since they showed the answer to a write of the last
    /// one.
    pub answered: u64,
}

/// What is kept of all keys of a controller together.
#[derive(Clone)]
pub struct Tally {
    /// By the number of the last state.
    lasts: BTreeMap<u64, ObjectKey>,
    number: u64,
    pub(super) most_deleted: usize,
    pub(crate) figures: KeptFigures,
    pub(super) answered: Answered,
    pub(crate) failing: Failing,
    pub(crate) last_failure: Option<Failure>,
    /// By informer.
    pub(super) not_seen: BTreeMap<usize, Repeated>,
}

impl<S> Kept<S> {
    pub(super) fn known(&mut self) -> Option<&mut Known<S>> {
        self.known.as_deref_mut()
    }

    pub(super) fn know(&mut self) -> &mut Known<S> {
        self.known.get_or_insert_with(|| Box::new(Known { run: None, rest: None, last: None }))
    }
}

impl<S> Merge for Kept<S> {
    type Tally = Tally;

    fn merge(&mut self, later: Self) {
        self.why.merge(later.why);
        // No add carries it.
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
    pub(super) fn keep(&mut self, state: &Object<S>, has_left: bool, tally: &mut Tally) -> Option<Object<S>> {
        let former = self.take_last(tally);
        tally.number += 1;
        tally.figures.deleted += 1;
        tally.lasts.insert(tally.number, state.key().clone());
        self.last = Some(Last { number: tally.number, state: state.clone(), has_left });
        former
    }

    pub(super) fn take_last(&mut self, tally: &mut Tally) -> Option<Object<S>> {
        let last = self.last.take()?;
        tally.figures.deleted -= 1;
        tally.lasts.remove(&last.number);
        Some(last.state)
    }

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

    pub(super) fn add(&mut self, later: Self) {
        if *self != Self::Certain && later != Self::Nothing {
            *self = later;
        }
    }

    /// Whether this is new to a reconcile that was given this state.
    pub(super) fn is_to(&self, state: &State) -> bool {
        match self {
            Self::Nothing => false,
            Self::Told(told) => told.uid != state.uid || told.version > state.version,
            Self::Certain => true,
        }
    }
}

impl Tally {
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
