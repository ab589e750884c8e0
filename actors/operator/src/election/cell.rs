//! What every thread reads of an election without a message.
//!
//! 1. A term is shown only before its end, by a clock that counts suspensions.
//! 2. After a shutdown begins, and after the actor has ended or was told to, no term is shown, whatever the
//!    actor writes.
//! 3. Tokens are cancelled and waiters woken without the lock. After a panic that leaves the state half
//!    changed, no term is shown.
//! 4. [`Term::begin_work`] is refused after the end: who sees a term end sees all its work.

use std::sync::Arc;
use std::time::Duration;

use crate::election::machine::{ElectionFigures, LONGEST_WORK, Leading, Settings, WhyNot, is_healthy};
use tokio_util::sync::CancellationToken;

use super::Unhealthy;
use informer_actors::inner::{Clock, Locked, Machine, RandomNumbers, Signal};
use informer_core::reflector::Moment;

/// How an election is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElectionStatus {
    /// The lease, as `namespace/name`.
    pub lease: Arc<str>,
    /// The name of this candidate.
    pub identity: Arc<str>,
    /// The fencing number, if this process leads: `leader_election_master_status` is 1.
    pub fence: Option<u64>,
    /// For how long work may still begin if the lease is not renewed; zero if this process does not lead.
    pub lasts_for: Duration,
    /// Who holds the lease, as it was seen last; empty if nobody does.
    pub holder: Arc<str>,
    /// Why this process does not lead; `None` if it does.
    pub why_not: Option<WhyNot>,
    /// The last failure of a request; `None` after a success.
    pub last_error: Option<Arc<str>>,
    /// Why the lease could not be written at last; `None` after a write that succeeded, and while another one
    /// holds it.
    pub write_error: Option<Arc<str>>,
    /// For how long requests have failed, if the last one has.
    pub failing_for: Option<Duration>,
    /// Whether it was ever known who leads: the server has answered that another one holds the lease, or has
    /// accepted a write of it.
    pub answered: bool,
    /// What was counted.
    pub figures: ElectionFigures,
    /// How often the actor was built again after a panic.
    pub restarts: u64,
    /// Whether the election has ended.
    pub over: bool,
}

pub(super) struct Cell {
    pub(super) lease: Arc<str>,
    pub(super) settings: Settings,
    pub(super) changes: Signal,
    pub(super) stop: CancellationToken,
    state: Locked<State>,
}

pub(super) struct News {
    pub(super) leading: Option<Leading>,
    pub(super) holder: Arc<str>,
    pub(super) why_not: WhyNot,
    pub(super) kept_since: Option<Duration>,
    pub(super) figures: ElectionFigures,
    pub(super) last_error: Option<Arc<str>>,
    pub(super) write_error: Option<Arc<str>>,
    pub(super) failing_since: Option<Duration>,
}

#[derive(Clone)]
pub(super) struct Ongoing {
    pub(super) fence: u64,
    /// Counted in this process: the fence of a deleted lease may come again.
    pub(super) number: u64,
    pub(super) ended: CancellationToken,
}

struct State {
    news: News,
    term: Option<Ongoing>,
    terms: u64,
    /// Begun in any term.
    works: usize,
    built: u64,
    /// It takes part, or will when the actor notices.
    begun: bool,
    ending: bool,
    over: bool,
    released: bool,
    answered: bool,
}

impl Machine for State {
    fn is_sound(&self) -> bool {
        self.news.leading.map(|leading| leading.fence) == self.term.as_ref().map(|term| term.fence)
    }

    fn rebuild(&mut self, _: Moment) {
        self.news.leading = None;
        if let Some(term) = self.term.take() {
            term.ended.cancel();
        }
    }
}

impl State {
    fn leading(&self, now: Duration) -> Option<Leading> {
        self.news.leading.filter(|leading| now < leading.until)
    }
}

