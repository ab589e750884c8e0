//! The test kit itself: what a crash takes away, what an assertion says, what becomes of a request whose answer is lost.
//!
//! Answers "can a test believe its world?".

use std::cell::Cell;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use actix_informer::leader_election::{LeaderElection, LeaseName};
use actix_informer::prelude::*;
use actix_informer::testing::{Host, Incident, World};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
}

async fn create(host: &Host, name: &str) -> Result<(), Box<dyn Error>> {
    let made: ConfigMap = serde_json::from_value(map(name))?;
    host.client().api::<ConfigMap>().namespaced("default").create(&PostParams::default(), &made).await?;
    Ok(())
}

fn is_there(world: &World, name: &str) -> bool {
    world.server().get("configmaps", "default", name).is_ok()
}

#[test]
fn a_crash_ends_every_task_where_it_waits_and_what_was_sent_takes_effect() {
    let ticks = Rc::new(Cell::new(0));
    World::simulated(1).latency(10 * SECOND).run(|world| async move {
        let counted = Rc::clone(&ticks);
        let process = world.start("a", move |host| {
            let ticks = Rc::clone(&counted);
            async move {
                actix_rt::spawn(async move {
                    loop {
                        tokio::time::sleep(SECOND).await;
                        ticks.set(ticks.get() + 1);
                    }
                });
                create(&host, "sent").await?;
                create(&host, "never-sent").await
            }
        });
        tokio::time::sleep(SECOND / 2).await;
        process.crash();
        tokio::time::sleep(60 * SECOND).await;
        assert_eq!((ticks.get(), process.is_running(), process.starts()), (0, false, 1));
        assert!(is_there(&world, "sent") && !is_there(&world, "never-sent"));
    });
}

#[test]
fn a_lost_request_has_no_effect_and_a_lost_answer_leaves_one() {
    for (incident, takes_effect) in [(Incident::RequestsLost(1), false), (Incident::AnswersLost(1), true)] {
        World::simulated(1).run(|world| async move {
            world.cause(incident).await;
            let process = world.start("a", |host| async move { create(&host, "a").await });
            tokio::time::sleep(SECOND).await;
            assert!(process.last_end().is_some_and(|end| end.starts_with("failed")), "{process}");
            assert_eq!(is_there(&world, "a"), takes_effect);
        });
    }
}

/// What an assertion says that fails in this scenario.
fn failure<F: Future<Output = ()>>(seed: u64, scenario: impl FnOnce(World) -> F) -> String {
    let failed = catch_unwind(AssertUnwindSafe(|| World::simulated(seed).run(scenario)));
    let panic = failed.expect_err("the assertion is false");
    panic.downcast_ref::<String>().expect("a text").clone()
}

