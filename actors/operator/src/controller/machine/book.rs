//! The queue of a controller, whose slots carry what is known of a key between two reconciles. All is bounded
//! by the `MOST_*` constants.
//!
//! 1. A key that rests is added again when its object has a newer version than the failed one, is gone or has
//!    another uid; when a mapped object changes; when it is triggered. An owned object, a timer or a resync
//!    does not add it.
//! 2. After an event during a reconcile that is newer than its state, the key does not rest.
//! 3. A last state is kept until a reconcile that was given it is done. A newer one stays.
//! 4. If own writes are ignored, an owned object in exactly the answered state is no reason. While the
//!    reconcile runs, its event waits for the answer.
//! 5. An object counts as deleted only if the cache shows another uid under its name, or nothing and it
//!    cannot have left the selectors or the followed namespaces.

use std::sync::Arc;
use std::time::Duration;

use super::kept::{Kept, Known, Last, MOST_RESTING, News, Run, State, Tally};
use super::{Arrival, Causes, Ended, MOST_WRITES, Next, Reason, Telling, Why, Writes};
use crate::queue::machine::{Added, Merge, Priority, QueueMachine, RateLimiter};
use informer_core::meta::{Meta, Object, ObjectKey};
use informer_core::reflector::Moment;

/// What follows from an arrival.
#[derive(Debug)]
#[non_exhaustive]
pub struct Arrived<S> {
    /// What has become of the add; none if the arrival is no reason for a reconcile.
    pub added: Option<Added>,
    /// A last state that is not kept any more, of this or of another key. Its drop is user code, so the
    /// caller drops it outside of its lock.
    pub released: Option<Object<S>>,
}

/// What a reconcile knows of its key.
#[derive(Debug)]
pub struct Begun<S> {
    /// Why it is run.
    pub causes: Causes,
    /// Also whether its object may live on.
    last: Option<(Object<S>, bool)>,
    rest: Option<State>,
    state: Option<State>,
}

/// What follows from the end of a reconcile.
#[derive(Debug)]
#[non_exhaustive]
pub struct Concluded<S> {
    /// The delay of the next attempt, if there is one.
    pub retry: Option<Duration>,
    /// How its failure is logged.
    pub telling: Telling,
    /// As [`Arrived::released`].
    pub released: Option<Object<S>>,
}

/// The queue of a controller, and what is known of its keys; the module's documentation describes it.
///
/// ```
/// # use informer_operator::controller::machine::{Arrival, Book, Ended, Reason};
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
/// let mut begun = book.handle_begin(&key, taken.note);
/// begun.look(Some(first.cached_meta()));
/// assert!(!begun.rests() && begun.deleted().is_none() && begun.causes[..] == [Reason::Triggered]);
/// let moment = Moment { now, chance: 0.0 };
/// book.handle_end(&key, (Ended::UntilChanged, &begun, None), &mut default_limiter(), moment);
/// assert!(book.handle_arrival(&key, Arrival::Output, why(), now).added.is_none(), "it rests");
/// assert!(book.handle_arrival(&key, present(&second), why(), now).added.is_some(), "it has changed");
/// ```
pub type Book<S> = QueueMachine<ObjectKey, Kept<S>>;

