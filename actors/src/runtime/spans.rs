//! `tracing` spans of changes. A reconcile's span is within that of the change that added its key. The span of a
//! change that a reconcile wrote is within that of the change that led to the reconcile.
//!
//! 1. Only changes with marks have a span, and only while a subscriber wants it.
//! 2. A change's span is closed when all that it led to has ended: reconciles with their retries, and what they
//!    wrote.
//! 3. A subscriber is never called under the lock.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use informer_core::meta::{ObjectKey, ResourceVersion};
use tracing::Span;

use super::locked::Guarded;

/// Of each kind of entry. What is above has no parent.
const MOST: usize = 4_096;

type State = (ObjectKey, ResourceVersion);

/// The open spans of one runtime.
#[derive(Debug, Default)]
pub struct Spans(Guarded<Known>);

#[derive(Debug, Default)]
struct Known {
    changes: BTreeMap<State, Weak<Span>>,
    /// Of keys that wait in queues, by controller.
    added: BTreeMap<(Arc<str>, ObjectKey), Arc<Span>>,
    /// What reconciles wrote, with the span of the change that led to it.
    written: BTreeMap<State, Arc<Span>>,
}

impl Spans {
    /// A change with marks adds a key to the queue of a controller.
    pub fn add(
        &self,
        (controller, key): (&Arc<str>, &ObjectKey),
        informer: &str,
        change: (&ObjectKey, &ResourceVersion),
    ) {
        if !tracing::span_enabled!(target: "actix_informer::change", tracing::Level::INFO, "change") {
            return;
        }
        let state = (change.0.clone(), change.1.clone());
        let found = self.0.with(|known| {
            let span = known.changes.get(&state).and_then(Weak::upgrade);
            span.ok_or_else(|| known.written.get(&state).cloned())
        });
        let span = found.unwrap_or_else(|cause| {
            let (cause, (object, version)) = (cause.and_then(|cause| cause.id()), change);
            let span = tracing::info_span!(target: "actix_informer::change", parent: cause, "change", informer, %object, %version);
            Arc::new(span)
        });
        let before = self.0.with(|known| {
            if known.changes.len() >= MOST {
                known.changes.retain(|_, span| span.strong_count() > 0);
            }
            if known.changes.len() >= MOST || known.added.len() >= MOST {
                return None;
            }
            known.changes.insert(state, Arc::downgrade(&span));
            known.added.insert((Arc::clone(controller), key.clone()), span)
        });
        drop(before);
    }

    pub(super) fn take(&self, controller: &Arc<str>, key: &ObjectKey) -> Option<Arc<Span>> {
        self.0.with(|known| known.added.remove(&(Arc::clone(controller), key.clone())))
    }

    /// The key is tried again. A newer change that has added it meanwhile stays.
    pub fn put_back(&self, controller: &Arc<str>, key: &ObjectKey, span: Arc<Span>) {
        let of = (Arc::clone(controller), key.clone());
        let unused = self.0.with(|known| {
            if known.added.len() >= MOST || known.added.contains_key(&of) {
                return Some(span);
            }
            known.added.insert(of, span)
        });
        drop(unused);
    }

    /// A reconcile that this change has led to has written a state.
    pub fn note_written(&self, key: &ObjectKey, version: &ResourceVersion, change: &Arc<Span>) {
        let before = self.0.with(|known| {
            if known.written.len() >= MOST {
                return None;
            }
            known.written.insert((key.clone(), version.clone()), Arc::clone(change))
        });
        drop(before);
    }

    /// Whether anything is known that this change has led to: then [`Self::forget_written`] has to follow.
    pub fn has_written(&self, change: &Arc<Span>) -> bool {
        self.0.with(|known| known.written.values().any(|of| Arc::ptr_eq(of, change)))
    }

    /// What this change has led to is in the caches.
    pub fn forget_written(&self, change: &Arc<Span>) {
        let gone: Vec<_> =
            self.0.with(|known| known.written.extract_if(.., |_, of| Arc::ptr_eq(of, change)).collect());
        drop(gone);
    }

    pub(super) fn forget_controller(&self, controller: &Arc<str>) {
        let gone: Vec<_> =
            self.0.with(|known| known.added.extract_if(.., |(of, _), _| of == controller).collect());
        drop(gone);
    }
}
