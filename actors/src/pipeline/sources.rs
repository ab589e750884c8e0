//! The sources of an informer, which are added and removed while it runs.
//!
//! Answers "may this source be added, is it still followed, and which sources take over from it?" for handles, for the
//! Reflectors and for the Indexer. The store decides about objects. Invariants:
//! 1. A name belongs to one source until everything that the source brought is removed.
//! 2. At least one source stays, unless the informer follows a set of namespaces: that may be empty.
//! 3. All sources name a cluster, or none does.
//! 4. Its lock guards a few maps. Nothing is called or dropped under it, and no call walks over all sources but those that
//!    say so.
//!
//! Read next: `sources/exchange.rs`, who takes over; `source_spec.rs`; `informer/sources.rs`, what a handle does with it.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard};

use informer_core::indexer::Scope;
use informer_core::meta::{ClusterName, ObjectKey, SourceId};
use informer_core::snapshot::Snapshot;
use tokio_util::sync::CancellationToken;

use self::exchange::Exchanges;
use crate::pipeline::namespace_filter::NamespaceFilter;
use crate::pipeline::source_cells::walks;
use crate::pipeline::source_spec::{Coverage, Member, SourceSpec};
use crate::runtime::locked::locked;

mod exchange;
mod left;

pub(crate) use self::exchange::AskedFor;
pub use self::left::Selected;

/// The sources of one informer.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    state: Mutex<State>,
    /// How often it has changed which sources take over from each other.
    exchanged: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<SourceId, Entry>,
    /// In the order in which they came.
    in_order: BTreeMap<u64, SourceId>,
    next: u64,
    /// How often one has come or gone.
    changes: u64,
    /// By what they may bring.
    by_scope: BTreeMap<Scope, BTreeMap<u64, SourceId>>,
    /// How many are not being removed.
    staying: usize,
    /// Those of these whose first list is not published, as far as that is known; and the set of each.
    unlisted: BTreeMap<SourceId, Option<usize>>,
    exchanges: Exchanges,
}

#[derive(Debug)]
struct Entry {
    order: u64,
    scope: Scope,
    cluster: Option<ClusterName>,
    coverage: Option<Coverage>,
    member: Option<Member>,
    /// Which namespaces it keeps, if it follows all of them and keeps some.
    filter: Option<Arc<NamespaceFilter>>,
    /// Set when its removal begins; cancelled when it is removed.
    leaving: Option<CancellationToken>,
}

/// A source that may not join.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) id: SourceId,
    pub(crate) why: Refused,
}

/// Why a source may not join.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Another one has the name, or had it and is not yet forgotten.
    Taken,
    /// It names a cluster and the others do not, or the other way round.
    Cluster { has_cluster: bool },
    /// It surely has objects in common with this one.
    Overlaps(SourceId),
}

/// Why a source may not be removed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotRemoved {
    /// There is none of this name.
    Unknown,
    /// It is the only one.
    Last,
}

/// A removal that has begun.
#[derive(Debug)]
pub(crate) struct Removal {
    /// Cancelled when it is over.
    pub(crate) over: CancellationToken,
    /// Whether it was begun by this call, which then has to carry it out.
    pub(crate) is_new: bool,
}

impl Sources {
    /// Lets all of these join, or none.
    pub(crate) fn join<'a, S: 'a>(
        &self,
        specs: impl IntoIterator<Item = &'a SourceSpec<S>>,
        may_overlap: bool,
    ) -> Result<(), Refusal> {
        let mut state = self.state();
        let before = state.next;
        for spec in specs {
            // Those that join together must not overlap each other; those that were there may be about to leave.
            if let Some(why) = state.refusal(spec, if may_overlap { before } else { 0 }) {
                let joined: Vec<SourceId> =
                    state.in_order.range(before..).map(|(_, id)| id.clone()).collect();
                joined.iter().for_each(|id| state.remove(id, &self.exchanged));
                return Err(Refusal { id: spec.id.clone(), why });
            }
            state.add(spec, &self.exchanged);
        }
        Ok(())
    }

