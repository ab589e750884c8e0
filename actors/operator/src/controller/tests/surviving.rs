//! Deaths of actors: no key is lost, and none is reconciled twice at once. And what an idle controller costs.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use tokio::time::sleep;

use super::*;
use informer_actors::inner::Site;

/// Reconciles changes while an actor is killed at its nth visit of this site. Gives how often it came there.
fn run_killed_at(site: Site, nth: u32) -> u32 {
    let visits = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&visits);
    let faults = Faults::new(move |here| {
        assert!(here != site || counted.fetch_add(1, Relaxed) + 1 != nth, "killed on purpose");
    });
    run_with(faults, |world| async move {
        let log = world.log.clone();
        let slow = move |request: Request<String>| {
            let under_way = log.enter(request.key());
            log.line(shown(&request));
            async move {
                sleep(Duration::from_millis(3)).await;
                drop(under_way);
                DONE
            }
        };
        let builder = world.builder().workers(2).maps(&world.children, text_of);
        let controller = builder.reconcile(slow).start().expect("it starts");
        for n in 0..6 {
            world.apply("a/one", &n.to_string());
            world.apply(&format!("a/t{n}"), "new");
            world.numbers.apply("a/one-x", n);
            sleep(Duration::from_millis(2)).await;
        }
        sleep(secs(60)).await;
        let lines = world.lines().await;
        let newest = lines.iter().rfind(|line| line.starts_with("a/one")).map(String::as_str);
        assert_eq!(newest, Some("a/one=5"), "killed at visit {nth} of {site:?}");
        for n in 0..6 {
            assert!(lines.contains(&format!("a/t{n}=new")), "killed at visit {nth} of {site:?}: {lines:?}");
        }
        world.apply("a/one", "last");
        sleep(secs(5)).await;
        assert_eq!(world.lines().await, ["a/one=last"], "killed at visit {nth} of {site:?}");
        assert_eq!(controller.drain(LONG).await, Ok(()));
    });
    visits.load(Relaxed)
}

// CTL-14: given an actor of the queue, or of an informer, that is killed at each of its messages, when it is
// restarted, then no key is lost, and none is reconciled twice at once.
#[test]
fn ctl_14_when_an_actor_of_the_queue_or_of_an_informer_is_killed_no_key_is_lost_or_reconciled_twice_at_once()
{
    let sites = [
        Site::WorkQueueStarted,
        Site::WorkQueueLook,
        Site::WorkQueueTaken,
        Site::IndexerPublished,
        Site::ProcessorChanges,
        Site::ReflectorReceived,
    ];
    for site in sites {
        let visits = run_killed_at(site, 0);
        assert!(visits > 0, "{site:?} is visited");
        for nth in 1..=visits.min(12) {
            run_killed_at(site, nth);
        }
    }
}

/// Kills as many Listeners as `armed` says, when they have changes, or when they start again.
fn killing_listeners(armed: &Arc<AtomicU32>) -> Faults {
    let left = Arc::clone(armed);
    Faults::new(move |here| {
        let is_there = matches!(here, Site::ListenerChanges | Site::ListenerStarted);
        let dies = is_there && left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        assert!(!dies, "killed on purpose");
    })
}

#[test]
fn ctl_23_a_listener_that_dies_is_started_again_and_no_key_is_lost_also_of_what_was_deleted_meanwhile() {
    for times in 1..=3 {
        let armed = Arc::new(AtomicU32::new(0));
        run_with(killing_listeners(&armed), |world| async move {
            for name in ["a/kept", "a/changed", "a/gone"] {
                world.apply(name, "1");
            }
            let controller = world.logging(world.builder());
            assert_eq!(world.lines().await.len(), 3);
            armed.store(times, Relaxed);
            world.apply("a/changed", "2");
            world.texts.delete("a/gone");
            world.apply("a/new", "1");
            sleep(secs(120)).await;
            let mut lines = world.lines().await;
            lines.sort();
            assert_eq!(lines, ["a/changed=2", "a/gone gone, was 1", "a/new=1"], "killed {times} times");
            let status = controller.status();
            assert_eq!(status.counts.listeners_restarted, u64::from(times));
            assert_eq!(status.not_followed, [""; 0]);
            world.apply("a/kept", "2");
            assert_eq!(world.lines().await, ["a/kept=2"]);
        });
    }
}

#[test]
fn ctl_23_an_object_that_was_taken_by_a_listener_that_died_over_it_and_is_gone_before_the_next_one_is_told() {
    let armed = Arc::new(AtomicU32::new(0));
    let left = Arc::clone(&armed);
    let faults = Faults::new(move |here| {
        let is_there = here == Site::ListenerHandled;
        let dies = is_there && left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        assert!(!dies, "killed on purpose");
    });
    run_with(faults, |world| async move {
        world.apply("a/kept", "1");
        let controller = world.logging(world.builder());
        assert_eq!(world.lines().await.len(), 1);
        armed.store(1, Relaxed);
        world.apply("a/brief", "1");
        assert_eq!(world.lines().await, ["a/brief=1"], "it was taken");
        assert_eq!(controller.status().not_followed, [""; 0], "it starts again");
        world.texts.delete("a/brief");
        sleep(secs(120)).await;
        assert_eq!(world.lines().await, ["a/brief gone, was 1"]);
        assert_eq!(controller.status().counts.listeners_restarted, 1);
    });
}

#[test]
fn ctl_23_a_listener_that_dies_again_and_again_is_given_up_which_the_status_shows() {
    let armed = Arc::new(AtomicU32::new(0));
    run_with(killing_listeners(&armed), |world| async move {
        world.apply("a/one", "1");
        armed.store(u32::MAX, Relaxed);
        let controller = world.logging(world.builder());
        sleep(secs(600)).await;
        let status = controller.status();
        assert_eq!(status.counts.listeners_restarted, 5);
        assert!(status.not_followed[0].contains("killed on purpose"), "{status}");
        assert_eq!(world.lines().await, [""; 0]);
        drop(controller);
        assert_eq!(world.informer.subscriptions().len(), 0);
    });
}

/// How many turns actors have in a minute in which nothing happens, beside so many controllers; and how many tasks end.
fn turns_of_an_idle_minute(controllers: usize) -> (u64, usize) {
    let turns = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&turns);
    let faults = Faults::new(move |site| {
        counted.fetch_add(u64::from(site == Site::TurnBegun), Relaxed);
    });
    let idle = cell((0, 0));
    let measured = Arc::clone(&idle);
    run_with(faults, |world| async move {
        world.apply("a/one", "1");
        let controllers: Vec<_> = (0..controllers)
            .map(|n| {
                let builder = world.builder().name(format!("c{n}")).workers(4).time_limit(secs(30));
                world.logging(builder.maps(&world.children, text_of))
            })
            .collect();
        assert_eq!(world.lines().await.len(), controllers.len());
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let (before, alive) = (turns.load(Relaxed), tasks());
        sleep(secs(60)).await;
        *locked(&measured) = (turns.load(Relaxed) - before, alive - tasks());
        drop(controllers);
    });
    std::mem::take(&mut *locked(&idle))
}

// CTL-16: given 100 controllers on one runtime, when nothing happens for a minute, then they have no turn of
// an actor.
#[test]
fn ctl_16_a_hundred_controllers_on_one_runtime_are_idle_without_a_wake_up() {
    assert_eq!(turns_of_an_idle_minute(100), turns_of_an_idle_minute(0), "what informers have without them");
}
