//! A listener's steps, driven through all interleavings of what can happen to it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::super::invariants::Replay;
use super::super::machine::{Figures, ListenerConfig, ListenerEffect, ListenerMachine, WINDOW};
use super::super::{Filter, Notifications, Policy, WhenFull};
use super::world::{Publish, World, publish, sources};
use crate::delta::Cause;
use crate::meta::ObjectKey;
use crate::snapshot::Snapshot;

/// What may happen; what cannot happen now is left out.
#[derive(Debug, Clone)]
enum Input {
    /// The Processor attaches it.
    Start,
    /// Something is published; a listener that is not attached hears of it when it is.
    Publish(Publish, bool),
    /// The group restarts.
    Reattach,
    /// The window is handled, or the stream asks for the next one.
    Handled,
    Turn,
    Drain,
    /// The time to wait for a poll is over.
    Waited,
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        4 => Just(Input::Start),
        8 => (publish(), prop::bool::weighted(0.2)).prop_map(|(publish, resync)| Input::Publish(publish, resync)),
        1 => Just(Input::Reattach),
        8 => Just(Input::Handled),
        4 => Just(Input::Turn),
        1 => Just(Input::Drain),
        1 => Just(Input::Waited),
    ]
}

/// What surrounds a listener: a Processor, a subscriber and somebody who shuts down.
struct Surroundings {
    world: World,
    machine: ListenerMachine<String>,
    is_pulled: bool,
    replay: Replay<String>,
    /// Whether keys are told, and which were.
    is_of_keys: bool,
    keys: BTreeSet<ObjectKey>,
    /// What the others know.
    is_attached: bool,
    wants_attach: bool,
    is_window_wanted: bool,
    in_flight: usize,
    polls: u64,
    is_yielding: bool,
    is_waiting_for_poll: bool,
    drains: usize,
    has_ended: bool,
    figures: Figures,
    /// Marks of the end of the initial events.
    marks: usize,
}

impl Surroundings {
    fn new(is_pulled: bool, policy: Policy, window: usize) -> Self {
        let config = ListenerConfig {
            policy,
            sources: Arc::from(sources()),
            filter: None,
            window,
            is_pulled,
            seen: None,
        };
        Self {
            world: World::default(),
            machine: ListenerMachine::new(config),
            is_pulled,
            replay: Replay::default(),
            is_of_keys: policy == Policy::Keys,
            keys: BTreeSet::new(),
            is_attached: false,
            wants_attach: false,
            is_window_wanted: !is_pulled,
            in_flight: 0,
            polls: 0,
            is_yielding: false,
            is_waiting_for_poll: false,
            drains: 0,
            has_ended: false,
            figures: Figures::default(),
            marks: 0,
        }
    }

    fn happen(&mut self, input: Input) -> Result<(), TestCaseError> {
        match input {
            Input::Start if self.wants_attach => {
                self.machine.handle_start(self.world.snapshot(), Duration::ZERO);
                (self.wants_attach, self.is_attached) = (false, true);
            }
            Input::Publish(publish, resync) => {
                let published = self.world.publish(publish);
                if published.is_restart {
                    (self.is_attached, self.wants_attach) = (false, false);
                    self.machine.handle_reattach();
                } else if self.is_attached {
                    self.machine.handle_changes(
                        &published.changes,
                        &published.snapshot,
                        resync,
                        Duration::ZERO,
                    );
                }
            }
            Input::Reattach => {
                (self.is_attached, self.wants_attach) = (false, false);
                self.machine.handle_reattach();
            }
            Input::Handled if self.is_pulled => {
                (self.is_window_wanted, self.in_flight) = (true, 0);
                self.polls += 1;
                self.machine.handle_take(true);
            }
            Input::Handled if self.in_flight > 0 => {
                (self.is_window_wanted, self.in_flight) = (true, 0);
                self.machine.handle_handled();
            }
            Input::Turn if std::mem::take(&mut self.is_yielding) => self.machine.handle_turn(),
            Input::Drain => {
                self.drains += 1;
                self.machine.handle_drain();
            }
            Input::Waited if std::mem::take(&mut self.is_waiting_for_poll) => {
                self.machine.handle_waited_for_poll(self.polls);
            }
            _ => return Ok(()),
        }
        self.obey()
    }

