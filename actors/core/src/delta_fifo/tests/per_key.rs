//! The queue order `PerKey`: contract scenarios, and any history against a naive model.

use proptest::prelude::*;

use super::{Batch, Bounds, DeltaQueue, Depth, QueueOrder, bounds, drained, listeners, replacement, text_of};
use crate::delta::{Undecodable, WatchPart};
use crate::meta::{Meta, Object, SourceId};
use crate::snapshot::fixture::{key, version};

fn per_key(bounds: Bounds) -> DeltaQueue<()> {
    DeltaQueue::new(bounds, QueueOrder::PerKey)
}

fn object(name: &str, number: u64) -> Object<()> {
    let (key, version) = (key(name), version(number));
    Object::new(Meta { key, uid: None, version, source: SourceId::default(), wire_bytes: 10, form: 0 }, ())
}

fn put(name: &str, number: u64) -> WatchPart<()> {
    WatchPart::Applied(object(name, number))
}

fn gone(name: &str, number: u64) -> WatchPart<()> {
    WatchPart::Deleted(object(name, number))
}

fn gone_unread(name: &str, number: u64) -> WatchPart<()> {
    let (key, version) = (key(name), version(number));
    WatchPart::DeletedUndecodable(Undecodable { key, version, error: "unreadable".into() })
}

fn bookmark(number: u64) -> WatchPart<()> {
    WatchPart::Bookmark { version: version(number), initial_events_end: false }
}

fn queued(bounds: Bounds, parts: Vec<WatchPart<()>>) -> DeltaQueue<()> {
    let mut queue = per_key(bounds);
    queue.push_delta(SourceId::default(), parts);
    queue
}

#[test]
fn fifo_01_one_pop_returns_both_parts_of_a_key_oldest_first() {
    let mut queue = queued(bounds(100, 10_000, 1), vec![put("a", 1), put("b", 2), put("a", 3)]);
    assert_eq!(drained(&mut queue), ["1 3", "2 (reached 3)"]);
}

#[test]
fn fifo_02_keys_come_in_order_of_first_arrival_however_often_they_come_again() {
    let mut queue = queued(Bounds::default(), vec![put("a", 1), put("b", 2), put("a", 3)]);
    assert_eq!(drained(&mut queue), ["1 3 2 (reached 3)"]);
    let mut popped = queued(bounds(100, 10_000, 1), vec![put("a", 1), put("b", 2)]);
    assert_eq!(popped.pop_batch().map(|batch| text_of(&batch)).as_deref(), Some("1"));
    popped.push_delta(SourceId::default(), vec![put("a", 3)]);
    assert_eq!(drained(&mut popped), ["2", "3 (reached 3)"], "who was popped stands in line again");
}

// FIFO-04: given Deleted(a) twice in a row, when popped, then one Deleted remains: the newer, unless only the
// older holds the object.
// - a one Deleted remains, the newer
// - b the older, if only that holds the object
#[test]
fn fifo_04_of_two_deletions_in_a_row_the_newer_stays_unless_only_the_older_holds_the_object() {
    for (older, newer, stays) in [
        (gone("a", 1), gone("a", 2), "2 (reached 2)"),
        (gone_unread("a", 1), gone("a", 2), "2 (reached 2)"),
        (gone_unread("a", 1), gone_unread("a", 2), "2 (reached 2)"),
        (gone("a", 1), gone_unread("a", 2), "1 (reached 2)"),
        (put("a", 1), gone("a", 2), "1 2 (reached 2)"),
        (gone("a", 1), put("a", 2), "1 2 (reached 2)"),
    ] {
        let text = format!("{older:?}, {newer:?}");
        let mut queue = queued(Bounds::default(), vec![older, newer]);
        assert_eq!(drained(&mut queue), [stays], "{text}");
        assert_eq!(queue.depth(), Depth::default(), "{text}");
    }
}

#[test]
fn deletions_of_two_sources_are_two() {
    let mut queue = queued(Bounds::default(), vec![gone("a", 1)]);
    queue.push_delta(SourceId::new("other"), vec![gone("a", 2)]);
    assert_eq!(drained(&mut queue), ["1 2 (reached 1) (reached 2)"]);
}

#[test]
fn fifo_11_no_version_is_handed_out_before_the_queue_runs_empty() {
    let parts = vec![put("a", 1), put("b", 2), bookmark(3)];
    let mut queue = queued(bounds(100, 10_000, 1), parts);
    assert_eq!(queue.pop_batch().map(|batch| text_of(&batch)).as_deref(), Some("1"));
    queue.push_delta(SourceId::default(), vec![put("c", 4)]);
    assert_eq!(queue.pop_batch().map(|batch| text_of(&batch)).as_deref(), Some("2"));
    queue.push_delta(SourceId::default(), vec![bookmark(5)]);
    assert_eq!(drained(&mut queue), ["4 (reached 5)"]);
    queue.push_delta(SourceId::default(), vec![bookmark(6)]);
    assert_eq!(drained(&mut queue), ["(reached 6)"], "a bookmark alone moves it, too");
}

