//! The sources of an informer, added and removed while it runs.
//!
//! 1. A name belongs to one source until everything that the source brought is removed.
//! 2. At least one source stays, unless the informer follows a set of namespaces, which may be empty.
//! 3. All sources name a cluster, or none does.
//! 4. Nothing is called or dropped under the lock. Only calls that say so walk over all sources.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use informer_core::indexer::Scope;
use informer_core::meta::{ClusterName, ObjectKey, SourceId};
use informer_core::snapshot::Snapshot;
use tokio_util::sync::CancellationToken;

use self::exchange::Exchanges;
use crate::pipeline::namespace_filter::NamespaceFilter;
use crate::pipeline::source_cells::walks;
use crate::pipeline::source_spec::{Coverage, Member, SourceSpec};
use crate::runtime::locked::Guarded;

mod exchange;
mod left;

pub(crate) use self::exchange::AskedFor;
pub use self::left::Selected;

#[derive(Debug, Default)]
pub(crate) struct Sources {
    state: Guarded<State>,
    /// How often a take-over began or ended.
    exchanged: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<SourceId, Entry>,
    in_order: BTreeMap<u64, SourceId>,
    next: u64,
    /// How often one joined, began to leave, or left.
    changes: u64,
    by_scope: BTreeMap<Scope, BTreeMap<u64, SourceId>>,
    staying: usize,
    /// Staying sources whose first list is not known to be published, with their sets.
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
    filter: Option<Arc<NamespaceFilter>>,
    /// Cancelled when its removal is over.
    leaving: Option<CancellationToken>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) id: SourceId,
    pub(crate) why: Refused,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Another one has the name, or is not yet forgotten.
    Taken,
    /// It names a cluster and the others do not, or the reverse.
    Cluster { has_cluster: bool },
    /// It surely has objects in common with this one.
    Overlaps(SourceId),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotRemoved {
    Unknown,
    Last,
}

#[derive(Debug)]
pub(crate) struct Removal {
    pub(crate) over: CancellationToken,
    /// This call has begun it, and must carry it out.
    pub(crate) is_new: bool,
}

impl Sources {
    /// All join, or none.
    pub(crate) fn join<'a, S: 'a>(
        &self,
        specs: impl IntoIterator<Item = &'a SourceSpec<S>>,
        may_overlap: bool,
    ) -> Result<(), Refusal> {
        self.state.with(|state| {
            let before = state.next;
            for spec in specs {
                // Those that join together must not overlap; older ones may be about to leave.
                if let Some(why) = state.refusal(spec, if may_overlap { before } else { 0 }) {
                    let joined: Vec<SourceId> =
                        state.in_order.range(before..).map(|(_, id)| id.clone()).collect();
                    joined.iter().for_each(|id| state.remove(id, &self.exchanged));
                    return Err(Refusal { id: spec.id.clone(), why });
                }
                state.add(spec, &self.exchanged);
            }
            Ok(())
        })
    }

    pub(crate) fn refusal<'a, S: 'a>(
        &self,
        specs: impl IntoIterator<Item = &'a SourceSpec<S>>,
    ) -> Option<Refusal> {
        self.state.with(|state| {
            specs.into_iter().find_map(|spec| {
                let why = state.refusal(spec, 0)?;
                Some(Refusal { id: spec.id.clone(), why })
            })
        })
    }

    /// From now on the source does not count. Its name stays taken until [`Self::forget`].
    pub(crate) fn begin_removal(&self, id: &SourceId) -> Result<Removal, NotRemoved> {
        self.state.with(|state| state.begin_removal(id))
    }

