//! The whole operator in many worlds: two replicas, twenty websites, ten things that go wrong, all drawn from a seed.
//!
//! Answers "does it converge whatever happens?" `INFORMER_SIM_SEEDS=1000 cargo test --all-features --example website_operator`
//! runs more seeds; one that fails names the command that runs it alone. For each seed:
//! 1. In the end each website is as its author wants it; no orphan, no claim and no finalizer is left.
//! 2. No part was made twice, unless somebody had deleted it; no replica worked on a website twice at once.
//! 3. Both replicas end in order when they are asked to, and the lease is free then.

use std::time::Duration;

use actix_informer::testing::{World, each_seed};

use super::flights::Flights;
use super::judge::{check_made_once, is_converged};
use super::stage::{LEASES, begin, replica};
use super::users::Users;

const SECOND: Duration = Duration::from_secs(1);
/// How long users act and things go wrong.
const TROUBLED: Duration = Duration::from_secs(40);
const INCIDENTS: usize = 10;

/// Runs one seed; a number that is the same in each run of it.
fn run(seed: u64) -> u64 {
    let flights = Flights::begin();
    let _audited = tracing::subscriber::set_default(flights.clone());
    World::simulated(seed).run(|world| async move {
        begin(&world);
        let users = Users::new(&world);
        let replicas = [world.start("operator-0", replica), world.start("operator-1", replica)];
        futures_util::join!(users.act(TROUBLED), world.disturb(INCIDENTS, TROUBLED));
        // In some worlds one of the two is lost for good, and users go on.
        let dropped = users.below(4);
        if let Some(lost) = replicas.get(dropped) {
            lost.crash();
            users.act(5 * SECOND).await;
        }
        world.eventually(1_200 * SECOND, || is_converged(&world)).await;
        world.settles(20 * SECOND, 300 * SECOND).await;
        is_converged(&world).expect("what has settled stays");
        check_made_once(&world, &users);
        for replica in &replicas {
            assert!(replica.stop(30 * SECOND).await, "{replica} did not stop in time");
            let end = replica.last_end();
            assert!(matches!(end.as_deref(), Some("returned" | "was killed")), "{replica}");
        }
        assert!(flights.check() > 0, "nothing was reconciled");
        let lease = world.server().get(LEASES, "website-operator", "website-operator").expect("a lease");
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        assert!(holder.is_empty(), "the lease is still {holder}'s");
        world.fingerprint()
    })
}

#[test]
fn twenty_websites_two_replicas_and_ten_things_that_go_wrong_converge_in_every_seed() {
    each_seed(0..30, |seed| assert_ne!(run(seed), 0));
}

#[test]
fn a_seed_of_the_website_operator_is_the_same_run_twice() {
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
