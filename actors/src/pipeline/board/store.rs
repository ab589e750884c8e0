//! The figures of the store on the board. They change in one step with the published snapshot.

use std::time::Duration;

use informer_core::meta::SourceId;
use informer_core::snapshot::Snapshot;
use informer_core::timing::Timing;

#[derive(Debug, Clone, Default)]
pub(super) struct StoreCell {
    /// `None` while the informer is only declared.
    pub(super) began: Option<Duration>,
    pub(super) objects: usize,
    pub(super) undecodable: usize,
    pub(super) synced: bool,
    pub(super) sync_took: Option<Duration>,
    pub(super) sync_bytes: Option<u64>,
    pub(super) bytes: usize,
    pub(super) processing: Timing,
}

pub(crate) struct StoreFigures<'a, S> {
    pub(crate) objects: usize,
    pub(crate) undecodable: usize,
    pub(crate) versions: &'a Snapshot<S>,
    /// Those whose versions have changed since the last publish.
    pub(crate) touched: &'a [SourceId],
    pub(crate) synced: bool,
    /// When the store began with what it publishes.
    pub(crate) began: Duration,
    pub(crate) now: Duration,
}

impl StoreCell {
    /// True if a wait could be for this change.
    pub(super) fn show<S>(&mut self, figures: &StoreFigures<'_, S>) -> bool {
        let before = (self.objects, self.undecodable, self.synced);
        let now = (figures.objects, figures.undecodable, self.synced || figures.synced);
        (self.objects, self.undecodable, self.synced) = now;
        self.bytes = figures.versions.wire_bytes();
        self.processing.record(figures.now.saturating_sub(figures.began));
        if now.2 && !before.2 {
            self.sync_took = Some(figures.now.saturating_sub(self.began.unwrap_or(figures.now)));
        }
        before != now
    }
}
