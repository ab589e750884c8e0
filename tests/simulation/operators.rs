//! Operators in simulated worlds: their server, their crashes and their bad days, from one seed each.
//!
//! Answers "does an operator converge whatever happens, and is each run of a seed the same?". Each seed makes a plan
//! (`plan.rs`), runs the operator of `operator.rs` with it, and judges what is stored in the end (`judge.rs`). A failing
//! seed names the command that repeats it.

mod judge;
mod operator;
mod plan;
mod site;

use std::time::Duration;

use actix_informer::testing::{World, each_seed};

use self::judge::Truth;
use self::plan::Plan;

const MINUTE: Duration = Duration::from_secs(60);

/// Runs one seed to its end; what has happened, as a number and as lines.
fn run(seed: u64, draw: fn(u64) -> Plan) -> (u64, Vec<String>) {
    World::simulated(seed).run(|world| async move {
        let plan = draw(seed);
        site::define(&world);
        let truth = Truth::new(&world, plan.clone());
        let processes: Vec<_> = (0..plan.replicas)
            .map(|replica| {
                world.start(&format!("operator-{replica}"), operator::program(plan.clone(), truth.outside()))
            })
            .collect();
        let troubled = world.disturb(plan.incidents, plan.lasts);
        futures_util::join!(truth.act(), troubled);
        world.eventually(30 * MINUTE, || truth.is_converged()).await;
        world.settles(MINUTE, 60 * MINUTE).await;
        truth.check_flights();
        for process in processes {
            assert!(process.stop(MINUTE).await, "{process} did not stop");
        }
        (world.fingerprint(), world.trace())
    })
}

#[test]
fn one_seed_gives_one_log_of_requests_and_events() {
    for seed in 0..5 {
        let (first, second) = (run(seed, Plan::draw), run(seed, Plan::draw));
        for (line, other) in first.1.iter().zip(&second.1) {
            assert_eq!(line, other, "seed {seed}");
        }
        assert_eq!((first.0, first.1.len()), (second.0, second.1.len()), "seed {seed}");
    }
    assert_ne!(run(1, Plan::draw).0, run(2, Plan::draw).0);
}

#[test]
fn every_random_operator_converges_and_no_key_is_lost_or_worked_on_twice_at_once() {
    each_seed(0..300, |seed| drop(run(seed, Plan::draw)));
}

/// `INFORMER_SIM_SEEDS=1000` runs more of them.
#[test]
fn twenty_sites_and_ten_things_that_go_wrong_converge() {
    each_seed(0..10, |seed| drop(run(seed, Plan::large)));
}
