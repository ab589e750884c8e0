//! The Listener's state machine: when it attaches, delivers, yields and answers. Invariants:
//! 1. One window at a time: the next is delivered when the one before was handled.
//! 2. Every state records a publish at once; only its delivery waits.
//! 3. Figures are shown after a window, before a drain is answered, and before the end of the initial events is
//!    marked.
//! 4. A drain is answered when no event waits or is with the subscriber. It does not wait for a stream that is not
//!    polled.
//!
//! ```text
//!  handle_start, handle_changes, handle_handled, handle_take, ... ─▶ machine ─▶ poll_effect until there is none
//! ```

use std::sync::Arc;
use std::time::Duration;

use super::waiting::Events;
use super::{Backlog, Notifications};
use crate::delta::Changes;
use crate::meta::SourceId;
use crate::off_arbiter::{Freeing, Release};
use crate::snapshot::Snapshot;

mod effect;

pub use effect::{Figures, ListenerConfig, ListenerEffect};

/// The most notifications in a window unless a subscription sets another number. A turn visits up to this
/// many keys, also for a smaller window.
pub const WINDOW: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Window {
    /// Only of a stream.
    NotWanted,
    Wanted,
    /// This many notifications are with the subscriber.
    UnderWay(u16),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Drains {
    None,
    Wait,
    /// The stream is not polled: the drain is answered early.
    GivenUp,
}

type Beginning<S> = (ListenerConfig<S>, Freeing<Events<S>>);

/// The state of one listener.
pub struct ListenerMachine<S> {
    config: Option<Box<Beginning<S>>>,
    backlog: Option<Backlog<S>>,
    is_attaching: bool,
    must_attach: bool,
    window: Window,
    most: u16,
    is_yielding: bool,
    is_shown: bool,
    handled: u64,
    drains: Drains,
    /// How often the stream had been polled when the wait for its next poll began.
    polls: Option<u64>,
    mark: Mark,
    has_ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    NotAsked,
    Owed,
    Given,
}

impl<S> ListenerMachine<S> {
    /// A listener that has to attach first.
    pub fn new(config: ListenerConfig<S>) -> Self {
        let window = if config.is_pulled { Window::NotWanted } else { Window::Wanted };
        Self {
            most: u16::try_from(config.window).unwrap_or(u16::MAX).max(1),
            config: Some(Box::new((config, Freeing::in_place()))),
            backlog: None,
            is_attaching: true,
            must_attach: true,
            window,
            is_yielding: false,
            is_shown: false,
            handled: 0,
            drains: Drains::None,
            polls: None,
            mark: Mark::NotAsked,
            has_ended: false,
        }
    }

    /// The same; events that will not be delivered any more are freed by `release` instead of where they are
    /// dropped.
    #[must_use]
    pub fn releasing_to(mut self, release: Arc<dyn Release>) -> Self
    where
        S: Send + Sync + 'static,
    {
        if let Some(config) = &mut self.config {
            config.1 = Freeing::whole(release);
        }
        self
    }

    /// Takes out what waits, so that it can be freed elsewhere: the listener ends.
    pub fn take_backlog(&mut self) -> Option<Backlog<S>> {
        self.backlog.take()
    }

    /// The Processor has attached it, from this snapshot on.
    pub fn handle_start(&mut self, snapshot: Snapshot<S>, now: Duration) {
        debug_assert!(self.is_attaching, "a start answers an attach");
        (self.is_attaching, self.is_shown) = (false, false);
        match &mut self.backlog {
            Some(backlog) => {
                backlog.set_now(now);
                backlog.reattach(snapshot);
            }
            None => {
                let Some(config) = self.config.take() else { return };
                let (config, freeing) = *config;
                let sources = config.sources.iter().cloned();
                let backlog = match config.seen {
                    Some(seen) => Backlog::resumed_from(config.policy, seen, snapshot),
                    None => Backlog::starting_from(config.policy, sources, snapshot),
                };
                self.backlog = Some(backlog.filtered_by(config.filter).free_by(&freeing));
            }
        }
    }

    /// The Processor was rebuilt.
    pub fn handle_reattach(&mut self) {
        (self.is_attaching, self.must_attach) = (true, true);
    }

    /// Something was published; with `resync` every object is to be delivered again. Its oldest event was
    /// read when it `arrived`, from which its age counts.
    pub fn handle_changes(
        &mut self,
        changes: &[Changes<S>],
        snapshot: &Snapshot<S>,
        resync: bool,
        arrived: Duration,
    ) {
        debug_assert!(!self.is_attaching, "the Processor sends changes to attached listeners only");
        let Some(backlog) = &mut self.backlog else { return };
        backlog.set_now(arrived);
        backlog.publish(changes, snapshot);
        // A subscription that shuts down receives what waits and no resync: that might never end.
        if resync && self.drains == Drains::None {
            backlog.resync();
        }
        self.is_shown = false;
    }

    /// Sources may have been added or removed; `sources` returns the present ones. It is called only until
    /// the initial events are delivered, for which the first list of each is waited for. Call this before
    /// [`Self::handle_changes`] and [`Self::handle_handled`], and around [`Self::handle_start`].
    pub fn handle_sources(&mut self, sources: impl FnOnce() -> Option<Vec<SourceId>>) {
        if let Some(backlog) = self.backlog.as_mut().filter(|backlog| !backlog.initial_delivered())
            && let Some(sources) = sources()
        {
            backlog.follow_sources(sources);
            self.is_shown = false;
        }
    }

    /// The subscriber has handled its window.
    pub fn handle_handled(&mut self) {
        debug_assert!(matches!(self.window, Window::UnderWay(_)), "only what was given is handled");
        self.acknowledge();
    }

    /// A stream requests the next window: what it took before is handled. With `is_marked` the end of the
    /// initial events is marked, once: [`Notifications::InitDone`].
    pub fn handle_take(&mut self, is_marked: bool) {
        if is_marked && self.mark == Mark::NotAsked {
            self.mark = Mark::Owed;
        }
        self.acknowledge();
    }

    /// Other actors have had a turn.
    pub fn handle_turn(&mut self) {
        debug_assert!(self.is_yielding, "a turn follows a yield");
        // It may be the last one, with nothing more to deliver.
        (self.is_yielding, self.is_shown) = (false, false);
    }

    /// A caller waits until everything is delivered.
    pub fn handle_drain(&mut self) {
        self.drains = Drains::Wait;
    }

    /// The wait for the next poll of a stream is over; `polls` is how often it has been polled.
    pub fn handle_waited_for_poll(&mut self, polls: u64) {
        let was_polled = self.polls.take() != Some(polls);
        // The drain may have been answered in between.
        let is_awaited = self.drains == Drains::Wait;
        if is_awaited && !was_polled && self.window != Window::Wanted && !self.is_attaching {
            self.drains = Drains::GivenUp;
        }
    }

    /// What to do next; `polls` is how often the stream was polled, `None` if the subscriber is not a stream.
    pub fn poll_effect(&mut self, polls: Option<u64>) -> Option<ListenerEffect<S>> {
        if self.has_ended {
            return None;
        }
        if std::mem::take(&mut self.must_attach) {
            return Some(ListenerEffect::Attach);
        }
        if let Some(effect) = self.next_delivery().or_else(|| self.next_walk()) {
            return Some(effect);
        }
        if !std::mem::replace(&mut self.is_shown, true) {
            return Some(ListenerEffect::Show(self.figures()));
        }
        if let Some(dropped) = self.backlog.as_ref().and_then(Backlog::overflow) {
            self.has_ended = true;
            return Some(ListenerEffect::End { dropped });
        }
        self.next_answer(polls)
    }

    fn next_delivery(&mut self) -> Option<ListenerEffect<S>> {
        if self.is_yielding || self.window != Window::Wanted {
            return None;
        }
        let backlog = self.backlog.as_mut()?;
        let most = usize::from(self.most);
        let is_owed = self.mark == Mark::Owed;
        if is_owed {
            backlog.separate_initial();
        }
        for _ in 0..(WINDOW / most).max(1) {
            let is_due = |backlog: &Backlog<S>| is_owed && backlog.initial_delivered();
            let is_due_before = is_due(backlog);
            let window = if is_due_before { Notifications::InitDone } else { backlog.next_window(most) };
            // A window without events may have been the last initial one.
            let is_mark = is_due_before || (window.is_empty() && is_due(backlog));
            if is_mark {
                // The mark says that the subscription is synced: that is shown first.
                if !std::mem::replace(&mut self.is_shown, true) {
                    return Some(ListenerEffect::Show(self.figures()));
                }
                (self.mark, self.window, self.is_shown) = (Mark::Given, Window::UnderWay(0), false);
                return Some(ListenerEffect::Deliver(Notifications::InitDone));
            }
            if !window.is_empty() {
                let given = u16::try_from(window.len()).unwrap_or(u16::MAX);
                (self.window, self.is_shown) = (Window::UnderWay(given), false);
                return Some(ListenerEffect::Deliver(window));
            }
            if backlog.is_empty() {
                return None;
            }
        }
        // The cursor passed keys without events; other actors come first.
        (self.is_yielding, self.is_shown) = (true, false);
        Some(ListenerEffect::Yield)
    }

    fn next_walk(&mut self) -> Option<ListenerEffect<S>> {
        let backlog = self.backlog.as_mut().filter(|backlog| !self.is_yielding && backlog.must_walk())?;
        backlog.walk();
        (self.is_yielding, self.is_shown) = (true, false);
        Some(ListenerEffect::Yield)
    }

    fn next_answer(&mut self, polls: Option<u64>) -> Option<ListenerEffect<S>> {
        let is_never_polled = polls == Some(0) && !self.is_attaching;
        match self.drains {
            Drains::None => None,
            Drains::Wait if !self.is_drained() && !is_never_polled => {
                let is_new = self.polls.is_none() && polls.is_some();
                self.polls = self.polls.or(polls);
                is_new.then_some(ListenerEffect::AwaitPoll)
            }
            Drains::Wait | Drains::GivenUp => {
                self.drains = Drains::None;
                Some(ListenerEffect::AnswerDrains)
            }
        }
    }

    fn acknowledge(&mut self) {
        (self.window, self.is_shown) = (Window::Wanted, false);
        if let Some(backlog) = &mut self.backlog {
            self.handled = backlog.delivered();
            backlog.acknowledge();
        }
    }

    /// As [`Backlog::settled`].
    pub fn settled(&self) -> Option<&Snapshot<S>> {
        self.backlog.as_ref().filter(|_| !self.is_attaching)?.settled()
    }

    fn is_drained(&self) -> bool {
        let is_empty = self.backlog.as_ref().is_some_and(Backlog::is_empty);
        !self.is_attaching && is_empty && !matches!(self.window, Window::UnderWay(_))
    }

    fn figures(&self) -> Figures {
        let in_flight = if let Window::UnderWay(count) = self.window { usize::from(count) } else { 0 };
        let Some(backlog) = &self.backlog else { return Figures { in_flight, ..Figures::default() } };
        let stats = backlog.stats();
        Figures {
            synced: backlog.initial_delivered(),
            depth: stats.depth,
            oldest_since: stats.oldest_since,
            in_flight,
            coalesced: stats.coalesced,
            dropped: stats.dropped,
            filtered: stats.filtered,
            delivered: self.handled,
        }
    }
}

crate::debug_as!([S] ListenerMachine<S>, self,
    is_attaching = self.is_attaching,
    window = self.window,
    figures = self.figures()
);
