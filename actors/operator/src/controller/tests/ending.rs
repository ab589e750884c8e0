//! How a controller ends.

use actix::{Actor, Context, Handler, ResponseFuture};
use futures_util::stream;
use tokio::time::sleep;

use super::*;
use crate::controller::{ControllerState, Reconcile};

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

// CTL-06: given reconciles under way and keys that wait, when it is drained, then both are finished and
// nothing new is taken; when it is shut down, or its last handle is dropped, what waits is discarded, what
// runs is told, and dropped after the grace; nothing of it is left.
// - a a drain finishes both: `ctl_06_a_drain_finishes_what_runs_and_what_waits_and_takes_nothing_new`
// - b a drain that takes too long says what is left: `ctl_06_a_drain_that_takes_too_long_says_what_is_left`
// - c a shutdown tells what runs and drops it after the grace:
//   `ctl_06_a_shutdown_tells_what_runs_discards_what_waits_and_drops_what_does_not_heed_it`
// - d so does the drop of the last handle, and nothing is left:
//   `ctl_06_the_last_handle_that_is_dropped_shuts_the_controller_down`
// - e so it is when it was never synced, or its runtime ends
// - f a drain ends streams of keys and the period:
//   `ctl_06_a_drain_ends_streams_and_the_period_too_and_then_nothing_of_the_controller_runs`
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

#[test]
fn ctl_06_a_drain_ends_streams_and_the_period_too_and_then_nothing_of_the_controller_runs() {
    run(|world| async move {
        let builder = world.builder().every(secs(1)).stream(stream::pending());
        let controller = world.logging(builder);
        sleep(secs(5)).await;
        assert_eq!(controller.drain(LONG).await, Ok(()));
        controller.ended().await;
        assert_eq!(controller.status().state, ControllerState::Ended);
    });
}

#[test]
fn ctl_22_the_end_of_a_controller_is_told_when_its_last_reconcile_has_ended_also_without_a_handle() {
    run(|world| async move {
        world.apply("a/one", "1");
        let controller = slow(&world, false);
        assert_eq!(world.lines().await, ["a/one begins"]);
        let (end, dropped_at) = (controller.end(), world.runtime.now());
        drop(controller);
        sleep(secs(1)).await;
        assert_eq!((end.has_ended(), world.log.under_way()), (false, 1));
        end.ended().await;
        assert_eq!((world.runtime.now() - dropped_at, world.log.under_way()), (secs(2), 0));
        assert_eq!((end.has_ended(), end.name()), (true, "texts"));
    });
}

// CTL-22: given a controller that is drained, shut down or dropped, when a reconcile of it still works, in a
// function or in an actor, also one whose worker is gone or that keeps its request, then its end is not told
// before that reconcile has ended; one that is stuck is waited for.
// - a when the last handle is dropped:
//   `ctl_22_the_end_of_a_controller_is_told_when_its_last_reconcile_has_ended_also_without_a_handle`
// - b in an actor, and one that is stuck
// - c when its worker is gone:
//   `ctl_22_what_an_actor_reconciles_is_waited_for_when_the_runtime_of_the_worker_has_ended`
// - d a request that is kept: `ctl_22_a_request_that_is_kept_has_not_ended`
#[test]
fn ctl_22_a_reconcile_of_an_actor_is_waited_for_beyond_the_grace_and_a_stuck_one_without_end() {
    run(|world| async move {
        world.apply("a/one", "1");
        let builder = || world.builder().stop_grace(secs(1));
        let slow =
            builder().reconcile_by(Takes(world.log.clone(), secs(60)).start()).start().expect("it starts");
        assert_eq!(world.lines().await, ["a/one=1"]);
        let left = slow.drain(secs(1)).await.expect_err("it takes longer");
        assert_eq!(left.processing, 1);
        let end = slow.end();
        drop(slow);
        sleep(secs(50)).await;
        assert_eq!((end.has_ended(), world.log.under_way()), (false, 1));
        sleep(secs(20)).await;
        assert_eq!((end.has_ended(), world.log.under_way()), (true, 0));
        assert_eq!(world.lines().await, ["a/one=1 late"]);

        let stuck = Takes(world.log.clone(), Duration::MAX).start();
        let stuck = builder().reconcile_by(stuck).start().expect("it starts");
        assert_eq!(world.lines().await, ["a/one=1"]);
        stuck.shut_down();
        sleep(LONG).await;
        assert!(!stuck.end().has_ended());
        assert_eq!(stuck.status().state, ControllerState::Stopping);
    });
}

#[test]
fn ctl_22_a_request_that_is_kept_has_not_ended() {
    run(|world| async move {
        world.apply("a/one", "1");
        let kept = cell(None);
        let keeps = Arc::clone(&kept);
        let keep = move |request: Request<String>| {
            *locked(&keeps) = Some(request);
            async { DONE }
        };
        let controller = world.builder().reconcile(keep).start().expect("it starts");
        world.lines().await;
        assert_eq!(controller.drain(LONG).await, Ok(()));
        sleep(secs(1)).await;
        assert!(!controller.end().has_ended());
        *locked(&kept) = None;
        assert!(controller.end().has_ended());
    });
}

#[test]
fn ctl_22_what_an_actor_reconciles_is_waited_for_when_the_runtime_of_the_worker_has_ended() {
    /// Begins, and ends when it is told.
    struct Told(Option<Ends>, Option<Begun>);
    type Ends = tokio::sync::oneshot::Receiver<()>;
    type Begun = tokio::sync::oneshot::Sender<()>;
    impl Actor for Told {
        type Context = Context<Self>;
    }
    impl Handler<Reconcile<String>> for Told {
        type Result = ResponseFuture<Answer>;

        fn handle(&mut self, _: Reconcile<String>, _: &mut Context<Self>) -> Self::Result {
            let (ends, begun) = (self.0.take().expect("once"), self.1.take().expect("once"));
            begun.send(()).expect("it is waited for");
            Box::pin(async move {
                ends.await.expect("it is told");
                DONE
            })
        }
    }
    let runtime = Runtime::threads().start().expect("it starts");
    let server = Server::<String>::new();
    server.apply("a/one", "1".to_owned());
    let informer =
        Informer::builder(&runtime, "texts").source(move || server.clone()).start().expect("sound");
    let (ends, is_told) = tokio::sync::oneshot::channel();
    let (begun, is_begun) = tokio::sync::oneshot::channel();
    let (address, is_started) = tokio::sync::oneshot::channel();
    runtime.spawn_local(move || async move {
        drop(address.send(Told(Some(is_told), Some(begun)).start()));
    });
    let foreign = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it starts");
    let controller = foreign.block_on(async {
        let actor = is_started.await.expect("it starts");
        let controller = Controller::builder(&informer).reconcile_by(actor).start().expect("it starts");
        is_begun.await.expect("it begins");
        controller
    });
    drop(foreign);
    assert_eq!(controller.status().state, ControllerState::NoWorkers);
    let end = controller.end();
    drop(controller);
    assert!(!end.has_ended(), "the actor works");
    ends.send(()).expect("it is waited for");
    let other = tokio::runtime::Builder::new_current_thread().build().expect("it starts");
    other.block_on(end.ended());
}
