//! The queue: contract scenarios, and any history against a list of events.

use std::sync::Arc;

use proptest::prelude::*;

mod per_key;

use super::{Batch, Bounds, DeltaQueue, Depth, QueueOrder};
use crate::delta::{Cause, Replacement, WatchPart};
use crate::indexer::Successors;
use crate::meta::{Meta, Object, SourceId};
use crate::processor::ListenerId;
use crate::snapshot::fixture::{key, version};

fn object(number: u64, wire_bytes: u32) -> Object<()> {
    let (key, version) = (key(&format!("x-{number}")), version(number));
    Object::new(Meta { key, uid: None, version, source: SourceId::default(), wire_bytes, form: 0 }, ())
}

fn part(number: u64, wire_bytes: u32) -> WatchPart<()> {
    WatchPart::Applied(object(number, wire_bytes))
}

fn replacement(number: u64, objects: Vec<Object<()>>) -> Replacement<()> {
    Replacement::new(version(number), Cause::Relist, objects, Vec::new())
}

fn listeners(numbers: &[u64]) -> Arc<[ListenerId]> {
    numbers.iter().map(|number| ListenerId::new(*number)).collect()
}

fn in_order(bounds: Bounds) -> DeltaQueue<()> {
    DeltaQueue::new(bounds, QueueOrder::InOrder)
}

fn bounds(parts: usize, bytes: usize, batch: usize) -> Bounds {
    Bounds { parts, bytes, batch }
}

/// How tests write a batch down: `1 2`, `replace 5`, `resync 1 2`.
fn text_of(batch: &Batch<()>) -> String {
    let words: Vec<String> = match batch {
        Batch::Parts(parts) => parts.iter().map(|(_, part)| part.version().to_string()).collect(),
        Batch::PartsByKey { parts, reached } => {
            let delivered = parts.iter().map(|(_, part)| part.version().to_string());
            delivered.chain(reached.iter().map(|(_, version)| format!("(reached {version})"))).collect()
        }
        Batch::Replace { replacement, .. } => vec!["replace".to_owned(), replacement.version.to_string()],
        Batch::RemoveSource { source, .. } => vec!["remove".to_owned(), source.to_string()],
        Batch::Resync { due } => {
            let ids = due.iter().map(|id| id.number().to_string());
            std::iter::once("resync".to_owned()).chain(ids).collect()
        }
    };
    words.join(" ")
}

fn drained(queue: &mut DeltaQueue<()>) -> Vec<String> {
    std::iter::from_fn(|| queue.pop_batch()).map(|batch| text_of(&batch)).collect()
}

#[test]
fn rf_06_an_empty_replace_is_one_entry() {
    let mut queue = in_order(Bounds::default());
    queue.push_replace(SourceId::default(), replacement(123, Vec::new()));
    assert_eq!(queue.depth(), Depth { parts: 1, bytes: 0 });
    assert_eq!(drained(&mut queue), ["replace 123"]);
}

#[test]
fn a_replace_is_queued_by_the_weight_it_carries_and_no_object_of_it_is_looked_at() {
    let mut queue = in_order(Bounds::default());
    let carried = Replacement { bytes: 7, ..replacement(9, vec![object(1, 100), object(2, 100)]) };
    queue.push_replace(SourceId::default(), carried);
    assert_eq!(queue.depth(), Depth { parts: 1, bytes: 7 });
    assert_eq!(drained(&mut queue).len(), 1);
    assert_eq!(queue.depth(), Depth::default());
}

#[test]
fn rf_07_what_was_pushed_is_popped_in_that_order_and_no_replace_is_split_or_overtaken() {
    let mut queue = in_order(Bounds::default());
    queue.push_delta(SourceId::default(), vec![part(1, 1)]);
    for number in [10, 20, 56] {
        queue.push_replace(SourceId::default(), replacement(number, vec![object(number, 1)]));
    }
    queue.push_delta(SourceId::default(), vec![part(57, 1)]);
    assert_eq!(drained(&mut queue), ["1", "replace 10", "replace 20", "replace 56", "57"]);
}

