//! What is let in of a source's answers: objects of its own cluster, in the namespaces that it keeps.
//!
//! A key of another cluster fails the whole answer: objects of one name in two clusters would become one.

use std::iter::once;

use crate::delta::{ListPart, WatchPart};
use crate::list_watch_error::ListWatchError;
use crate::meta::{ClusterName, Object, ObjectKey};
use crate::namespaces::filter::FilterMachine;

/// What one source lets in during one life of its reflector.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has no other rules")]
pub struct Intake {
    /// The cluster of its objects, if the informer has several clusters.
    pub cluster: Option<ClusterName>,
    /// The namespaces that it keeps; `None` for all.
    pub filter: Option<FilterMachine>,
}

impl Intake {
    /// A part of a list, without what is not kept.
    ///
    /// # Errors
    /// [`ListWatchError::ForeignCluster`] if it has a key of another cluster.
    pub fn listed<S>(&self, part: ListPart<S>) -> Result<ListPart<S>, ListWatchError> {
        match &part {
            ListPart::Objects(objects) => self.check(objects.iter().map(Object::key))?,
            ListPart::Undecodable(undecodable) => self.check(once(&undecodable.key))?,
            _ => {}
        }
        Ok(match &self.filter {
            Some(filter) => filter.keep_listed(part),
            None => part,
        })
    }

    /// Parts of a watch, without what is not kept.
    ///
    /// # Errors
    /// As [`Self::listed`].
    pub fn watched<S>(&self, parts: Vec<WatchPart<S>>) -> Result<Vec<WatchPart<S>>, ListWatchError> {
        self.check(parts.iter().filter_map(WatchPart::key))?;
        Ok(match &self.filter {
            Some(filter) => filter.keep_watched(parts),
            None => parts,
        })
    }

    fn check<'a>(&self, mut keys: impl Iterator<Item = &'a ObjectKey>) -> Result<(), ListWatchError> {
        match keys.find(|key| key.cluster_name() != self.cluster.as_ref()) {
            None => Ok(()),
            Some(key) => {
                Err(ListWatchError::ForeignCluster { key: key.clone(), cluster: self.cluster.clone() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::{Meta, ResourceVersion, SourceId};

    fn object(key: ObjectKey) -> Object<()> {
        let version = ResourceVersion::from_number(1).expect("not zero");
        Object::new(Meta::new(key, version, SourceId::default()), ())
    }

    #[test]
    fn an_answer_with_a_key_of_another_cluster_fails_as_a_whole_and_the_error_names_the_key() {
        let east: ClusterName = "east".parse().expect("a name");
        let (own, other) =
            (ObjectKey::namespaced("a", "x").in_cluster(&east), ObjectKey::namespaced("a", "y"));
        let intake = Intake { cluster: Some(east), filter: None };
        let both = || vec![object(own.clone()), object(other.clone())];
        let refused = |result: Option<ListWatchError>| matches!(result, Some(ListWatchError::ForeignCluster { key, .. }) if key == other);
        assert!(refused(intake.listed(ListPart::Objects(both())).err()));
        assert!(refused(intake.watched(both().into_iter().map(WatchPart::Applied).collect()).err()));
        let alone = intake.watched(vec![WatchPart::Applied(object(own.clone()))]);
        assert!(alone.is_ok_and(|parts| parts.len() == 1));
        let single = Intake { cluster: None, filter: None };
        assert!(
            single.watched(vec![WatchPart::Applied(object(own))]).is_err(),
            "nor one where none is expected"
        );
    }
}