#[test]
fn fifo_12_a_replace_is_a_barrier_and_the_versions_before_it_are_its_own_source_s_no_more() {
    let (other, mut queue) = (SourceId::new("other"), per_key(Bounds::default()));
    queue.push_delta(SourceId::default(), vec![put("a", 1), put("b", 2)]);
    queue.push_delta(other, vec![put("o", 7), bookmark(8)]);
    queue.push_replace(SourceId::default(), replacement(3, Vec::new()));
    queue.push_delta(SourceId::default(), vec![put("b", 4), put("a", 5), put("b", 6)]);
    assert_eq!(queue.depth(), Depth { parts: 7, bytes: 60 });
    assert_eq!(drained(&mut queue), ["1 2 7", "replace 3", "4 6 5 (reached 6) (reached 8)"]);

    queue.push_delta(SourceId::default(), vec![put("a", 20)]);
    queue.push_replace(SourceId::default(), replacement(9, Vec::new()));
    assert_eq!(drained(&mut queue), ["20", "replace 9"], "a rewind: 20 is not reached any more");
}

#[test]
fn versions_that_waited_for_a_barrier_of_another_source_are_handed_out_after_it() {
    let mut queue = queued(Bounds::default(), vec![put("a", 1)]);
    queue.push_replace(SourceId::new("other"), replacement(3, Vec::new()));
    assert_eq!(drained(&mut queue), ["1", "replace 3", "(reached 1)"]);
    assert!(queue.pop_batch().is_none());
}

#[test]
fn rf_09_a_resync_keeps_its_place_among_keys() {
    let mut queue = queued(Bounds::default(), vec![put("a", 1), bookmark(2)]);
    queue.push_resync(listeners(&[1]));
    queue.push_delta(SourceId::default(), vec![put("a", 3)]);
    assert_eq!(drained(&mut queue), ["1", "resync 1", "3 (reached 3)"]);
}

#[test]
fn rf_17_a_queue_of_keys_is_full_by_count_and_by_bytes_too() {
    for bounds in [bounds(3, 1_000, 1), bounds(1_000, 30, 1)] {
        let mut queue = queued(bounds, vec![put("a", 1), put("a", 2)]);
        assert!(queue.has_room());
        queue.push_delta(SourceId::default(), vec![put("b", 3)]);
        assert!(!queue.has_room());
        queue.pop_batch();
        assert!(queue.has_room());
        assert_eq!(queue.depth(), Depth { parts: 1, bytes: 10 });
    }
}

#[test]
fn a_key_with_more_parts_than_a_batch_is_one_batch() {
    let parts = (1..=9).map(|number| put(if number % 3 == 0 { "b" } else { "a" }, number)).collect();
    let mut queue = queued(bounds(100, 10_000, 4), parts);
    assert_eq!(drained(&mut queue), ["1 2 4 5 7 8", "3 6 9 (reached 9)"]);
}

#[derive(Debug, Clone)]
enum Step {
    Delta(u8, Vec<(usize, u8)>),
    Replace(u8),
    Resync,
    Pop,
}

const SOURCES: [&str; 2] = ["a", "b"];

fn step() -> impl Strategy<Value = Step> {
    let parts = prop::collection::vec((0..5_usize, 0..5_u8), 0..6);
    prop_oneof![
        5 => (0..2_u8, parts).prop_map(|(source, parts)| Step::Delta(source, parts)),
        1 => (0..2_u8).prop_map(Step::Replace),
        1 => Just(Step::Resync),
        4 => Just(Step::Pop),
    ]
}

/// The naive model: every part in the order of arrival, searched from the beginning.
#[derive(Default)]
struct Model {
    events: Vec<Event>,
    /// What each source would have reached if all were popped that has been.
    arrived: [Option<u64>; 2],
}

#[derive(Debug, Clone, PartialEq)]
enum Event {
    Part {
        key: usize,
        source: u8,
        number: u64,
        is_read: Option<bool>,
    },
    /// What was said to be reached when something was pushed here.
    Reached {
        source: u8,
        number: u64,
    },
    Replace {
        source: u8,
        number: u64,
    },
    Resync,
}

