//! The lifecycle as tables: order, failures, the lease, and the stop. `world.rs` plays the parts.

use std::time::Duration;

use super::*;
use crate::lifecycle::machine::tests::world::World;

mod props;
mod world;

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// One part of each phase, and two of `Work`: probes 0, cache 1, work 2 and 3, election 4, leader's work 5.
const ALL: [Phase; 6] =
    [Phase::Probes, Phase::Caches, Phase::Work, Phase::Work, Phase::Election, Phase::LeaderWork];

/// All of them run, and this process leads.
fn leading() -> World {
    let mut world = World::new(&ALL);
    (0..5).for_each(|part| world.ready(part));
    world.lead(true);
    world.ready(5);
    world.log.clear();
    world
}

#[test]
fn le_13_parts_start_in_the_order_of_their_phases_and_what_is_behind_the_caches_waits_for_them() {
    let mut world = World::new(&ALL);
    assert_eq!(world.log(), ["start 0", "start 1"]);
    let waits = PartState::WaitsForCaches;
    assert_eq!(world.states()[2..], [waits, waits, waits, PartState::Standby]);
    world.ready(0);
    assert_eq!(world.log(), [] as [&str; 0]);
    world.ready(1);
    assert_eq!(world.log(), ["start 2", "start 3", "start 4"], "the election waits for no work");
    world.lead(true);
    assert_eq!(world.log(), ["start 5"]);
}

#[test]
fn le_13_a_stop_drains_the_phases_in_reverse_and_each_when_nothing_of_the_later_ones_runs() {
    let mut world = leading();
    world.stop();
    assert_eq!(world.log(), ["drain 5"]);
    world.finish(5);
    assert_eq!(world.log(), ["drain 4"], "the lease is released when the leader's work has ended");
    world.finish(4);
    assert_eq!(world.log(), ["drain 2", "drain 3"]);
    world.finish(3);
    assert_eq!(world.log(), [] as [&str; 0]);
    world.finish(2);
    assert_eq!(world.log(), ["drain 1"]);
    world.finish(1);
    assert_eq!(world.log(), ["drain 0"]);
    world.finish(0);
    assert_eq!(world.lifecycle.stage(), Stage::Stopped);
    assert_eq!(world.states(), [PartState::Stopped { clean: true }; 6]);
}

#[test]
fn le_13_what_waits_of_the_events_is_sent_between_the_end_of_the_leaders_work_and_that_of_the_election() {
    let mut world = World::new(&[Phase::Caches, Phase::Election, Phase::Events, Phase::LeaderWork]);
    world.ready(0);
    assert_eq!(world.log(), ["start 0", "start 1", "start 2"], "events wait for no lease");
    world.lead(true);
    world.lead(false);
    assert_eq!(world.log(), ["start 3", "end 3"], "they go on without it");
    world.finish(3);
    world.lead(true);
    world.log.clear();
    world.stop();
    world.finish(3);
    assert_eq!(world.log(), ["drain 3", "drain 2"]);
    world.finish(2);
    assert_eq!(world.log(), ["drain 1"]);
}

#[test]
fn the_drain_limits_are_together_shorter_than_the_grace_of_a_pod() {
    let limits = Phase::ALL.map(|phase| DrainLimits::default().of(phase) + GRACE);
    assert_eq!(limits.iter().sum::<Duration>(), secs(29), "also if something of each phase is waited for");
}

#[test]
fn le_13_when_the_lease_is_lost_the_leaders_work_ends_at_once_and_everything_else_goes_on() {
    let mut world = leading();
    world.lead(false);
    assert_eq!(world.log(), ["end 5"], "it is not asked to drain");
    assert_eq!(world.states()[..5], [PartState::Ready; 5]);
    world.lead(true);
    assert_eq!(world.log(), [] as [&str; 0], "its former life is not over");
    world.finish(5);
    assert_eq!(world.log(), ["start 5"]);
}

#[test]
fn le_13_a_lease_that_is_lost_and_had_again_between_two_looks_ends_the_work_of_the_former_term() {
    let mut world = leading();
    world.lead_in_another_term();
    assert_eq!(world.log(), ["end 5"]);
    world.finish(5);
    assert_eq!(world.log(), ["start 5"]);
}

#[test]
fn le_13_an_election_that_fails_is_a_lost_lease() {
    let mut world = leading();
    world.fail(4);
    assert_eq!(world.log(), ["end 5"]);
    world.finish(5);
    assert_eq!(world.states()[5], PartState::Standby);
    world.pass(secs(2));
    assert_eq!(world.log(), ["start 4"]);
    world.ready(4);
    world.lead(true);
    assert_eq!(world.log(), ["start 5"]);
}

#[test]
fn le_13_a_lease_that_is_lost_during_the_drain_ends_the_leaders_work_before_its_time() {
    let mut world = leading();
    world.stop();
    world.lead(false);
    assert_eq!(world.log(), ["drain 5", "end 5"]);
    world.finish(5);
    assert_eq!(world.log(), ["drain 4"]);
}

#[test]
fn le_13_an_election_that_was_not_started_yet_or_has_failed_is_told_to_end_in_its_turn() {
    let mut world = World::holding(&ALL, 1 << 4);
    world.log.clear();
    world.stop();
    assert_eq!(world.log(), ["close 4"], "it campaigns, although the caches are not filled");
    assert_eq!(world.lifecycle.time_left(PartId(4), world.now), secs(2));
    world.finish(4);
    assert_eq!(world.log(), ["drain 1"]);
    assert_eq!(world.states()[4], PartState::Stopped { clean: true });

    let mut failed = World::holding(&[Phase::Election, Phase::LeaderWork], 1);
    failed.fail(0);
    failed.stop();
    assert_eq!(failed.log(), ["start 0", "close 0"], "it waits to be started again");
    failed.pass(secs(3));
    assert_eq!(failed.log(), ["end 0"], "it has its time, as every part");
}

