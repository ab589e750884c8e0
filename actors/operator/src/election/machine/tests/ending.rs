//! The end of a candidate: what it gives back, and when it is over.

use super::*;

fn leader() -> Stage {
    let mut stage = Stage::new(Settings::new("me"));
    stage.settle();
    stage.now = SECOND;
    stage.asked.clear();
    stage
}

#[test]
fn at_shutdown_the_leader_writes_no_holder_and_a_short_lease_and_keeps_the_number() {
    let mut stage = Stage::with_lease(held_by("", 7));
    stage.settle();
    stage.candidate.handle_shutdown();
    assert_eq!(stage.fence(), None, "it does not lead while it gives the lease back");
    stage.settle();
    let LeaseRecord { holder, duration_seconds, transitions, .. } = stage.lease();
    assert_eq!((&**holder, *duration_seconds, *transitions), ("", 1, 8));
    assert!(stage.candidate.is_over() && stage.candidate.is_released());
    assert_eq!((stage.candidate.poll_timeout(), stage.candidate.figures().lost), (None, 0));
}

#[test]
fn a_candidate_that_holds_nothing_writes_nothing_at_its_end() {
    for lease in [None, Some(held_by("other", 1))] {
        let mut stage = Stage { lease: lease.clone(), ..Stage::new(Settings::new("me")) };
        if lease.is_some() {
            stage.settle();
        }
        stage.candidate.handle_shutdown();
        stage.settle();
        assert!(stage.candidate.is_over() && stage.candidate.is_released());
        assert_eq!(stage.lease, lease);
    }
}

#[test]
fn a_write_that_is_under_way_at_shutdown_is_awaited_and_then_undone() {
    let mut stage = Stage::new(Settings::new("me"));
    let read = stage.candidate.poll_effect(stage.moment()).expect("a read");
    stage.answer(read);
    let create = stage.candidate.poll_effect(stage.moment()).expect("a create");
    stage.candidate.handle_shutdown();
    assert_eq!(stage.candidate.poll_effect(stage.moment()), None);
    stage.answer(create);
    assert_eq!(stage.fence(), None);
    stage.settle();
    assert_eq!((&*stage.lease().holder, stage.candidate.is_over()), ("", true));
}

#[test]
fn a_read_that_is_under_way_at_shutdown_is_not_followed_by_an_attempt() {
    let mut stage = Stage::with_lease(held_by("", 0));
    let read = stage.candidate.poll_effect(stage.moment()).expect("a read");
    stage.candidate.handle_shutdown();
    stage.answer(read);
    stage.settle();
    assert_eq!((stage.asked.as_slice(), stage.candidate.is_over()), (["read"].as_slice(), true));
}

#[test]
fn a_release_that_meets_a_conflict_reads_once_and_leaves_the_lease_of_another_alone() {
    let mut own = leader();
    own.conflicts = 1;
    own.candidate.handle_shutdown();
    own.settle();
    assert_eq!((own.asked.as_slice(), &*own.lease().holder), (["conflict", "read", "update"].as_slice(), ""));

    let mut taken = leader();
    (taken.lease, taken.conflicts) = (Some(held_by("thief", 5)), 1);
    taken.candidate.handle_shutdown();
    taken.settle();
    assert_eq!((taken.asked.as_slice(), &*taken.lease().holder), (["conflict", "read"].as_slice(), "thief"));
    assert!(taken.candidate.is_released());
}

#[test]
fn a_release_that_fails_is_tried_again_until_the_lease_has_run_out() {
    let mut stage = leader();
    stage.candidate.handle_shutdown();
    let mut tries = 0;
    while !stage.candidate.is_over() {
        if stage.candidate.poll_effect(stage.moment()).is_some() {
            tries += 1;
            stage.candidate.handle_written(LeaseWritten::Failed, stage.moment());
        }
        stage.now += SECOND;
        assert!(stage.now < 60 * SECOND);
    }
    assert!(!stage.candidate.is_released() && (7..=10).contains(&tries), "{tries} tries");
}

#[test]
fn a_lease_that_had_run_out_before_the_shutdown_is_not_given_back_and_that_is_no_failure() {
    let mut stage = leader();
    stage.now += 40 * SECOND;
    stage.lease = Some(held_by("thief", 5));
    stage.candidate.handle_shutdown();
    stage.settle();
    assert_eq!((stage.asked.as_slice(), &*stage.lease().holder), ([].as_slice(), "thief"));
    assert!(stage.candidate.is_over() && stage.candidate.is_released());
}

#[test]
fn an_own_lease_that_is_found_when_the_shutdown_has_begun_is_given_back() {
    let mut stage = Stage::with_lease(held_by("me", 2));
    let read = stage.candidate.poll_effect(stage.moment()).expect("a read");
    stage.candidate.handle_shutdown();
    stage.answer(read);
    stage.settle();
    assert_eq!((stage.asked.as_slice(), &*stage.lease().holder), (["read", "update"].as_slice(), ""));
    assert!(stage.candidate.is_over() && stage.candidate.is_released());
}

#[test]
fn a_write_without_an_answer_is_looked_for_at_shutdown() {
    let mut stage = Stage::new(Settings::new("me"));
    let read = stage.candidate.poll_effect(stage.moment()).expect("a read");
    stage.answer(read);
    let Some(Effect::Create(record)) = stage.candidate.poll_effect(stage.moment()) else {
        panic!("a create")
    };
    stage.lease = Some(record);
    stage.candidate.handle_written(LeaseWritten::Failed, stage.moment());
    stage.candidate.handle_shutdown();
    stage.settle();
    assert_eq!((&*stage.lease().holder, stage.candidate.is_released()), ("", true));
}