    /// Why these could not join, if they could not.
    pub(crate) fn refusal<'a, S: 'a>(
        &self,
        specs: impl IntoIterator<Item = &'a SourceSpec<S>>,
    ) -> Option<Refusal> {
        let state = self.state();
        specs.into_iter().find_map(|spec| {
            let why = state.refusal(spec, 0)?;
            Some(Refusal { id: spec.id.clone(), why })
        })
    }

    /// Begins to remove a source: from now on it does not count. Its name stays taken until [`Self::forget`].
    pub(crate) fn begin_removal(&self, id: &SourceId) -> Result<Removal, NotRemoved> {
        let mut state = self.state();
        let is_only = state.staying == 1;
        let entry = state.entries.get_mut(id).ok_or(NotRemoved::Unknown)?;
        if let Some(over) = &entry.leaving {
            return Ok(Removal { over: over.clone(), is_new: false });
        }
        if is_only && entry.member.is_none() {
            return Err(NotRemoved::Last);
        }
        let over = CancellationToken::new();
        entry.leaving = Some(over.clone());
        state.changes += 1;
        state.staying -= 1;
        state.list(id);
        Ok(Removal { over, is_new: true })
    }

    /// Ends a removal: nothing of the source is left, and its name is free.
    pub(crate) fn forget(&self, id: &SourceId) {
        let mut state = self.state();
        if state.entries.get(id).is_some_and(|entry| entry.leaving.is_some()) {
            state.remove(id, &self.exchanged);
        }
    }

    /// Whether there is none, as of a set of no namespaces.
    pub(crate) fn is_empty(&self) -> bool {
        self.state().entries.is_empty()
    }

    /// Whether a source of this name is followed.
    pub(crate) fn contains(&self, id: &SourceId) -> bool {
        self.state().entries.get(id).is_some_and(|entry| entry.leaving.is_none())
    }

    /// Whether it is the source of a namespace of a set, or the cluster-wide one.
    pub(crate) fn is_of_set(&self, id: &SourceId) -> bool {
        self.state().entries.get(id).is_some_and(|entry| entry.member.is_some())
    }

    /// Whether a source of this name is being removed.
    pub(crate) fn is_leaving(&self, id: &SourceId) -> bool {
        self.state().entries.get(id).is_some_and(|entry| entry.leaving.is_some())
    }

    /// The names of those that are followed, in the order in which they came. Walks over all.
    pub(crate) fn ids(&self) -> Vec<SourceId> {
        let state = self.state();
        let staying = state.walk(state.in_order.values()).filter(|(_, entry)| entry.leaving.is_none());
        staying.map(|(id, _)| id.clone()).collect()
    }

    /// As [`Self::ids`], if any has come or gone since this was `seen`; 0 for a reader that has seen none.
    pub(crate) fn ids_since(&self, seen: &mut u64) -> Option<Vec<SourceId>> {
        let now = self.state().changes + 1;
        let is_news = std::mem::replace(seen, now) != now;
        is_news.then(|| self.ids())
    }

    /// The sources of a set of namespaces: each with its name, what it follows, and whether its removal has begun. Walks
    /// over all of the set.
    pub(crate) fn of_set(&self, set: usize) -> Vec<(SourceId, Option<Arc<str>>, bool)> {
        let state = self.state();
        let members = state.walk(state.exchanges.ids(set));
        let found = members.filter_map(|(id, entry)| {
            Some((id.clone(), entry.member.as_ref()?.namespace.clone(), entry.leaving.is_some()))
        });
        found.collect()
    }

    /// Whether it is the source of a namespace of this set, and stays.
    pub(crate) fn stays_in_set(&self, id: &SourceId, set: usize) -> bool {
        let state = self.state();
        let entry = state.entries.get(id).filter(|entry| entry.leaving.is_none());
        let member = entry.and_then(|entry| entry.member.as_ref());
        member.is_some_and(|member| member.set == set && member.namespace.is_some())
    }

