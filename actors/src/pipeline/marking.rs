//! Where changes leave marks on their way through an informer. Without a path asked for, nothing here costs more than
//! a load. The objects of a list leave marks when they are delivered, those of followed keys also when the list is
//! published.

use std::sync::Arc;

use informer_core::delta::{Cause, Change, Changes, WatchPart};
use informer_core::listener::Notifications;
use informer_core::meta::{ObjectKey, ResourceVersion, SourceId};
use informer_core::path::{Hop, Passage};

use crate::pipeline::messages::Body;
use crate::pipeline::shared::PipelineShared;
use crate::runtime::Arrival;

/// Its key, its version, and whether it is live.
type Passing<'a> = (&'a ObjectKey, &'a ResourceVersion, bool);

fn part<S>(part: &WatchPart<S>) -> Option<Passing<'_>> {
    // A late finding was not on its way.
    let is_late = matches!(part, WatchPart::LateUndecodable(_));
    part.key().filter(|_| !is_late).map(|key| (key, part.version(), true))
}

fn change<S>(change: &Change<S>) -> Passing<'_> {
    let (Change::Added { object, .. }
    | Change::Updated { object, .. }
    | Change::Deleted { last: object, .. }) = change;
    (object.key(), object.version(), change.cause() == Cause::Watch)
}

impl<S: Body> PipelineShared<S> {
    pub(crate) fn mark_arrived(&self, source: &SourceId, parts: &[WatchPart<S>], arrival: &Arrival) {
        let paths = &self.runtime.0.paths;
        if paths.is_on() {
            let (read, scanned) = arrival.times().unzip();
            paths.pass(&self.name, Passage::Arrived { source, read, scanned }, parts.iter().filter_map(part));
        }
    }

    pub(crate) fn mark_queued(&self, parts: &[WatchPart<S>]) {
        let step = Passage::Passed(Hop::Queued);
        self.runtime.0.paths.pass(&self.name, step, parts.iter().filter_map(part));
    }

    /// Published, or handed to the listeners.
    pub(crate) fn mark_changes(&self, hop: Hop, changes: Option<&Changes<S>>) {
        let (paths, step) = (&self.runtime.0.paths, Passage::Passed(hop));
        match changes {
            Some(Changes::Parts(changes)) => paths.pass(&self.name, step, changes.iter().map(change)),
            Some(Changes::Listed { before, after, .. }) => {
                for key in paths.followed() {
                    let (old, new) = (before.get(&key), after.get(&key));
                    let is_new = old.map(|old| old.version()) != new.map(|new| new.version());
                    if let Some(object) = new.or(old).filter(|_| is_new) {
                        paths.pass(&self.name, step, std::iter::once((&key, object.version(), true)));
                    }
                }
            }
            None => {}
        }
    }

    pub(crate) fn mark_delivered(&self, subscription: &Arc<str>, window: &Notifications<S>) {
        if let Notifications::Changes(changes) = window {
            let step = Passage::Delivered(subscription);
            self.runtime.0.paths.pass(&self.name, step, changes.iter().map(change));
        }
    }

    /// The subscriber gets nothing more from this listener.
    pub(crate) fn forget_delivered(&self, subscription: &Arc<str>) {
        let paths = &self.runtime.0.paths;
        if paths.is_on() {
            paths.forget_subscription(&self.name, subscription);
        }
    }

    pub(crate) fn mark_handled(&self, subscription: &Arc<str>) {
        let paths = &self.runtime.0.paths;
        if paths.is_on() {
            paths.handled(&self.name, subscription);
        }
    }
}