impl<S> QueueMachine<ObjectKey, Kept<S>> {
    /// Something leads to this key. If it is a reason, the key is added with it; if the time is not zero,
    /// only after this time without a further arrival.
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
                let life =
                    |last: &Last<S>| meta.uid.is_some() && last.state.object_uid() == meta.uid.as_ref();
                if known.last.as_ref().is_some_and(life) {
                    // It had left and is back.
                    released = known.take_last(tally);
                }
            }
            let news = News::of(&arrival);
            if known.rest.as_ref().is_some_and(|rest| !news.is_to(rest)) {
                tally.figures.ignored += 1;
                return Arrived { added: None, released };
            }
            known.take_rest(tally);
            if let Some(run) = &mut known.run {
                run.news.add(news);
            }
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

    /// Nothing leads to this key any more. Returns `None`, and changes nothing, if the key is being
    /// reconciled.
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

    /// The work on this key begins now, with what was handed out. The cache is read after this call.
    pub fn handle_begin(&mut self, key: &ObjectKey, mut handed: Kept<S>) -> Begun<S> {
        handed.merge(self.begin(key));
        let mut begun = Begun { causes: handed.why.into_causes(), last: None, rest: None, state: None };
        if let (Some(kept), tally) = self.noted(key) {
            let known = kept.know();
            known.run = Some(Run::default());
            begun.rest = known.take_rest(tally);
            begun.last = known.last.as_ref().map(|last| (last.state.clone(), last.has_left));
        }
        begun
    }

    /// The reconcile in progress will write nothing more, and these are the answers to its writes. If events
    /// of owned objects came before, and the answers do not show them, the key is handed out once more, also
    /// in a drain. Returns whether it is.
    ///
    /// `is_told` returns for the number of an informer whether its objects come as [`Arrival::Made`]: only
    /// for these an answer is kept. A book without such arrivals needs no such calls. Otherwise, if the call
    /// is missing, what waits for it is forgotten with the run, which then has to be tried again.
    pub fn handle_writes(
        &mut self,
        key: &ObjectKey,
        writes: &Writes,
        is_told: impl Fn(usize) -> bool,
        now: Duration,
    ) -> bool {
        let mut early = Vec::new();
        if let Some(run) = self.known(key).0.and_then(|known| known.run.as_mut()) {
            (run.is_answered, early) = (true, std::mem::take(&mut run.early));
        }
        let told = writes.iter().filter(|(informer, _, awaited)| is_told(*informer) && !awaited.is_removal());
        let Tally { answered, figures, .. } = &mut self.tally;
        for (informer, object, awaited) in told {
            answered.keep((informer, object.clone()), key, &awaited.version);
        }
        let mut all: Option<Why> = None;
        for (place, version, reason) in early {
            if answered.take(&place, key, &version) {
                figures.answered += 1;
            } else {
                all.get_or_insert_default().merge(reason.into());
            }
        }
        all.is_some_and(|why| self.again(key, (Priority::Normal, why.into()), now))
    }

    /// A cache has not shown this write in time. The next reconcile may not see it, so its event leads to one
    /// more. Returns the number of writes of this informer to log now, if a warning is due.
    pub fn handle_not_seen(&mut self, informer: usize, object: &ObjectKey, now: Duration) -> Option<u64> {
        self.tally.answered.forget(&(informer, object.clone()));
        self.tally.not_seen.entry(informer).or_default().count(now)
    }

    /// The reconcile of this key has ended, with this reason if it has failed: the key comes back.
    pub fn handle_end(
        &mut self,
        key: &ObjectKey,
        (ended, begun, why): (Ended, &Begun<S>, Option<&Arc<str>>),
        limiter: &mut (impl RateLimiter<ObjectKey> + ?Sized),
        moment: Moment,
    ) -> Concluded<S> {
        let (next, now) = (ended.next(), moment.now);
        let released = self.end_run(key, next, begun);
        let failing = &mut self.tally.failing;
        let telling = why.map_or(Telling::Repeat, |why| failing.handle_failure(key, why, now));
        let mut retry = None;
        if next == Next::Retry {
            retry = self.retry_with(key, Reason::Failed.into(), limiter, moment);
            return Concluded { retry, telling, released };
        }
        if why.is_none() && !begun.rests() {
            failing.handle_success(key);
        }
        limiter.forget(key);
        let _is_back = match next {
            Next::After(delay) => self.retry_after_with(key, delay, Reason::Requeued.into(), now),
            _ => self.done(key, now),
        };
        Concluded { retry, telling, released }
    }

    fn end_run(&mut self, key: &ObjectKey, next: Next, begun: &Begun<S>) -> Option<Object<S>> {
        let (Some(known), tally) = self.known(key) else { return None };
        let run = known.run.take()?;
        tally.figures.ignored += u64::from(begun.rests());
        // Without an object nothing could end the rest.
        if next == Next::Rest
            && let Some(state) = begun.state.as_ref().filter(|state| !run.news.is_to(state))
            && tally.figures.resting < MOST_RESTING
        {
            known.rest = Some(state.clone());
            tally.figures.resting += 1;
        }
        let given = begun.given().filter(|_| matches!(next, Next::Done | Next::Rest))?;
        if known.last.as_ref().is_some_and(|last| last.state.ptr_eq(given)) {
            known.take_last(tally)
        } else {
            None
        }
    }

    /// Whether a last state is kept for this key of an object that has left what is followed.
    pub fn keeps_left(&mut self, key: &ObjectKey) -> bool {
        self.known(key).0.and_then(|known| known.last.as_ref()).is_some_and(|last| last.has_left)
    }

    fn known(&mut self, key: &ObjectKey) -> (Option<&mut Known<S>>, &mut Tally) {
        let (kept, tally) = self.noted(key);
        (kept.and_then(Kept::known), tally)
    }

    /// The returned state may be that of another key.
    fn keep(&mut self, key: &ObjectKey, last: &Object<S>, has_left: bool) -> Option<Object<S>> {
        let (Some(kept), tally) = self.noted(key) else { return None };
        kept.know().keep(last, has_left, tally).or_else(|| self.release_oldest())
    }

    fn release_oldest(&mut self) -> Option<Object<S>> {
        let oldest = self.tally.oldest()?;
        let (known, tally) = self.known(&oldest);
        let released = known.and_then(|known| known.take_last(tally));
        self.free(&oldest);
        released
    }

    /// The controller has ended. Returns all last states, of which none is kept any more.
    pub fn handle_over(&mut self) -> Vec<Object<S>> {
        self.tally.most_deleted = 0;
        std::iter::from_fn(|| self.release_oldest()).collect()
    }

    fn is_unanswered(&mut self, key: &ObjectKey, arrival: &Arrival<'_, S>, reason: &Reason) -> bool {
        let (place, version) = match arrival {
            Arrival::Unmade { informer, object } => ((*informer, ObjectKey::clone(object)), None),
            Arrival::Made { informer, meta, is_again } => {
                ((*informer, meta.key.clone()), Some(&meta.version).filter(|_| !is_again))
            }
            _ => return true,
        };
        let (known, tally) = self.known(key);
        let Some(version) = version else {
            tally.answered.forget(&place);
            return true;
        };
        if let Some(run) = known.and_then(|known| known.run.as_mut())
            && !run.is_answered
            && run.early.len() < MOST_WRITES
        {
            run.early.push((place, version.clone(), reason.clone()));
            return false;
        }
        let is_known = tally.answered.take(&place, key, version);
        tally.figures.answered += u64::from(is_known);
        !is_known
    }
}