impl Cell {
    pub(super) fn new(
        lease: Arc<str>,
        settings: Settings,
        time: (Clock, RandomNumbers),
        stop: CancellationToken,
    ) -> Self {
        let news = News {
            leading: None,
            holder: "".into(),
            why_not: WhyNot::NotBegun,
            kept_since: None,
            figures: ElectionFigures::default(),
            last_error: None,
            write_error: None,
            failing_since: None,
        };
        let (begun, ending, over, released, answered) = (false, false, false, false, false);
        let (term, terms, works, built) = (None, 0, 0, 0);
        let state = State { news, term, terms, works, built, begun, ending, over, released, answered };
        Self { lease, settings, changes: Signal::default(), stop, state: Locked::new(state, time) }
    }

    /// The time is read under the lock: what was published is not in the future.
    fn with<R>(&self, call: impl FnOnce(&mut State, Duration) -> R) -> R {
        self.state.with(|state, _| call(state, self.now()))
    }

    pub(super) fn chance(&self) -> f64 {
        self.state.with(|_, moment| moment.chance)
    }

    pub(super) fn now(&self) -> Duration {
        self.clock().with_suspension()
    }

    pub(super) fn clock(&self) -> &Clock {
        self.state.clock()
    }

    pub(super) fn leading(&self) -> Option<Leading> {
        self.with(|state, now| state.leading(now)).filter(|_| !self.stop.is_cancelled())
    }

    pub(super) fn term(&self) -> Option<Ongoing> {
        let term = self.with(|state, now| state.leading(now).and_then(|_| state.term.clone()));
        term.filter(|_| !self.stop.is_cancelled())
    }

    pub(super) fn begin_work(&self, number: u64) -> bool {
        self.with(|state, now| {
            let lasts = state.leading(now).is_some() && !self.stop.is_cancelled();
            let begins = lasts && state.term.as_ref().is_some_and(|term| term.number == number);
            state.works += usize::from(begins);
            begins
        })
    }

    pub(super) fn end_work(&self) {
        self.with(|state, _| state.works = state.works.saturating_sub(1));
    }

    pub(super) fn has_work(&self) -> bool {
        self.with(|state, _| state.works > 0)
    }

    /// False if it had begun.
    pub(super) fn set_begun(&self) -> bool {
        self.with(|state, _| {
            if state.news.why_not == WhyNot::NotBegun {
                state.news.why_not = WhyNot::NotTried;
            }
            !std::mem::replace(&mut state.begun, true)
        })
    }

    pub(super) fn has_begun(&self) -> bool {
        self.with(|state, _| state.begun)
    }

    fn end_term(&self, change: impl FnOnce(&mut State)) {
        let ended = self.with(|state, _| {
            change(state);
            state.news.leading = None;
            state.term.take()
        });
        self.has_changed(ended);
    }

    fn has_changed(&self, ended: Option<Ongoing>) {
        if let Some(term) = ended {
            term.ended.cancel();
        }
        self.changes.raise();
    }

    pub(super) fn end_life(&self) {
        self.end_term(|_| {});
    }

    /// True if this actor is not the first.
    pub(super) fn begin_life(&self) -> bool {
        self.end_term(|state| state.built += 1);
        self.with(|state, _| state.built > 1)
    }

    /// Returns the fence of a new term, and whether a term has ended.
    pub(super) fn publish(&self, mut news: News) -> (Option<u64>, bool) {
        let (began, ended, has_changed) = self.with(|state, now| {
            if state.ending || state.over {
                news.leading = None;
                news.why_not = WhyNot::ShutDown;
            }
            let fence = news.leading.map(|leading| leading.fence);
            let before = state.term.as_ref().map(|term| term.fence);
            // A reader since then has seen no term.
            let was_over = state.news.leading.is_some_and(|leading| leading.until <= now);
            state.news = news;
            if fence == before {
                return (None, None, was_over);
            }
            state.terms += u64::from(fence.is_some());
            let (number, ended) = (state.terms, self.stop.child_token());
            let term = fence.map(|fence| Ongoing { fence, number, ended });
            (fence, std::mem::replace(&mut state.term, term), true)
        });
        let has_ended = ended.is_some();
        if has_changed {
            self.has_changed(ended);
        }
        (began, has_ended)
    }

    pub(super) fn set_answered(&self) {
        if !self.with(|state, _| std::mem::replace(&mut state.answered, true)) {
            self.has_changed(None);
        }
    }

    pub(super) fn is_answered(&self) -> bool {
        self.with(|state, _| state.answered)
    }

