//! Where reconciles run: on the program's runtime, with us, or in an actor; and who may run them.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use actix::{Actor, Context, Handler, ResponseFuture};
use tokio::time::sleep;

use super::*;
use crate::controller::{ControllerState, Reconcile};
use crate::queue::MOST_WORKERS;

#[test]
fn ctl_11_futures_that_are_not_send_run_with_us_several_at_the_same_time() {
    run(|world| async move {
        world.apply("a/one", "1");
        world.apply("a/two", "1");
        let log = world.log.clone();
        let local = move |request: Request<String>| {
            let (under_way, log) = (Rc::new(log.enter(request.key())), log.clone());
            async move {
                sleep(secs(1)).await;
                log.line(format!("{} beside {}", request.key(), log.under_way()));
                drop(under_way);
                DONE
            }
        };
        let controller = world.builder().workers(2).reconcile_local(local).start().expect("it starts");
        sleep(secs(2)).await;
        assert_eq!(world.lines().await, ["a/one beside 2", "a/two beside 1"]);
        assert_eq!(controller.status().workers, 2);
    });
}

// CTL-11: given a function, a function of futures that are not `Send`, or an actor, when the controller
// starts inside a tokio runtime or without one, then it runs there, or with us; when what runs it ends, the
// keys under way wait again and the status says so; an actor that is gone is a failure of each key, and its
// answer is waited for beyond the time limit.
// - a on the runtime of the caller, else with us:
//   `ctl_11_reconciles_run_on_the_runtime_of_the_caller_and_without_one_with_us`
// - b when that ends: `ctl_11_when_what_runs_the_workers_ends_the_keys_under_way_wait_again`
// - c futures that are not `Send`: `ctl_11_futures_that_are_not_send_run_with_us_several_at_the_same_time`
// - d an actor, within and beyond the limit
// - e an actor that is gone: `ctl_11_an_actor_that_is_gone_is_a_failure_of_each_key`
// - f any number of workers: `ctl_11_of_any_number_of_workers_at_most_4096_are_started_wherever_they_run`
#[test]
fn ctl_11_an_actor_reconciles_and_its_answer_is_waited_for_beyond_the_time_limit() {
    run(|world| async move {
        world.apply("a/one", "1");
        let actor = Takes(world.log.clone(), secs(2)).start();
        let builder = world.builder().workers(4).time_limit(secs(1));
        let controller = builder.reconcile_by(actor).start().expect("it starts");
        sleep(secs(1)).await;
        world.apply("a/one", "2");
        sleep(secs(10)).await;
        let one_after_the_other = ["a/one=1", "a/one=1 late", "a/one=2", "a/one=2 late"];
        assert_eq!(world.lines().await[..4], one_after_the_other);
        assert!(controller.status().counts.timeouts >= 2);
    });
}

#[test]
fn ctl_11_an_actor_that_is_gone_is_a_failure_of_each_key() {
    run(|world| async move {
        world.apply("a/one", "1");
        struct Ends;
        impl Actor for Ends {
            type Context = Context<Self>;
            fn started(&mut self, ctx: &mut Context<Self>) {
                actix::ActorContext::stop(ctx);
            }
        }
        impl Handler<Reconcile<String>> for Ends {
            type Result = ResponseFuture<Answer>;
            fn handle(&mut self, _: Reconcile<String>, _: &mut Context<Self>) -> ResponseFuture<Answer> {
                Box::pin(async { DONE })
            }
        }
        let controller = world.builder().reconcile_by(Ends.start()).start().expect("it starts");
        sleep(secs(1)).await;
        let failure = controller.status().last_failure.expect("it fails");
        assert_eq!(&*failure.why, "the actor that reconciles has stopped, or has panicked");
    });
}