    /// The cluster-wide source of a set, and whether its removal has begun.
    pub(crate) fn cluster_wide(&self, set: usize) -> Option<(SourceId, bool)> {
        let state = self.state();
        let id = state.exchanges.all_of(set)?.clone();
        let is_leaving = state.entries.get(&id).is_some_and(|entry| entry.leaving.is_some());
        Some((id, is_leaving))
    }

    /// How many sources of a set have no first list, of those that stay.
    pub(crate) fn missing(&self, set: usize) -> usize {
        self.state().exchanges.missing(set)
    }

    /// How many sources a set has, those included that are being removed.
    pub(crate) fn members(&self, set: usize) -> usize {
        self.state().exchanges.ids(set).count()
    }

    /// How often a source of any set has come, begun to go, or gone.
    pub(crate) fn changes(&self) -> u64 {
        self.state().changes
    }

    /// The sources of a cluster, but for those that belong to a set of namespaces. Walks over all.
    pub(crate) fn of_cluster(&self, cluster: &ClusterName) -> Vec<SourceId> {
        let state = self.state();
        let all = state.walk(state.in_order.values());
        let of_it =
            all.filter(|(_, entry)| entry.member.is_none() && entry.cluster.as_ref() == Some(cluster));
        of_it.map(|(id, _)| id.clone()).collect()
    }

    /// Whether it is a source of this cluster, or names none where none is given.
    pub(crate) fn is_in_cluster(&self, id: &SourceId, cluster: Option<&ClusterName>) -> bool {
        self.state().entries.get(id).is_some_and(|entry| entry.cluster.as_ref() == cluster)
    }

    /// The names of those that may follow the object of this key.
    pub(crate) fn following(&self, key: &ObjectKey) -> Vec<SourceId> {
        let state = self.state();
        let everywhere = Scope { cluster: key.cluster_name().cloned(), namespace: None };
        let here = key.namespace().map(|name| Scope { namespace: Some(name.into()), ..everywhere.clone() });
        let scopes = [Some(everywhere), here].into_iter().flatten();
        let found: BTreeMap<u64, SourceId> = scopes
            .filter_map(|scope| state.by_scope.get(&scope))
            .flat_map(|sources| sources.iter().map(|(order, id)| (*order, id.clone())))
            .collect();
        let stays = |id: &SourceId| state.entries.get(id).is_some_and(|entry| entry.leaving.is_none());
        found.into_values().filter(stays).collect()
    }

    /// Whether the selectors of one that may follow the object of this key let it through with these labels.
    pub(crate) fn select(&self, key: &ObjectKey, labels: &BTreeMap<String, String>) -> bool {
        let following = self.following(key);
        let coverages: Vec<Option<Coverage>> = {
            let state = self.state();
            let entries = following.iter().filter_map(|id| state.entries.get(id));
            entries.map(|entry| entry.coverage.clone()).collect()
        };
        let may_pass = |coverage: &Coverage| coverage.selects.may_pass(key, labels);
        coverages.iter().any(|coverage| coverage.as_ref().is_none_or(may_pass))
    }

    /// Whether every one has listed, once these have, too.
    pub(crate) fn have_all_listed(&self, first: &[SourceId]) -> bool {
        let state = self.state();
        let listed = first.iter().filter(|id| state.unlisted.contains_key(*id)).count();
        state.unlisted.len() == listed
    }

