//! The book of a controller: its queue, whose slots carry what is known of a key between two reconciles.
//!
//! Answers "is this key to be reconciled, and with what does its next reconcile begin?". Each call changes the queue and what is
//! known of the key together, so a worker that takes a key finds what has led to it. Invariants:
//! 1. A key that rests after a terminal error is added again when its object has a newer version than the one that
//!    failed, is gone or has another uid; when an object that is mapped to it changes; when it is triggered. It is not
//!    added for an owned object, a timer or a resync.
//! 2. An event that comes during a reconcile, and is newer than what that was given, is never lost: the key does not rest.
//! 3. Everything that is kept is bounded: [`MOST_DELETED`](super::MOST_DELETED) last states, the rest of [`MOST_RESTING`] keys,
//!    [`MOST_ANSWERED`](super::MOST_ANSWERED) answers, why [`MOST_WITH_CAUSES`](super::MOST_WITH_CAUSES) keys wait, what came
//!    during each reconcile under way.
//! 4. A last state is kept until a reconcile that was given it is done. A newer one is kept on.
//! 5. Where it is asked for, an owned object in exactly the state that the reconcile of its owner was answered for a
//!    write is no reason for another one. While a reconcile runs this is not known: its answer may come after the event.
//! 6. No last state is dropped here: each call gives back what is not kept any more.
//! 7. An object counts as deleted only if that is sure: nobody follows another life of its name, and it cannot have left.
//! 8. A reconcile begins before its cache is looked at: what came until then is shown by it, and is part of this reconcile.
//!
//! Read next: `kept.rs`, what a slot carries; `look.rs`, what a reconcile knows; `causes.rs`, `writes.rs`; `queue/machine.rs`.

use std::time::Duration;

use super::kept::{Kept, Known, MOST_RESTING, Run, Tally, is_news};
use super::look::{Begun, Concluded, Ending, Look};
use super::{Arrival, Failing, Failure, MOST_WRITES, Next, Reason, Telling, Why, Writes};
use crate::queue::machine::{Added, Merge, Priority, RateLimiter, WorkQueue};
use informer_core::meta::{Object, ObjectKey};
use informer_core::reflector::Moment;

/// What follows from an arrival.
#[derive(Debug)]
#[non_exhaustive]
pub struct Arrived<S> {
    /// What has become of the add; none if the arrival is no reason for a reconcile.
    pub added: Option<Added>,
    /// A last state that is not kept any more, of this or of another key. Its drop is code of a user, so the caller drops it
    /// outside of its lock.
    pub released: Option<Object<S>>,
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

/// The queue of a controller, and what is known of its keys; the module's documentation describes it.
///
/// ```
/// # use informer_operator::controller::machine::{Arrival, Book, Ended, Ending, Next, Reason};
/// # use informer_operator::queue::machine::{Priority, default_limiter, namespace_order};
/// # use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
/// # use informer_core::reflector::Moment;
/// use std::time::Duration;
/// let (key, now) = (ObjectKey::cluster("site"), Duration::ZERO);
/// let site = |version| {
///     let version = ResourceVersion::from_number(version).expect("not zero");
///     Object::new(Meta::new(key.clone(), version, SourceId::default()), "a site")
/// };
/// let mut book = Book::<&str>::noting(namespace_order, 100);
/// let why = || (Reason::Triggered, Priority::Normal, Duration::ZERO);
/// let (first, second) = (site(1), site(2));
/// let present = |object| Arrival::Present { meta: Object::cached_meta(object), is_rewound: false };
/// assert!(book.handle_arrival(&key, present(&first), why(), now).added.is_some(), "to be reconciled");
/// let taken = book.take(now).expect("it waits");
/// let (causes, look) = book.handle_begin(&key, taken.note).look(Some(first.cached_meta()));
/// assert!(!look.rests && look.deleted().is_none() && causes[..] == [Reason::Triggered]);
/// let ending = Ending { ended: Ended::Terminal, look: &look, why: None };
/// let moment = Moment { now, chance: 0.0 };
/// assert_eq!(book.handle_end(&key, ending, &mut default_limiter(), moment).next, Next::Rest);
/// assert!(book.handle_arrival(&key, Arrival::Output, why(), now).added.is_none(), "it rests");
/// assert!(book.handle_arrival(&key, present(&second), why(), now).added.is_some(), "it has changed");
/// ```
pub type Book<S> = WorkQueue<ObjectKey, Kept<S>>;

impl<S> WorkQueue<ObjectKey, Kept<S>> {
    /// Something leads to this key. It is added with this reason, if it is one; if the time is not zero, when nothing more has
    /// come for it in this time.
    pub fn handle_arrival(
        &mut self,
        key: &ObjectKey,
        arrival: Arrival<'_, S>,
        (reason, priority, quiet): (Reason, Priority, Duration),
        now: Duration,
    ) -> Arrived<S> {
        if !self.is_unanswered(key, &arrival, &reason) {
            return Arrived { added: None, released: None };
        }
        let mut released = None;
        if let (Some(known), tally) = self.known(key) {
            if let Arrival::Present { meta, .. } = &arrival {
                // It has left what is followed, and is back: this life of it has not ended.
                released = known.take_life(meta.uid.as_ref(), tally);
            }
            if let Some(run) = &mut known.run {
                run.note(&arrival);
            }
            if known.rest.as_ref().is_some_and(|rest| !is_news(rest, &arrival)) {
                tally.ignored += 1;
                return Arrived { added: None, released };
            }
            known.take_rest(tally);
        }
        let added = self.postpone_with(key.clone(), quiet, (priority, reason.into()), now);
        if let Arrival::Gone(last) | Arrival::Left(last) = arrival {
            released = self.keep(key, last, matches!(arrival, Arrival::Left(_)));
        }
        if added == Added::Refused {
            self.free(key);
        }
        Arrived { added: Some(added), released }
    }

