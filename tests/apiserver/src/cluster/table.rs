//! The objects of one resource, in the order of lists, with their history and their watches.
//!
//! Answers: what is there now, what was there at version n, which watches does a change concern?
//! 1. The map is persistent: a snapshot of 100,000 objects is one pointer, and later writes do not touch it.
//! 2. The key is `namespace/name` (`name` for cluster-scoped kinds), and lists follow the order of its bytes.
//! 3. A change reaches only watches whose scope covers its key.
//!
//! Next: `list.rs` cuts pages out of a snapshot, `watch.rs` registers here.
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use super::history::{Event, History};
use super::object::Object;

pub(crate) type Objects = OrdMap<Arc<str>, Arc<Object>>;

/// The part of a resource that a request is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    All,
    /// One namespace.
    Namespace(String),
    /// One key, `namespace/name` or `name`.
    Key(String),
}

impl Scope {
    /// The range of keys in this scope that lie after `start` (or from the beginning).
    pub(crate) fn range(&self, start: Option<&str>) -> (Bound<Arc<str>>, Bound<Arc<str>>) {
        let (low, high): (Bound<Arc<str>>, Bound<Arc<str>>) = match self {
            Self::All => (Bound::Unbounded, Bound::Unbounded),
            // '0' is the byte after '/'.
            Self::Namespace(namespace) => (
                Bound::Included(format!("{namespace}/").into()),
                Bound::Excluded(format!("{namespace}0").into()),
            ),
            Self::Key(key) => (Bound::Included(key.as_str().into()), Bound::Included(key.as_str().into())),
        };
        match (start, &low) {
            (Some(start), Bound::Included(first)) if **first > *start => (low, high),
            (Some(start), _) => (Bound::Excluded(start.into()), high),
            (None, _) => (low, high),
        }
    }

    /// Whether the range after `start` is valid (a range that ends before it starts would panic).
    pub(crate) fn holds_after(&self, start: &str) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(namespace) => *start < *format!("{namespace}0"),
            Self::Key(key) => *start < **key,
        }
    }
}

/// All that is kept for one resource.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) objects: Objects,
    pub(crate) history: History,
    watchers: BTreeMap<Scope, BTreeSet<usize>>,
}

impl Table {
    pub(crate) fn new(history: History) -> Self {
        Self { objects: Objects::new(), history, watchers: BTreeMap::new() }
    }

    /// Adds a committed change to the map and the history.
    pub(crate) fn apply(&mut self, event: &Arc<Event>) {
        match &event.new {
            Some(object) => {
                self.objects.insert(Arc::clone(&event.key), Arc::clone(object));
            }
            None => {
                self.objects.remove(&event.key);
            }
        }
        self.history.push(Arc::clone(event));
    }

    /// The map as it was at `revision`, which the caller has checked to be at or above the floor.
    pub(crate) fn at(&self, revision: u64) -> Objects {
        let mut objects = self.objects.clone();
        for event in self.history.after(revision).rev() {
            match &event.old {
                Some(object) => {
                    objects.insert(Arc::clone(&event.key), Arc::clone(object));
                }
                None => {
                    objects.remove(&event.key);
                }
            }
        }
        objects
    }

    /// Whether no object lies in `scope`.
    pub(crate) fn is_empty_in(&self, scope: &Scope) -> bool {
        self.objects.range(scope.range(None)).next().is_none()
    }

    pub(crate) fn register(&mut self, scope: &Scope, watch: usize) {
        self.watchers.entry(scope.clone()).or_default().insert(watch);
    }

    pub(crate) fn unregister(&mut self, scope: &Scope, watch: usize) {
        if let Some(watches) = self.watchers.get_mut(scope) {
            watches.remove(&watch);
            if watches.is_empty() {
                self.watchers.remove(scope);
            }
        }
    }

    /// The watches whose scope covers `key`.
    pub(crate) fn interested(&self, key: &str) -> impl Iterator<Item = usize> {
        let namespace = key.split_once('/').map(|(namespace, _)| Scope::Namespace(namespace.to_owned()));
        let scopes = [Some(Scope::All), namespace, Some(Scope::Key(key.to_owned()))];
        let covering = scopes.into_iter().flatten().filter_map(|scope| self.watchers.get(&scope));
        covering.flatten().copied()
    }

    /// Every open watch of this resource.
    pub(crate) fn watches(&self) -> Vec<usize> {
        self.watchers.values().flatten().copied().collect()
    }

    /// A copy without watches and history, for a backup.
    pub(crate) fn frozen(&self, history: History) -> Self {
        Self { objects: self.objects.clone(), history, watchers: BTreeMap::new() }
    }
}
