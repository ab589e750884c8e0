//! Where changes leave marks on their way through an informer; `runtime/paths.rs` keeps them. Nothing here
//! costs more than a load while no path is asked for. The objects of a list leave marks when they are
//! delivered, and those of followed keys also when the list is published.

use std::sync::Arc;

use informer_core::delta::{Cause, Change, Changes, WatchPart};
use informer_core::listener::Notifications;
use informer_core::meta::{ObjectKey, ResourceVersion, SourceId};
use informer_core::path::{Hop, Mark};

use crate::pipeline::messages::Body;
use crate::pipeline::shared::PipelineShared;
use crate::runtime::Arrival;

fn version_of<S>(change: &Change<S>) -> &ResourceVersion {
    match change {
        Change::Added { object, .. } | Change::Updated { object, .. } => object.version(),
        Change::Deleted { last, .. } => last.version(),
    }
}

impl<S: Body> PipelineShared<S> {
    fn mark(&self, hop: Hop, key: &ObjectKey, version: &ResourceVersion) -> Option<Mark> {
        let paths = &self.runtime.0.paths;
        let mark = || Mark::new(hop, Arc::clone(&self.name), key.clone()).version(Some(version.clone()));
        paths.chooses(key, version).then(mark)
    }

    /// A source has brought these.
    pub(crate) fn mark_arrived(&self, source: &SourceId, parts: &[WatchPart<S>], arrival: &Arrival) {
        let paths = &self.runtime.0.paths;
        if !paths.is_on() {
            return;
        }
        let now = self.runtime.now();
        let said = [(Hop::Read, arrival.read()), (Hop::Scanned, arrival.scanned())];
        for part in parts {
            let Some(decoded) = part.key().and_then(|key| self.mark(Hop::Decoded, key, part.version()))
            else {
                continue;
            };
            let decoded = decoded.by(source.as_str()).at(now);
            let before = said.into_iter().filter_map(|(hop, at)| Some((hop, at?)));
            let before = before.map(|(hop, at)| decoded.clone().hop(hop).at(at.min(now)));
            paths.note_all(before.chain([decoded.clone()]));
        }
    }

    pub(crate) fn mark_queued(&self, parts: &[WatchPart<S>]) {
        let paths = &self.runtime.0.paths;
        if paths.is_on() {
            let marks = parts.iter().filter_map(|part| self.mark(Hop::Queued, part.key()?, part.version()));
            marks.for_each(|mark| paths.note(mark));
        }
    }

    /// Published, or handed to the listeners.
    pub(crate) fn mark_changes(&self, hop: Hop, changes: Option<&Changes<S>>) {
        let paths = &self.runtime.0.paths;
        if !paths.is_on() {
            return;
        }
        match changes {
            Some(Changes::Parts(changes)) => {
                let marks = changes.iter();
                let marks = marks.filter_map(|change| self.mark(hop, change.key(), version_of(change)));
                marks.for_each(|mark| paths.note(mark));
            }
            Some(Changes::Listed { before, after, .. }) => {
                for key in paths.followed() {
                    let (old, new) = (before.get(&key), after.get(&key));
                    let is_new = old.map(|old| old.version()) != new.map(|new| new.version());
                    if let Some(object) = new.or(old).filter(|_| is_new) {
                        self.mark(hop, &key, object.version()).into_iter().for_each(|mark| paths.note(mark));
                    }
                }
            }
            None => {}
        }
    }

    /// A listener hands these to its subscriber.
    pub(crate) fn mark_delivered(&self, subscription: &Arc<str>, window: &Notifications<S>) {
        let paths = &self.runtime.0.paths;
        if let Notifications::Changes(changes) = window
            && paths.is_on()
        {
            let marks = changes.iter();
            let marks = marks.filter_map(|change| {
                let mark = self.mark(Hop::Delivered, change.key(), version_of(change))?;
                Some(if change.cause() == Cause::Watch { mark } else { mark.not_live() })
            });
            marks.for_each(|mark| paths.note(mark.by(Arc::clone(subscription))));
        }
    }

    /// The subscriber gets nothing more from this listener.
    pub(crate) fn forget_delivered(&self, subscription: &Arc<str>) {
        let paths = &self.runtime.0.paths;
        if paths.is_on() {
            paths.forget_subscription(&self.name, subscription);
        }
    }

    /// The subscriber has handled what it was handed.
    pub(crate) fn mark_handled(&self, subscription: &Arc<str>) {
        let paths = &self.runtime.0.paths;
        if paths.is_on() {
            paths.handled(&self.name, subscription);
        }
    }
}
