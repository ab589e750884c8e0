//! Sources that take over from each other: in a set of namespaces, or in a hand-over.
//!
//! 1. A set exchanges its sources while it has both the cluster-wide one and one of a namespace. A source
//!    joins before it is followed, so the Indexer can know the exchange before the later one requests its
//!    first list.
//! 2. A hand-over lasts as long as its guard.
//! 3. After a rewind each call takes out at most [`MOST_AT_ONCE`] outdated sources. The rest count until then: a list
//!    below what they delivered is requested again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

use informer_core::indexer::{Scope, Successors};
use informer_core::meta::{ClusterName, ResourceVersion, SourceId};

use super::{Sources, State};
use crate::pipeline::source_spec::{Member, SourceSpec};

const MOST_AT_ONCE: usize = 250;

#[derive(Debug, Default)]
pub(super) struct Exchanges {
    sets: BTreeMap<usize, Members>,
    hand_overs: BTreeMap<u64, HandOver>,
    /// The newest version that each has delivered, or has yet to bring of what it took over.
    pub(super) delivered: BTreeMap<SourceId, ResourceVersion>,
}

#[derive(Debug, Default)]
struct Members {
    all: Option<SourceId>,
    each: BTreeMap<SourceId, Scope>,
    successors: Successors,
    missing: usize,
    /// Without those that the store knows as outdated.
    delivered: BTreeSet<(ResourceVersion, SourceId)>,
    /// The newest version delivered by those that left.
    left: Option<ResourceVersion>,
    /// The count of changes when the present exchange began.
    since: u64,
    rewinds: VecDeque<Rewind>,
}

/// After a list for a rewind: a walk down over the sources that were ahead.
#[derive(Debug)]
struct Rewind {
    one: SourceId,
    to: ResourceVersion,
    /// As known when the list was published.
    then: Successors,
    /// The walk goes on below this.
    below: Option<(ResourceVersion, SourceId)>,
}

impl Rewind {
    /// Outdated if its source has not noticed the rewind since.
    fn is_outdated(&self, (version, id): &(ResourceVersion, SourceId), now: &Successors) -> bool {
        let is_former = || self.then.is_former(id, &self.one).unwrap_or(true);
        *version > self.to && now.rewinds(id) == self.then.rewinds(id) && is_former()
    }
}

impl Members {
    fn is_exchanging(&self) -> bool {
        self.all.is_some() && !self.each.is_empty()
    }

    fn newest(&self) -> Option<ResourceVersion> {
        self.delivered.last().map(|(version, _)| version).max(self.left.as_ref()).cloned()
    }

    fn moved(&mut self, id: &SourceId, from: Option<ResourceVersion>, to: &ResourceVersion) {
        self.successors.deliver(id, to);
        self.delivered.extend([(to.clone(), id.clone())]);
        if let Some(from) = from.filter(|from| from != to) {
            self.delivered.remove(&(from, id.clone()));
        }
    }

    /// The server of `one` went back to this version. The others count until they notice it, too. If the store knew
    /// of their exchange (`seen`), it knows the outdated ones, which are taken out.
    fn went_back(&mut self, one: &SourceId, to: &ResourceVersion, seen: u64) {
        self.left.take_if(|left| *left > *to);
        if self.is_exchanging() && self.since <= seen {
            let (one, to, then) = (one.clone(), to.clone(), self.successors.clone());
            self.rewinds.push_back(Rewind { one, to, then, below: None });
        }
        self.successors.end_rewind(one);
    }

    fn take_outdated(&mut self) -> Vec<SourceId> {
        let mut outdated = Vec::new();
        for _ in 0..MOST_AT_ONCE {
            let Some(rewind) = self.rewinds.front_mut() else { break };
            let below = rewind.below.take().map_or(Bound::Unbounded, Bound::Excluded);
            let next = self.delivered.range((Bound::Unbounded, below)).next_back();
            let Some(ahead) = next.filter(|(version, _)| *version > rewind.to).cloned() else {
                self.rewinds.pop_front();
                continue;
            };
            if rewind.is_outdated(&ahead, &self.successors) {
                self.delivered.remove(&ahead);
                outdated.push(ahead.1.clone());
            }
            rewind.below = Some(ahead);
        }
        outdated
    }
}