impl Model {
    /// `is_read` says of a deletion whether it holds the object, and is `None` for anything else.
    fn part(&mut self, key: usize, source: u8, number: u64, is_read: Option<bool>) {
        let since = self.events.iter().rposition(is_barrier).map_or(0, |at| at + 1);
        let last = self.events[since..].iter_mut().rev().find_map(|event| match event {
            Event::Part { key: known, source, number, is_read } if *known == key => {
                Some((source, number, is_read))
            }
            _ => None,
        });
        match (last, is_read) {
            (Some((teller, _, Some(true))), Some(false)) if *teller == source => {}
            (Some((teller, known, was_read @ Some(_))), Some(_)) if *teller == source => {
                *known = number;
                *was_read = is_read;
            }
            _ => self.events.push(Event::Part { key, source, number, is_read }),
        }
        self.events.push(Event::Reached { source, number });
    }

    fn pop(&mut self, batch: usize) -> Option<String> {
        let mut words: Vec<String> = Vec::new();
        loop {
            let barrier = self.events.iter().position(is_barrier).unwrap_or(self.events.len());
            let first = self.events[..barrier].iter().find_map(key_of);
            if let Some(key) = first {
                let is_of = |event: &Event| key_of(event) == Some(key);
                let count = self.events[..barrier].iter().filter(|event| is_of(event)).count();
                if !words.is_empty() && words.len() + count > batch {
                    return Some(words.join(" "));
                }
                let mut at = 0;
                self.events.retain(|event| {
                    at += 1;
                    let leaves = at <= barrier && is_of(event);
                    if let (true, Event::Part { number, .. }) = (leaves, event) {
                        words.push(number.to_string());
                    }
                    !leaves
                });
                continue;
            }
            for event in self.events.drain(..barrier) {
                let Event::Reached { source, number } = event else { continue };
                let known = &mut self.arrived[source as usize];
                *known = Some(known.map_or(number, |known| known.max(number)));
            }
            if self.events.is_empty() {
                let reached = self.arrived.iter_mut().filter_map(Option::take);
                words.extend(reached.map(|number| format!("(reached {number})")));
            }
            if !words.is_empty() {
                return Some(words.join(" "));
            }
            return (!self.events.is_empty()).then(|| match self.events.remove(0) {
                Event::Replace { source, number } => {
                    self.arrived[source as usize] = None;
                    format!("replace {number}")
                }
                _ => "resync 1".to_owned(),
            });
        }
    }
}

fn is_barrier(event: &Event) -> bool {
    matches!(event, Event::Replace { .. } | Event::Resync)
}

fn key_of(event: &Event) -> Option<usize> {
    if let Event::Part { key, .. } = event { Some(*key) } else { None }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    // FIFO-13: given the same random history in `PerKey` and in a naive model, when drained, then keys come
    // in order of first arrival and each key's parts together, oldest first.
    #[test]
    fn fifo_13_any_history_leaves_in_the_order_of_the_naive_model(
        steps in prop::collection::vec(step(), 1..60),
        batch in 1..5_usize,
    ) {
        let (mut queue, mut model, mut number) = (per_key(bounds(1_000, 100_000, batch)), Model::default(), 0);
        let steps = steps.into_iter().chain(std::iter::repeat_n(Step::Pop, 400));
        for step in steps {
            match step {
                Step::Delta(source, parts) => {
                    let mut delta = Vec::new();
                    for (at, kind) in parts {
                        number += 1;
                        let name = format!("k-{at}");
                        delta.push(match kind {
                            0 => bookmark(number),
                            1 => gone(&name, number),
                            2 => gone_unread(&name, number),
                            _ => put(&name, number),
                        });
                        match kind {
                            0 => model.events.push(Event::Reached { source, number }),
                            kind => model.part(at, source, number, (kind < 3).then_some(kind == 1)),
                        }
                    }
                    queue.push_delta(SourceId::new(SOURCES[source as usize]), delta);
                }
                Step::Replace(source) => {
                    number += 1;
                    model.events.push(Event::Replace { source, number });
                    let source = SourceId::new(SOURCES[source as usize]);
                    queue.push_replace(source, replacement(number, Vec::new()));
                }
                Step::Resync => {
                    if model.events.last() != Some(&Event::Resync) {
                        model.events.push(Event::Resync);
                    }
                    queue.push_resync(listeners(&[1]));
                }
                Step::Pop => {
                    let popped = queue.pop_batch();
                    if let Some(Batch::PartsByKey { parts, reached }) = &popped {
                        prop_assert!(reached.is_empty() || queue.depth() == Depth::default());
                        prop_assert!(!parts.is_empty() || !reached.is_empty());
                    }
                    prop_assert_eq!(popped.map(|batch| text_of(&batch)), model.pop(batch));
                }
            }
            let waiting = model.events.iter().filter(|event| !matches!(event, Event::Reached { .. })).count();
            prop_assert_eq!(queue.depth().parts, waiting);
        }
        prop_assert_eq!(queue.depth(), Depth::default());
    }
}
