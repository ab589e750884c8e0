//! Results of a reconcile, and what follows.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::time::sleep;

use super::*;
use crate::controller::ControllerState;
use crate::queue::ExponentialPerKey;

/// The time in whole milliseconds since the controller's first reconcile, with what it was shown.
fn timed(world: &World) -> impl Fn(&Request<String>) + use<> {
    let (log, runtime, first) = (world.log.clone(), world.runtime.clone(), AtomicU64::new(u64::MAX));
    move |request| {
        let now = u64::try_from(runtime.now().as_millis()).expect("a short test");
        let since = now - first.fetch_min(now, Relaxed).min(now);
        log.line(format!("{since} {} attempt {}", request.key(), request.attempt()));
    }
}

fn doubling() -> ExponentialPerKey<ObjectKey> {
    ExponentialPerKey::new(Duration::from_millis(10), secs(1))
}

// CTL-03: given a reconcile that fails, when it ends, then it is tried again after the delays of the rate
// limiter, told how often it failed; in order, its failures are forgotten; with a time, it is reconciled
// again after that or earlier when something happens.
// - a growing delays, the number of failures, forgotten when done
// - b again after a time, or earlier:
//   `ctl_03_a_key_that_is_to_run_again_runs_after_that_time_or_earlier_when_something_happens`
#[test]
fn ctl_03_a_failure_is_tried_again_after_growing_delays_until_it_is_done() {
    run(|world| async move {
        world.apply("a/one", "1");
        let note = timed(&world);
        let third_time_lucky = move |request: Request<String>| {
            note(&request);
            async move { if request.attempt() < 3 { Err("no luck")? } else { DONE } }
        };
        let builder = world.builder().rate_limiter(doubling());
        let controller = builder.reconcile(third_time_lucky).start().expect("it starts");
        sleep(secs(1)).await;
        let expected =
            ["0 a/one attempt 0", "10 a/one attempt 1", "30 a/one attempt 2", "70 a/one attempt 3"];
        assert_eq!(world.lines().await, expected);
        let status = controller.status();
        assert_eq!((status.counts.errors, status.counts.succeeded), (3, 1));
        assert_eq!(status.last_failure.map(|failure| failure.why.to_string()), Some("no luck".into()));
        controller.trigger(key("a/one"));
        assert!(world.lines().await[0].ends_with("attempt 0"), "failures are forgotten");
    });
}

#[test]
fn ctl_03_a_key_that_is_to_run_again_runs_after_that_time_or_earlier_when_something_happens() {
    run(|world| async move {
        world.apply("a/one", "1");
        let note = timed(&world);
        let again = move |request: Request<String>| {
            note(&request);
            async { Ok(Outcome::RequeueAfter(secs(10))) }
        };
        let controller = world.builder().reconcile(again).start().expect("it starts");
        sleep(secs(25)).await;
        let at = |millis: u64| format!("{millis} a/one attempt 0");
        assert_eq!(world.lines().await, [at(0), at(10_000), at(20_000)]);
        world.apply("a/one", "2");
        assert_eq!(world.lines().await.len(), 1);
        assert_eq!(controller.status().counts.requeued, 4);
    });
}

/// For texts that are `bad` an error that only a change fixes.
fn refuses_bad(world: &World, builder: ControllerBuilder<String>) -> Controller<String> {
    let log = world.log.clone();
    let refuses = move |request: Request<String>| {
        log.line(shown(&request));
        let is_bad = request.object().is_some_and(|text| text.body() == "bad");
        async move { if is_bad { Err(ReconcileError::until_changed("it is bad")) } else { DONE } }
    };
    builder.reconcile(refuses).start().expect("it starts")
}

#[test]
fn ctl_04_after_an_error_that_only_a_change_fixes_a_key_rests_until_its_object_changes() {
    run(|world| async move {
        world.apply("a/one", "bad");
        let builder = world.builder().every(secs(60));
        let builder = builder.owns_with(&world.children, Default::default(), text_of);
        let controller = refuses_bad(&world, builder);
        assert_eq!(world.lines().await, ["a/one=bad"]);
        world.numbers.apply("a/one-x", 1);
        sleep(secs(3_600)).await;
        assert_eq!(world.lines().await, [""; 0], "no try, no timer, no owned object");
        let status = controller.status();
        assert_eq!((status.counts.terminal, status.kept.resting, status.kept.ignored), (1, 1, 61));
        world.apply("a/one", "good");
        assert_eq!(world.lines().await, ["a/one=good"]);
        assert_eq!(controller.status().kept.resting, 0);
    });
}

#[test]
fn ctl_04_after_a_terminal_error_a_key_is_not_tried_again_by_itself_and_any_event_reconciles_it() {
    run(|world| async move {
        world.apply("a/one", "bad");
        let log = world.log.clone();
        let refuses = move |request: Request<String>| {
            log.line(shown(&request));
            async { Err::<Outcome, _>(ReconcileError::terminal("it is bad")) }
        };
        let builder = world.builder().owns_with(&world.children, Default::default(), text_of);
        let controller = builder.reconcile(refuses).start().expect("it starts");
        assert_eq!(world.lines().await, ["a/one=bad"]);
        sleep(secs(3_600)).await;
        assert_eq!(world.lines().await, [""; 0], "no retry");
        world.numbers.apply("a/one-x", 1);
        assert_eq!(world.lines().await, ["a/one=bad"], "an owned object");
        controller.trigger(key("a/one"));
        assert_eq!(world.lines().await, ["a/one=bad"]);
        let status = controller.status();
        assert_eq!((status.counts.terminal, status.kept.resting), (3, 0));
    });
}

