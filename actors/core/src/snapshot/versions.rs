//! The version that each source has reached. A clone copies a pointer. One source needs no map: most informers have
//! one.

use std::fmt;

use crate::meta::{ResourceVersion, SourceId};
use crate::tree::SortedMap;

/// The version that each source has reached.
#[derive(Clone, Default)]
pub struct SourceVersions(Kept);

#[derive(Clone, Default)]
enum Kept {
    #[default]
    None,
    One(SourceId, ResourceVersion),
    Many(SortedMap<SourceId, ResourceVersion>),
}

impl SourceVersions {
    /// How many sources have a version. O(1).
    pub fn len(&self) -> usize {
        match &self.0 {
            Kept::None => 0,
            Kept::One(..) => 1,
            Kept::Many(versions) => versions.len(),
        }
    }

    /// Whether no source has one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The version of this source. O(log n).
    pub fn get(&self, source: &SourceId) -> Option<&ResourceVersion> {
        match &self.0 {
            Kept::One(known, version) if known == source => Some(version),
            Kept::None | Kept::One(..) => None,
            Kept::Many(versions) => versions.get(source),
        }
    }

    /// All of them, in the order of the sources' names.
    pub fn iter(&self) -> impl Iterator<Item = (&SourceId, &ResourceVersion)> {
        let (one, many) = match &self.0 {
            Kept::None => (None, None),
            Kept::One(source, version) => (Some((source, version)), None),
            Kept::Many(versions) => (None, Some(versions.entries_after(None))),
        };
        let all = one.into_iter().chain(many.into_iter().flatten());
        #[cfg(test)]
        let all = all.inspect(|_| looked_at::note());
        all
    }

    /// The version of the first source, by name: of an informer with one source, its version.
    pub fn first(&self) -> Option<&ResourceVersion> {
        self.iter().next().map(|(_, version)| version)
    }

    pub(super) fn set(&mut self, source: &SourceId, version: &ResourceVersion) {
        match &mut self.0 {
            Kept::None => self.0 = Kept::One(source.clone(), version.clone()),
            Kept::One(known, reached) if known == source => *reached = version.clone(),
            Kept::One(known, reached) => {
                let mut versions = SortedMap::new();
                versions.insert(known.clone(), reached.clone());
                versions.insert(source.clone(), version.clone());
                self.0 = Kept::Many(versions);
            }
            Kept::Many(versions) => match versions.get_mut(source) {
                Some(reached) => *reached = version.clone(),
                None => versions.insert(source.clone(), version.clone()),
            },
        }
    }

    pub(super) fn remove(&mut self, source: &SourceId) {
        match &mut self.0 {
            Kept::One(known, _) if known == source => self.0 = Kept::None,
            Kept::None | Kept::One(..) => {}
            Kept::Many(versions) => {
                versions.remove(source);
                if versions.len() < 2 {
                    let left = versions.entries_after(None).next();
                    let left = left.map(|(source, version)| Kept::One(source.clone(), version.clone()));
                    self.0 = left.unwrap_or(Kept::None);
                }
            }
        }
    }
}

impl PartialEq for SourceVersions {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for SourceVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Counts the versions that walks have looked at.
#[cfg(test)]
pub(crate) mod looked_at {
    use std::cell::Cell;

    thread_local! {
        static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn note() {
        LOOKED_AT.set(LOOKED_AT.get() + 1);
    }

    /// On this thread, since the last call.
    pub(crate) fn take() -> usize {
        LOOKED_AT.take()
    }
}

#[cfg(test)]
mod tests {
    use super::{Kept, SourceVersions};
    use crate::meta::SourceId;
    use crate::snapshot::fixture::version;

    #[test]
    fn a_clone_keeps_what_it_had_and_one_version_needs_no_map() {
        let [a, b] = ["a", "b"].map(SourceId::new);
        let mut versions = SourceVersions::default();
        assert!(versions.is_empty() && versions.first().is_none());
        versions.set(&b, &version(2));
        assert!(matches!(versions.0, Kept::One(..)) && versions.get(&a).is_none());
        versions.set(&a, &version(1));
        let before = versions.clone();
        versions.set(&b, &version(5));
        let shown = |versions: &SourceVersions| -> Vec<String> {
            versions.iter().map(|(source, version)| format!("{source}@{version}")).collect()
        };
        assert_eq!(
            (shown(&before), shown(&versions)),
            (vec!["a@1".into(), "b@2".into()], vec!["a@1".into(), "b@5".into()])
        );
        assert!(before != versions && versions.first() == Some(&version(1)));
        versions.remove(&a);
        assert!(matches!(versions.0, Kept::One(..)) && versions.get(&b) == Some(&version(5)));
        versions.remove(&b);
        assert!(versions == SourceVersions::default());
    }
}
