//! The backlog: contract scenarios, the replay checker, and any history against a log.

mod every;
mod invariants;
mod props;
mod scenarios;

use super::Backlog;
use crate::delta::{Cause, Change};
use crate::meta::Object;
use crate::snapshot::fixture::written;
use crate::snapshot::{Frame, Snapshot};

pub(super) fn snapshot<'a>(objects: impl IntoIterator<Item = &'a Object<String>>) -> Snapshot<String> {
    let mut frame = Frame::default();
    for object in objects {
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

/// Takes everything, in bites of `max`.
pub(super) fn drain(backlog: &mut Backlog<String>, max: usize) -> Vec<Change<String>> {
    let mut told = Vec::new();
    while !backlog.is_empty() {
        told.extend(backlog.take(max));
    }
    told
}

pub(super) fn drained(backlog: &mut Backlog<String>) -> Vec<String> {
    drain(backlog, 64).iter().map(tell).collect()
}
