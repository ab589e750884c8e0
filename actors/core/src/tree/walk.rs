//! Walks through trees in the order of names: one tree, or two side by side.
//!
//! A walk allocates nothing. Its start costs O(log n), each further item O(1) on average. Invariants:
//! 1. A walk for some sources skips every node without them.
//! 2. Two walks in one node are at the same item: both have passed the same names. So the rest of the node is one
//!    [`Pair::Shared`].

use std::cmp::Ordering;

use super::{Item, Kind, LEVELS, Node, Sources, Tree, branch_of};

/// From the root to the next item; empty after the last one.
struct Walk<'a, T: Item> {
    path: Path<'a, T>,
    of: Sources,
}

struct Path<'a, T: Item> {
    steps: [Option<(&'a Node<T>, usize)>; LEVELS],
    len: usize,
}

impl<'a, T: Item> Path<'a, T> {
    const fn new() -> Self {
        Self { steps: [None; LEVELS], len: 0 }
    }

    fn push(&mut self, node: &'a Node<T>, at: usize) {
        self.steps[self.len] = Some((node, at));
        self.len += 1;
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    fn node(&self, level: usize) -> Option<&'a Node<T>> {
        let (node, _) = self.steps[..self.len].get(level)?.as_ref()?;
        Some(node)
    }

    fn last(&self) -> Option<(&'a Node<T>, usize)> {
        *self.steps[..self.len].last()?
    }

    fn advance(&mut self) {
        if let Some(Some((_, at))) = self.steps[..self.len].last_mut() {
            *at += 1;
        }
    }
}

impl<'a, T: Item> Walk<'a, T> {
    fn new(tree: &'a Tree<T>, after: Option<T::Query<'_>>, of: Sources) -> Self {
        let mut walk = Self { path: Path::new(), of };
        let mut next = tree.root().filter(|root| root.sources.meet(of));
        while let (Some(node), Some(after)) = (next.take(), after) {
            match &node.kind {
                Kind::Leaf(items) => {
                    walk.path.push(node, items.partition_point(|item| T::order(item.name(), after).is_le()));
                }
                Kind::Inner(branches) => {
                    let at = branch_of(branches, after);
                    walk.path.push(node, at);
                    next = Some(&*branches[at].node).filter(|node| node.sources.meet(of));
                }
            }
        }
        if after.is_none()
            && let Some(root) = tree.root().filter(|root| root.sources.meet(of))
        {
            walk.path.push(root, 0);
        }
        walk.settle();
        walk
    }

    /// Moves on to the next item, also from after the last entry of a node or above a leaf.
    fn settle(&mut self) {
        while let Some((node, at)) = self.path.last() {
            match &node.kind {
                Kind::Leaf(items) if at < items.len() => return,
                Kind::Inner(branches) if at < branches.len() => {
                    let node = &*branches[at].node;
                    if node.sources.meet(self.of) {
                        self.path.push(node, 0);
                    } else {
                        self.path.advance();
                    }
                    continue;
                }
                _ => {}
            }
            self.path.truncate(self.path.len - 1);
            self.path.advance();
        }
    }

    fn peek(&self) -> Option<&'a T> {
        let (node, at) = self.path.last()?;
        match &node.kind {
            Kind::Leaf(items) => items.get(at),
            Kind::Inner(_) => None,
        }
    }

    fn take(&mut self) -> Option<&'a T> {
        let item = self.peek()?;
        self.path.advance();
        self.settle();
        Some(item)
    }

    /// The height above the leaves of the highest node that both paths share.
    fn shared_with(&self, other: &Self) -> Option<usize> {
        let node = |walk: &Self, height: usize| walk.path.node(walk.path.len - 1 - height);
        let is_one = |height: &usize| match (node(self, *height), node(other, *height)) {
            (Some(one), Some(other)) => std::ptr::eq(one, other),
            _ => false,
        };
        (0..self.path.len.min(other.path.len)).rev().find(is_one)
    }

    /// Returns its last item.
    fn leave(&mut self, height: usize) -> Option<&'a T> {
        let level = self.path.len.checked_sub(height + 1)?;
        let node = self.path.node(level)?;
        self.path.truncate(level);
        self.path.advance();
        self.settle();
        last_of(node)
    }
}

fn last_of<T: Item>(mut node: &Node<T>) -> Option<&T> {
    loop {
        match &node.kind {
            Kind::Leaf(items) => return items.last(),
            Kind::Inner(branches) => node = &branches.last()?.node,
        }
    }
}

pub(crate) struct Iter<'a, T: Item> {
    walk: Walk<'a, T>,
    left: Option<usize>,
}

impl<'a, T: Item> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        let item = self.walk.take()?;
        self.left = self.left.map(|left| left.saturating_sub(1));
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.unwrap_or(0), self.left)
    }
}

impl<T: Item> Tree<T> {
    pub(crate) fn iter(&self) -> Iter<'_, T> {
        Iter { walk: Walk::new(self, None, Sources::ALL), left: Some(self.len()) }
    }

    pub(crate) fn after(&self, name: Option<T::Query<'_>>, of: Sources) -> Iter<'_, T> {
        Iter { walk: Walk::new(self, name, of), left: None }
    }

    pub(crate) fn last(&self) -> Option<&T> {
        last_of(self.root()?)
    }
}

pub(crate) enum Pair<'a, T> {
    /// Both trees share all items up to and with this one.
    Shared(&'a T),
    /// The items under the next name of the old and the new tree: at least one.
    Items(Option<&'a T>, Option<&'a T>),
}

pub(crate) struct Pairs<'a, T: Item> {
    old: Option<Walk<'a, T>>,
    new: Option<Walk<'a, T>>,
}

impl<'a, T: Item> Pairs<'a, T> {
    /// `None` stands for an empty tree.
    pub(crate) fn after(
        old: Option<&'a Tree<T>>,
        new: Option<&'a Tree<T>>,
        name: Option<T::Query<'_>>,
    ) -> Self {
        let walk = |tree: &'a Tree<T>| Walk::new(tree, name, Sources::ALL);
        Self { old: old.map(walk), new: new.map(walk) }
    }
}

impl<'a, T: Item> Iterator for Pairs<'a, T> {
    type Item = Pair<'a, T>;

    fn next(&mut self) -> Option<Pair<'a, T>> {
        if let (Some(old), Some(new)) = (&mut self.old, &mut self.new)
            && let Some(height) = old.shared_with(new)
        {
            new.leave(height);
            return old.leave(height).map(Pair::Shared);
        }
        let next = |walk: &Option<Walk<'a, T>>| walk.as_ref().and_then(Walk::peek);
        let order = match (next(&self.old), next(&self.new)) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => T::compare(old, new),
        };
        let old = self.old.as_mut().filter(|_| order.is_le()).and_then(Walk::take);
        let new = self.new.as_mut().filter(|_| order.is_ge()).and_then(Walk::take);
        Some(Pair::Items(old, new))
    }
}