#[derive(Debug)]
struct HandOver {
    add: BTreeMap<SourceId, Scope>,
    /// Those that go and those that come.
    both: Successors,
    delivered: BTreeMap<Option<ClusterName>, ResourceVersion>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct AskedFor {
    pub(crate) is_first: bool,
    /// The server went back to this version.
    pub(crate) after_rewind: Option<ResourceVersion>,
}

impl AskedFor {
    fn note(&self, successors: &mut Successors, scope: &Scope, id: &SourceId) {
        if self.is_first {
            successors.begin_round(scope, id);
        }
        if let Some(to) = &self.after_rewind {
            successors.ask_after_rewind(id, to);
        }
    }
}

#[derive(Debug)]
pub(crate) struct HandingOver<'a> {
    sources: &'a Sources,
    number: u64,
    pub(crate) successors: Successors,
}

impl Drop for HandingOver<'_> {
    fn drop(&mut self) {
        self.sources.state.with(|State { exchanges, entries, .. }| {
            exchanges.end(self.number, |id| entries.contains_key(id));
        });
        self.sources.exchanged.fetch_add(1, Ordering::AcqRel);
    }
}

impl Exchanges {
    pub(super) fn join(&mut self, member: &Member, scope: Scope, id: SourceId, exchanged: &AtomicU64) {
        let members = self.sets.entry(member.set).or_default();
        let was_exchanging = members.is_exchanging();
        members.successors.add(scope.clone(), id.clone());
        members.missing += 1;
        if member.namespace.is_some() {
            members.each.insert(id, scope);
        } else {
            members.all = Some(id);
        }
        if members.is_exchanging() {
            let changes = exchanged.fetch_add(1, Ordering::AcqRel) + 1;
            if !was_exchanging {
                members.since = changes;
            }
        }
    }

    pub(super) fn leave(&mut self, member: &Member, scope: &Scope, id: &SourceId, exchanged: &AtomicU64) {
        let Some(members) = self.sets.get_mut(&member.set) else { return };
        let was_exchanging = members.is_exchanging();
        if let Some(version) = self.delivered.remove(id) {
            let gone = (version, id.clone());
            members.delivered.remove(&gone);
            if !members.rewinds.iter().any(|rewind| rewind.is_outdated(&gone, &members.successors)) {
                members.left = members.left.take().max(Some(gone.0));
            }
        }
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

    pub(super) fn ids(&self, set: usize) -> impl Iterator<Item = &SourceId> {
        self.sets.get(&set).into_iter().flat_map(|members| members.all.iter().chain(members.each.keys()))
    }

    /// What the arrived sources have yet to bring counts as delivered by them.
    fn end(&mut self, number: u64, is_there: impl Fn(&SourceId) -> bool) {
        let Some(HandOver { add, delivered, .. }) = self.hand_overs.remove(&number) else { return };
        for (id, scope) in add.into_iter().filter(|(id, _)| is_there(id)) {
            let version = delivered.get(&scope.cluster).cloned().max(self.delivered.remove(&id));
            self.delivered.extend(version.map(|version| (id, version)));
        }
    }

    fn deliver(
        &mut self,
        member: Option<&Member>,
        (id, scope): (&SourceId, &Scope),
        version: &ResourceVersion,
        rewind: Option<u64>,
    ) {
        let is_rewind = rewind.is_some();
        let raise = |newest: &mut ResourceVersion| {
            if is_rewind || *newest < *version {
                *newest = version.clone();
            }
        };
        let before = self.delivered.get(id).cloned();
        let own = self.delivered.entry(id.clone()).or_insert_with(|| version.clone());
        raise(own);
        if let Some(members) = member.and_then(|member| self.sets.get_mut(&member.set)) {
            members.moved(id, before, own);
            if let Some(seen) = rewind {
                members.went_back(id, version, seen);
            }
            members.take_outdated().iter().for_each(|other| _ = self.delivered.remove(other));
        }
        for one in self.hand_overs.values_mut().filter(|one| one.both.has(id)) {
            raise(one.delivered.entry(scope.cluster.clone()).or_insert_with(|| version.clone()));
            one.both.deliver(id, version);
            if is_rewind {
                one.both.end_rewind(id);
            }
        }
    }

    fn current(&self) -> Vec<Successors> {
        let of_sets = self.sets.values().filter(|members| members.is_exchanging());
        let of_sets = of_sets.map(|members| members.successors.clone());
        of_sets.chain(self.hand_overs.values().map(|one| one.both.clone())).collect()
    }
}

impl Sources {
    /// Call it before those that come request anything.
    pub(crate) fn hand_over<S>(&self, remove: &[SourceId], add: &[SourceSpec<S>]) -> HandingOver<'_> {
        let (number, successors) = self.state.with(|state| {
            let begun = state.begin_hand_over(remove, add);
            self.exchanged.fetch_add(1, Ordering::AcqRel);
            begun
        });
        HandingOver { sources: self, number, successors }
    }

