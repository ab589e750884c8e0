//! A persistent sorted map: a B+ tree whose versions share nodes until one of them changes.
//!
//! A clone copies one pointer. A change copies the shared nodes on the path to its leaf. Invariants:
//! 1. Names are unique and in order. No node is empty.
//! 2. The name of a branch, except a node's first, is above all names to its left, and not above the first to its
//!    right.
//! 3. A node's sources include those of its items, so a walk for a source may skip nodes without it.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::meta::SourceId;

pub(crate) use map::{Key, SortedMap, SortedSet};

mod map;
pub(crate) mod walk;

/// An update of a shared map copies a leaf, and counts a reference to each object in it: larger leaves would make
/// events expensive.
const MOST: usize = 32;

/// More than any map has: each level at least doubles the items.
const LEVELS: usize = 16;

pub(crate) trait Item: Clone {
    type Name: Clone;
    type Query<'q>: Copy;

    fn name(&self) -> &Self::Name;

    fn order(name: &Self::Name, query: Self::Query<'_>) -> Ordering;

    fn compare(one: &Self, other: &Self) -> Ordering;

    /// A number from the name, in the node: it tells most items apart without a look at their names elsewhere in
    /// memory. `None` if there is none.
    fn fingerprint_of(_query: Self::Query<'_>) -> Option<u32> {
        None
    }

    fn fingerprint(&self) -> Option<u32> {
        None
    }

    /// Of the item, or of any object in it.
    fn sources(&self) -> Sources;
}

pub(crate) struct Tree<T: Item> {
    root: Option<Arc<Node<T>>>,
    len: usize,
}

#[derive(Clone)]
struct Node<T: Item> {
    sources: Sources,
    kind: Kind<T>,
}

#[derive(Clone)]
enum Kind<T: Item> {
    Leaf(Vec<T>),
    Inner(Vec<Branch<T>>),
}

#[derive(Clone)]
struct Branch<T: Item> {
    name: T::Name,
    node: Arc<Node<T>>,
}

/// Valid until the tree changes.
pub(crate) struct Descent {
    at: [usize; LEVELS],
    is_found: bool,
}

impl Descent {
    pub(crate) fn is_found(&self) -> bool {
        self.is_found
    }
}

impl<T: Item> Tree<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn root(&self) -> Option<&Node<T>> {
        self.root.as_deref()
    }

    pub(crate) fn is_shared_with(&self, other: &Self) -> bool {
        match (&self.root, &other.root) {
            (Some(root), Some(other)) => Arc::ptr_eq(root, other),
            (root, other) => root.is_none() && other.is_none(),
        }
    }

    pub(crate) fn get(&self, name: T::Query<'_>) -> Option<&T> {
        self.item(&self.find(name))
    }

    pub(crate) fn sources(&self) -> Sources {
        self.root.as_ref().map_or(Sources::NONE, |root| root.sources)
    }

    pub(crate) fn find(&self, name: T::Query<'_>) -> Descent {
        let fingerprint = T::fingerprint_of(name);
        let is_it = |item: &T| item.fingerprint() == fingerprint && T::order(item.name(), name).is_eq();
        self.descend(
            |other| T::order(other, name),
            |items| fingerprint.and_then(|_| items.iter().position(is_it)),
        )
    }

    /// `order` returns `Equal` for the name, and must order names as the tree does.
    pub(crate) fn find_by(&self, order: impl Fn(&T::Name) -> Ordering) -> Descent {
        self.descend(order, |_| None)
    }

    /// `known` may find the item in its leaf; else its order finds it.
    fn descend(
        &self,
        order: impl Fn(&T::Name) -> Ordering,
        known: impl FnOnce(&[T]) -> Option<usize>,
    ) -> Descent {
        let mut path = Descent { at: [0; LEVELS], is_found: false };
        let mut next = self.root.as_ref();
        let mut level = 0;
        while let Some(node) = next.take() {
            path.at[level] = match &node.kind {
                Kind::Inner(branches) => {
                    let at = branch_by(branches, &order);
                    next = Some(&branches[at].node);
                    at
                }
                Kind::Leaf(items) => {
                    let search = || items.binary_search_by(|item| order(item.name()));
                    let at = known(items).map_or_else(search, Ok);
                    path.is_found = at.is_ok();
                    path.at[level] = at.unwrap_or_else(|at| at);
                    return path;
                }
            };
            level += 1;
        }
        path
    }

    pub(crate) fn item(&self, path: &Descent) -> Option<&T> {
        let mut node = self.root.as_ref().filter(|_| path.is_found)?;
        for at in path.at {
            match &node.kind {
                Kind::Inner(branches) => node = &branches[at].node,
                Kind::Leaf(items) => return items.get(at),
            }
        }
        None
    }

    /// The caller replaces it by an item of these sources.
    pub(crate) fn item_mut(&mut self, path: &Descent, sources: Sources) -> Option<&mut T> {
        let mut node = Arc::make_mut(self.root.as_mut().filter(|_| path.is_found)?);
        for at in path.at {
            node.sources = node.sources.and(sources);
            match &mut node.kind {
                Kind::Inner(branches) => node = Arc::make_mut(&mut branches[at].node),
                Kind::Leaf(items) => return items.get_mut(at),
            }
        }
        None
    }

