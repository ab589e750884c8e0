//! Sources that take over from others, found by the keys that each may bring. Invariants:
//! 1. A source's round grows when its first list is requested again: that list has what was told before.
//! 2. A source that had delivered a newer version than that of a rewind has brought a former history.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::meta::{ClusterName, ObjectKey, ResourceVersion, SourceId};
use crate::tree::{Key, SortedMap};

/// What a source may bring: the objects of a namespace, or of all, of one cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
#[expect(clippy::exhaustive_structs, reason = "the caller describes its sources")]
pub struct Scope {
    /// The cluster; `None` in an informer of one cluster.
    pub cluster: Option<ClusterName>,
    /// The namespace; `None` for all of them.
    pub namespace: Option<Arc<str>>,
}

impl Key for Scope {
    type Query = Self;

    fn query(&self) -> &Self {
        self
    }
}

impl Scope {
    fn order(&self, cluster: Option<&ClusterName>, namespace: Option<&str>) -> Ordering {
        self.cluster.as_ref().cmp(&cluster).then_with(|| self.namespace.as_deref().cmp(&namespace))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Successor {
    pub(crate) source: SourceId,
    pub(crate) round: u64,
}

/// How often each source has noticed a rewind, the version that it delivered, and whether that is older than one
/// before.
type Delivered = SortedMap<SourceId, (u64, ResourceVersion, bool)>;

/// Sources by their scope, and the scope of each.
#[derive(Clone)]
pub struct Successors {
    by_scope: SortedMap<Scope, Arc<[Successor]>>,
    scopes: SortedMap<SourceId, Scope>,
    delivered: Delivered,
    /// For each source whose list after a rewind is requested and not published: `delivered` then, and the version to
    /// which the server went back.
    asked: SortedMap<SourceId, (Delivered, ResourceVersion)>,
}

impl Successors {
    /// The empty set.
    pub fn none() -> Self {
        let (by_scope, scopes) = (SortedMap::new(), SortedMap::new());
        Self { by_scope, scopes, delivered: SortedMap::new(), asked: SortedMap::new() }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.scopes.is_empty()
    }

    /// Adds a source, in its first round.
    pub fn add(&mut self, scope: Scope, source: SourceId) {
        self.scopes.insert(source.clone(), scope.clone());
        self.change(scope, |others| others.push(Successor { source, round: 0 }));
    }

    /// Removes a source; one that is not there changes nothing.
    pub fn remove(&mut self, scope: &Scope, source: &SourceId) {
        self.scopes.remove(source);
        self.delivered.remove(source);
        self.asked.remove(source);
        self.change(scope.clone(), |others| others.retain(|other| other.source != *source));
    }

    /// The source is asked for its first list again.
    pub fn begin_round(&mut self, scope: &Scope, source: &SourceId) {
        self.change(scope.clone(), |others| {
            others.iter_mut().filter(|other| other.source == *source).for_each(|other| other.round += 1);
        });
    }

    /// The source delivers this version.
    pub fn deliver(&mut self, source: &SourceId, version: &ResourceVersion) {
        let (before, rewinds) = (self.delivered.get(source), self.rewinds(source));
        let is_back = before.is_some_and(|(_, newest, is_back)| *is_back || version < newest);
        self.delivered.insert(source.clone(), (rewinds, version.clone(), is_back));
    }

    /// The source is asked for a list, since its server went back to this version.
    pub fn ask_after_rewind(&mut self, source: &SourceId, to: &ResourceVersion) {
        self.asked.insert(source.clone(), (self.delivered.clone(), to.clone()));
    }

    /// The list that it was asked for after a rewind is published.
    pub fn end_rewind(&mut self, source: &SourceId) {
        self.asked.remove(source);
        if let Some((rewinds, _, is_back)) = self.delivered.get_mut(source) {
            *rewinds += 1;
            *is_back = false;
        }
    }

    /// How often this source has noticed that its server went back.
    pub fn rewinds(&self, source: &SourceId) -> u64 {
        self.delivered.get(source).map_or(0, |(rewinds, ..)| *rewinds)
    }

    /// Whether `other` had delivered a version newer than that to which the server went back, before `source`
    /// was asked for its list after that, and has not noticed it since; `None` if `source` was not asked for
    /// such a list.
    pub fn is_former(&self, other: &SourceId, source: &SourceId) -> Option<bool> {
        let (then, to) = self.asked.get(source)?;
        let (then, now) = (then.get(other), self.delivered.get(other));
        Some(then.zip(now).is_some_and(|(then, now)| then.1 > *to && then.0 == now.0))
    }

    /// Whether it delivered an older version and has not listed since: what is stored of it is of the former history.
    pub(crate) fn went_back(&self, source: &SourceId) -> bool {
        self.delivered.get(source).is_some_and(|(.., is_back)| *is_back)
    }

    fn change(&mut self, scope: Scope, change: impl FnOnce(&mut Vec<Successor>)) {
        let mut sources = self.by_scope.get(&scope).map_or_else(Vec::new, |sources| sources.to_vec());
        change(&mut sources);
        if sources.is_empty() {
            self.by_scope.remove(&scope);
        } else {
            self.by_scope.insert(scope, sources.into());
        }
    }

    /// Whether the set has this source.
    pub fn has(&self, source: &SourceId) -> bool {
        self.scopes.contains(source)
    }

    /// Those of its cluster, after `passed`; none if the source is not in this set.
    pub(crate) fn others(
        &self,
        source: &SourceId,
        passed: Option<&SourceId>,
    ) -> impl Iterator<Item = &SourceId> {
        let own = self.scopes.get(source);
        let all = own.into_iter().flat_map(move |_| self.scopes.entries_after(passed));
        let of_cluster = all.filter(move |(_, scope)| own.is_some_and(|own| own.cluster == scope.cluster));
        of_cluster.map(|(other, _)| other).filter(move |other| *other != source)
    }

    pub(crate) fn of(&self, key: &ObjectKey) -> impl Iterator<Item = &Successor> {
        let (cluster, namespace) = key.scope();
        let everywhere = self.by_scope.get_by(|scope| scope.order(cluster, None));
        let here = namespace.and_then(|_| self.by_scope.get_by(|scope| scope.order(cluster, namespace)));
        everywhere.into_iter().chain(here).flat_map(|sources| sources.iter())
    }
}

impl Default for Successors {
    fn default() -> Self {
        Self::none()
    }
}

crate::debug_as!(Successors, self, scopes = self.by_scope.len());

#[cfg(test)]
mod tests {
    use super::{Scope, Successors};
    use crate::meta::{ResourceVersion, SourceId};
    use crate::snapshot::fixture::key;

    fn of(successors: &Successors, name: &str) -> Vec<(String, u64)> {
        successors.of(&key(name)).map(|one| (one.source.to_string(), one.round)).collect()
    }

    #[test]
    fn a_source_is_found_by_each_key_of_its_scope_and_by_no_other() {
        let mut successors = Successors::none();
        let scope = |namespace: Option<&str>| Scope { cluster: None, namespace: namespace.map(Into::into) };
        successors.add(scope(None), SourceId::new("all"));
        successors.add(scope(Some("x")), SourceId::new("of-x"));
        let before = successors.clone();
        successors.begin_round(&scope(None), &SourceId::new("all"));
        assert_eq!(of(&successors, "x/1"), [("all".into(), 1), ("of-x".into(), 0)]);
        assert_eq!(of(&successors, "y/1"), [("all".into(), 1)]);
        assert_eq!(of(&before, "y/1"), [("all".into(), 0)], "a clone stays as it was");
        successors.remove(&scope(None), &SourceId::new("all"));
        assert_eq!((of(&successors, "x/1").len(), of(&successors, "y/1").len()), (1, 0));
        successors.remove(&scope(Some("x")), &SourceId::new("of-x"));
        assert!(successors.is_empty() && !before.is_empty());
    }

    #[test]
    fn a_source_counts_the_rewinds_that_it_has_noticed_and_forgets_them_when_it_leaves() {
        let (mut successors, source) = (Successors::none(), SourceId::new("all"));
        let version = |number| ResourceVersion::from_number(number).expect("not zero");
        successors.add(Scope::default(), source.clone());
        assert_eq!(successors.rewinds(&source), 0);
        for (rewinds, at) in [(1, 9), (2, 7)] {
            successors.deliver(&source, &version(at));
            successors.ask_after_rewind(&source, &version(at - 1));
            successors.end_rewind(&source);
            assert_eq!(successors.rewinds(&source), rewinds);
        }
        successors.remove(&Scope::default(), &source);
        assert_eq!(successors.rewinds(&source), 0);
    }
}