#[test]
fn rf_09_a_resync_keeps_its_place_as_one_entry() {
    let mut queue = in_order(Bounds::default());
    queue.push_delta(SourceId::default(), vec![part(1, 1)]);
    queue.push_resync(listeners(&[4, 2]));
    queue.push_resync(listeners(&[3, 2]));
    queue.push_delta(SourceId::default(), vec![part(2, 1)]);
    queue.push_resync(listeners(&[2]));
    queue.push_resync(listeners(&[]));
    assert_eq!(drained(&mut queue), ["1", "resync 2 3 4", "2", "resync 2"]);
}

// RF-14: given batch size 2 and three updates, when batch-popped, then sizes 2 and 1.
#[test]
fn rf_14_three_updates_in_batches_of_two_are_two_and_one() {
    let mut queue = in_order(bounds(100, 100, 2));
    queue.push_delta(SourceId::default(), vec![part(1, 1), part(2, 1), part(3, 1)]);
    assert_eq!(drained(&mut queue), ["1 2", "3"]);
}

#[test]
fn rf_17_a_full_queue_says_so_by_count_and_by_bytes_and_has_room_again_when_a_batch_is_taken() {
    for (bounds, wire_bytes) in [(bounds(3, 1_000, 2), 1), (bounds(1_000, 30, 2), 10)] {
        let mut queue = in_order(bounds);
        for number in 1..=3 {
            assert!(queue.has_room(), "before part {number}");
            queue.push_delta(SourceId::default(), vec![part(number, wire_bytes)]);
        }
        assert!(!queue.has_room());
        queue.push_delta(SourceId::new("another"), vec![part(4, wire_bytes)]);
        queue.pop_batch();
        assert!(queue.has_room());
        assert_eq!(drained(&mut queue), ["3 4"], "nothing is lost");
    }
}

#[test]
fn rf_29_parts_that_arrive_meanwhile_are_one_batch_up_to_the_bound_whatever_their_sources() {
    let mut queue = in_order(Bounds { batch: 3, ..Bounds::default() });
    assert!(queue.pop_batch().is_none(), "with nothing queued there is no batch");
    queue.push_delta(SourceId::new("a"), vec![part(1, 1)]);
    queue.push_delta(SourceId::new("b"), vec![part(2, 1), part(3, 1)]);
    queue.push_delta(SourceId::new("a"), vec![part(4, 1)]);
    let Some(Batch::Parts(parts)) = queue.pop_batch() else { panic!("parts were queued") };
    let sources: Vec<&str> = parts.iter().map(|(source, _)| source.as_str()).collect();
    assert_eq!(sources, ["a", "b", "b"]);
    assert_eq!(drained(&mut queue), ["4"]);
}

// RF-30: given one entry larger than the byte bound (a Replace), when the queue is empty, then it is taken,
// so that it is never refused for ever.
#[test]
fn rf_30_one_entry_larger_than_the_bound_is_taken_and_fills_the_queue_until_popped() {
    let mut queue = in_order(bounds(10, 100, 5));
    assert!(queue.has_room());
    queue.push_replace(SourceId::default(), replacement(9, vec![object(1, 400), object(2, 300)]));
    assert_eq!((queue.has_room(), queue.depth()), (false, Depth { parts: 1, bytes: 700 }));
    assert_eq!(drained(&mut queue), ["replace 9"]);
    assert_eq!((queue.has_room(), queue.depth()), (true, Depth::default()));
}

#[test]
fn a_delta_without_parts_is_not_a_batch() {
    let mut queue = in_order(Bounds::default());
    queue.push_delta(SourceId::default(), Vec::new());
    assert!(queue.pop_batch().is_none());
}

#[derive(Debug, Clone)]
enum Step {
    Delta(Vec<u32>),
    Replace(Vec<u32>),
    Resync(Vec<u64>),
    Pop,
}

fn step() -> impl Strategy<Value = Step> {
    let sizes = prop::collection::vec(0..50_u32, 0..6);
    prop_oneof![
        4 => sizes.clone().prop_map(Step::Delta),
        1 => sizes.prop_map(Step::Replace),
        1 => prop::collection::vec(0..4_u64, 0..3).prop_map(Step::Resync),
        3 => Just(Step::Pop),
    ]
}

/// One event of the list, with its bytes: a batch of parts is as many of them as there are numbers in its text.
#[derive(Debug, Clone, PartialEq)]
struct Event {
    text: String,
    bytes: usize,
    is_part: bool,
}

