//! Which namespaces a cluster-wide source keeps, and when it is listed again.
//!
//! 1. What a list keeps, the watches after it keep, so the objects of a kept namespace are complete.
//! 2. More namespaces need a new list, one at a time. Fewer need one only if the store has objects of the others.
//! 3. An object that does not pass becomes a bookmark, which moves the version. Bookmarks in a row become one.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Names;
use crate::delta::{ListPart, WatchPart};
use crate::meta::{ClusterName, ObjectKey};
use crate::snapshot::Snapshot;

/// The filter of one cluster-wide source during one life of its reflector.
///
/// ```
/// # use informer_core::namespaces::filter::{FilterMachine, Look};
/// # use informer_core::namespaces::Names;
/// # use std::{collections::BTreeSet, sync::Arc};
/// # let names = |names: &[&str]| -> Names { Arc::new(names.iter().copied().map(Into::into).collect()) };
/// let mut filter = FilterMachine::new(names(&["shop", "web"]));
/// filter.handle_delivery();
/// filter.handle_settled(true);
/// assert_eq!(filter.look(&names(&["shop", "web"])), Look::Agrees);
/// assert_eq!(filter.look(&names(&["shop", "web", "new"])), Look::List);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterMachine {
    /// What the last list keeps, or fewer.
    kept: Names,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No list that keeps these is delivered.
    Listing,
    /// The publish of that list, or the search of the store, is awaited.
    Settling,
    /// The store has the objects of what is kept, and no others.
    Settled,
    /// The store has objects of namespaces that are not kept.
    Stale,
}

/// What follows from the namespaces that are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the caller carries out each")]
pub enum Look {
    /// A list or an answer is awaited first.
    Waits,
    /// The store has what is asked for.
    Agrees,
    /// The source must be listed again.
    List,
    /// Does the store, with all that the source has delivered, have objects of these? The answer goes to
    /// [`FilterMachine::handle_settled`].
    Search(Vec<Arc<str>>),
}

impl FilterMachine {
    /// Keeps these from the first list on.
    pub fn new(asked: Names) -> Self {
        Self { kept: asked, stage: Stage::Listing }
    }

    /// What requests keep.
    pub fn kept(&self) -> &Names {
        &self.kept
    }

    /// A list, or a watch-list, is sent from its beginning, while these are asked for.
    pub fn handle_list(&mut self, asked: Names) {
        *self = Self::new(asked);
    }

    /// The list is delivered. [`Self::handle_settled`] follows when it is published.
    pub fn handle_delivery(&mut self) {
        self.stage = Stage::Settling;
    }

    /// The delivered list is published (`is_clean` is true), or the store was searched. Returns whether the store has
    /// exactly what is kept.
    pub fn handle_settled(&mut self, is_clean: bool) -> bool {
        self.stage = if is_clean { Stage::Settled } else { Stage::Stale };
        is_clean
    }

    /// Compares what is kept with what is asked for. Fewer namespaces are kept from now on.
    pub fn look(&mut self, asked: &Names) -> Look {
        match self.stage {
            Stage::Listing | Stage::Settling => Look::Waits,
            Stage::Stale => Look::List,
            Stage::Settled if !asked.is_subset(&self.kept) => Look::List,
            Stage::Settled if self.kept == *asked => Look::Agrees,
            Stage::Settled => {
                let others = self.kept.difference(asked).cloned().collect();
                (self.kept, self.stage) = (Names::clone(asked), Stage::Settling);
                Look::Search(others)
            }
        }
    }

    /// The part of a list without what is not kept.
    pub fn keep_listed<S>(&self, part: ListPart<S>) -> ListPart<S> {
        match part {
            ListPart::Objects(mut objects) => {
                objects.retain(|object| keeps(&self.kept, object.key()));
                ListPart::Objects(objects)
            }
            ListPart::Undecodable(undecodable) if !keeps(&self.kept, &undecodable.key) => {
                ListPart::Objects(Vec::new())
            }
            part => part,
        }
    }

    /// The parts of a watch without what is not kept.
    pub fn keep_watched<S>(&self, parts: Vec<WatchPart<S>>) -> Vec<WatchPart<S>> {
        let mut kept: Vec<WatchPart<S>> = Vec::with_capacity(parts.len());
        for part in parts {
            let part = match (part.key(), part.reached()) {
                (Some(key), Some(version)) if !keeps(&self.kept, key) => {
                    WatchPart::Bookmark { version: version.clone(), initial_events_end: false }
                }
                (Some(key), None) if !keeps(&self.kept, key) => continue,
                _ => part,
            };
            if is_passing_mark(&part) && kept.last().is_some_and(is_passing_mark) {
                kept.pop();
            }
            kept.push(part);
        }
        kept
    }
}

/// The answer to [`Look::Search`] is false if this is true: there is an object of one of these namespaces, decoded or
/// not. `cluster` is that of its key. O(namespaces), and O(undecodable objects).
pub fn has_any<S>(snapshot: &Snapshot<S>, cluster: Option<&ClusterName>, namespaces: &[Arc<str>]) -> bool {
    let has_object = |namespace: &Arc<str>| match cluster {
        Some(cluster) => snapshot.namespace_in(cluster, namespace).next().is_some(),
        None => snapshot.namespace(namespace).next().is_some(),
    };
    let is_of = |key: &ObjectKey| {
        let is_of = |namespace: &Arc<str>| key.namespace() == Some(&**namespace);
        key.cluster_name() == cluster && namespaces.iter().any(is_of)
    };
    namespaces.iter().any(has_object) || snapshot.undecodable().any(|undecodable| is_of(&undecodable.key))
}

fn is_passing_mark<S>(part: &WatchPart<S>) -> bool {
    matches!(part, WatchPart::Bookmark { initial_events_end: false, .. })
}

fn keeps(names: &BTreeSet<Arc<str>>, key: &ObjectKey) -> bool {
    key.namespace().is_some_and(|namespace| names.contains(namespace))
}

#[cfg(test)]
mod tests;
