//! The tree against a `BTreeMap`, and what its changes and walks cost.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use proptest::prelude::*;

use super::walk::{Pair, Pairs};
use super::*;
use crate::meta::SourceId;

#[derive(Debug, Clone, PartialEq)]
struct Word(Arc<str>, u64, u8);

impl Item for Word {
    type Name = Arc<str>;
    type Query<'q> = &'q str;

    fn name(&self) -> &Arc<str> {
        &self.0
    }

    fn order(name: &Arc<str>, query: &str) -> Ordering {
        (**name).cmp(query)
    }

    fn compare(one: &Self, other: &Self) -> Ordering {
        one.0.cmp(&other.0)
    }

    /// Of many names the same.
    fn fingerprint_of(name: &str) -> Option<u32> {
        Some(name.bytes().map(u32::from).sum::<u32>() % 3)
    }

    fn fingerprint(&self) -> Option<u32> {
        Self::fingerprint_of(&self.0)
    }

    fn sources(&self) -> Sources {
        source(self.2)
    }
}

fn source(number: u8) -> Sources {
    Sources::of(&SourceId::new(format!("source-{number}")))
}

fn name(number: usize) -> Arc<str> {
    format!("n{number:06}").into()
}

fn put(tree: &mut Tree<Word>, word: Word) {
    let path = tree.find(&word.0);
    let sources = word.sources();
    match tree.item_mut(&path, sources) {
        Some(known) => *known = word,
        None => tree.insert_at(&path, word),
    }
}

fn take(tree: &mut Tree<Word>, name: &str) -> Option<Word> {
    let path = tree.find(name);
    tree.remove_at(&path)
}

fn numbered(count: usize) -> Tree<Word> {
    let mut tree = Tree::default();
    (0..count).for_each(|number| put(&mut tree, Word(name(number), 0, 0)));
    tree
}

/// The height of a node above its leaves; every invariant holds below it.
fn height(node: &Node<Word>) -> usize {
    assert!((1..=MOST).contains(&node.len()));
    match &node.kind {
        Kind::Leaf(items) => {
            assert!(items.windows(2).all(|pair| pair[0].0 < pair[1].0));
            assert!(items.iter().all(|item| node.sources.and(item.sources()) == node.sources));
            assert!(items.capacity() <= MOST + MOST / 4, "{}", items.capacity());
            0
        }
        Kind::Inner(branches) => {
            let heights: Vec<usize> = branches.iter().map(|branch| height(&branch.node)).collect();
            assert!(heights.windows(2).all(|pair| pair[0] == pair[1]), "{heights:?}");
            let lacking = |branch: &Branch<Word>| node.sources.and(branch.node.sources) != node.sources;
            assert!(!branches.iter().any(lacking));
            heights[0] + 1
        }
    }
}

fn nodes<'a>(node: &'a Arc<Node<Word>>, found: &mut Vec<&'a Arc<Node<Word>>>) {
    found.push(node);
    if let Kind::Inner(branches) = &node.kind {
        branches.iter().for_each(|branch| nodes(&branch.node, found));
    }
}

#[derive(Debug, Clone)]
enum Deed {
    Put(usize, u64, u8),
    Take(usize),
    /// Names in order, as a list has them.
    List(usize, usize),
    TakeAll(usize, usize),
    Keep,
}