#[test]
fn ctl_11_reconciles_run_on_the_runtime_of_the_caller_and_without_one_with_us() {
    let runtime = Runtime::threads().start().expect("it starts");
    let server = Server::<String>::new();
    server.apply("a/one", "1".to_owned());
    let informer =
        Informer::builder(&runtime, "texts").source(move || server.clone()).start().expect("sound");
    let start = || {
        let thread = cell(None);
        let shown = Arc::clone(&thread);
        let names = move |_: Request<String>| {
            *locked(&shown) = std::thread::current().name().map(str::to_owned);
            async { DONE }
        };
        (Controller::builder(&informer).reconcile(names).start().expect("it starts"), thread)
    };
    let (controller, thread) = start();
    let name = std::iter::repeat_with(|| locked(&thread).take()).flatten().next();
    assert_eq!(name.as_deref(), Some("informer-calls"));
    drop(controller);

    let foreign = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it starts");
    let (controller, name) = foreign.block_on(async {
        let (controller, thread) = start();
        loop {
            if let Some(name) = locked(&thread).take() {
                return (controller, name);
            }
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(Some(&*name), std::thread::current().name());
    assert_eq!(controller.status().workers, 1);
    drop(foreign);
    assert_eq!(controller.status().workers, 0, "the status shows that nothing runs it");
}

#[test]
fn ctl_11_when_what_runs_the_workers_ends_the_keys_under_way_wait_again() {
    let runtime = Runtime::threads().start().expect("it starts");
    let server = Server::<String>::new();
    server.apply("a/one", "1".to_owned());
    let informer =
        Informer::builder(&runtime, "texts").source(move || server.clone()).start().expect("sound");
    let foreign = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it starts");
    let (begun, is_begun) = informer_actors::inner::answer();
    let begun = cell(Some(begun));
    let hangs = move |_: Request<String>| {
        locked(&begun).take().map(|begun| begun.send(()));
        std::future::pending()
    };
    let controller = foreign.block_on(async {
        let controller = Controller::builder(&informer).reconcile(hangs).start().expect("it starts");
        is_begun.await.expect("it begins");
        controller
    });
    assert_eq!(controller.status().queue.processing, 1);
    drop(foreign);
    let status = controller.status();
    assert_eq!((status.queue.processing, status.queue.retries, status.counts.cancelled), (0, 1, 1));
    assert_eq!(status.state, ControllerState::NoWorkers);
}

#[test]
fn ctl_11_when_what_runs_the_workers_ends_before_the_caches_are_synced_the_status_says_so() {
    let runtime = Runtime::threads().start().expect("it starts");
    let server = Server::<String>::new();
    server.hold_lists(true);
    let informer =
        Informer::builder(&runtime, "texts").source(move || server.clone()).start().expect("sound");
    let foreign = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it starts");
    let controller = foreign.block_on(async {
        Controller::builder(&informer).reconcile(|_| async { DONE }).start().expect("it starts")
    });
    assert_eq!(controller.status().state, ControllerState::Syncing);
    drop(foreign);
    assert_eq!(controller.status().state, ControllerState::NoWorkers);
}

#[test]
fn ctl_11_of_any_number_of_workers_at_most_4096_are_started_wherever_they_run() {
    run(|world| async move {
        let anywhere = world.builder().workers(usize::MAX).reconcile(|_| async { DONE });
        let local = world.builder().workers(usize::MAX).reconcile_local(|_| async { DONE });
        let controllers = [anywhere.start().expect("it starts"), local.start().expect("it starts")];
        sleep(secs(1)).await;
        assert_eq!(controllers.map(|controller| controller.status().workers), [MOST_WORKERS; 2]);
    });
}

// CTL-13: given a fence, when it gives no number, then no key is reconciled and a drain returns; when it
// gives one, each request carries it.
#[test]
fn ctl_13_while_the_program_is_not_the_leader_no_key_is_reconciled_and_each_request_has_its_number() {
    run(|world| async move {
        world.apply("a/one", "1");
        let leads = Arc::new(AtomicBool::new(false));
        let (fence, log) = (Arc::clone(&leads), world.log.clone());
        let builder = world.builder().fenced_by(move || fence.load(Relaxed).then_some(7));
        let logged = move |request: Request<String>| {
            log.line(format!("{} fence {:?}", request.key(), request.fence()));
            async { DONE }
        };
        let controller = builder.reconcile(logged).start().expect("it starts");
        sleep(secs(60)).await;
        assert_eq!(world.lines().await, [""; 0]);
        assert_eq!(controller.status().state, ControllerState::NotLeading);
        leads.store(true, Relaxed);
        sleep(secs(1)).await;
        assert_eq!(world.lines().await, ["a/one fence Some(7)"]);
        leads.store(false, Relaxed);
        world.apply("a/one", "2");
        sleep(secs(60)).await;
        assert_eq!(world.lines().await, [""; 0]);
        assert_eq!(controller.drain(LONG).await, Ok(()), "there is nothing that it may do");
    });
}
