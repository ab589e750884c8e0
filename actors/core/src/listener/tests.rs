//! The ledger: contract scenarios, the replay checker, and any history against a log.

mod brief;
mod early;
mod every;
mod initial;
mod invariants;
mod machine;
mod props;
mod scenarios;
mod world;

use super::{CHUNK, Ledger, Policy};
use crate::delta::{Cause, Change, Changes};
use crate::meta::{Object, SourceId};
use crate::snapshot::fixture::written;
use crate::snapshot::{Frame, Snapshot};

/// A state at the version of its newest object.
pub(super) fn snapshot<'a>(objects: impl IntoIterator<Item = &'a Object<String>>) -> Snapshot<String> {
    let mut frame = Frame::default();
    for object in objects {
        frame.reach(&SourceId::default(), object.version());
        frame.insert(object.clone());
    }
    Snapshot::publish(frame)
}

pub(super) fn added(object: &Object<String>) -> Change<String> {
    Change::Added { object: object.clone(), cause: Cause::Watch }
}

pub(super) fn updated(old: &Object<String>, object: &Object<String>) -> Change<String> {
    Change::Updated { old: old.clone(), object: object.clone(), cause: Cause::Watch }
}

pub(super) fn deleted(old: &Object<String>) -> Change<String> {
    Change::Deleted { old: old.clone(), last: old.clone(), exact: true, cause: Cause::Watch }
}

/// How tests write a change down: `+ x u1@3 (Watch)`, `x u1@3 -> x u1@4 (Watch)`, `- x u1@4 (Watch)`.
pub(super) fn tell(change: &Change<String>) -> String {
    let cause = change.cause();
    match change {
        Change::Added { object, .. } => format!("+ {} ({cause})", written(object)),
        Change::Updated { old, object, .. } => format!("{} -> {} ({cause})", written(old), written(object)),
        Change::Deleted { last, .. } => format!("- {} ({cause})", written(last)),
    }
}

/// A subscription that begins with this snapshot and waits for no source.
pub(super) fn joined(now: Snapshot<String>) -> Ledger<String> {
    Ledger::starting_from(Policy::Coalesce, [], now)
}

/// A subscription whose recipient is busy, so that what comes has to wait.
pub(super) fn busy() -> Ledger<String> {
    Ledger { is_under_way: true, ..joined(Snapshot::empty()) }
}

/// The frame that follows from these changes.
pub(super) fn after(before: &Snapshot<String>, changes: &[Change<String>]) -> Snapshot<String> {
    let mut frame = before.frame().clone();
    for change in changes {
        match change.object() {
            Some(object) => drop(frame.insert(object.clone())),
            None => drop(frame.remove(change.key())),
        }
    }
    Snapshot::publish(frame)
}

/// The frame after a rewind in which these objects were listed, and no other changed.
pub(super) fn rewound<'a>(
    before: &Snapshot<String>,
    objects: impl IntoIterator<Item = &'a Object<String>>,
) -> Snapshot<String> {
    let mut frame = before.frame().clone();
    frame.count_rewind();
    for object in objects {
        frame.insert_rewound(object.clone());
    }
    Snapshot::publish(frame)
}

/// A publish of parts.
pub(super) fn record(ledger: &mut Ledger<String>, changes: &[Change<String>]) {
    let snapshot = after(&ledger.newest, changes);
    ledger.publish(&[Changes::Parts(changes.into())], &snapshot);
}

/// A publish of a list of the source `default`.
pub(super) fn list(ledger: &mut Ledger<String>, snapshot: &Snapshot<String>, cause: Cause) {
    let (source, before, after) = (SourceId::default(), ledger.newest.clone(), snapshot.clone());
    ledger.publish(&[Changes::Listed { source, before, after, cause }], snapshot);
}

/// Takes everything, in bites of `max`.
pub(super) fn drain(ledger: &mut Ledger<String>, max: usize) -> Vec<Change<String>> {
    let mut told = Vec::new();
    while !ledger.is_empty() {
        told.extend(ledger.take(max));
    }
    told
}

pub(super) fn drained(ledger: &mut Ledger<String>) -> Vec<String> {
    drain(ledger, 64).iter().map(tell).collect()
}

#[test]
fn a_resync_whose_last_objects_are_ready_to_be_told_is_still_running() {
    let objects = ["a", "b", "c"].map(|name| crate::snapshot::fixture::object(name, 1));
    let mut ledger = joined(snapshot(&objects));
    drain(&mut ledger, CHUNK);
    ledger.acknowledge();
    ledger.resync();
    // As a ledger with too many cursors does: the resync's own is over, its events are ready.
    ledger.write_out(CHUNK);
    ledger.resync();
    assert_eq!(drained(&mut ledger).len(), objects.len());
}