fn deeds(count: usize) -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        8 => (0..2_000_usize, 0..9_u64, 0..3_u8).prop_map(|(at, number, of)| Deed::Put(at, number, of)),
        8 => (0..2_000_usize).prop_map(Deed::Take),
        2 => (0..2_000_usize, 0..300_usize).prop_map(|(at, count)| Deed::List(at, count)),
        2 => (0..2_000_usize, 0..300_usize).prop_map(|(at, count)| Deed::TakeAll(at, count)),
        1 => Just(Deed::Keep),
    ];
    prop::collection::vec(deed, 0..count)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_tree_is_a_sorted_map_and_what_was_kept_of_it_stays(deeds in deeds(80), from in 0..2_500_usize) {
        let (mut tree, mut model) = (Tree::default(), BTreeMap::new());
        let mut kept = vec![(tree.clone(), model.clone())];
        for deed in deeds {
            match deed {
                Deed::Put(at, number, of) => {
                    put(&mut tree, Word(name(at), number, of));
                    model.insert(name(at), Word(name(at), number, of));
                }
                Deed::Take(at) => prop_assert_eq!(take(&mut tree, &name(at)), model.remove(&name(at))),
                Deed::List(at, count) => (at..at + count).for_each(|at| {
                    put(&mut tree, Word(name(at), 7, 1));
                    model.insert(name(at), Word(name(at), 7, 1));
                }),
                Deed::TakeAll(at, count) => (at..at + count).for_each(|at| {
                    assert_eq!(take(&mut tree, &name(at)), model.remove(&name(at)));
                }),
                Deed::Keep => kept.push((tree.clone(), model.clone())),
            }
        }
        kept.push((tree, model));
        for (tree, model) in &kept {
            prop_assert_eq!(tree.len(), model.len());
            tree.root().map(height);
            prop_assert!(tree.iter().eq(model.values()));
            prop_assert_eq!(tree.last(), model.values().last());
            let from = name(from);
            prop_assert!(tree.after(Some(&from), Sources::ALL).eq(model.values().filter(|word| word.0 > from)));
            prop_assert_eq!(tree.get(&from), model.get(&from));
            let wanted = |word: &&Word| word.2 == 2;
            let found = tree.after(Some(&from), source(2)).filter(wanted);
            prop_assert!(found.eq(model.values().filter(wanted).filter(|word| word.0 > from)));
        }
        for pair in kept.windows(2) {
            let [(old, before), (new, after)] = pair else { continue };
            let (mut left, mut right) = (BTreeMap::new(), BTreeMap::new());
            let mut passed = None;
            for pair in Pairs::after(Some(old), Some(new), None) {
                let last = match pair {
                    Pair::Shared(last) => {
                        let from = passed.clone().map_or(Bound::Unbounded, Bound::Excluded);
                        let skipped = (from, Bound::Included(Arc::clone(&last.0)));
                        prop_assert!(before.range(skipped.clone()).eq(after.range(skipped)));
                        last
                    }
                    Pair::Items(one, other) => {
                        left.extend(one.map(|word| (&word.0, word)));
                        right.extend(other.map(|word| (&word.0, word)));
                        one.or(other).expect("a pair is not empty")
                    }
                };
                prop_assert!(passed.as_ref() < Some(&last.0));
                passed = Some(Arc::clone(&last.0));
            }
            let lost = before.values().filter(|word| after.get(&word.0) != Some(word));
            let come = after.values().filter(|word| before.get(&word.0) != Some(word));
            prop_assert!(lost.clone().all(|word| left.get(&word.0) == Some(&word)), "{:?}", lost.collect::<Vec<_>>());
            prop_assert!(come.clone().all(|word| right.get(&word.0) == Some(&word)), "{:?}", come.collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_list_in_the_order_of_its_names_fills_its_leaves() {
    let tree = numbered(10_000);
    let mut found = Vec::new();
    nodes(tree.root.as_ref().expect("not empty"), &mut found);
    let leaves = found.iter().filter(|node| matches!(node.kind, Kind::Leaf(_))).count();
    assert_eq!(leaves, 10_000_usize.div_ceil(MOST));
}

// IDX-33: given two snapshots of many objects that differ in few, when their difference is walked in pieces,
// then a piece makes at most the visits that it was allowed, a part that both share is one visit, and the
// walk may be moved on to a newer snapshot meanwhile; a change copies one small node a level.
// - a the visits: `idx_33_a_cursor_visits_at_most_the_keys_it_was_allowed`
// - b moved on to newer snapshots:
//   `idx_33_a_cursor_led_to_newer_snapshots_and_the_changes_behind_it_give_the_newest`
// - c one node a level
#[test]
fn idx_33_a_change_of_a_shared_tree_of_100_000_names_copies_one_node_a_level() {
    let kept = numbered(100_000);
    let mut tree = kept.clone();
    put(&mut tree, Word(name(50_000), 1, 0));
    let (mut before, mut after) = (Vec::new(), Vec::new());
    nodes(kept.root.as_ref().expect("not empty"), &mut before);
    nodes(tree.root.as_ref().expect("not empty"), &mut after);
    let copied = before.iter().zip(&after).filter(|(before, after)| !Arc::ptr_eq(before, after)).count();
    assert_eq!((copied, height(tree.root().expect("not empty"))), (4, 3));
    let steps = Pairs::after(Some(&kept), Some(&tree), None).count();
    assert!(steps <= 4 * MOST, "{steps} steps for one difference in 100,000");
}

#[test]
fn a_walk_for_a_source_skips_what_has_nothing_of_it() {
    let mut tree = numbered(100_000);
    put(&mut tree, Word(name(77_777), 1, 1));
    assert!(!source(0).meet(source(1)), "the test needs two bits");
    assert!(tree.after(None, source(1)).count() <= MOST);
    assert_eq!(tree.after(None, source(0)).count(), 100_000);
}
