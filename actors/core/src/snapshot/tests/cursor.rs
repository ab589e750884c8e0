//! The cursor between two snapshots: what it visits, what it knows of any key, and how it is led on.

use proptest::prelude::*;

use super::super::fixture::{key, object};
use super::super::{DiffCursor, Difference, Frame, Snapshot};
use super::{Model, apply, model, name, snapshot, states, steps, text_of, walk};
use crate::meta::{ObjectKey, SourceId};

#[test]
fn idx_33_a_cursor_visits_at_most_the_keys_it_was_allowed() {
    let older = snapshot(&[object("a/1", 1), object("a/2", 1), object("b/1", 1)]);
    let newer = snapshot(&[object("a/2", 2), object("a/3", 2), object("c/1", 2)]);
    let mut cursor = DiffCursor::new(older, newer);
    let mut chunks = Vec::new();
    loop {
        let mut chunk = Vec::new();
        let goes_on = cursor.next_chunk(2, &mut chunk);
        chunks.push(chunk.iter().map(text_of).collect::<Vec<_>>());
        if !goes_on {
            break;
        }
    }
    let delivered: Vec<String> = chunks.concat();
    assert_eq!(delivered, ["- a/1 u1@1", "a/2 u1@1 -> a/2 u1@2", "+ a/3 u1@2", "- b/1 u1@1", "+ c/1 u1@2"]);
    assert!(chunks.iter().all(|chunk| chunk.len() <= 2), "{chunks:?}");
}

#[test]
fn a_cursor_knows_what_it_has_passed_and_any_one_key() {
    let newer = snapshot(&[object("x", 1), object("a/1", 1), object("a/2", 1)]);
    let mut cursor = DiffCursor::new(Snapshot::empty(), newer);
    let mut out = Vec::new();
    assert!(!cursor.has_passed(&key("x")));
    assert!(cursor.next_chunk(2, &mut out));
    assert_eq!(out.iter().map(text_of).collect::<Vec<_>>(), ["+ x u1@1", "+ a/1 u1@1"]);
    assert!(cursor.has_passed(&key("x")) && cursor.has_passed(&key("y")) && cursor.has_passed(&key("a/0")));
    assert!(
        cursor.has_passed(&key("a/1")) && !cursor.has_passed(&key("a/2")) && !cursor.has_passed(&key("b/0"))
    );
    assert_eq!(cursor.at(&key("a/2")).iter().map(text_of).collect::<Vec<_>>(), ["+ a/2 u1@1"]);
    assert_eq!(cursor.at(&key("a/1")).iter().map(text_of).collect::<Vec<_>>(), ["+ a/1 u1@1"]);
    assert!(cursor.at(&key("a/9")).is_empty());
    while cursor.next_chunk(1, &mut out) {}
    assert!(cursor.is_finished() && cursor.has_passed(&key("z/z")) && out.len() == 3);
}

#[test]
fn a_cursor_between_one_snapshot_and_itself_is_finished() {
    let same = snapshot(&[object("a/x", 1)]);
    assert!(DiffCursor::new(same.clone(), same).is_finished());
}

#[test]
fn a_namespace_that_both_share_is_one_visit() {
    let mut frame = Frame::default();
    for number in 0..500 {
        frame.insert(object(&format!("shared/{number}"), 1));
    }
    let older = Snapshot::publish(frame.clone());
    frame.insert(object("z/changed", 2));
    let mut cursor = DiffCursor::new(older, Snapshot::publish(frame));
    let mut out = Vec::new();
    assert!(!cursor.next_chunk(4, &mut out), "{cursor:?}");
    assert_eq!(out.iter().map(text_of).collect::<Vec<_>>(), ["+ z/changed u1@2"]);
}

