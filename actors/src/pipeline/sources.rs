//! The sources of an informer, which are added and removed while it runs.
//!
//! Answers "may this source be added, is it still followed, and have all sources listed?" for handles and for the
//! Indexer. The store decides about objects. Invariants:
//! 1. A name belongs to one source until everything that the source brought is removed.
//! 2. At least one source stays, unless the informer follows a set of namespaces: that may be empty.
//! 3. All sources name a cluster, or none does.
//! 4. Its lock guards a short list. Nothing is called or dropped under it.
//!
//! Read next: `source_spec.rs`; `informer/sources.rs`, what a handle does with it.

use std::sync::{Arc, Mutex, MutexGuard};

use informer_core::meta::{ClusterName, ObjectKey, SourceId};
use informer_core::snapshot::Snapshot;
use tokio_util::sync::CancellationToken;

use crate::pipeline::source_spec::{Coverage, Member, SourceSpec};
use crate::runtime::locked::locked;

/// The sources of one informer.
#[derive(Debug, Default)]
pub(crate) struct Sources(Mutex<Vec<Entry>>);

#[derive(Debug)]
struct Entry {
    id: SourceId,
    cluster: Option<ClusterName>,
    coverage: Option<Coverage>,
    member: Option<Member>,
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
        let mut entries = self.entries();
        let before = entries.len();
        for spec in specs {
            if let Some(why) = refusal(&entries, spec, before, may_overlap) {
                entries.truncate(before);
                return Err(Refusal { id: spec.id.clone(), why });
            }
            let (cluster, coverage) = (spec.cluster.clone(), spec.coverage.clone());
            let (id, member) = (spec.id.clone(), spec.member.clone());
            entries.push(Entry { id, cluster, coverage, member, leaving: None });
        }
        Ok(())
    }

    /// Why these could not join, if they could not.
    pub(crate) fn refusal<'a, S: 'a>(
        &self,
        specs: impl IntoIterator<Item = &'a SourceSpec<S>>,
    ) -> Option<Refusal> {
        let entries = self.entries();
        specs.into_iter().find_map(|spec| {
            let why = refusal(&entries, spec, entries.len(), false)?;
            Some(Refusal { id: spec.id.clone(), why })
        })
    }

    /// Begins to remove a source: from now on it does not count. Its name stays taken until [`Self::forget`].
    pub(crate) fn begin_removal(&self, id: &SourceId) -> Result<Removal, NotRemoved> {
        let mut entries = self.entries();
        let staying = entries.iter().filter(|entry| entry.leaving.is_none()).count();
        let entry = entries.iter_mut().find(|entry| entry.id == *id).ok_or(NotRemoved::Unknown)?;
        match &entry.leaving {
            Some(over) => Ok(Removal { over: over.clone(), is_new: false }),
            None if staying == 1 && entry.member.is_none() => Err(NotRemoved::Last),
            None => {
                let over = CancellationToken::new();
                entry.leaving = Some(over.clone());
                Ok(Removal { over, is_new: true })
            }
        }
    }

    /// Ends a removal: nothing of the source is left, and its name is free.
    pub(crate) fn forget(&self, id: &SourceId) {
        self.entries().retain(|entry| entry.id != *id || entry.leaving.is_none());
    }

    /// Whether a source of this name is followed.
    pub(crate) fn contains(&self, id: &SourceId) -> bool {
        self.entries().iter().any(|entry| entry.id == *id && entry.leaving.is_none())
    }

    /// Whether it is the source of a namespace of a set, or the cluster-wide one.
    pub(crate) fn is_of_set(&self, id: &SourceId) -> bool {
        self.entries().iter().any(|entry| entry.id == *id && entry.member.is_some())
    }

    /// Whether a source of this name is being removed.
    pub(crate) fn is_leaving(&self, id: &SourceId) -> bool {
        self.entries().iter().any(|entry| entry.id == *id && entry.leaving.is_some())
    }

    /// The names of those that are followed, in the order in which they came.
    pub(crate) fn ids(&self) -> Vec<SourceId> {
        let entries = self.entries();
        entries.iter().filter(|entry| entry.leaving.is_none()).map(|entry| entry.id.clone()).collect()
    }

    /// The sources of a set of namespaces: each with its name, what it follows, and whether its removal has begun.
    pub(crate) fn of_set(&self, set: usize) -> Vec<(SourceId, Option<Arc<str>>, bool)> {
        let entries = self.entries();
        let of_set = |entry: &Entry| {
            let member = entry.member.as_ref().filter(|member| member.set == set)?;
            Some((entry.id.clone(), member.namespace.clone(), entry.leaving.is_some()))
        };
        entries.iter().filter_map(of_set).collect()
    }

    /// The sources of a cluster, but for those that belong to a set of namespaces.
    pub(crate) fn of_cluster(&self, cluster: &ClusterName) -> Vec<SourceId> {
        let entries = self.entries();
        let is_of = |entry: &&Entry| entry.member.is_none() && entry.cluster.as_ref() == Some(cluster);
        entries.iter().filter(is_of).map(|entry| entry.id.clone()).collect()
    }

    /// Whether it is a source of this cluster, or names none where none is given.
    pub(crate) fn is_in_cluster(&self, id: &SourceId, cluster: Option<&ClusterName>) -> bool {
        self.entries().iter().any(|entry| entry.id == *id && entry.cluster.as_ref() == cluster)
    }

    /// The names of those that may follow the object of this key.
    pub(crate) fn following(&self, key: &ObjectKey) -> Vec<SourceId> {
        let is_in = |coverage: &Coverage| {
            coverage.namespace.as_deref().is_none_or(|one| Some(one) == key.namespace())
        };
        let follows = |entry: &&Entry| {
            let is_here = entry.leaving.is_none() && entry.cluster.as_ref() == key.cluster_name();
            is_here && entry.coverage.as_ref().is_none_or(is_in)
        };
        self.entries().iter().filter(follows).map(|entry| entry.id.clone()).collect()
    }

    /// Whether the first list of every one is in this snapshot.
    pub(crate) fn have_all_listed<S>(&self, snapshot: &Snapshot<S>) -> bool {
        self.entries().iter().all(|entry| entry.leaving.is_some() || snapshot.version(&entry.id).is_some())
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        locked(&self.0)
    }
}

