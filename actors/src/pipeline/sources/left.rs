//! Which objects an informer would have, if they were there.
//!
//! Answers "is an object that the informer has no more surely deleted, and is it selected again?". A server tells a watch
//! with selectors of an object that has left them as of a deletion: with the event `DELETED`, and the state before. So only a
//! source that no object leaves can say that an object is gone. Invariants:
//! 1. A source that has not listed, or does not keep the object's namespace, says nothing.
//!
//! Read next: `../sources.rs`.

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

/// What one source says of the objects of a key.
struct Following {
    coverage: Option<Coverage>,
    filter: Option<Arc<NamespaceFilter>>,
    has_listed: bool,
}

impl Following {
    /// Whether it keeps the namespace of the object: in its next list, or as `kept` says.
    fn keeps(&self, key: &ObjectKey, kept: impl FnOnce(&NamespaceFilter) -> Option<Names>) -> bool {
        let Some(filter) = &self.filter else { return true };
        key.namespace().is_some_and(|name| kept(filter).is_some_and(|names| names.contains(name)))
    }
}

impl Sources {
    /// Whether an object of this key that none of them holds does surely not exist.
    pub(crate) fn would_hold(&self, key: &ObjectKey) -> bool {
        self.of_key(key).iter().any(|source| {
            let can_be_left = source.coverage.as_ref().is_some_and(Coverage::can_be_left);
            source.has_listed && !can_be_left && source.keeps(key, NamespaceFilter::listed)
        })
    }

    /// Whether one of them follows an object of this key with these labels, which none of them holds.
    pub(crate) fn selected(&self, key: &ObjectKey, labels: &BTreeMap<String, String>) -> Selected {
        let mut following = self.of_key(key);
        following.retain(|source| source.keeps(key, |filter| Some(filter.asked())));
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
        let state = self.state();
        let entries = ids.iter().filter_map(|id| Some((state.unlisted.get(id), state.entries.get(id)?)));
        let following = entries.map(|(unlisted, entry)| Following {
            coverage: entry.coverage.clone(),
            filter: entry.filter.clone(),
            has_listed: unlisted.is_none(),
        });
        following.collect()
    }
}
