//! Tests of index handles: values of any ordered type, ranges, keys alone, and look-ups that are joined.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::delta::WatchPart;
use crate::index::{Index, UnknownIndex};
use crate::indexer::Store;
use crate::meta::{Object, ObjectKey, SourceId};
use crate::snapshot::fixture::{version, worded};
use crate::snapshot::{Lookup, Snapshot};

/// A value that is ordered and is no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Size {
    Small,
    Large,
}

fn by_size() -> Index<String, Size> {
    Index::new("size", |object: &Object<String>| [if object.len() < 4 { Size::Small } else { Size::Large }])
}

fn by_length() -> Index<String, usize> {
    Index::new("length", |object: &Object<String>| Some(object.len()))
}

fn by_letter() -> Index<String, char> {
    Index::new("letter", |object: &Object<String>| object.chars().collect::<Vec<_>>())
}

/// A snapshot of objects `a/0`, `a/1` … with these bodies, after `changed` bodies were put over them.
fn snapshot_of(bodies: &[&str]) -> Snapshot<String> {
    let mut store =
        Store::new(Snapshot::empty(), vec![by_size().into(), by_length().into(), by_letter().into()]);
    let parts: Vec<_> = bodies
        .iter()
        .enumerate()
        .map(|(at, body)| {
            (SourceId::default(), WatchPart::Applied(worded(&format!("a/{at:03}"), at as u64 + 1, body)))
        })
        .collect();
    store.apply_parts(parts).snapshot
}

fn names<'a>(keys: impl Iterator<Item = &'a ObjectKey>) -> Vec<String> {
    keys.map(|key| key.name().to_owned()).collect()
}

#[test]
fn values_of_any_ordered_type_are_looked_up_and_listed_in_order() {
    let snapshot = snapshot_of(&["long one", "abc", "another", "x"]);
    let small: Vec<&str> = by_size().get(&snapshot, &Size::Small).unwrap().map(|object| &***object).collect();
    assert_eq!(small, ["abc", "x"]);
    assert_eq!(by_size().values(&snapshot).unwrap().collect::<Vec<_>>(), [&Size::Small, &Size::Large]);
    assert_eq!(by_length().values(&snapshot).unwrap().copied().collect::<Vec<_>>(), [1, 3, 7, 8]);
}

#[test]
fn a_text_is_looked_up_by_a_borrowed_one() {
    let by_body = Index::<String>::new("body", |object| [object.body().clone()]);
    let mut store = Store::new(Snapshot::empty(), vec![(&by_body).into()]);
    let part = WatchPart::Applied(worded("a/x", 1, "red"));
    let snapshot = store.apply_parts([(SourceId::default(), part)]).snapshot;
    assert_eq!(names(by_body.keys(&snapshot, "red").unwrap()), ["x"]);
    assert_eq!(snapshot.by_index("body", "red").unwrap().count(), 1);
}

#[test]
fn a_range_gives_the_values_in_it_with_their_keys() {
    let snapshot = snapshot_of(&["a", "bb", "ccc", "dd", "eeee"]);
    let within = |range: (std::ops::Bound<usize>, std::ops::Bound<usize>)| -> Vec<(usize, String)> {
        let found = by_length().range(&snapshot, range).unwrap();
        found.map(|(length, key)| (*length, key.name().to_owned())).collect()
    };
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let pair = |length: usize, name: &str| (length, name.to_owned());
    assert_eq!(within((Included(2), Excluded(4))), [pair(2, "001"), pair(2, "003"), pair(3, "002")]);
    assert_eq!(within((Excluded(2), Unbounded)), [pair(3, "002"), pair(4, "004")]);
    assert_eq!(within((Unbounded, Included(1))), [pair(1, "000")]);
    assert_eq!(within((Included(5), Unbounded)), []);
    assert_eq!(within((Included(0), Included(0))), []);
}

