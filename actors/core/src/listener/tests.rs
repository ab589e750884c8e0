//! The backlog: contract scenarios, the replay checker, and any history against a log.

mod brief;
mod depth;
mod early;
mod every;
mod filter;
mod initial;
mod invariants;
mod keys;
mod machine;
mod props;
mod scenarios;
mod walking;
mod world;

use super::{Backlog, CHUNK, FeedProgress, Policy};
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
pub(super) fn text_of(change: &Change<String>) -> String {
    let cause = change.cause();
    match change {
        Change::Added { object, .. } => format!("+ {} ({cause})", written(object)),
        Change::Updated { old, object, .. } => format!("{} -> {} ({cause})", written(old), written(object)),
        Change::Deleted { last, .. } => format!("- {} ({cause})", written(last)),
    }
}

/// A subscription that begins with this snapshot and waits for no source.
pub(super) fn joined(now: Snapshot<String>) -> Backlog<String> {
    Backlog::starting_from(Policy::Coalesce, [], now)
}

/// A subscription whose recipient is busy, so that what comes has to wait.
pub(super) fn busy() -> Backlog<String> {
    Backlog { is_under_way: true, ..joined(Snapshot::empty()) }
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
pub(super) fn record(backlog: &mut Backlog<String>, changes: &[Change<String>]) {
    let snapshot = after(&backlog.newest, changes);
    backlog.publish(&[Changes::Parts(changes.into())], &snapshot);
}

/// A publish of a list of the source `default`.
pub(super) fn list(backlog: &mut Backlog<String>, snapshot: &Snapshot<String>, cause: Cause) {
    let (source, before, after) = (SourceId::default(), backlog.newest.clone(), snapshot.clone());
    backlog.publish(&[Changes::Listed { source, before, after, cause }], snapshot);
}

/// Takes everything, in bites of `max`.
pub(super) fn drain(backlog: &mut Backlog<String>, max: usize) -> Vec<Change<String>> {
    let mut delivered = Vec::new();
    while !backlog.is_empty() {
        delivered.extend(backlog.take(max));
    }
    delivered
}

pub(super) fn drained(backlog: &mut Backlog<String>) -> Vec<String> {
    drain(backlog, 64).iter().map(text_of).collect()
}

#[test]
fn a_resync_whose_last_objects_wait_to_be_delivered_is_still_running() {
    let objects = ["a", "b", "c"].map(|name| crate::snapshot::fixture::object(name, 1));
    let mut backlog = joined(snapshot(&objects));
    drain(&mut backlog, CHUNK);
    backlog.acknowledge();
    backlog.resync();
    assert_eq!(backlog.take(2).len(), 2);
    record(&mut backlog, &[added(&crate::snapshot::fixture::object("d", 9))]);
    backlog.resync();
    assert_eq!(drained(&mut backlog), ["c u1@1 -> c u1@1 (Resync)", "+ d u1@9 (Watch)"]);
}

#[test]
fn ctl_23_what_was_taken_behind_the_settled_state_and_is_not_the_same_any_more_is_told() {
    use crate::snapshot::fixture::{life, object};
    let (kept, brief, changed, lived) =
        (object("kept", 1), object("brief", 2), object("changed", 3), life("lived", "u1", 4));
    let mut progress = FeedProgress::default();
    for object in [&kept, &brief, &changed, &lived] {
        assert!(progress.take(&added(object)).is_none());
    }
    let now = snapshot([&kept, &object("changed", 5), &life("lived", "u2", 6)]);
    let told: Vec<_> = progress.changes_to(&now, None).0.iter().map(text_of).collect();
    assert_eq!(
        told,
        ["- brief u1@2 (Relist)", "changed u1@3 -> changed u1@5 (Relist)", "- lived u1@4 (Relist)"]
    );
    assert!(progress.take(&deleted(&brief)).is_some_and(|freed| freed.ptr_eq(&brief)));
    assert_eq!(progress.changes_to(&now, None).0.len(), 2, "its end was taken");
    assert!(progress.settle(&now).is_some() && progress.settled().is_some_and(|state| state.ptr_eq(&now)));
    assert!(progress.changes_to(&Snapshot::empty(), None).0.is_empty(), "the settled state shows it all");
    assert!(progress.settle(&now).is_none(), "nothing is new");
}

// CTL-23: given a Listener that feeds the queue of a controller, when it dies, then it is started again after
// a wait and goes on where it had been, so that no key is lost, also of what was deleted meanwhile; one that
// dies again and again is given up, which the status shows.
// - a no key is lost
// - b given up, and shown: `ctl_23_a_listener_that_dies_again_and_again_is_given_up_which_the_status_shows`
#[test]
fn ctl_23_a_backlog_goes_on_from_the_state_up_to_which_an_earlier_one_was_handled() {
    let object = crate::snapshot::fixture::object;
    let (kept, gone, new) = (object("kept", 1), object("gone", 2), object("new", 5));
    let mut first = joined(snapshot([&kept, &gone]));
    assert!(first.settled().is_none(), "its initial events wait");
    drain(&mut first, CHUNK);
    assert!(first.settled().is_none(), "they are under way");
    first.acknowledge();
    let seen = first.settled().expect("all of it is handled").clone();
    record(&mut first, &[deleted(&gone)]);
    assert!(first.settled().is_none(), "a deletion waits");

    let mut next = Backlog::resumed_from(Policy::Coalesce, seen, snapshot([&kept, &new]));
    assert!(next.initial_delivered() && next.settled().is_none());
    assert_eq!(drained(&mut next), ["- gone u1@2 (Relist)", "+ new u1@5 (Relist)"]);
    next.acknowledge();
    assert!(next.settled().is_some());
}