fn refusal<S>(entries: &[Entry], spec: &SourceSpec<S>, before: usize, may_overlap: bool) -> Option<Refused> {
    if entries.iter().any(|entry| entry.id == spec.id) {
        return Some(Refused::Taken);
    }
    if entries.first().is_some_and(|first| first.cluster.is_some() != spec.cluster.is_some()) {
        return Some(Refused::Cluster { has_cluster: spec.cluster.is_some() });
    }
    let overlaps = |entry: &&Entry| {
        let both = entry.coverage.as_ref().zip(spec.coverage.as_ref());
        entry.cluster == spec.cluster && both.is_some_and(|(one, other)| one.overlaps(other))
    };
    // Those that join together must not overlap each other; those that were there may be about to leave.
    let others = if may_overlap { &entries[before..] } else { entries };
    others.iter().find(overlaps).map(|entry| Refused::Overlaps(entry.id.clone()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use informer_core::meta::SourceId;
    use informer_core::reflector::ReflectorConfig;

    use super::{NotRemoved, Refusal, Refused, Sources};
    use crate::pipeline::source_spec::{Coverage, SourceSpec};
    use crate::testing::Server;

    fn spec(name: &str) -> SourceSpec<String> {
        let connect = Server::named(SourceId::new(name)).connect();
        SourceSpec::new(SourceId::new(name), connect, ReflectorConfig::new("texts"))
    }

    fn covering(name: &str, namespace: Option<&str>, selectors: &str) -> SourceSpec<String> {
        let coverage = Coverage { namespace: namespace.map(Arc::from), selectors: selectors.into() };
        spec(name).covering(coverage)
    }

    fn join(sources: &Sources, spec: &SourceSpec<String>) -> Result<(), Refused> {
        sources.join([spec], false).map_err(|refusal| refusal.why)
    }

    #[test]
    fn a_name_is_taken_until_its_source_is_removed() {
        let sources = Sources::default();
        sources.join([&spec("a"), &spec("b")], false).expect("two names");
        assert_eq!(join(&sources, &spec("a")), Err(Refused::Taken));
        let removal = sources.begin_removal(&SourceId::new("a")).expect("it is there");
        assert!(removal.is_new && !sources.contains(&SourceId::new("a")));
        assert!(!sources.begin_removal(&SourceId::new("a")).expect("it is under way").is_new);
        assert_eq!(join(&sources, &spec("a")), Err(Refused::Taken));
        sources.forget(&SourceId::new("a"));
        assert_eq!(join(&sources, &spec("a")), Ok(()));
        assert_eq!(sources.ids(), [SourceId::new("b"), SourceId::new("a")]);
    }

    #[test]
    fn the_last_source_that_stays_cannot_be_removed_and_an_unknown_one_neither() {
        let sources = Sources::default();
        sources.join([&spec("a"), &spec("b")], false).expect("two names");
        sources.begin_removal(&SourceId::new("a")).expect("another one stays");
        assert_eq!(sources.begin_removal(&SourceId::new("b")).err(), Some(NotRemoved::Last));
        assert_eq!(sources.begin_removal(&SourceId::new("c")).err(), Some(NotRemoved::Unknown));
    }

    #[test]
    fn all_of_several_join_or_none() {
        let sources = Sources::default();
        join(&sources, &spec("a")).expect("the first");
        let refused = sources.join([&spec("b"), &spec("a")], true);
        assert_eq!(refused, Err(Refusal { id: SourceId::new("a"), why: Refused::Taken }));
        assert_eq!(sources.ids(), [SourceId::new("a")]);
    }

    #[test]
    fn sources_that_surely_have_objects_in_common_are_refused_unless_one_takes_over() {
        let pairs = [
            ((Some("x"), ""), (Some("x"), ""), true),
            ((None, ""), (Some("x"), ""), true),
            ((Some("x"), "app=a"), (None, ""), true),
            ((Some("x"), "app=a"), (None, "app=a"), true),
            ((Some("x"), "app=a"), (Some("x"), "app=b"), false),
            ((Some("x"), ""), (Some("y"), ""), false),
        ];
        for (one, other, overlap) in pairs {
            let sources = Sources::default();
            let (first, second) = (covering("a", one.0, one.1), covering("b", other.0, other.1));
            join(&sources, &first).expect("the first");
            let refused = join(&sources, &second).err();
            assert_eq!(refused, overlap.then(|| Refused::Overlaps(SourceId::new("a"))), "{one:?} {other:?}");
            assert!(!overlap || sources.join([&second], true).is_ok(), "it may take over");
        }
        let sources = Sources::default();
        let cluster = |name: &str| name.parse().expect("a name");
        join(&sources, &covering("a", None, "").in_cluster(cluster("eu"))).expect("the first");
        join(&sources, &covering("b", None, "").in_cluster(cluster("us"))).expect("another cluster");
        assert_eq!(join(&sources, &covering("c", None, "")), Err(Refused::Cluster { has_cluster: false }));
    }
}