#[test]
fn a_part_that_was_given_up_and_holds_something_is_told_to_end_and_does_not_end_in_order() {
    let policy = RestartPolicy { limit: 0, ..Lifecycle::PATIENT };
    let mut world = World::with(&[Phase::Election], policy).and_holding(1);
    world.fail(0);
    assert_eq!(world.states(), [PartState::GivenUp]);
    world.stop();
    world.finish(0);
    assert_eq!(world.log(), ["start 0", "close 0"]);
    assert_eq!(world.states(), [PartState::Stopped { clean: false }]);
}

#[test]
fn without_an_election_the_leaders_work_starts_when_the_caches_are_filled() {
    let mut world = World::new(&[Phase::Caches, Phase::LeaderWork]);
    assert_eq!(world.log(), ["start 0"]);
    world.ready(0);
    assert_eq!(world.log(), ["start 1"]);
}

#[test]
fn op_01_a_part_that_crash_loops_starts_again_after_growing_waits_and_no_other_part_is_touched() {
    let mut world = leading();
    let mut waits = Vec::new();
    for _ in 0..8 {
        world.fail(2);
        let PartState::Backoff { until } = world.states()[2] else { panic!("it waits") };
        assert_eq!(world.states()[3..], [PartState::Ready; 3], "the others go on");
        waits.push((until - world.now).as_millis());
        world.pass(until - world.now);
        assert_eq!(world.log(), ["start 2"]);
    }
    assert_eq!(waits, [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
    let (_, restarts, error) = world.lifecycle.history(PartId(2)).expect("it exists");
    assert_eq!((restarts, error.as_deref()), (8, Some("on purpose")));
}

#[test]
fn op_01_work_that_is_never_ready_holds_up_neither_other_work_nor_the_election() {
    let mut world = World::new(&ALL);
    for part in [0, 1, 3, 4] {
        world.ready(part);
    }
    world.lead(true);
    assert_eq!(
        world.states()[2..],
        [PartState::Starting, PartState::Ready, PartState::Ready, PartState::Starting]
    );
}

#[test]
fn a_part_that_fails_too_often_for_its_policy_is_given_up_with_the_reason() {
    let policy = RestartPolicy { limit: 1, ..Lifecycle::PATIENT };
    let mut world = World::with(&[Phase::Work], policy);
    world.fail(0);
    world.pass(secs(60));
    let Some(PartEnded::GivenUp { reason }) = world.fail(0) else { panic!("it is given up") };
    assert!(reason.starts_with("failed: on purpose"), "{reason}");
    world.pass(secs(3_600));
    assert_eq!((world.log().last(), world.states()[0]), (Some(&"start 0".to_owned()), PartState::GivenUp));
}

#[test]
fn op_02_a_part_that_does_not_drain_in_its_time_is_dropped_and_one_that_does_not_end_then_is_abandoned() {
    let mut world = leading();
    world.stop();
    assert_eq!(world.lifecycle.next_due(), Some(world.now + secs(8)));
    world.pass(secs(8));
    assert_eq!(world.log(), ["drain 5", "end 5"]);
    world.pass(GRACE);
    assert_eq!(world.log(), ["end 4"], "nobody waits for it any longer, and the lease is not given back");
    assert_eq!(world.states()[5], PartState::Stopped { clean: false });
    world.pass(secs(60));
    assert_eq!(world.lifecycle.stage(), Stage::Stopped, "each phase has its own limit");
}

#[test]
fn op_02_work_that_has_ended_after_it_was_dropped_lets_the_lease_be_given_back() {
    let mut world = leading();
    world.stop();
    world.pass(secs(8));
    assert_eq!(world.log(), ["drain 5", "end 5"]);
    world.finish(5);
    assert_eq!(world.log(), ["drain 4"], "nothing of it runs any more");
    world.finish(4);
    assert_eq!(
        world.states()[4..],
        [PartState::Stopped { clean: true }, PartState::Stopped { clean: false }]
    );
}

#[test]
fn op_02_work_that_was_dropped_because_the_lease_was_lost_has_ended_in_order_also_during_a_stop() {
    let mut world = leading();
    world.lead(false);
    world.stop();
    world.finish(5);
    assert_eq!(world.states()[5], PartState::Stopped { clean: true });
}

#[test]
fn events_of_a_former_life_change_nothing() {
    let mut world = World::new(&[Phase::Work]);
    let former = Life { part: PartId(0), number: 1 };
    world.fail(0);
    world.pass(secs(2));
    world.lifecycle.handle_ready(former, world.now);
    let at = Moment { now: world.now, chance: 0.0 };
    assert_eq!(world.lifecycle.handle_ended(former, &Exit::Failed("late".into()), at), None);
    assert_eq!(world.states(), [PartState::Starting]);
}

#[test]
fn work_that_has_ended_by_itself_is_done_and_not_missing() {
    let mut world = World::new(&[Phase::Caches, Phase::Work]);
    world.finish(0);
    assert_eq!(world.log(), ["start 0", "start 1"], "a cache that is done has been filled");
    assert_eq!(world.states(), [PartState::Done, PartState::Starting]);
}