    pub(crate) fn forget(&self, id: &SourceId) {
        self.state.with(|state| {
            if state.is_leaving(id) {
                state.remove(id, &self.exchanged);
            }
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state.with(|state| state.entries.is_empty())
    }

    /// Whether it is there and stays.
    pub(crate) fn contains(&self, id: &SourceId) -> bool {
        self.state.with(|state| state.stays(id))
    }

    pub(crate) fn is_of_set(&self, id: &SourceId) -> bool {
        self.state.with(|state| state.entries.get(id).is_some_and(|entry| entry.member.is_some()))
    }

    pub(crate) fn is_leaving(&self, id: &SourceId) -> bool {
        self.state.with(|state| state.is_leaving(id))
    }

    /// Those that stay, in the order of joining. Walks over all.
    pub(crate) fn ids(&self) -> Vec<SourceId> {
        self.state.with(|state| {
            let staying = state.walk(state.in_order.values()).filter(|(_, entry)| entry.leaving.is_none());
            staying.map(|(id, _)| id.clone()).collect()
        })
    }

    /// [`Self::ids`], if they have changed since `seen`, which begins at 0.
    pub(crate) fn ids_since(&self, seen: &mut u64) -> Option<Vec<SourceId>> {
        let now = self.changes() + 1;
        let is_news = std::mem::replace(seen, now) != now;
        is_news.then(|| self.ids())
    }

    /// Name, namespace (`None`: cluster-wide), and whether it is leaving. Walks over the set.
    pub(crate) fn of_set(&self, set: usize) -> Vec<(SourceId, Option<Arc<str>>, bool)> {
        self.state.with(|state| {
            let members = state.walk(state.exchanges.ids(set));
            let found = members.filter_map(|(id, entry)| {
                Some((id.clone(), entry.member.as_ref()?.namespace.clone(), entry.leaving.is_some()))
            });
            found.collect()
        })
    }

    pub(crate) fn stays_in_set(&self, id: &SourceId, set: usize) -> bool {
        self.state.with(|state| {
            let entry = state.entries.get(id).filter(|entry| entry.leaving.is_none());
            let member = entry.and_then(|entry| entry.member.as_ref());
            member.is_some_and(|member| member.set == set && member.namespace.is_some())
        })
    }

    pub(crate) fn cluster_wide(&self, set: usize) -> Option<(SourceId, bool)> {
        self.state.with(|state| {
            let id = state.exchanges.all_of(set)?;
            Some((id.clone(), state.is_leaving(id)))
        })
    }

    /// Staying sources that have not listed.
    pub(crate) fn missing(&self, set: usize) -> usize {
        self.state.with(|state| state.exchanges.missing(set))
    }

    /// Includes those that are leaving.
    pub(crate) fn members(&self, set: usize) -> usize {
        self.state.with(|state| state.exchanges.ids(set).count())
    }

    pub(crate) fn changes(&self) -> u64 {
        self.state.with(|state| state.changes)
    }

    /// Without those of sets of namespaces. Walks over all.
    pub(crate) fn of_cluster(&self, cluster: &ClusterName) -> Vec<SourceId> {
        self.state.with(|state| {
            let all = state.walk(state.in_order.values());
            let of_it =
                all.filter(|(_, entry)| entry.member.is_none() && entry.cluster.as_ref() == Some(cluster));
            of_it.map(|(id, _)| id.clone()).collect()
        })
    }

    pub(crate) fn is_in_cluster(&self, id: &SourceId, cluster: Option<&ClusterName>) -> bool {
        self.state.with(|state| state.entries.get(id).is_some_and(|entry| entry.cluster.as_ref() == cluster))
    }

    /// Those that stay and may follow the object of this key.
    pub(crate) fn following(&self, key: &ObjectKey) -> Vec<SourceId> {
        self.state.with(|state| state.following(key))
    }

    pub(crate) fn select(&self, key: &ObjectKey, labels: &BTreeMap<String, String>) -> bool {
        let following = self.following(key);
        let coverages: Vec<Option<Coverage>> = self.state.with(|state| {
            let entries = following.iter().filter_map(|id| state.entries.get(id));
            entries.map(|entry| entry.coverage.clone()).collect()
        });
        let may_pass = |coverage: &Coverage| coverage.selects.may_pass(key, labels);
        coverages.iter().any(|coverage| coverage.as_ref().is_none_or(may_pass))
    }

    /// Whether all have listed when these have.
    pub(crate) fn have_all_listed(&self, first: &[SourceId]) -> bool {
        self.state.with(|state| {
            let listed = first.iter().filter(|id| state.unlisted.contains_key(*id)).count();
            state.unlisted.len() == listed
        })
    }

    pub(crate) fn note_listed<S>(&self, snapshot: &Snapshot<S>, first: &[SourceId]) {
        self.state.with(|state| {
            first.iter().for_each(|id| state.list(id));
            // A panic after the publish may have kept others from being noted.
            while let Some((id, _)) = state.unlisted.first_key_value()
                && snapshot.version(id).is_some()
            {
                let id = id.clone();
                state.list(&id);
            }
        });
    }
}

impl State {
    /// Every walk uses this, and is counted.
    fn walk<'a>(
        &'a self,
        ids: impl Iterator<Item = &'a SourceId>,
    ) -> impl Iterator<Item = (&'a SourceId, &'a Entry)> {
        ids.inspect(|_| walks::note()).filter_map(|id| Some((id, self.entries.get(id)?)))
    }

    fn stays(&self, id: &SourceId) -> bool {
        self.entries.get(id).is_some_and(|entry| entry.leaving.is_none())
    }

    fn is_leaving(&self, id: &SourceId) -> bool {
        self.entries.get(id).is_some_and(|entry| entry.leaving.is_some())
    }

    fn following(&self, key: &ObjectKey) -> Vec<SourceId> {
        let everywhere = Scope { cluster: key.cluster_name().cloned(), namespace: None };
        let here = key.namespace().map(|name| Scope { namespace: Some(name.into()), ..everywhere.clone() });
        let scopes = [Some(everywhere), here].into_iter().flatten();
        let found: BTreeMap<u64, SourceId> = scopes
            .filter_map(|scope| self.by_scope.get(&scope))
            .flat_map(|sources| sources.iter().map(|(order, id)| (*order, id.clone())))
            .collect();
        found.into_values().filter(|id| self.stays(id)).collect()
    }

    fn begin_removal(&mut self, id: &SourceId) -> Result<Removal, NotRemoved> {
        let is_only = self.staying == 1;
        let entry = self.entries.get_mut(id).ok_or(NotRemoved::Unknown)?;
        if let Some(over) = &entry.leaving {
            return Ok(Removal { over: over.clone(), is_new: false });
        }
        if is_only && entry.member.is_none() {
            return Err(NotRemoved::Last);
        }
        let over = CancellationToken::new();
        entry.leaving = Some(over.clone());
        self.changes += 1;
        self.staying -= 1;
        self.list(id);
        Ok(Removal { over, is_new: true })
    }

    /// Its first list is published, or no longer waited for.
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

    /// Overlaps count only with sources that joined from `since` on.
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
