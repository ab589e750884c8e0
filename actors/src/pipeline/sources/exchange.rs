//! Sources that take over from each other.
//!
//! Answers "which sources of a set of namespaces, or of a hand-over, follow the same objects for a while?". Invariants:
//! 1. A set exchanges its sources while it has both the cluster-wide source and one of a single namespace. Before the
//!    later of both is asked for its first list, the Indexer can know it: a source joins before it is followed.
//! 2. A hand-over lasts as long as its guard.
//!
//! Read next: `informer_core::indexer`, whose store is told of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use informer_core::indexer::{Scope, Successors};
use informer_core::meta::{ClusterName, ResourceVersion, SourceId};

use super::Sources;
use crate::pipeline::source_spec::{Member, SourceSpec};

/// The exchanges of one informer.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    sets: BTreeMap<usize, Members>,
    hand_overs: BTreeMap<u64, HandOver>,
    /// The newest version that each source has delivered, or may have yet to bring of what it took over.
    pub(super) delivered: BTreeMap<SourceId, ResourceVersion>,
}

/// The sources of one set of namespaces.
#[derive(Debug, Default)]
struct Members {
    all: Option<SourceId>,
    each: BTreeMap<SourceId, Scope>,
    successors: Successors,
    /// How many have no first list.
    missing: usize,
    /// The newest version that any of them has delivered.
    delivered: Option<ResourceVersion>,
}

impl Members {
    fn is_exchanging(&self) -> bool {
        self.all.is_some() && !self.each.is_empty()
    }
}

#[derive(Debug)]
struct HandOver {
    add: BTreeMap<SourceId, Scope>,
    /// Those that go and those that come.
    both: Successors,
    /// The newest version that any of them has delivered, in each cluster.
    delivered: BTreeMap<Option<ClusterName>, ResourceVersion>,
}

/// A hand-over, until it is dropped.
#[derive(Debug)]
pub(crate) struct HandingOver<'a> {
    sources: &'a Sources,
    number: u64,
    /// Those that come.
    pub(crate) successors: Successors,
}

impl Drop for HandingOver<'_> {
    fn drop(&mut self) {
        self.sources.state().exchanges.end(self.number);
        self.sources.exchanged.fetch_add(1, Ordering::AcqRel);
    }
}

impl Exchanges {
    pub(super) fn join(&mut self, member: &Member, scope: Scope, id: SourceId, exchanged: &AtomicU64) {
        let members = self.sets.entry(member.set).or_default();
        members.successors.add(scope.clone(), id.clone());
        members.missing += 1;
        if member.namespace.is_some() {
            members.each.insert(id, scope);
        } else {
            members.all = Some(id);
        }
        if members.is_exchanging() {
            exchanged.fetch_add(1, Ordering::AcqRel);
        }
    }

    pub(super) fn leave(&mut self, member: &Member, scope: &Scope, id: &SourceId, exchanged: &AtomicU64) {
        let Some(members) = self.sets.get_mut(&member.set) else { return };
        let was_exchanging = members.is_exchanging();
        members.successors.remove(scope, id);
        members.each.remove(id);
        members.all.take_if(|all| all == id);
        if was_exchanging {
            exchanged.fetch_add(1, Ordering::AcqRel);
        }
        if members.all.is_none() && members.each.is_empty() {
            self.sets.remove(&member.set);
        }
    }

    /// A source of this set has listed, or is not waited for any more.
    pub(super) fn note_listed(&mut self, set: usize) {
        if let Some(members) = self.sets.get_mut(&set) {
            members.missing -= 1;
        }
    }

    pub(super) fn missing(&self, set: usize) -> usize {
        self.sets.get(&set).map_or(0, |members| members.missing)
    }

    pub(super) fn all_of(&self, set: usize) -> Option<&SourceId> {
        self.sets.get(&set)?.all.as_ref()
    }

    /// The sources of a set, the cluster-wide one first.
    pub(super) fn ids(&self, set: usize) -> impl Iterator<Item = &SourceId> {
        self.sets.get(&set).into_iter().flat_map(|members| members.all.iter().chain(members.each.keys()))
    }

    /// What those that come have yet to bring counts as delivered by them.
    fn end(&mut self, number: u64) {
        let Some(HandOver { add, delivered, .. }) = self.hand_overs.remove(&number) else { return };
        for (id, scope) in add {
            let version = delivered.get(&scope.cluster).cloned().max(self.delivered.remove(&id));
            self.delivered.extend(version.map(|version| (id, version)));
        }
    }