#[test]
fn a_handle_of_another_type_or_name_finds_no_index() {
    let snapshot = snapshot_of(&["a"]);
    let other = Index::<String, u8>::new("length", |_| [1]);
    assert_eq!(other.keys(&snapshot, &1).err(), Some(UnknownIndex("length".into())));
    assert_eq!(snapshot.by_index("length", "1").err(), Some(UnknownIndex("length".into())));
    let unknown = Index::<String>::new("unknown", |_| None);
    assert_eq!(unknown.get(&snapshot, "").err(), Some(UnknownIndex("unknown".into())));
    assert_eq!(unknown.is("x").and(by_unknown()).keys(&snapshot).err(), Some(UnknownIndex("unknown".into())));
}

fn by_unknown() -> Lookup<String> {
    by_length().is(&1)
}

#[test]
fn an_object_that_leaves_a_value_is_not_found_under_it_and_the_snapshot_before_still_has_it() {
    let mut store = Store::new(Snapshot::empty(), vec![by_length().into()]);
    let mut put = |number, body| {
        let part = WatchPart::Applied(worded("a/x", number, body));
        store.apply_parts([(SourceId::default(), part)]).snapshot
    };
    let (before, after) = (put(1, "four"), put(2, "eleven char"));
    assert_eq!((by_length().count(&before, &4), by_length().count(&before, &11)), (Ok(1), Ok(0)));
    assert_eq!((by_length().count(&after, &4), by_length().count(&after, &11)), (Ok(0), Ok(1)));
    assert_eq!(*after.versions().first().expect("one source"), version(2));
}

/// A tree of look-ups, and what it selects by a plain test of each object.
#[derive(Debug, Clone)]
enum Asked {
    Length(usize),
    Letter(char),
    Both(Box<Self>, Box<Self>),
    Either(Box<Self>, Box<Self>),
}

impl Asked {
    fn lookup(&self) -> Lookup<String> {
        match self {
            Self::Length(length) => by_length().is(length),
            Self::Letter(letter) => by_letter().is(letter),
            Self::Both(one, other) => one.lookup().and(other.lookup()),
            Self::Either(one, other) => one.lookup().or(other.lookup()),
        }
    }

    fn selects(&self, object: &Object<String>) -> bool {
        match self {
            Self::Length(length) => object.len() == *length,
            Self::Letter(letter) => object.contains(*letter),
            Self::Both(one, other) => one.selects(object) && other.selects(object),
            Self::Either(one, other) => one.selects(object) || other.selects(object),
        }
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let leaf = prop_oneof![
        (0_usize..4).prop_map(Asked::Length),
        proptest::sample::select(vec!['a', 'b', 'c']).prop_map(Asked::Letter),
    ];
    leaf.prop_recursive(4, 24, 2, |inner| {
        let two = (inner.clone(), inner).prop_map(|(one, other)| (Box::new(one), Box::new(other)));
        prop_oneof![
            two.clone().prop_map(|(one, other)| Asked::Both(one, other)),
            two.prop_map(|(one, other)| Asked::Either(one, other)),
        ]
    })
}

proptest! {
    #[test]
    fn joined_look_ups_select_what_a_test_of_every_object_selects(
        bodies in proptest::collection::vec("[abc]{0,3}", 0..40),
        asked in asked(),
    ) {
        let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
        let snapshot = snapshot_of(&bodies);
        let lookup = asked.lookup();
        let found = lookup.get(&snapshot).unwrap().map(Object::key);
        let expected = snapshot.iter().filter(|object| asked.selects(object)).map(Object::key);
        prop_assert!(found.eq(expected));
    }

    #[test]
    fn a_range_is_that_of_a_sorted_map(
        bodies in proptest::collection::vec("[abc]{0,9}", 0..80),
        (low, high) in (0_usize..10, 0_usize..10),
    ) {
        let texts: Vec<&str> = bodies.iter().map(String::as_str).collect();
        let snapshot = snapshot_of(&texts);
        let mut model: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for (at, body) in bodies.iter().enumerate() {
            model.entry(body.len()).or_default().insert(format!("{at:03}"));
        }
        let high = high.max(low);
        let expected: Vec<(usize, String)> = model
            .range(low..high)
            .flat_map(|(length, names)| names.iter().map(|name| (*length, name.clone())))
            .collect();
        let found = by_length().range(&snapshot, low..high).unwrap();
        let found: Vec<(usize, String)> = found.map(|(length, key)| (*length, key.name().to_owned())).collect();
        prop_assert_eq!(found, expected);
    }
}