    /// `None` if that has not changed since `seen`.
    pub(crate) fn exchanged_since(&self, seen: &mut u64) -> Option<Vec<Successors>> {
        let exchanged = self.exchanged.load(Ordering::Acquire);
        if exchanged == *seen {
            return None;
        }
        *seen = exchanged;
        Some(self.state.with(|state| state.exchanges.current()))
    }

    /// If the source takes over, its list must not be below the returned version, the newest that the others
    /// delivered.
    pub(crate) fn begin_list(&self, id: &SourceId, asked: AskedFor) -> Option<ResourceVersion> {
        self.state.with(|state| {
            let entry = state.entries.get(id)?;
            let (mut takes_over, mut newest) = (false, None);
            if let Some(member) = &entry.member
                && let Some(members) = state.exchanges.sets.get_mut(&member.set)
            {
                // An exchange that begins before the list is published must know who had moved on by now.
                asked.note(&mut members.successors, &entry.scope, id);
                if members.is_exchanging() {
                    takes_over = true;
                    let outdated = members.take_outdated();
                    outdated.iter().for_each(|other| _ = state.exchanges.delivered.remove(other));
                    newest = members.newest();
                }
            }
            for one in state.exchanges.hand_overs.values_mut().filter(|one| one.both.has(id)) {
                asked.note(&mut one.both, &entry.scope, id);
                takes_over = true;
                if !one.add.contains_key(id) {
                    continue;
                }
                newest = newest.max(one.delivered.get(&entry.scope.cluster).cloned());
            }
            if takes_over && (asked.is_first || asked.after_rewind.is_some()) {
                self.exchanged.fetch_add(1, Ordering::AcqRel);
            }
            newest
        })
    }

    pub(crate) fn note_delivered(&self, id: &SourceId, version: &ResourceVersion) {
        self.note(id, version, None);
    }

    /// From now on, earlier deliveries do not count. `seen` is the store's count of changes.
    pub(crate) fn note_rewind(&self, id: &SourceId, version: &ResourceVersion, seen: u64) {
        self.note(id, version, Some(seen));
    }

    fn note(&self, id: &SourceId, version: &ResourceVersion, rewind: Option<u64>) {
        self.state.with(|state| {
            if let Some(entry) = state.entries.get(id) {
                state.exchanges.deliver(entry.member.as_ref(), (id, &entry.scope), version, rewind);
                if rewind.is_some() {
                    self.exchanged.fetch_add(1, Ordering::AcqRel);
                }
            }
        });
    }

    pub(crate) fn successors_in_set(&self, set: usize) -> Successors {
        let successors = |members: &Members| members.successors.clone();
        self.state.with(|state| state.exchanges.sets.get(&set).map(successors).unwrap_or_default())
    }
}

impl State {
    /// Returns the number of the hand-over, and those that come.
    fn begin_hand_over<S>(&mut self, remove: &[SourceId], add: &[SourceSpec<S>]) -> (u64, Successors) {
        // `join` refuses a taken name later.
        let coming = add.iter().filter(|one| !self.entries.contains_key(&one.id));
        let coming: BTreeMap<SourceId, Scope> = coming.map(|one| (one.id.clone(), one.scope())).collect();
        let mut successors = Successors::none();
        coming.iter().for_each(|(id, scope)| successors.add(scope.clone(), id.clone()));
        let (mut both, mut delivered) = (successors.clone(), BTreeMap::new());
        for id in remove {
            let Some(scope) = self.entries.get(id).map(|entry| entry.scope.clone()) else { continue };
            if let Some(newest) = self.exchanges.delivered.get(id) {
                let of_cluster = delivered.entry(scope.cluster.clone()).or_insert_with(|| newest.clone());
                if *of_cluster < *newest {
                    of_cluster.clone_from(newest);
                }
            }
            both.add(scope, id.clone());
            self.exchanges.delivered.get(id).iter().for_each(|newest| both.deliver(id, newest));
        }
        let number = self.next;
        self.next += 1;
        self.exchanges.hand_overs.insert(number, HandOver { add: coming, both, delivered });
        (number, successors)
    }
}