/// The naive queue: a list of events, searched from its beginning.
fn pop_naively(events: &mut Vec<Event>, batch: usize) -> Option<String> {
    let run = events.iter().take_while(|event| event.is_part).count().min(batch);
    let count = run.max(1).min(events.len());
    let popped: Vec<String> = events.drain(..count).map(|event| event.text).collect();
    (!popped.is_empty()).then(|| popped.join(" "))
}

fn resync_naively(events: &mut Vec<Event>, due: &[u64]) {
    let mut due = due.to_vec();
    if let Some(last) = events.pop_if(|event| event.text.starts_with("resync")) {
        due.extend(last.text.split(' ').skip(1).map(|id| id.parse::<u64>().expect("an id")));
    }
    due.sort_unstable();
    due.dedup();
    if !due.is_empty() {
        let ids: Vec<String> = due.iter().map(u64::to_string).collect();
        events.push(Event { text: format!("resync {}", ids.join(" ")), bytes: 0, is_part: false });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_queue_is_a_list_of_events(steps in prop::collection::vec(step(), 1..40), batch in 1..5_usize) {
        let bounds = bounds(12, 300, batch);
        let (mut queue, mut events, mut number) = (in_order(bounds), Vec::new(), 0);
        for step in steps {
            match step {
                Step::Delta(sizes) => {
                    let parts = sizes.into_iter().map(|size| {
                        number += 1;
                        events.push(Event { text: number.to_string(), bytes: size as usize, is_part: true });
                        part(number, size)
                    });
                    queue.push_delta(SourceId::default(), parts.collect());
                }
                Step::Replace(sizes) => {
                    number += 1;
                    let bytes = sizes.iter().map(|size| *size as usize).sum();
                    events.push(Event { text: format!("replace {number}"), bytes, is_part: false });
                    let objects = sizes.into_iter().map(|size| object(number, size)).collect();
                    queue.push_replace(SourceId::default(), replacement(number, objects));
                }
                Step::Resync(due) => {
                    resync_naively(&mut events, &due);
                    queue.push_resync(listeners(&due));
                }
                Step::Pop => {
                    let popped = queue.pop_batch().map(|batch| text_of(&batch));
                    prop_assert_eq!(popped, pop_naively(&mut events, batch));
                }
            }
            let bytes = events.iter().map(|event| event.bytes).sum();
            prop_assert_eq!(queue.depth(), Depth { parts: events.len(), bytes });
            prop_assert_eq!(queue.has_room(), events.len() < bounds.parts && bytes < bounds.bytes);
        }
    }
}

#[test]
fn inf_80_the_end_of_a_source_leaves_behind_all_that_it_has_put_in() {
    for queue_order in [QueueOrder::InOrder, QueueOrder::PerKey] {
        let mut queue = DeltaQueue::new(bounds(100, 10_000, 1), queue_order);
        queue.push_delta(SourceId::new("a"), vec![part(1, 1), part(2, 1)]);
        queue.push_remove_source(SourceId::new("a"), Successors::none());
        queue.push_delta(SourceId::new("b"), vec![part(3, 1)]);
        assert_eq!(queue.depth().parts, 4);
        let delivered = drained(&mut queue);
        let end = delivered.iter().position(|batch| batch == "remove a").expect("it is delivered");
        assert!(delivered[..end].iter().any(|batch| batch.starts_with('2')), "{delivered:?}");
        assert!(
            !delivered[end..].join(" ").contains("reached 2"),
            "nothing of it is reached later: {delivered:?}"
        );
        assert_eq!(queue.depth(), Depth::default());
    }
}

#[test]
fn an_emptied_vector_is_filled_with_the_next_batch_unless_it_is_large() {
    let mut queue = in_order(bounds(1_000, 10_000, 250));
    let mut next_batch = |spare: Vec<(SourceId, WatchPart<()>)>, parts: u64| {
        queue.reuse(spare);
        queue.push_delta(SourceId::default(), (1..=parts).map(|number| part(number, 1)).collect());
        let Some(Batch::Parts(parts)) = queue.pop_batch() else { panic!("no parts") };
        parts
    };
    let first = next_batch(Vec::new(), 1);
    let at = first.as_ptr();
    let again = next_batch(first, 1);
    assert_eq!((again.as_ptr(), again.len()), (at, 1), "the same vector, with the new part alone");
    let large = next_batch(again, 200);
    assert_eq!(large.capacity(), 200, "one allocation of the right size");
    assert!(next_batch(large, 1).capacity() < 200, "a large one is not kept");
}
