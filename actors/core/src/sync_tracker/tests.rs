//! The sync tracker: contract scenarios.

use super::SyncTracker;
use crate::meta::SourceId;
use crate::snapshot::fixture::version;
use crate::snapshot::{Frame, Snapshot};

/// A published snapshot in which these sources have a version.
fn published(sources: &[&str]) -> Snapshot<()> {
    let mut frame = Frame::default();
    for source in sources {
        frame.set_version(SourceId::new(*source), version(7));
    }
    Snapshot::publish(frame)
}

fn missing(tracker: &SyncTracker) -> Vec<&str> {
    tracker.missing().map(SourceId::as_str).collect()
}

#[test]
fn inf_36_an_informer_of_two_sources_is_synced_when_both_have_published_their_list() {
    let mut tracker = SyncTracker::new([SourceId::new("b"), SourceId::new("a")]);
    assert_eq!(missing(&tracker), ["a", "b"]);
    tracker.observe(&published(&["b"]));
    assert_eq!((tracker.is_synced(), missing(&tracker)), (false, vec!["a"]));
    tracker.observe(&published(&["a", "b"]));
    assert!(tracker.is_synced());
}

#[test]
fn rf_06_an_empty_list_with_a_version_is_a_first_list() {
    let mut tracker = SyncTracker::new([SourceId::default()]);
    tracker.observe(&published(&[]));
    assert!(!tracker.is_synced());
    tracker.observe(&published(&["default"]));
    assert!(tracker.is_synced());
}

#[test]
fn what_has_synced_stays_synced() {
    let mut tracker = SyncTracker::new([SourceId::default()]);
    tracker.observe(&published(&["default"]));
    tracker.observe(&published(&[]));
    assert!(tracker.is_synced());
}

#[test]
fn nothing_is_missing_where_nothing_is_awaited() {
    assert!(SyncTracker::new([]).is_synced());
}