    /// Does what the machine says, until it says nothing.
    fn obey(&mut self) -> Result<(), TestCaseError> {
        let polls = self.is_pulled.then_some(self.polls);
        let mut said = Vec::new();
        while let Some(effect) = self.machine.poll_effect(polls) {
            prop_assert!(said.len() < 8, "it never ends: {said:?}");
            prop_assert!(!self.has_ended, "{effect:?} after the end");
            said.push(format!("{effect:?}").chars().take(16).collect::<String>());
            self.check_order(&said)?;
            match effect {
                ListenerEffect::Attach => self.wants_attach = true,
                ListenerEffect::Deliver(Notifications::InitDone) => {
                    prop_assert!(self.is_pulled && self.is_window_wanted && self.world.is_listed());
                    prop_assert!(self.figures.synced, "shown before");
                    (self.marks, self.is_window_wanted, self.in_flight) = (self.marks + 1, false, 0);
                }
                ListenerEffect::Deliver(window) => {
                    prop_assert!(self.is_window_wanted && self.in_flight == 0, "a window too many");
                    prop_assert!((1..=WINDOW * 4).contains(&window.len()));
                    (self.is_window_wanted, self.in_flight) = (false, window.len());
                    match window {
                        Notifications::Changes(changes) => {
                            for change in &changes {
                                prop_assert_eq!(self.replay.apply(change), Ok(()));
                                let is_initial = change.cause() == Cause::InitialList;
                                prop_assert!(!is_initial || self.marks == 0, "behind the mark");
                            }
                        }
                        Notifications::InitDone => {}
                        Notifications::Keys(keys) => self.keys.extend(keys.into_iter().map(|(key, _)| key)),
                    }
                }
                ListenerEffect::Yield => {
                    prop_assert!(!self.is_yielding, "it yields twice");
                    self.is_yielding = true;
                }
                ListenerEffect::Show(figures) => {
                    prop_assert_eq!(figures.in_flight, self.in_flight);
                    prop_assert!(!self.figures.synced || figures.synced, "latched");
                    self.figures = figures;
                }
                ListenerEffect::AwaitPoll => {
                    prop_assert!(self.is_pulled && !self.is_waiting_for_poll);
                    self.is_waiting_for_poll = true;
                }
                ListenerEffect::AnswerDrains => {
                    prop_assert!(self.drains > 0, "nobody waits");
                    let is_done = self.in_flight == 0 && self.figures.depth == 0;
                    prop_assert!((is_done && self.is_attached) || self.is_pulled, "answered too early");
                    self.drains = 0;
                }
                ListenerEffect::End { .. } => self.has_ended = true,
            }
        }
        if !self.has_ended && self.drains > 0 && self.is_attached && !self.is_pulled {
            prop_assert!(self.in_flight > 0 || self.is_yielding, "nobody answers the drain");
        }
        Ok(())
    }

    /// Figures are shown once a turn, behind the window and before an answer or the end.
    fn check_order(&self, said: &[String]) -> Result<(), TestCaseError> {
        let place = |name: &str| said.iter().position(|effect| effect.starts_with(name));
        let shown = said.iter().filter(|effect| effect.starts_with("Show")).count();
        prop_assert!(shown <= 2, "{said:?}");
        let last_show = said.iter().rposition(|effect| effect.starts_with("Show"));
        if let (Some(deliver), Some(show)) = (place("Deliver"), last_show) {
            let is_mark = said[deliver].starts_with("Deliver(Init");
            prop_assert!(deliver < show || is_mark, "{said:?}");
        }
        prop_assert!(place("Deliver").is_none() || place("End").is_none() || place("Show").is_some());
        Ok(())
    }

    /// Lets everything come to rest, and then the subscriber knows the world.
    fn settle(mut self) -> Result<(), TestCaseError> {
        for source in 0..2 {
            self.happen(Input::Publish(Publish::List(source, Vec::new()), false))?;
        }
        for _ in 0..2_000 {
            self.happen(Input::Start)?;
            self.happen(Input::Turn)?;
            self.happen(Input::Handled)?;
            self.happen(Input::Waited)?;
        }
        if self.has_ended {
            return Ok(());
        }
        prop_assert_eq!(self.marks, usize::from(self.is_pulled), "one mark");
        prop_assert!(self.figures.synced && self.figures.depth == 0 && self.in_flight == 0);
        if self.is_of_keys {
            let is_told = |key: &ObjectKey| self.keys.contains(key);
            prop_assert!(self.world.live.keys().all(is_told), "delivered: {:?}", self.keys);
        } else {
            prop_assert_eq!(self.replay.equals(&self.world.snapshot()), Ok(()));
        }
        prop_assert_eq!(self.drains, 0, "somebody still waits for the drain");
        Ok(())
    }
}

fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::Coalesce),
        Just(Policy::Keys),
        Just(Policy::Every { bytes: 4 * 64, when_full: WhenFull::Restate }),
        Just(Policy::Every { bytes: 8 * 64, when_full: WhenFull::Disconnect }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn whatever_happens_in_whatever_order_one_window_at_a_time_is_given_and_all_is_delivered(
        inputs in prop::collection::vec(input(), 1..80),
        is_pulled in any::<bool>(),
        policy in policy(),
        window in prop_oneof![Just(1_usize), Just(WINDOW), Just(WINDOW * 4)],
    ) {
        let mut surroundings = Surroundings::new(is_pulled, policy, window);
        surroundings.obey()?;
        for input in inputs {
            surroundings.happen(input)?;
        }
        surroundings.settle()?;
    }
}

#[test]
fn a_stream_that_was_never_polled_is_given_up_once_it_is_attached() {
    let mut surroundings = Surroundings::new(true, Policy::Coalesce, WINDOW);
    surroundings.obey().expect("it asks for its place");
    surroundings.happen(Input::Drain).expect("a drain");
    assert_eq!(surroundings.drains, 1, "what it will owe is not known yet");
    surroundings.happen(Input::Start).expect("a start");
    assert_eq!(surroundings.drains, 0);
}

#[test]
fn a_wait_for_a_poll_that_ends_after_the_drain_was_answered_answers_nobody_again() {
    let mut surroundings = Surroundings::new(true, Policy::Coalesce, WINDOW);
    surroundings.obey().expect("it asks for its place");
    for input in [Input::Drain, Input::Start, Input::Waited] {
        surroundings.happen(input).expect("nobody waits");
    }
    assert_eq!(surroundings.drains, 0);
}

#[test]
fn who_is_being_shut_down_begins_no_resync() {
    let mut surroundings = Surroundings::new(false, Policy::Coalesce, WINDOW);
    surroundings.obey().expect("it asks for its place");
    surroundings.happen(Input::Start).expect("a start");
    let listed = Publish::List(0, vec![super::world::Deed::Write(0), super::world::Deed::Write(2)]);
    surroundings.happen(Input::Publish(listed, false)).expect("a list");
    surroundings.happen(Input::Drain).expect("a drain");
    surroundings.happen(Input::Publish(Publish::Parts(Vec::new()), true)).expect("a resync is due");
    surroundings.happen(Input::Handled).expect("the list is handled");
    assert_eq!((surroundings.drains, surroundings.replay.applied()), (0, 2));
}

#[test]
fn the_turn_that_finds_no_more_events_shows_that_the_initial_ones_are_delivered() {
    let objects: Vec<_> = (1..=1_000).map(|n| crate::snapshot::fixture::object(&format!("{n}"), n)).collect();
    let nothing = Filter::<String>::default().objects(|_| false);
    let mut machine = ListenerMachine::<String>::new(ListenerConfig {
        policy: Policy::Coalesce,
        sources: Arc::from([]),
        filter: Some(Arc::new(nothing)),
        window: WINDOW,
        is_pulled: false,
        seen: None,
    });
    assert!(matches!(machine.poll_effect(None), Some(ListenerEffect::Attach)));
    machine.handle_start(super::snapshot(&objects), Duration::ZERO);
    let mut shown = Vec::new();
    for _ in 0..10 {
        let mut yields = false;
        while let Some(effect) = machine.poll_effect(None) {
            match effect {
                ListenerEffect::Yield => yields = true,
                ListenerEffect::Show(figures) => shown.push((figures.synced, figures.oldest_since)),
                other => panic!("{other:?}"),
            }
        }
        if !yields {
            break;
        }
        machine.handle_turn();
    }
    assert!(shown.len() > 1);
    assert_eq!((shown.first(), shown.last()), (Some(&(false, Some(Duration::ZERO))), Some(&(true, None))));
}

#[test]
#[should_panic(expected = "only what was given is handled")]
fn what_was_not_given_cannot_be_handled() {
    let config = ListenerConfig {
        policy: Policy::Coalesce,
        sources: Arc::from([]),
        filter: None,
        window: 1,
        is_pulled: false,
        seen: None,
    };
    let mut machine = ListenerMachine::<String>::new(config);
    assert!(matches!(machine.poll_effect(None), Some(ListenerEffect::Attach)));
    machine.handle_start(Snapshot::empty(), Duration::ZERO);
    machine.handle_handled();
}
