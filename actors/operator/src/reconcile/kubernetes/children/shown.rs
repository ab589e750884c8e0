//! What a cache shows of a child: the whole object, or only its controller and version.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use informer_core::meta::{Object, ObjectKey, ResourceVersion, Uid};
use kube_core::ObjectMeta;
use serde_json::Value;

use super::kinds::{Cached, ChildKind};
use super::{Applied, ChildBody, State, kind_name};
use informer_client::representation::{Controlled, ControllerOf, ControllerRef, LazyBody};

pub(super) enum Cache<'a, K: ChildBody> {
    Whole(&'a Cached<K, K>),
    Lazy(&'a Cached<K, LazyBody<K>>),
    Controllers(&'a Cached<K, ControllerOf<K>>),
}

pub(super) enum Shown<K> {
    Whole(Object<K>),
    Controller(Object<ControllerOf<K>>),
}

impl<'a, K: ChildBody> Cache<'a, K> {
    /// The first cache that follows this child. Warns once without one.
    pub(super) fn of_child(
        kinds: &'a [Arc<dyn ChildKind>],
        key: &ObjectKey,
        labels: &BTreeMap<String, String>,
        child: &str,
    ) -> Option<Self> {
        let kind = kind_name::<K>();
        let of_kind = || kinds.iter().filter_map(|one| Some((one, one.finds(&kind, key, labels)?)));
        let is_found = of_kind().any(|(_, finds)| finds);
        let first = of_kind().next().filter(|_| !is_found);
        if first.is_some_and(|(first, _)| !first.has_told().swap(true, Ordering::Relaxed)) {
            tracing::warn!(target: "actix_informer::reconcile", %child,
                "{child} is not among what the informer of its kind follows, or what `listed` selects: give it the labels that are \
                 selected. Each apply of it is sent, and it is not pruned"
            );
        }
        let finding = of_kind().filter(|(_, finds)| *finds).map(|(one, _)| one.as_any());
        finding.into_iter().find_map(|kind| {
            let whole = kind.downcast_ref::<Cached<K, K>>().map(Self::Whole);
            let lazy = || kind.downcast_ref::<Cached<K, LazyBody<K>>>().map(Self::Lazy);
            whole
                .or_else(lazy)
                .or_else(|| kind.downcast_ref::<Cached<K, ControllerOf<K>>>().map(Self::Controllers))
        })
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<Shown<K>> {
        match self {
            Self::Whole(kind) => kind.cache.get(key).map(Shown::Whole),
            // What does not decode is applied again.
            Self::Lazy(kind) => kind.cache.get(key).and_then(|child| {
                let meta = child.cached_meta().clone();
                child.decode().ok().map(|child| Shown::Whole(Object::new(meta, child)))
            }),
            Self::Controllers(kind) => kind.cache.get(key).map(Shown::Controller),
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Self::Whole(_) | Self::Lazy(_))
    }
}

impl<K: ChildBody> Shown<K> {
    pub(super) fn controller(&self) -> Option<ControllerRef<'_>> {
        match self {
            Self::Whole(object) => object.body().controller(),
            Self::Controller(object) => object.body().controller(),
        }
    }

    pub(super) fn uid(&self) -> Option<&Uid> {
        match self {
            Self::Whole(object) => object.object_uid(),
            Self::Controller(object) => object.object_uid(),
        }
    }

    pub(super) fn version(&self) -> &ResourceVersion {
        match self {
            Self::Whole(object) => object.version(),
            Self::Controller(object) => object.version(),
        }
    }

    /// Most caches cut managed fields.
    pub(super) fn meta(&self) -> Option<&ObjectMeta> {
        match self {
            Self::Whole(object) => Some(object.body().meta()),
            Self::Controller(_) => None,
        }
    }

    /// Or the known one, if that is newer.
    pub(super) fn state(&self, known: Option<State>) -> State {
        let uid = self.uid().map(ToString::to_string).unwrap_or_default();
        let is_newer = |known: &State| {
            *known.uid == *uid
                && known.version.parse::<ResourceVersion>().is_ok_and(|known| known > *self.version())
        };
        let shown = || State { uid: uid.as_str().into(), version: self.version().to_string().into() };
        known.filter(is_newer).unwrap_or_else(shown)
    }

    pub(super) fn json(&self) -> Option<Value> {
        match self {
            Self::Whole(object) => serde_json::to_value(object.body()).ok(),
            Self::Controller(_) => None,
        }
    }

    pub(super) fn unchanged(self, given: K) -> Applied<K> {
        match self {
            Self::Whole(object) => Applied::Unchanged(object),
            Self::Controller(_) => Applied::AsGiven(Box::new(given)),
        }
    }
}
