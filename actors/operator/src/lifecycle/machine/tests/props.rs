//! Any history keeps the promises: `world.rs` checks each action; here are the histories.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::world::World;
use super::{GRACE, secs};
use crate::lifecycle::machine::{DrainLimits, Phase, Stage};

/// What happens to the parts.
#[derive(Debug, Clone, Copy)]
enum Event {
    Ready(usize),
    Fails(usize),
    Finishes(usize),
    Leads(bool),
    Passes(u64),
    Stop,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (0..9_usize).prop_map(Event::Ready),
        3 => (0..9_usize).prop_map(Event::Fails),
        2 => (0..9_usize).prop_map(Event::Finishes),
        2 => any::<bool>().prop_map(Event::Leads),
        3 => (0..20_000_u64).prop_map(Event::Passes),
        1 => Just(Event::Stop),
    ];
    vec(event, 0..80)
}

fn phases() -> impl Strategy<Value = Vec<Phase>> {
    vec(0..Phase::ALL.len(), 1..9).prop_map(|mut phases| {
        phases.sort_unstable();
        let is_second = |at: usize, phases: &[usize]| at > 0 && phases[at] == 3 && phases[at - 1] == 3;
        let kept = (0..phases.len()).filter(|at| !is_second(*at, &phases));
        kept.map(|at| Phase::ALL[phases[at]]).collect()
    })
}

fn play(world: &mut World, count: usize, event: Event) {
    match event {
        Event::Ready(part) => world.ready(part % count),
        Event::Fails(part) => drop(world.fail(part % count)),
        Event::Finishes(part) => world.finish(part % count),
        Event::Leads(leads) => world.lead(leads),
        Event::Passes(millis) => world.pass(Duration::from_millis(millis)),
        Event::Stop => world.stop(),
    }
}

proptest! {
    #[test]
    fn op_01_any_history_keeps_the_order_the_lease_and_one_life_for_each_part(phases in phases(), events in events(), holding in any::<u16>()) {
        let mut world = World::holding(&phases, holding);
        for event in events {
            play(&mut world, phases.len(), event);
        }
    }

    #[test]
    fn op_02_a_stop_ends_within_the_limits_whatever_the_parts_do(phases in phases(), events in events(), holding in any::<u16>()) {
        let mut world = World::holding(&phases, holding);
        for event in events {
            play(&mut world, phases.len(), event);
        }
        world.stop();
        let limits: Duration = Phase::ALL.iter().map(|phase| DrainLimits::default().of(*phase) + GRACE).sum();
        world.pass(limits);
        prop_assert_eq!(world.lifecycle.stage(), Stage::Stopped);
        prop_assert_eq!(world.lifecycle.next_due(), None);
    }

    #[test]
    fn op_01_the_failures_of_one_controller_change_no_other_part(events in events()) {
        let phases = [Phase::Probes, Phase::Caches, Phase::Work, Phase::Work, Phase::Election, Phase::LeaderWork];
        let (mut with, mut without) = (World::new(&phases), World::new(&phases));
        let (crashing, others) = (2, [0, 1, 3, 4, 5]);
        for event in events.into_iter().filter(|event| !matches!(event, Event::Stop)) {
            play(&mut with, phases.len(), event);
            match event {
                Event::Ready(part) | Event::Fails(part) | Event::Finishes(part) if part % 6 == crashing => {}
                event => play(&mut without, phases.len(), event),
            }
            for part in others {
                prop_assert_eq!(with.states()[part], without.states()[part], "part {}", part);
                prop_assert_eq!(with.is_alive(part), without.is_alive(part));
            }
        }
    }

    #[test]
    fn when_nothing_fails_any_more_everything_is_ready_again(phases in phases(), events in events()) {
        let mut world = World::new(&phases);
        for event in events {
            match event {
                Event::Stop | Event::Finishes(_) => {}
                event => play(&mut world, phases.len(), event),
            }
        }
        for _ in 0..4 {
            world.pass(secs(120));
            (0..phases.len()).filter(|part| world.is_dropped(*part)).collect::<Vec<_>>().into_iter().for_each(|part| world.finish(part));
            (0..phases.len()).for_each(|part| world.ready(part));
            world.lead(true);
        }
        let ready = world.states().iter().all(|state| *state == crate::lifecycle::machine::PartState::Ready);
        prop_assert!(ready, "{:?}", world.states());
    }
}
