//! Who joins before the first list: it costs a cursor, as it does who joins later.

use super::super::{Backlog, Policy};
use super::{drain, list, record, updated};
use crate::delta::Cause;
use crate::meta::{Object, SourceId};
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::object;

#[test]
fn inf_38_a_subscriber_that_joins_before_the_first_list_gets_it_as_a_cursor_also_while_every_object_changes()
{
    let objects: Vec<_> = (0..1_000).map(|n| object(&format!("ns-{}/pod-{n:04}", n % 7), n + 1)).collect();
    let mut early = Backlog::starting_from(Policy::Coalesce, [SourceId::default()], Snapshot::empty());
    list(&mut early, &super::snapshot(&objects), Cause::InitialList);
    for round in 1..=2_u64 {
        for slice in objects.chunks(250) {
            let key = |old: &Object<String>| old.key().to_string();
            let at = |old: &Object<String>, round: u64| object(&key(old), old_number(old) + round * 10_000);
            let changes: Vec<_> =
                slice.iter().map(|old| updated(&at(old, round - 1), &at(old, round))).collect();
            record(&mut early, &changes);
        }
    }
    assert_eq!((early.stats().events, early.stats().cursors), (0, 1));
    assert_eq!(drain(&mut early, 64).len(), 1_000);
}

fn old_number(object: &Object<String>) -> u64 {
    object.version().to_string().parse().expect("a number")
}
