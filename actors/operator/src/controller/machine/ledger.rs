//! What a controller knows of its keys between their reconciles.
//!
//! Answers "is this key to be added to the queue, and with what does its next reconcile begin?". Invariants:
//! 1. A key that rests after a terminal error is added again when its object has a newer version than the one that
//!    failed, is gone or has another uid; when an object that is mapped to it changes; when it is triggered. It is not
//!    added for an owned object, a timer or a resync.
//! 2. An event that comes during a reconcile, and is newer than what that was given, is never lost: the key does not rest.
//! 3. Everything that is kept is bounded: [`MOST_DELETED`] last states, marks of [`MOST_RESTING`] keys, [`MOST_ANSWERED`]
//!    answers, one entry for each reconcile under way. Why a key waits is noted in its slot of the queue, of
//!    [`MOST_WITH_CAUSES`] keys.
//! 4. A last state is kept until a reconcile that was given it is done. A newer one is kept on.
//! 5. Where it is asked for, an owned object in exactly the state that the reconcile of its owner was answered for a
//!    write is no reason for another one. While a reconcile runs this is not known: its answer may come after the event.
//! 6. No last state is dropped here: each call gives back what is not kept any more.
//! 7. An object counts as deleted only if that is sure: nobody follows another life of its name, and it cannot have left.
//!
//! Read next: `causes.rs`, `deleted.rs`, `writes.rs`.

use std::collections::BTreeMap;

use super::deleted::Deleted;
use super::writes::{Answered, Place};
use super::{Ended, MOST_WRITES, Next, Reason, Writes};
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, Uid};

/// How many keys have the events kept that lead to them. Further ones, such as those of a long first list, have none.
pub const MOST_WITH_CAUSES: usize = 4_096;

/// How many last states of deleted objects are kept.
pub const MOST_DELETED: usize = 4_096;

/// How many keys rest after a terminal error. A further one does not rest: it is reconciled again when anything leads to it.
pub const MOST_RESTING: usize = 65_536;

/// How many answers to writes are kept whose events have not come. For a further one the oldest is forgotten: its event
/// then leads to a reconcile.
pub const MOST_ANSWERED: usize = 4_096;

/// What leads to a key.
#[derive(Debug)]
#[non_exhaustive]
pub enum Arrival<'a, S> {
    /// Its object, in this state. After a rewind versions are not compared.
    Present {
        /// Which state.
        meta: &'a Meta,
        /// Whether the server went back to an older state.
        is_rewound: bool,
    },
    /// Its object is gone; this was its last state.
    Gone(&'a Object<S>),
    /// Its object is not followed any more, and may live on; this was its last state.
    Left(&'a Object<S>),
    /// What its reconcile depends on: a mapped object, a trigger, or its object left the filter.
    Input,
    /// What its reconcile has made, or nothing: an owned object, a timer.
    Output,
    /// An owned object is in this state: as [`Self::Output`], and no reason at all if the last reconcile of the key, or the
    /// one under way, was answered this state for a write.
    Made {
        /// The number of its informer, as in [`Writes`].
        informer: usize,
        /// Which state.
        meta: &'a Meta,
        /// Whether it was told before, by a resync, or the server went back to it: then it is a reason in any case.
        is_again: bool,
    },
    /// An owned object is gone: as [`Self::Output`]. What was answered for it does not count any more.
    Unmade {
        /// The number of its informer, as in [`Writes`].
        informer: usize,
        /// Which object.
        object: &'a ObjectKey,
    },
}

/// What follows from an arrival.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "a key that is to be added and is not added is lost"]
pub struct Arrived<S> {
    /// The reason with which the key is to be added to the queue, if it is.
    pub reason: Option<Reason>,
    /// A last state that is not kept any more. Its drop is code of a user, so the caller drops it outside of its lock.
    pub released: Option<Object<S>>,
}

/// What follows from the end of a reconcile.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "it says what becomes of the key"]
pub struct Concluded<S> {
    /// What becomes of the key.
    pub next: Next,
    /// As [`Arrived::released`].
    pub released: Option<Object<S>>,
}

/// With what a reconcile begins.
#[derive(Debug)]
#[non_exhaustive]
pub struct Begun<S> {
    /// The last state of the object of this key that is gone, if its end has not been reconciled yet.
    pub deleted: Option<Object<S>>,
    /// The same of one that is not followed any more, and may live on. Never both.
    pub left: Option<Object<S>>,
}

/// What is kept, and what was left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerFigures {
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

/// A state of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    uid: Option<Uid>,
    version: ResourceVersion,
}