    fn deliver(
        &mut self,
        member: Option<&Member>,
        (id, scope): (&SourceId, &Scope),
        version: &ResourceVersion,
        is_rewind: bool,
    ) {
        let raise = |newest: &mut ResourceVersion| {
            if is_rewind || *newest < *version {
                *newest = version.clone();
            }
        };
        raise(self.delivered.entry(id.clone()).or_insert_with(|| version.clone()));
        if let Some(members) = member.and_then(|member| self.sets.get_mut(&member.set)) {
            raise(members.delivered.get_or_insert_with(|| version.clone()));
        }
        for one in self.hand_overs.values_mut().filter(|one| one.both.has(id)) {
            raise(one.delivered.entry(scope.cluster.clone()).or_insert_with(|| version.clone()));
        }
    }

    fn current(&self) -> Vec<Successors> {
        let of_sets = self.sets.values().filter(|members| members.is_exchanging());
        let of_sets = of_sets.map(|members| members.successors.clone());
        of_sets.chain(self.hand_overs.values().map(|one| one.both.clone())).collect()
    }
}

impl Sources {
    /// Begins a hand-over. To be called before those that come are asked for anything.
    pub(crate) fn hand_over<S>(&self, remove: &[SourceId], add: &[SourceSpec<S>]) -> HandingOver<'_> {
        let mut state = self.state();
        let coming: BTreeMap<SourceId, Scope> = add.iter().map(|one| (one.id.clone(), one.scope())).collect();
        let mut successors = Successors::none();
        coming.iter().for_each(|(id, scope)| successors.add(scope.clone(), id.clone()));
        let (mut both, mut delivered) = (successors.clone(), BTreeMap::new());
        for id in remove {
            let Some(scope) = state.entries.get(id).map(|entry| entry.scope.clone()) else { continue };
            if let Some(newest) = state.exchanges.delivered.get(id) {
                let of_cluster = delivered.entry(scope.cluster.clone()).or_insert_with(|| newest.clone());
                if *of_cluster < *newest {
                    of_cluster.clone_from(newest);
                }
            }
            both.add(scope, id.clone());
        }
        let number = state.next;
        state.next += 1;
        state.exchanges.hand_overs.insert(number, HandOver { add: coming, both, delivered });
        self.exchanged.fetch_add(1, Ordering::AcqRel);
        HandingOver { sources: self, number, successors }
    }

    /// The sources that take over from each other now, if that has changed since it was `seen`.
    pub(crate) fn exchanged_since(&self, seen: &mut u64) -> Option<Vec<Successors>> {
        let exchanged = self.exchanged.load(Ordering::Acquire);
        if exchanged == *seen {
            return None;
        }
        *seen = exchanged;
        Some(self.state().exchanges.current())
    }

    /// The source is asked for a list; `is_first` if it has none yet. If it takes over from others, gives the newest version
    /// that they have delivered: the list must not be below it.
    pub(crate) fn begin_list(&self, id: &SourceId, is_first: bool) -> Option<ResourceVersion> {
        let mut state = self.state();
        let state = &mut *state;
        let entry = state.entries.get(id)?;
        let (mut takes_over, mut newest) = (false, None);
        if let Some(member) = &entry.member
            && let Some(members) = state.exchanges.sets.get_mut(&member.set)
            && members.is_exchanging()
        {
            if is_first {
                members.successors.begin_round(&entry.scope, id);
            }
            takes_over = true;
            newest.clone_from(&members.delivered);
        }
        for one in state.exchanges.hand_overs.values_mut().filter(|one| one.add.contains_key(id)) {
            if is_first {
                one.both.begin_round(&entry.scope, id);
            }
            takes_over = true;
            newest = newest.max(one.delivered.get(&entry.scope.cluster).cloned());
        }
        if is_first && takes_over {
            self.exchanged.fetch_add(1, Ordering::AcqRel);
        }
        newest
    }

    /// The source is about to deliver this version; or, with `is_rewind`, has published a list after a rewind: what was
    /// delivered before does not count.
    pub(crate) fn note_delivered(&self, id: &SourceId, version: &ResourceVersion, is_rewind: bool) {
        let mut state = self.state();
        let state = &mut *state;
        if let Some(entry) = state.entries.get(id) {
            state.exchanges.deliver(entry.member.as_ref(), (id, &entry.scope), version, is_rewind);
        }
    }

    /// Those that take over from this source of a set: the others of its set.
    pub(crate) fn successors_in_set(&self, set: usize) -> Successors {
        self.state().exchanges.sets.get(&set).map(|members| members.successors.clone()).unwrap_or_default()
    }
}