    /// As [`Self::handle_arrival`], while another program reconciles, and no object has this key: the key is forgotten. `None`
    /// if it is not, since it is being reconciled, or since what is to be done for an object that has left may be up to the
    /// next leader.
    pub fn handle_unled(
        &mut self,
        key: &ObjectKey,
        arrival: &Arrival<'_, S>,
        limiter: &mut (impl RateLimiter<ObjectKey> + ?Sized),
    ) -> Option<Arrived<S>> {
        let keeps_left = !matches!(arrival, Arrival::Gone(_)) && self.keeps_left(key);
        if keeps_left { None } else { self.handle_forgotten(key, limiter) }
    }

    /// Nothing leads to this key any more. `None`, and nothing happens, if it is being reconciled.
    pub fn handle_forgotten(
        &mut self,
        key: &ObjectKey,
        limiter: &mut (impl RateLimiter<ObjectKey> + ?Sized),
    ) -> Option<Arrived<S>> {
        if !self.discard(key) {
            return None;
        }
        limiter.forget(key);
        self.tally.failing.handle_success(key);
        let mut released = None;
        if let (Some(known), tally) = self.known(key) {
            known.take_rest(tally);
            released = known.take_last(tally);
        }
        self.free(key);
        Some(Arrived { added: Some(Added::Merged), released })
    }

    /// The work on this key, which was handed out with this, begins now, and its cache is looked at then.
    pub fn handle_begin(&mut self, key: &ObjectKey, mut handed: Kept<S>) -> Begun<S> {
        handed.merge(self.begin(key));
        let causes = handed.into_why().into_causes();
        let (Some(kept), tally) = self.noted(key) else {
            return Begun { causes, last: None, has_left: false, rest: None };
        };
        let known = kept.know();
        known.run = Some(Run::default());
        let rest = known.take_rest(tally);
        let last = known.last.as_ref();
        let has_left = last.is_some_and(|last| last.has_left);
        Begun { causes, last: last.map(|last| last.state.clone()), has_left, rest }
    }

    /// The reconcile under way for this key will write nothing more, and was answered this. It is handed out once more, also
    /// in a drain, if that does not show what came of owned objects meanwhile. Returns whether it is.
    ///
    /// `is_told` says of the number of an informer whether its objects come as [`Arrival::Made`]: only for these an answer is
    /// kept. A book that is given none needs none of these calls. Without one, what waits for it is forgotten with the
    /// run, which then has to be tried again.
    pub fn handle_writes(
        &mut self,
        key: &ObjectKey,
        writes: &Writes,
        is_told: impl Fn(usize) -> bool,
        now: Duration,
    ) -> bool {
        let run = self.known(key).0.and_then(|known| known.run.as_mut());
        let early = run.and_then(|run| run.early.take()).unwrap_or_default();
        let told = writes.iter().filter(|(informer, _, awaited)| is_told(*informer) && !awaited.is_removal());
        let answered = &mut self.tally.answered;
        for (informer, object, awaited) in told {
            answered.keep((informer, object.clone()), key, &awaited.version);
        }
        let mut all: Option<Why> = None;
        for (place, version, reason) in early {
            if !answered.take(&place, key, &version) {
                all.get_or_insert_default().merge(reason.into());
            }
        }
        all.is_some_and(|why| self.again(key, (Priority::Normal, why.into()), now))
    }

    /// A cache has not shown this write in time: the next reconcile may not know of it, so its event is a reason for one more.
    /// Returns for how many writes of its informer that is to be logged now, if it is.
    pub fn handle_not_seen(&mut self, informer: usize, object: &ObjectKey, now: Duration) -> Option<u64> {
        self.tally.answered.forget(&(informer, object.clone()));
        self.tally.not_seen.entry(informer).or_default().count(now)
    }

    /// A reconcile has failed.
    pub fn handle_failure(&mut self, failure: Failure) {
        self.tally.last_failure = Some(failure);
    }

