//! How a controller ends.

use tokio::time::sleep;

use super::*;
use crate::controller::ControllerState;

/// A controller whose reconciles take five seconds, or end with `stopping`.
fn slow(world: &World, heeds: bool) -> Controller<String> {
    let log = world.log.clone();
    let slow = move |request: Request<String>| {
        let (under_way, log) = (log.enter(request.key()), log.clone());
        log.line(format!("{} begins", request.key()));
        async move {
            let work = sleep(secs(5));
            if heeds {
                tokio::select! { () = work => {}, () = request.stopping() => log.line("is told") }
            } else {
                work.await;
            }
            drop(under_way);
            log.line(format!("{} ends", request.key()));
            DONE
        }
    };
    world.builder().stop_grace(secs(2)).reconcile(slow).start().expect("it starts")
}

#[test]
fn ctl_06_a_drain_finishes_what_runs_and_what_waits_and_takes_nothing_new() {
    run(|world| async move {
        world.apply("a/one", "1");
        world.apply("a/two", "1");
        let controller = slow(&world, false);
        assert_eq!(world.lines().await, ["a/one begins"]);
        let late = async {
            sleep(secs(1)).await;
            assert_eq!(controller.status().state, ControllerState::Draining);
            world.apply("a/three", "1");
        };
        let (drained, ()) = tokio::join!(controller.drain(LONG), late);
        assert_eq!(drained, Ok(()));
        assert_eq!(world.lines().await, ["a/one ends", "a/two begins", "a/two ends"]);
        controller.ended().await;
        assert_eq!(controller.status().state, ControllerState::Ended);
    });
}

#[test]
fn ctl_06_a_drain_that_takes_too_long_says_what_is_left() {
    run(|world| async move {
        world.apply("a/one", "1");
        world.apply("a/two", "1");
        let controller = slow(&world, false);
        world.lines().await;
        let left = controller.drain(secs(1)).await.expect_err("it takes longer");
        assert_eq!((left.waiting, left.processing), (1, 1));
    });
}

#[test]
fn ctl_06_a_shutdown_tells_what_runs_discards_what_waits_and_drops_what_does_not_heed_it() {
    run(|world| async move {
        for heeds in [true, false] {
            world.apply("a/one", "1");
            world.apply("a/two", "1");
            let controller = slow(&world, heeds);
            assert_eq!(world.lines().await, ["a/one begins"]);
            let before = world.runtime.now();
            controller.shut_down();
            controller.ended().await;
            let took = world.runtime.now() - before;
            if heeds {
                assert_eq!(
                    (world.lines().await, took),
                    (vec!["is told".into(), "a/one ends".into()], secs(0))
                );
            } else {
                assert_eq!((world.lines().await, took), (vec![], secs(2)));
                assert_eq!(controller.status().counts.cancelled, 1);
            }
            assert_eq!((world.log.under_way(), controller.status().workers), (0, 0));
        }
    });
}

#[test]
fn ctl_06_the_last_handle_that_is_dropped_shuts_the_controller_down() {
    run(|world| async move {
        world.apply("a/one", "1");
        let controller = slow(&world, true);
        world.lines().await;
        let (other, shared) = (controller.clone(), Arc::downgrade(&controller.0.shared));
        drop(controller);
        assert_eq!(world.lines().await, [""; 0]);
        drop(other);
        assert_eq!(world.lines().await, ["is told", "a/one ends"]);
        assert_eq!(shared.strong_count(), 0, "nothing of it is left");
        assert_eq!(world.informer.subscriptions().len(), 0);
    });
}

#[test]
fn ctl_06_a_controller_that_was_never_synced_is_drained_at_once() {
    run(|world| async move {
        world.apply("a/one", "1");
        world.numbers.hold_lists(true);
        let controller = world.logging(world.builder().maps(&world.children, text_of));
        sleep(secs(1)).await;
        assert_eq!(controller.drain(LONG).await, Ok(()));
        controller.ended().await;
        assert_eq!(world.lines().await, [""; 0]);
    });
}

#[test]
fn ctl_06_the_end_of_the_runtime_ends_the_controller() {
    run(|world| async move {
        world.apply("a/one", "1");
        let controller = slow(&world, false);
        world.lines().await;
        world.runtime.clone().shutdown(LONG).await.expect("it ends");
        controller.ended().await;
        assert_eq!((controller.status().workers, world.log.under_way()), (0, 0));
        assert_eq!(controller.status().state, ControllerState::Ended);
    });
}