    /// The first lists of these are published, in this snapshot.
    pub(crate) fn note_listed<S>(&self, snapshot: &Snapshot<S>, first: &[SourceId]) {
        let mut state = self.state();
        first.iter().for_each(|id| state.list(id));
        // A panic after the publish may have kept others from being noted.
        while let Some((id, _)) = state.unlisted.first_key_value()
            && snapshot.version(id).is_some()
        {
            let id = id.clone();
            state.list(&id);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

impl State {
    /// These sources with their entries: what walks over all of them goes through here, and is counted.
    fn walk<'a>(
        &'a self,
        ids: impl Iterator<Item = &'a SourceId>,
    ) -> impl Iterator<Item = (&'a SourceId, &'a Entry)> {
        ids.inspect(|_| walks::note()).filter_map(|id| Some((id, self.entries.get(id)?)))
    }

    /// The first list of this source is published, or not waited for any more.
    fn list(&mut self, id: &SourceId) {
        if let Some(Some(set)) = self.unlisted.remove(id) {
            self.exchanges.note_listed(set);
        }
    }

    fn add<S>(&mut self, spec: &SourceSpec<S>, exchanged: &AtomicU64) {
        let order = self.next;
        self.next += 1;
        let (cluster, coverage) = (spec.cluster.clone(), spec.coverage.clone());
        let (scope, member) = (spec.scope(), spec.member.clone());
        let filter = spec.filter.clone();
        let entry = Entry { order, scope: scope.clone(), cluster, coverage, member, filter, leaving: None };
        if let Some(member) = &entry.member {
            self.exchanges.join(member, scope.clone(), spec.id.clone(), exchanged);
        }
        self.in_order.insert(order, spec.id.clone());
        self.by_scope.entry(scope).or_default().insert(order, spec.id.clone());
        self.entries.insert(spec.id.clone(), entry);
        let set = spec.member.as_ref().map(|member| member.set);
        self.unlisted.insert(spec.id.clone(), set);
        self.staying += 1;
        self.changes += 1;
    }

    fn remove(&mut self, id: &SourceId, exchanged: &AtomicU64) {
        let Some(entry) = self.entries.remove(id) else { return };
        let scope = &entry.scope;
        if let Some(member) = &entry.member {
            self.exchanges.leave(member, scope, id, exchanged);
        }
        self.in_order.remove(&entry.order);
        self.list(id);
        self.changes += 1;
        if let Some(sources) = self.by_scope.get_mut(scope) {
            sources.remove(&entry.order);
            if sources.is_empty() {
                self.by_scope.remove(scope);
            }
        }
        self.staying -= usize::from(entry.leaving.is_none());
        self.exchanges.delivered.remove(id);
    }

    /// Why it may not join; of the sources that may overlap, those count that came from `since` on.
    fn refusal<S>(&self, spec: &SourceSpec<S>, since: u64) -> Option<Refused> {
        if self.entries.contains_key(&spec.id) {
            return Some(Refused::Taken);
        }
        let first = self.in_order.values().next().and_then(|id| self.entries.get(id));
        if first.is_some_and(|first| first.cluster.is_some() != spec.cluster.is_some()) {
            return Some(Refused::Cluster { has_cluster: spec.cluster.is_some() });
        }
        let coverage = spec.coverage.as_ref()?;
        let scope = Scope { cluster: spec.cluster.clone(), namespace: None };
        let here = coverage.namespace.clone().map(|name| Scope { namespace: Some(name), ..scope.clone() });
        let overlaps = |sources: &BTreeMap<u64, SourceId>| {
            let mut overlapping = sources.range(since..).filter(|(_, id)| {
                let other = self.entries.get(*id).and_then(|entry| entry.coverage.as_ref());
                other.is_some_and(|other| other.overlaps(coverage))
            });
            overlapping.next().map(|(order, id)| (*order, id.clone()))
        };
        let found = match here {
            Some(here) => {
                let scopes = [self.by_scope.get(&scope), self.by_scope.get(&here)];
                scopes.into_iter().flatten().filter_map(overlaps).min()
            }
            None => {
                let of_cluster = self.by_scope.range(scope..);
                let of_cluster = of_cluster.take_while(|(scope, _)| scope.cluster == spec.cluster);
                of_cluster.filter_map(|(_, sources)| overlaps(sources)).min()
            }
        };
        found.map(|(_, id)| Refused::Overlaps(id))
    }
}

#[cfg(test)]
mod tests;