/// Each part is in the text, in this order.
#[track_caller]
fn says(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some(at) = rest.find(part) else { panic!("{part:?} is not in the rest of {text}") };
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn never_sees_a_state_that_lasts_for_one_request_and_says_which_one_made_it() {
    let text = failure(3, |world| async move {
        world.start("a", |host| async move {
            create(&host, "brief").await?;
            let maps = host.client().api::<ConfigMap>().namespaced("default");
            maps.delete("brief", &DeleteParams::default()).await?;
            Ok(())
        });
        let is_brief = || if is_there(&world, "brief") { Ok(()) } else { Err("no map") };
        world.never(60 * SECOND, is_brief).await;
    });
    let said = [
        "what must not be is there, 59.9",
        "before the end of 60s; before: no map",
        "asserted at tests/simulation/worlds.rs:",
        "at 00:00:00.0",
        "of seed 3; again: INFORMER_SIM_SEED=3 cargo test",
        "process a runs",
        "default/brief@",
        "a #0 POST /api/v1/namespaces/default/configmaps",
        "-> 201",
    ];
    says(&text, &said);
    assert!(!text.contains("DELETE"), "{text}");
}

#[test]
fn eventually_says_the_newest_state_at_its_limit_and_the_command_that_repeats_the_seed() {
    let text = failure(5, |world| async move {
        let start = world.runtime().now();
        let waited = || Err::<(), _>(format!("looked after {:?}", world.runtime().now() - start));
        world.eventually(60 * SECOND, waited).await;
    });
    let command = " --test simulation worlds::eventually_says_the_newest_state_at_its_limit";
    let said = [
        "not within 60s: looked after 60s",
        "asserted at tests/simulation/worlds.rs:",
        "at 00:01:00.000 of seed 5; again: INFORMER_SIM_SEED=5 cargo test",
        command,
    ];
    says(&text, &said);
}

#[test]
fn eventually_returns_at_the_first_look_at_which_the_condition_holds() {
    World::simulated(5).run(|world| async move {
        world.eventually(60 * SECOND, || true).await;
        assert_eq!(world.runtime().now(), Duration::ZERO);
        world.start("a", |host| async move { create(&host, "late").await });
        world.eventually(60 * SECOND, || is_there(&world, "late")).await;
        assert!(world.runtime().now() < SECOND, "it does not wait for its limit");
    });
}

#[test]
fn a_world_that_is_written_to_each_second_does_not_settle_and_one_that_is_left_alone_does() {
    let text = failure(6, |world| async move {
        let writer = world.start("a", |host| async move {
            for count in 0.. {
                create(&host, &format!("map-{count}")).await?;
                tokio::time::sleep(SECOND).await;
            }
            Ok(())
        });
        tokio::time::sleep(60 * SECOND).await;
        writer.freeze();
        world.settles(10 * SECOND, 60 * SECOND).await;
        writer.thaw();
        world.settles(10 * SECOND, 60 * SECOND).await;
    });
    says(&text, &["not quiet for 10s within 60s: 0 keys to do", "of seed 6", "POST"]);
}

#[test]
fn a_world_whose_leader_renews_its_lease_settles_and_one_with_a_busy_key_does_not() {
    let text = failure(8, |world| async move {
        let elected = world.start("a", |host| async move {
            let election = LeaderElection::builder(
                host.client(),
                host.runtime(),
                LeaseName { namespace: "default", name: "a" },
            )
            .start()?;
            host.stopping().await;
            election.shutdown(SECOND).await?;
            Ok(())
        });
        world.eventually(60 * SECOND, || world.server().list("leases.coordination.k8s.io").map(drop)).await;
        world.settles(30 * SECOND, 60 * SECOND).await;
        assert!(elected.stop(10 * SECOND).await, "{elected}");
        world.start("b", |host| async move {
            let maps = host.client().resource::<ConfigMap>().informer(host.runtime())?.start()?;
            let stuck =
                async |_: Request<ConfigMap>| std::future::pending::<Result<Outcome, ReconcileError>>().await;
            let _busy = Controller::builder(&maps).reconcile(stuck).start()?;
            host.stopping().await;
            Ok(())
        });
        world.server().create(map("busy")).expect("it is new");
        world.settles(30 * SECOND, 60 * SECOND).await;
    });
    says(
        &text,
        &[
            "not quiet for 30s within 60s: 1 keys to do, 0 that have failed, 0 writes under way, no object",
            "of seed 8",
        ],
    );
}

/// A program whose reconciles end like this.
async fn reconciling(host: Host, end: fn() -> Result<Outcome, ReconcileError>) -> Result<(), Box<dyn Error>> {
    let maps = host.client().resource::<ConfigMap>().informer(host.runtime())?.start()?;
    let _controller = Controller::builder(&maps).reconcile(move |_| async move { end() }).start()?;
    host.stopping().await;
    Ok(())
}

#[test]
fn a_world_with_a_key_that_was_asked_for_later_settles_and_one_with_a_key_that_has_failed_does_not() {
    let text = failure(9, |world| async move {
        world.server().create(map("one")).expect("it is new");
        let later = || Ok(Outcome::RequeueAfter(20 * SECOND));
        let content = world.start("content", move |host| reconciling(host, later));
        world.start("resting", |host| {
            reconciling(host, || Err(ReconcileError::until_changed("not this one")))
        });
        world.settles(15 * SECOND, 60 * SECOND).await;
        content.crash();
        world.start("failing", |host| reconciling(host, || Err("not yet".into())));
        // Its delays are doubled: 5 ms at first, and longer than a minute after a few of them.
        tokio::time::sleep(160 * SECOND).await;
        world.settles(15 * SECOND, 60 * SECOND).await;
    });
    says(&text, &["not quiet for 15s within 60s: 0 keys to do, 1 that have failed, 0 writes", "of seed 9"]);
}

#[test]
fn a_world_settles_when_its_caches_follow_what_is_stored_and_its_processes_run_and_not_before() {
    let seen = Rc::new(Cell::new(0));
    let text = failure(10, |world| async move {
        let shown = Rc::clone(&seen);
        let follower = world.start("follower", move |host| {
            let seen = Rc::clone(&shown);
            async move {
                let maps = host.client().resource::<ConfigMap>().informer(host.runtime())?.start()?;
                loop {
                    seen.set(maps.lister().len());
                    tokio::time::sleep(SECOND / 10).await;
                }
            }
        });
        world.settles(10 * SECOND, 60 * SECOND).await;
        let before = seen.get();
        // The server is up again long before the follower asks it again.
        world.cause(Incident::ServerDown(20 * SECOND)).await;
        world.server().create(map("made-while-nobody-watches")).expect("it is new");
        let quiet = world.runtime().now();
        world.settles(SECOND / 2, 60 * SECOND).await;
        assert_eq!(seen.get(), before + 1);
        assert!(
            world.runtime().now() > quiet + SECOND,
            "the wait of the follower was too short for this test"
        );
        follower.crash();
        // What is refused is not waited for: that may last.
        world.server().faults().deny("list", "configmaps");
        world.server().faults().deny("watch", "configmaps");
        world.start("refused", |host| async move {
            let maps = host.client().resource::<ConfigMap>().informer(host.runtime())?.start()?;
            host.stopping().await;
            drop(maps);
            Ok(())
        });
        world.settles(20 * SECOND, 60 * SECOND).await;
        assert!(world.trace().iter().any(|line| line.ends_with("-> 403")), "nothing was refused");
        world.start("starts-never", |_| async { Err("there is no configuration".into()) });
        world.settles(5 * SECOND, 60 * SECOND).await;
    });
    says(
        &text,
        &[
            "not quiet for 5s within 60s: 0 keys to do, 0 that have failed",
            "starts-never is about to start",
            "of seed 10",
        ],
    );
}

#[test]
fn an_incident_does_not_start_or_thaw_a_process_that_the_test_has_ended_or_frozen() {
    World::simulated(1).run(|world| async move {
        let forever = |_: Host| std::future::pending::<Result<(), Box<dyn Error>>>();
        let names = ["lost", "frozen", "lost-meanwhile", "restarted"];
        let [lost, frozen, meanwhile, restarted] = names.map(|name| world.start(name, forever));
        tokio::time::sleep(SECOND).await;
        lost.crash();
        frozen.freeze();
        let later = async {
            tokio::time::sleep(SECOND).await;
            meanwhile.crash();
        };
        let crash = |process| world.cause(Incident::Crash(process, 5 * SECOND));
        futures_util::join!(
            crash(0),
            world.cause(Incident::Freeze(1, 5 * SECOND)),
            crash(2),
            crash(3),
            later
        );
        tokio::time::sleep(60 * SECOND).await;
        assert_eq!(
            [&lost, &meanwhile].map(|process| (process.is_running(), process.starts())),
            [(false, 1); 2]
        );
        assert!(frozen.to_string().contains("is frozen"), "{frozen}");
        assert_eq!((restarted.is_running(), restarted.starts()), (true, 2));
    });
}
