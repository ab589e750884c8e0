//! Operators in simulated worlds: their server, their crashes and their bad days, from one seed each.
//!
//! Answers "does an operator converge whatever happens, and is each run of a seed the same?". Each seed makes a plan
//! (`plan.rs`) and runs the operator of `operator.rs` with it. What must hold:
//! 1. Everything is as it should be within a bound after the last trouble (`judge.rs`): nothing is missing, nothing is left.
//! 2. No key is worked on twice at once, no work begins in a term that is over (`outside.rs`), and no request does
//!    (`audit.rs`): the leader is frozen or killed in the middle of its work.
//! 3. A reconcile is shown what the one before it has written, or the key has waited for that (`OwnWrites`), and no
//!    longer than its bound, also where watches bring nothing.
//! 4. When nothing is wrong, a change is carried out at once, and what somebody else did to a child is put right, also by an
//!    operator that ignores events of its own writes (`trouble.rs`).
//!
//! A failing seed names the command that repeats it.

mod audit;
mod judge;
mod operator;
mod outside;
mod own_writes;
mod plan;
mod site;
mod trouble;

use std::cell::RefCell;
use std::pin::pin;
use std::time::Duration;

use actix_informer::testing::{Process, World, each_seed};
use futures_util::future::{Either, select};

use self::audit::Audit;
use self::judge::Truth;
use self::plan::Plan;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// How long a change takes at most when nothing is wrong: an event is up to 400 ms on its way, and of each of a few requests
/// 20 ms; twice, as the site may be worked on for another reason just then.
const PROMPTLY: Duration = Duration::from_secs(3);

/// Runs one seed to its end; gives what is asked of its world then.
fn run<T>(seed: u64, draw: fn(u64) -> Plan, told: impl FnOnce(&World) -> T) -> T {
    World::simulated(seed).run(|world| async move {
        let plan = draw(seed);
        site::define(&world);
        let truth = Truth::new(&world, plan.clone());
        for replica in 0..plan.replicas {
            world.start(&format!("operator-{replica}"), operator::program(plan.clone(), truth.outside()));
        }
        let story = story(&world, &plan, &truth);
        match plan.takeover {
            Some(_) => audited(&world, &truth, story).await,
            None => story.await,
        }
        truth.check_lives();
        told(&world)
    })
}

/// What happens in a world, until all processes have ended.
async fn story(world: &World, plan: &Plan, truth: &Truth) {
    let troubled = world.disturb(plan.incidents, plan.lasts);
    futures_util::join!(truth.act(), troubled, truth.take_over(), truth.silence());
    // Whoever was killed last is up again.
    tokio::time::sleep(SECOND).await;
    world.eventually(plan.bound(), || truth.is_converged()).await;
    match plan.takeover {
        Some(_) => one_rests(world, plan, truth).await,
        None => world.settles(MINUTE, plan.bound() + MINUTE).await,
    }
    truth.change_one(PROMPTLY).await;
    truth.spoil_what_is_written().await;
    for process in world.processes() {
        end(&process).await;
    }
}

/// Ends the replicas that do not lead, whose keys wait for ever, and waits until the leader writes nothing but its lease.
async fn one_rests(world: &World, plan: &Plan, truth: &Truth) {
    let leader = truth.leader();
    for (number, process) in world.processes().iter().enumerate() {
        if leader != Some(number) {
            end(process).await;
        }
    }
    let limit = world.runtime().now() + plan.bound() + MINUTE;
    let mut before = String::new();
    while std::mem::replace(&mut before, truth.versions()) != truth.versions() {
        assert!(world.runtime().now() < limit, "objects are still written");
        tokio::time::sleep(MINUTE).await;
    }
}

async fn end(process: &Process) {
    assert!(process.stop(2 * MINUTE).await, "{process} did not stop");
    assert_eq!(process.last_end().as_deref(), Some("returned"), "{process}");
}

/// Looks who has the lease while this goes on.
async fn audited(world: &World, truth: &Truth, story: impl Future<Output = ()>) {
    let audit = RefCell::new(Audit::default());
    let looking = world.never(DAY, || {
        audit.borrow_mut().look(world);
        false
    });
    if let Either::Left(_) = select(pin!(looking), pin!(story)).await {
        panic!("a day was not enough");
    }
    let audit = audit.borrow();
    let late = audit.late(world, &truth.outside());
    assert!(late.is_empty(), "{late:#?}");
}

#[test]
fn one_seed_gives_one_log_of_requests_and_events() {
    let log = |seed| run(seed, Plan::draw, |world| (world.fingerprint(), world.trace()));
    for seed in 0..5 {
        let (first, second) = (log(seed), log(seed));
        for (line, other) in first.1.iter().zip(&second.1) {
            assert_eq!(line, other, "seed {seed}");
        }
        assert_eq!((first.0, first.1.len()), (second.0, second.1.len()), "seed {seed}");
    }
    assert_ne!(log(1).0, log(2).0);
}

#[test]
fn every_random_operator_converges_and_no_key_is_lost_or_worked_on_twice_at_once() {
    each_seed(0..100, |seed| run(seed, Plan::draw, |_| ()));
}

/// `INFORMER_SIM_SEEDS=1000` runs more of them.
#[test]
fn twenty_sites_and_ten_things_that_go_wrong_converge() {
    each_seed(0..10, |seed| run(seed, Plan::large, |_| ()));
}