/// A reconcile under way.
struct Run<S> {
    state: Option<State>,
    /// The last state that it was given.
    last: Option<Object<S>>,
    is_outdated: bool,
    /// What came of owned objects before its writes were known; none when they are.
    early: Option<Vec<(Place, ResourceVersion, Reason)>>,
}

/// What is known of all keys; the module's documentation describes it.
///
/// ```
/// # use informer_operator::controller::machine::{Arrival, Ended, Ledger, Next, Reason};
/// # use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
/// let key = ObjectKey::cluster("site");
/// let site = |version| {
///     let version = ResourceVersion::from_number(version).expect("not zero");
///     Object::new(Meta::new(key.clone(), version, SourceId::default()), "a site")
/// };
/// let mut ledger = Ledger::<&str>::default();
/// let present = |object: &Object<&'static str>| object.cached_meta().clone();
/// let first = present(&site(1));
/// let arrival = Arrival::Present { meta: &first, is_rewound: false };
/// assert!(ledger.handle_arrival(&key, arrival, Reason::Triggered).reason.is_some(), "to be reconciled");
/// let begun = ledger.handle_begin(&key, Some(&first)).expect("it does not rest");
/// assert!(begun.deleted.is_none());
/// assert_eq!(ledger.handle_end(&key, Ended::Terminal).next, Next::Rest);
/// assert!(ledger.handle_arrival(&key, Arrival::Output, Reason::Timer).reason.is_none(), "it rests");
/// let second = present(&site(2));
/// let arrival = Arrival::Present { meta: &second, is_rewound: false };
/// assert!(ledger.handle_arrival(&key, arrival, Reason::Triggered).reason.is_some(), "it has changed");
/// ```
pub struct Ledger<S> {
    running: BTreeMap<ObjectKey, Run<S>>,
    resting: BTreeMap<ObjectKey, State>,
    deleted: Deleted<S>,
    answered: Answered,
    ignored: u64,
}

impl<S> Ledger<S> {
    /// An empty one that keeps so many last states.
    pub const fn keeping(most_deleted: usize) -> Self {
        Self {
            running: BTreeMap::new(),
            resting: BTreeMap::new(),
            deleted: Deleted::new(most_deleted),
            answered: Answered::new(MOST_ANSWERED),
            ignored: 0,
        }
    }

    /// Something leads to this key.
    pub fn handle_arrival(&mut self, key: &ObjectKey, arrival: Arrival<'_, S>, reason: Reason) -> Arrived<S> {
        let released = match &arrival {
            Arrival::Gone(last) => self.deleted.keep(Object::clone(last), false),
            Arrival::Left(last) => self.deleted.keep(Object::clone(last), true),
            // It has left what is followed, and is back: this life of it has not ended.
            Arrival::Present { meta, .. } => self.deleted.take_life(key, meta.uid.as_ref()),
            _ => None,
        };
        if let Arrival::Unmade { informer, object } = &arrival {
            self.answered.forget(&(*informer, ObjectKey::clone(object)));
        }
        if let Arrival::Made { informer, meta, is_again } = &arrival {
            let place = (*informer, meta.key.clone());
            if *is_again {
                self.answered.forget(&place);
            } else if !self.is_unanswered(key, place, &meta.version, &reason) {
                return Arrived { reason: None, released };
            }
        }
        if let Some(run) = self.running.get_mut(key) {
            run.is_outdated |= run.state.as_ref().is_none_or(|state| is_news(state, &arrival));
        }
        if let Some(state) = self.resting.get(key) {
            if !is_news(state, &arrival) {
                self.ignored += 1;
                return Arrived { reason: None, released };
            }
            self.resting.remove(key);
        }
        Arrived { reason: Some(reason), released }
    }

    /// The queue has handed this key out; the cache has this state of its object. `None` if it rests: then there is
    /// nothing to do.
    pub fn handle_begin(&mut self, key: &ObjectKey, cached: Option<&Meta>) -> Option<Begun<S>> {
        debug_assert!(!self.running.contains_key(key), "a key is reconciled once at a time");
        let state =
            cached.map(|Meta { uid, version, .. }| State { uid: uid.clone(), version: version.clone() });
        // What happened between the look at the cache and the begin of the last reconcile shows only here.
        if self.resting.get(key).is_some_and(|resting| state.as_ref() == Some(resting)) {
            self.ignored += 1;
            return None;
        }
        self.resting.remove(key);
        // A state that the cache still shows is not given as gone: the next reconcile finds it gone in both. Nor is one of a
        // life that the cache shows, in whatever state. Where there are no uids, a newer state is another life.
        let is_gone = |last: &&Object<S>| {
            cached.is_none_or(|now| match (&now.uid, last.object_uid()) {
                (Some(now), Some(last)) => now != last,
                _ => now.version > *last.version(),
            })
        };
        let last = self.deleted.get(key).filter(is_gone).cloned();
        let run = Run { state, last: last.clone(), is_outdated: false, early: Some(Vec::new()) };
        self.running.insert(key.clone(), run);
        // A name has one life at a time: where the cache shows another one, that of the last state has ended.
        let (left, deleted) =
            if cached.is_none() && self.keeps_left(key) { (last, None) } else { (None, last) };
        Some(Begun { deleted, left })
    }