    /// The reconcile of this key has ended, and the key comes back.
    pub fn handle_end(
        &mut self,
        key: &ObjectKey,
        Ending { ended, look, why }: Ending<'_, S>,
        limiter: &mut (impl RateLimiter<ObjectKey> + ?Sized),
        moment: Moment,
    ) -> Concluded<S> {
        let next = ended.next();
        let released = self.end_run(key, next, look);
        let failing = &mut self.tally.failing;
        let telling = why.map_or(Telling::Repeat, |why| failing.handle_failure(key, why, moment.now));
        if why.is_none() && next != Next::Backoff && !look.rests {
            failing.handle_success(key);
        }
        let retry = match next {
            Next::Done | Next::Rest => {
                self.done(key, moment.now);
                None
            }
            Next::After(delay) => {
                self.retry_after_with(key, delay, Reason::Requeued.into(), moment.now);
                None
            }
            Next::Backoff => self.retry_with(key, Reason::Failed.into(), limiter, moment),
        };
        if next != Next::Backoff {
            limiter.forget(key);
        }
        Concluded { next, retry, telling, released }
    }

    /// The run of this key is over. Gives its last state, if that is kept no more.
    fn end_run(&mut self, key: &ObjectKey, next: Next, look: &Look<S>) -> Option<Object<S>> {
        let (Some(known), tally) = self.known(key) else { return None };
        let run = known.run.take()?;
        tally.ignored += u64::from(look.rests);
        // Without an object nothing could end the rest, and nothing is left that could be tried.
        if next == Next::Rest
            && let Some(state) = look.state.as_ref().filter(|state| !run.is_news(state))
            && tally.resting < MOST_RESTING
        {
            known.rest = Some(state.clone());
            tally.resting += 1;
        }
        let is_done = look.is_given && matches!(next, Next::Done | Next::Rest);
        let is_given = |last: &Object<S>| look.last.as_ref().is_some_and(|given| given.ptr_eq(last));
        if is_done && known.last.as_ref().is_some_and(|last| is_given(&last.state)) {
            return known.take_last(tally);
        }
        None
    }

    /// What was said of keys that fail is not remembered any more; it is given, since it may be much.
    pub fn forget_failing(&mut self) -> Failing {
        std::mem::take(&mut self.tally.failing)
    }

    /// The failure that came last.
    pub fn last_failure(&self) -> Option<&Failure> {
        self.tally.last_failure.as_ref()
    }

    /// What is kept.
    pub fn kept(&self) -> LedgerFigures {
        let tally = &self.tally;
        LedgerFigures {
            resting: tally.resting,
            ignored: tally.ignored,
            deleted: tally.deleted(),
            deleted_dropped: tally.deleted_dropped,
            answered: tally.answered.taken,
        }
    }

    /// Whether the last state is kept of an object that had this key, and has left what is followed.
    pub(super) fn keeps_left(&mut self, key: &ObjectKey) -> bool {
        self.known(key).0.and_then(|known| known.last.as_ref()).is_some_and(|last| last.has_left)
    }

    fn known(&mut self, key: &ObjectKey) -> (Option<&mut Known<S>>, &mut Tally) {
        let (kept, tally) = self.noted(key);
        (kept.and_then(Kept::known), tally)
    }

    /// Keeps this last state of a key that is not refused. Gives the one that is not kept any more for that: an older one of the
    /// key, or of another key if there are too many.
    fn keep(&mut self, key: &ObjectKey, last: &Object<S>, has_left: bool) -> Option<Object<S>> {
        let (Some(kept), tally) = self.noted(key) else { return None };
        let former = kept.know().keep(last, has_left, tally);
        let Some(oldest) = tally.oldest().cloned() else { return former };
        tally.deleted_dropped += 1;
        let (known, tally) = self.known(&oldest);
        let released = known.and_then(|known| known.take_last(tally));
        self.free(&oldest);
        released
    }

    /// Whether this is a reason to reconcile its key now, as far as answers say. While answers may come that show the state of an
    /// owned object, it waits for them.
    fn is_unanswered(&mut self, key: &ObjectKey, arrival: &Arrival<'_, S>, reason: &Reason) -> bool {
        match arrival {
            Arrival::Unmade { informer, object } => {
                self.tally.answered.forget(&(*informer, ObjectKey::clone(object)));
            }
            Arrival::Made { informer, meta, is_again: true } => {
                self.tally.answered.forget(&(*informer, meta.key.clone()));
            }
            Arrival::Made { informer, meta, .. } => {
                let place = (*informer, meta.key.clone());
                let (known, tally) = self.known(key);
                let run = known.and_then(|known| known.run.as_mut());
                if let Some(early) = run.and_then(|run| run.early.as_mut())
                    && early.len() < MOST_WRITES
                {
                    early.push((place, meta.version.clone(), reason.clone()));
                    return false;
                }
                return !tally.answered.take(&place, key, &meta.version);
            }
            _ => {}
        }
        true
    }
}