    pub(super) fn begin_end(&self) {
        self.end_term(|state| {
            state.ending = true;
            state.news.why_not = WhyNot::ShutDown;
        });
    }

    pub(super) fn is_ending(&self) -> bool {
        self.with(|state, _| state.ending)
    }

    /// Also when there was nothing to give back.
    pub(super) fn set_released(&self) {
        self.with(|state, _| state.released = true);
    }

    pub(super) fn is_released(&self) -> bool {
        self.with(|state, _| state.released)
    }

    pub(super) fn set_over(&self) {
        self.end_term(|state| state.over = true);
    }

    pub(super) fn is_over(&self) -> bool {
        self.stop.is_cancelled() || self.with(|state, _| state.over)
    }

    /// `None` if the election is over before a look has an outcome.
    pub(super) async fn until<T>(&self, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        loop {
            let seen = self.changes.count();
            let outcome = look();
            if outcome.is_some() || self.is_over() {
                return outcome;
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                () = self.changes.since(seen) => {}
            }
        }
    }

    pub(super) async fn over(&self) {
        let _over = self.until(|| None::<()>).await;
    }

    pub(super) fn health(&self, tolerance: Duration) -> Result<(), Unhealthy> {
        self.with(|state, now| {
            let lease = Arc::clone(&self.lease);
            let over = state.over || self.stop.is_cancelled();
            if over && !state.ending {
                return Err(Unhealthy::Ended { lease });
            }
            let kept = state.news.kept_since.filter(|_| !over && state.works > 0);
            let kept = kept.map(|since| now.saturating_sub(since));
            if let Some(kept) = kept.filter(|kept| *kept > LONGEST_WORK) {
                return Err(Unhealthy::FormerWork { lease, since: kept });
            }
            let shown = state.news.leading.filter(|_| !over);
            match shown {
                Some(term) if !is_healthy(&self.settings, shown, tolerance, now) => {
                    Err(Unhealthy::Stuck { lease, late: now.saturating_sub(term.until) })
                }
                _ => Ok(()),
            }
        })
    }

    pub(super) fn status(&self) -> ElectionStatus {
        self.with(|state, now| {
            let over = state.over || self.stop.is_cancelled();
            let (leading, news) = (state.leading(now).filter(|_| !self.stop.is_cancelled()), &state.news);
            let why_not = match &news.why_not {
                _ if over => WhyNot::ShutDown,
                // The actor has not noticed the end yet.
                _ if news.leading.is_some() => WhyNot::NotRenewed(self.settings.renew_deadline),
                why => why.clone(),
            };
            ElectionStatus {
                lease: Arc::clone(&self.lease),
                identity: Arc::clone(&self.settings.identity),
                fence: leading.map(|leading| leading.fence),
                lasts_for: leading.map_or(Duration::ZERO, |leading| leading.until.saturating_sub(now)),
                holder: Arc::clone(&news.holder),
                why_not: leading.is_none().then_some(why_not),
                last_error: news.last_error.clone(),
                write_error: news.write_error.clone(),
                failing_for: news.failing_since.map(|since| now.saturating_sub(since)),
                answered: state.answered,
                figures: news.figures,
                restarts: state.built.saturating_sub(1),
                over,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_term_that_a_panic_has_left_half_written_is_shown_to_nobody_and_ends() {
        informer_actors::runtime::Runtime::simulated(1).run(|runtime| async move {
            let (arbiter, ended) = (runtime.own_arbiter("election").unwrap(), CancellationToken::new());
            let time = (arbiter.handle().clock().clone(), runtime.chance());
            let cell = Cell::new("shop/a".into(), Settings::new("me"), time, CancellationToken::new());
            let half_written = |state: &mut State, now| -> () {
                state.news.leading = Some(Leading { fence: 2, until: now + Duration::from_secs(10) });
                state.term = Some(Ongoing { fence: 1, number: 1, ended: ended.clone() });
                panic!("half written")
            };
            assert!(catch_unwind(AssertUnwindSafe(|| cell.with(half_written))).is_err());
            assert_eq!((cell.leading(), cell.term().is_none()), (None, true));
            assert!(ended.is_cancelled());
        });
    }
}