    /// The reconcile under way for this key will write nothing more, and was answered this. Returns with which reasons the key
    /// is to be added to the queue: what came of owned objects meanwhile that these answers do not show.
    ///
    /// `is_told` says of the number of an informer whether its objects come as [`Arrival::Made`]: only for these an answer is
    /// kept. A ledger that is given none needs none of these calls. Without one, what waits for it is forgotten with the
    /// run, which then has to be tried again.
    pub fn handle_writes(
        &mut self,
        key: &ObjectKey,
        writes: &Writes,
        is_told: impl Fn(usize) -> bool,
    ) -> Vec<Reason> {
        let early = self.running.get_mut(key).and_then(|run| run.early.take()).unwrap_or_default();
        let told = writes.iter().filter(|(informer, _, awaited)| is_told(*informer) && !awaited.is_removal());
        for (informer, object, awaited) in told {
            self.answered.keep((informer, object.clone()), key, &awaited.version);
        }
        let unanswered =
            early.into_iter().filter(|(place, version, _)| !self.answered.take(place, key, version));
        unanswered.map(|(_, _, reason)| reason).collect()
    }

    /// A cache has not shown this write in time: the next reconcile may not know of it, so its event is a reason for one more.
    pub fn handle_not_seen(&mut self, informer: usize, object: &ObjectKey) {
        self.answered.forget(&(informer, object.clone()));
    }

    /// The reconcile of this key has ended.
    pub fn handle_end(&mut self, key: &ObjectKey, ended: Ended) -> Concluded<S> {
        let next = ended.next();
        let Some(run) = self.running.remove(key) else { return Concluded { next, released: None } };
        match next {
            Next::Done | Next::After(_) | Next::Backoff => {}
            Next::Rest => {
                // Without an object nothing could end the rest, and nothing is left that could be tried.
                if let Some(state) =
                    run.state.filter(|_| !run.is_outdated && self.resting.len() < MOST_RESTING)
                {
                    self.resting.insert(key.clone(), state);
                }
            }
        }
        if let (Next::Done | Next::Rest, Some(last)) = (next, &run.last) {
            self.deleted.forget(last);
        }
        Concluded { next, released: run.last }
    }

    /// Nothing leads to this key any more, which is not being reconciled. Returns its last state, as [`Arrived::released`].
    #[must_use = "its drop is code of a user"]
    pub fn handle_forgotten(&mut self, key: &ObjectKey) -> Option<Object<S>> {
        self.resting.remove(key);
        self.deleted.take(key)
    }

    /// Whether the last state of an object is kept that had this key, and has left what is followed.
    pub fn keeps_left(&self, key: &ObjectKey) -> bool {
        self.deleted.has_left(key)
    }

    /// What is kept.
    pub fn figures(&self) -> LedgerFigures {
        LedgerFigures {
            resting: self.resting.len(),
            ignored: self.ignored,
            deleted: self.deleted.len(),
            deleted_dropped: self.deleted.dropped,
            answered: self.answered.taken,
        }
    }

    /// Whether this state of an owned object is a reason to reconcile its owner now. While answers may come that show it,
    /// it waits for them.
    fn is_unanswered(
        &mut self,
        key: &ObjectKey,
        place: Place,
        version: &ResourceVersion,
        reason: &Reason,
    ) -> bool {
        if let Some(early) = self.running.get_mut(key).and_then(|run| run.early.as_mut())
            && early.len() < MOST_WRITES
        {
            early.push((place, version.clone(), reason.clone()));
            return false;
        }
        !self.answered.take(&place, key, version)
    }
}

/// Whether this tells more than a reconcile knew that was given this state.
fn is_news<S>(state: &State, arrival: &Arrival<'_, S>) -> bool {
    match arrival {
        Arrival::Present { meta, is_rewound } => {
            *is_rewound || meta.uid != state.uid || meta.version > state.version
        }
        Arrival::Gone(_) | Arrival::Left(_) | Arrival::Input => true,
        Arrival::Output | Arrival::Made { .. } | Arrival::Unmade { .. } => false,
    }
}

impl<S> Default for Ledger<S> {
    fn default() -> Self {
        Self::keeping(MOST_DELETED)
    }
}

informer_core::debug_as!([S] Ledger<S>, self, figures = self.figures());
