//! Whether an object that the informer no longer has is surely deleted, and whether it is selected again.
//!
//! An object that leaves the selectors of a watch comes as `DELETED` with the state before. So only a source that no
//! object can leave, that has listed and that keeps the namespace can say that one is gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use informer_core::meta::ObjectKey;
use informer_core::namespaces::Names;

use super::Sources;
use crate::pipeline::namespace_filter::NamespaceFilter;
use crate::pipeline::source_spec::Coverage;

/// Whether an informer follows an object that it has no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "who matches all has decided about all")]
pub enum Selected {
    /// It does again: the object is in the cache, or comes.
    Again,
    /// Its selectors leave the object out.
    LeftOut,
    /// No source of it follows the namespace or the cluster of the object any more.
    NotFollowed,
}

struct Following {
    coverage: Option<Coverage>,
    filter: Option<Arc<NamespaceFilter>>,
    has_listed: bool,
}

impl Following {
    fn keeps(&self, key: &ObjectKey, kept: impl FnOnce(&NamespaceFilter) -> Option<Names>) -> bool {
        let Some(filter) = &self.filter else { return true };
        key.namespace().is_some_and(|name| kept(filter).is_some_and(|names| names.contains(name)))
    }
}

impl Sources {
    /// Whether an object that none of them holds surely does not exist.
    pub(crate) fn would_hold(&self, key: &ObjectKey) -> bool {
        self.of_key(key).iter().any(|source| {
            let can_be_left = source.coverage.as_ref().is_some_and(Coverage::can_be_left);
            source.has_listed
                && !can_be_left
                && source.keeps(key, |filter| filter.holdings().listed().cloned())
        })
    }

    /// For an object that none of them holds.
    pub(crate) fn selected(&self, key: &ObjectKey, labels: &BTreeMap<String, String>) -> Selected {
        let mut following = self.of_key(key);
        following.retain(|source| source.keeps(key, |filter| Some(filter.holdings().asked().clone())));
        let selects = |source: &Following| {
            source.coverage.as_ref().is_none_or(|coverage| coverage.surely_selects(key, labels))
        };
        if following.is_empty() {
            Selected::NotFollowed
        } else if following.iter().any(selects) {
            Selected::Again
        } else {
            Selected::LeftOut
        }
    }

    fn of_key(&self, key: &ObjectKey) -> Vec<Following> {
        let ids = self.following(key);
        self.state.with(|state| {
            let entries = ids.iter().filter_map(|id| Some((state.unlisted.get(id), state.entries.get(id)?)));
            let following = entries.map(|(unlisted, entry)| Following {
                coverage: entry.coverage.clone(),
                filter: entry.filter.clone(),
                has_listed: unlisted.is_none(),
            });
            following.collect()
        })
    }
}