    pub(crate) fn insert_at(&mut self, path: &Descent, item: T) {
        debug_assert!(!path.is_found, "an item is put in where there is none");
        self.len += 1;
        let sources = item.sources();
        let Some(root) = &mut self.root else {
            self.root = Some(Arc::new(Node { sources, kind: Kind::Leaf(vec![item]) }));
            return;
        };
        if let Some(right) = insert_into(root, &path.at, item) {
            let sources = root.sources.and(right.node.sources);
            let left = Branch { name: right.name.clone(), node: Arc::clone(root) };
            *root = Arc::new(Node { sources, kind: Kind::Inner(vec![left, right]) });
        }
    }

    pub(crate) fn remove_at(&mut self, path: &Descent) -> Option<T> {
        let root = self.root.as_mut().filter(|_| path.is_found)?;
        let item = remove_from(root, &path.at);
        self.len -= 1;
        while let Kind::Inner(branches) = &root.kind
            && let [only] = branches.as_slice()
        {
            *root = Arc::clone(&only.node);
        }
        if self.len == 0 {
            self.root = None;
        }
        Some(item)
    }
}

fn branch_of<T: Item>(branches: &[Branch<T>], name: T::Query<'_>) -> usize {
    branch_by(branches, |other| T::order(other, name))
}

fn branch_by<T: Item>(branches: &[Branch<T>], order: impl Fn(&T::Name) -> Ordering) -> usize {
    branches.get(1..).map_or(0, |later| later.partition_point(|branch| order(&branch.name).is_le()))
}

/// Returns the new right neighbour if the node was split.
fn insert_into<T: Item>(node: &mut Arc<Node<T>>, path: &[usize], item: T) -> Option<Branch<T>> {
    let (at, below) = path.split_first()?;
    let node = Arc::make_mut(node);
    node.sources = node.sources.and(item.sources());
    let sources = node.sources;
    match &mut node.kind {
        Kind::Leaf(items) => {
            let items = insert_or_split(items, *at, item)?;
            let name = items.first()?.name().clone();
            Some(Branch { name, node: Arc::new(Node { sources, kind: Kind::Leaf(items) }) })
        }
        Kind::Inner(branches) => {
            let right = insert_into(&mut branches[*at].node, below, item)?;
            let branches = insert_or_split(branches, at + 1, right)?;
            let name = branches.first()?.name.clone();
            Some(Branch { name, node: Arc::new(Node { sources, kind: Kind::Inner(branches) }) })
        }
    }
}

/// Returns the right part if there were too many entries. One at the end leaves the left part full: lists are in
/// order.
fn insert_or_split<E>(entries: &mut Vec<E>, at: usize, entry: E) -> Option<Vec<E>> {
    let put = |entries: &mut Vec<E>, at: usize, entry: E| {
        if entries.len() == entries.capacity() {
            entries.reserve_exact(MOST / 4);
        }
        entries.insert(at, entry);
    };
    if entries.len() < MOST {
        put(entries, at, entry);
        return None;
    }
    let cut = if at == MOST { MOST } else { MOST / 2 };
    let mut right = entries.split_off(cut);
    if at > cut || cut == MOST {
        put(&mut right, at - cut, entry);
    } else {
        put(entries, at, entry);
    }
    Some(right)
}

fn remove_from<T: Item>(node: &mut Arc<Node<T>>, path: &[usize]) -> T {
    let (at, below) = path.split_first().expect("no tree has more levels than a path");
    match &mut Arc::make_mut(node).kind {
        Kind::Leaf(items) => items.remove(*at),
        Kind::Inner(branches) => {
            let item = remove_from(&mut branches[*at].node, below);
            join_small(branches, *at);
            item
        }
    }
}

/// If one node has room for both.
fn join_small<T: Item>(branches: &mut Vec<Branch<T>>, at: usize) {
    let count = branches[at].node.len();
    if count == 0 {
        branches.remove(at);
        return;
    }
    let left = if at + 1 < branches.len() { at } else { at.saturating_sub(1) };
    let is_alone = left + 1 >= branches.len();
    if count > MOST / 4
        || is_alone
        || branches[left].node.len() + branches[left + 1].node.len() > MOST * 3 / 4
    {
        return;
    }
    let right = branches.remove(left + 1);
    let left = Arc::make_mut(&mut branches[left].node);
    let taken = Arc::unwrap_or_clone(right.node);
    left.sources = left.sources.and(taken.sources);
    match (&mut left.kind, taken.kind) {
        (Kind::Leaf(items), Kind::Leaf(more)) => {
            items.reserve_exact(more.len());
            items.extend(more);
        }
        (Kind::Inner(branches), Kind::Inner(mut more)) => {
            // The first name of a node is not used; the name of the branch to the node is.
            more[0].name = right.name;
            branches.reserve_exact(more.len());
            branches.extend(more);
        }
        _ => unreachable!("all leaves of a tree have the same depth"),
    }
}

impl<T: Item> Node<T> {
    fn len(&self) -> usize {
        match &self.kind {
            Kind::Leaf(items) => items.len(),
            Kind::Inner(branches) => branches.len(),
        }
    }
}

crate::clone_of!([T: Item] Tree<T> { root, len });

impl<T: Item> Default for Tree<T> {
    fn default() -> Self {
        Self { root: None, len: 0 }
    }
}

/// A Bloom filter of 64 bits over names of sources. It may contain more than was added, which costs a walk one visit,
/// and never less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sources(u64);

impl Sources {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const ALL: Self = Self(u64::MAX);

    pub(crate) fn of(source: &SourceId) -> Self {
        // FNV-1a, mixed again because names that end alike must differ. The bit depends on the name alone.
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = source.as_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix);
        Self(1 << ((hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58))
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn meet(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

#[cfg(test)]
mod tests;
