//! The test kit itself: what a crash takes away, what an assertion says, what becomes of a request whose answer is lost.
//!
//! Answers "can a test believe its world?".

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use actix_informer::prelude::*;
use actix_informer::testing::{Host, Incident, World};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
}

async fn create(host: &Host, name: &str) -> Result<(), Box<dyn std::error::Error>> {
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

#[test]
fn never_sees_a_state_that_lasts_for_one_request() {
    let seen = catch_unwind(AssertUnwindSafe(|| {
        World::simulated(3).run(|world| async move {
            world.start("a", |host| async move {
                create(&host, "brief").await?;
                let maps = host.client().api::<ConfigMap>().namespaced("default");
                maps.delete("brief", &DeleteParams::default()).await?;
                Ok(())
            });
            world.never(60 * SECOND, || is_there(&world, "brief")).await;
        });
    }));
    let panic = seen.expect_err("it was there");
    let text = panic.downcast_ref::<String>().expect("a text");
    assert!(text.contains("what must not be is there") && text.contains("of seed 3"), "{text}");
}

#[test]
fn eventually_says_the_newest_state_and_the_command_that_repeats_the_seed() {
    let failed = catch_unwind(AssertUnwindSafe(|| {
        World::simulated(5).run(|world| async move {
            let count = Cell::new(0);
            let counted = || {
                count.set(count.get() + 1);
                Err::<(), _>(format!("looked {} times", count.get()))
            };
            world.eventually(60 * SECOND, counted).await;
        });
    }));
    let panic = failed.expect_err("it never holds");
    let text = panic.downcast_ref::<String>().expect("a text");
    assert!(
        text.contains("not within 60s: looked ") && text.contains("INFORMER_SIM_SEED=5 cargo test"),
        "{text}"
    );
}

#[test]
fn a_world_that_is_written_to_each_second_does_not_settle_and_one_that_is_left_alone_does() {
    let failed = catch_unwind(AssertUnwindSafe(|| {
        World::simulated(6).run(|world| async move {
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
    }));
    let panic = failed.expect_err("it is written to");
    let text = panic.downcast_ref::<String>().expect("a text");
    assert!(text.contains("not quiet for 10s within 60s") && text.contains("of seed 6"), "{text}");
}