#[test]
fn ctl_04_a_mapped_object_a_trigger_and_the_end_of_its_object_end_the_rest_of_a_key() {
    run(|world| async move {
        world.apply("a/one", "bad");
        let controller = refuses_bad(&world, world.builder().maps(&world.children, text_of));
        assert_eq!(world.lines().await, ["a/one=bad"]);
        world.numbers.apply("a/one-x", 1);
        assert_eq!(world.lines().await, ["a/one=bad"]);
        controller.trigger(key("a/one"));
        assert_eq!(world.lines().await, ["a/one=bad"]);
        world.texts.delete("a/one");
        assert_eq!(world.lines().await, ["a/one gone, was bad"]);
        assert_eq!(controller.status().kept.resting, 0);
    });
}

#[test]
fn ctl_04_a_key_whose_object_changes_during_the_reconcile_that_fails_does_not_rest() {
    run(|world| async move {
        world.apply("a/one", "bad");
        let log = world.log.clone();
        let slow = move |request: Request<String>| {
            log.line(shown(&request));
            let is_bad = request.object().is_some_and(|text| text.body() == "bad");
            async move {
                sleep(secs(1)).await;
                if is_bad { Err(ReconcileError::until_changed("it is bad")) } else { DONE }
            }
        };
        let _controller = world.builder().reconcile(slow).start().expect("it starts");
        assert_eq!(world.lines().await, ["a/one=bad"]);
        world.apply("a/one", "good");
        sleep(secs(3)).await;
        assert_eq!(world.lines().await, ["a/one=good"]);
    });
}

#[test]
fn ctl_05_a_panic_is_a_failure_of_its_key_alone_wherever_it_is() {
    run(|world| async move {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                assert!(std::thread::panicking(), "in a drop");
            }
        }
        for name in ["in call", "in future", "in drop", "well"] {
            world.apply(&format!("a/{name}"), name);
        }
        let log = world.log.clone();
        let panics = move |request: Request<String>| {
            log.line(request.key().name());
            let (name, is_first) = (request.key().name().to_owned(), request.attempt() == 0);
            assert!(name != "in call" || !is_first, "on purpose");
            async move {
                assert!(name != "in future" || !is_first, "on purpose");
                let _bomb = (name == "in drop" && is_first).then(|| Bomb);
                if name == "in drop" && is_first {
                    std::future::pending::<()>().await;
                }
                DONE
            }
        };
        let builder = world.builder().time_limit(secs(1)).rate_limiter(doubling());
        let controller = builder.reconcile(panics).start().expect("it starts");
        sleep(secs(5)).await;
        let mut lines = world.lines().await;
        lines.sort();
        assert_eq!(lines, ["in call", "in call", "in drop", "in drop", "in future", "in future", "well"]);
        let counts = controller.status().counts;
        assert_eq!((counts.panics, counts.timeouts, counts.succeeded), (3, 1, 4));
        // One was too late and panicked in its drop: it is both, and one failure.
        assert_eq!((counts.reconciles, counts.failed), (7, 3));
        assert_eq!(controller.status().workers, 1);
    });
}

// CTL-05: given a reconcile that panics (in the call, in its future, in the drop of its future) or takes
// longer than the time limit, when it ends, then that is a failure of its key alone, counted, and the worker
// goes on.
// - a a panic, wherever it is: `ctl_05_a_panic_is_a_failure_of_its_key_alone_wherever_it_is`
// - b so is one of the fence
// - c the time limit: `ctl_05_at_the_time_limit_a_reconcile_is_dropped_and_its_key_is_tried_again`
#[test]
fn ctl_05_a_fence_that_panics_is_none_and_no_worker_is_lost() {
    run(|world| async move {
        world.apply("a/one", "1");
        let asked = AtomicU64::new(0);
        let panics_at_first = move || {
            assert!(asked.fetch_add(1, Relaxed) > 0, "on purpose");
            Some(1)
        };
        let controller = world.logging(world.builder().fenced_by(panics_at_first));
        sleep(secs(2)).await;
        assert_eq!(world.lines().await, ["a/one=1"]);
        assert_eq!(controller.status().workers, 1);
    });
}

#[test]
fn ctl_05_at_the_time_limit_a_reconcile_is_dropped_and_its_key_is_tried_again() {
    run(|world| async move {
        world.apply("a/one", "1");
        world.apply("a/two", "1");
        let log = world.log.clone();
        let hangs = move |request: Request<String>| {
            let under_way = log.enter(request.key());
            log.line(format!("{} attempt {}", request.key(), request.attempt()));
            async move {
                if request.key().name() == "one" && request.attempt() < 2 {
                    std::future::pending::<()>().await;
                }
                drop(under_way);
                DONE
            }
        };
        let builder = world.builder().time_limit(secs(30));
        let controller = builder.reconcile(hangs).start().expect("it starts");
        sleep(secs(29)).await;
        assert_eq!(world.lines().await, ["a/one attempt 0"]);
        sleep(secs(60)).await;
        assert_eq!(world.lines().await, ["a/two attempt 0", "a/one attempt 1", "a/one attempt 2"]);
        let status = controller.status();
        assert_eq!((status.counts.timeouts, status.state), (2, ControllerState::Running));
        let why = status.last_failure.map(|failure| failure.why.to_string());
        assert_eq!(why.as_deref(), Some("it has not ended within its limit of 30s"));
    });
}