proptest! {
    #[test]
    fn idx_33_a_cursor_led_to_newer_snapshots_and_the_changes_behind_it_give_the_newest(
        first in steps(200),
        later in prop::collection::vec((steps(40), 1..60_usize), 1..6),
        after in prop::option::of(0..200_usize),
        until in prop::option::of(0..200_usize),
    ) {
        let (mut frame, mut state) = (Frame::default(), Model::new());
        walk(&mut frame, &mut state, &first);
        let seen = Snapshot::publish(frame.clone());
        let (after, until) = (after.map(|at| key(&name(at))), until.map(|at| key(&name(at))));
        let is_inside = |key: &ObjectKey| {
            after.as_ref().is_none_or(|after| key > after) && until.as_ref().is_none_or(|until| key <= until)
        };
        let mut delivered = model(&seen);
        let mut cursor = DiffCursor::between(seen.clone(), seen.clone(), after.clone(), until.clone());
        for (round, (steps, most)) in later.iter().enumerate() {
            walk(&mut frame, &mut state, steps);
            let newer = Snapshot::publish(frame.clone());
            if round == 0 {
                cursor = DiffCursor::between(seen.clone(), newer, after.clone(), until.clone());
            } else {
                // What changes behind the cursor is an event of its own; what changes ahead of it costs nothing.
                let before = cursor.lead_to(newer.clone());
                let behind = before.diff(&newer).filter(|difference| !cursor.covers(difference.key()));
                delivered = apply(delivered, behind.filter(|difference| is_inside(difference.key())));
            }
            let mut chunk = Vec::new();
            cursor.next_chunk(*most, &mut chunk);
            for difference in &chunk {
                prop_assert!(is_inside(difference.key()) && cursor.has_passed(difference.key()));
                prop_assert!(!cursor.covers(difference.key()));
            }
            delivered = apply(delivered, chunk);
        }
        let mut rest = Vec::new();
        while cursor.next_chunk(7, &mut rest) {}
        delivered = apply(delivered, rest);
        let mut expected = model(&seen);
        expected.retain(|key, _| !is_inside(key));
        expected.extend(state.into_iter().filter(|(key, _)| is_inside(key)));
        prop_assert_eq!(states(&delivered), states(&expected));
    }
}

#[test]
fn a_difference_says_whether_a_rewind_was_in_between_and_then_equal_versions_may_differ() {
    let mut frame = Frame::default();
    for name in ["a/listed", "a/other", "a/watched"] {
        frame.insert(object(name, 5));
    }
    let older = Snapshot::publish(frame.clone());
    frame.objects_mut().count_rewind();
    frame.objects_mut().put_rewound(&SourceId::default(), &object("a/listed", 5));
    frame.objects_mut().put_rewound(&SourceId::default(), &object("a/watched", 3));
    frame.insert(object("a/watched", 5));
    frame.insert(object("a/other", 6));
    let newer = Snapshot::publish(frame);
    let delivered: Vec<(String, bool)> = older
        .diff(&newer)
        .map(|difference| {
            let is_rewound = matches!(difference, Difference::Updated { is_rewound: true, .. });
            (difference.key().to_string(), is_rewound)
        })
        .collect();
    let expected = [("a/listed", true), ("a/other", false), ("a/watched", true)];
    assert_eq!(delivered, expected.map(|(key, is_rewound)| (key.to_owned(), is_rewound)));
    assert_eq!(newer.diff(&newer.clone()).count(), 0);
}

#[test]
fn a_cursor_of_a_range_covers_the_keys_after_one_up_to_another() {
    let newer = snapshot(&[object("x", 1), object("a/1", 1), object("a/2", 1), object("b/1", 1)]);
    let range = |after: Option<&str>, until: Option<&str>| {
        DiffCursor::between(Snapshot::empty(), newer.clone(), after.map(key), until.map(key))
    };
    let mut cursor = range(Some("x"), Some("a/2"));
    assert!(cursor.place() == Some(&key("x")) && cursor.has_passed(&key("x")));
    assert!(!cursor.covers(&key("x")) && cursor.covers(&key("a/1")) && cursor.covers(&key("a/2")));
    assert!(!cursor.covers(&key("b/1")) && !cursor.has_passed(&key("b/1")));
    let mut out = Vec::new();
    while cursor.next_chunk(1, &mut out) {}
    assert_eq!(out.iter().map(text_of).collect::<Vec<_>>(), ["+ a/1 u1@1", "+ a/2 u1@1"]);
    assert!(range(Some("a/2"), Some("a/2")).is_finished());
    assert!(range(Some("b/1"), Some("a/2")).is_finished());
}

#[test]
fn idx_33_a_cursor_costs_what_differs_however_much_is_shared() {
    let mut frame = Frame::default();
    for number in 0..20_000 {
        frame.insert(object(&format!("ns{:03}/o{number}", number % 300), 1));
    }
    let older = Snapshot::publish(frame.clone());
    for at in ["ns007/o7", "ns299/o299"] {
        frame.insert(object(at, 2));
    }
    let mut cursor = DiffCursor::new(older, Snapshot::publish(frame));
    let (mut out, mut visits) = (Vec::new(), 1);
    while cursor.next_chunk(1, &mut out) {
        visits += 1;
    }
    assert!(out.len() == 2 && visits < 300, "{visits} visits for two differences in 20,000");
}