impl<S> Begun<S> {
    /// Sets what the cache has of its object now.
    pub fn look(&mut self, cached: Option<&Meta>) {
        self.state = cached.map(State::of);
    }

    /// Whether the key rests: there is nothing to do.
    pub fn rests(&self) -> bool {
        // A change between the cache read and the begin of the last reconcile shows only here.
        self.rest.is_some() && self.rest == self.state
    }

    /// The last state of the object of this key that is deleted, until its end is reconciled.
    pub fn deleted(&self) -> Option<&Object<S>> {
        self.given().filter(|_| !self.may_live())
    }

    /// The last state of an object that is not followed any more, and may live on. Never both.
    pub fn left(&self) -> Option<&Object<S>> {
        self.given().filter(|_| self.may_live())
    }

    /// As [`Arrived::released`], when the reconcile has ended.
    pub fn release(&mut self) -> Option<Object<S>> {
        self.last.take().map(|(last, _)| last)
    }

    fn given(&self) -> Option<&Object<S>> {
        // A state that the cache still shows, or another one of the same uid, is not given as gone. Without
        // uids a newer version is another object.
        let is_gone = |last: &&Object<S>| {
            self.state.as_ref().is_none_or(|now| match (&now.uid, last.object_uid()) {
                (Some(now), Some(last)) => now != last,
                _ => now.version > *last.version(),
            })
        };
        self.last.as_ref().map(|(last, _)| last).filter(is_gone).filter(|_| !self.rests())
    }

    /// Another object under the same name ends the former.
    fn may_live(&self) -> bool {
        self.state.is_none() && self.last.as_ref().is_some_and(|(_, has_left)| *has_left)
    }
}
