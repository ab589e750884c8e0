//! Faults that a reading of the operator half found: defaults of the queue, standbys, reconciles that hang.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::controller::machine::Telling;
use tokio::time::sleep;

use super::super::MOST_DELETED;
use super::*;
use crate::controller::Trigger;
use crate::queue::ExponentialPerKey;
use informer_actors::list_watch::Coverage;

#[test]
fn operator_b_a_reconcile_that_always_asks_to_run_again_after_no_time_is_done_and_does_not_spin() {
    run(|world| async move {
        world.apply("a/one", "1");
        let asked = AtomicUsize::new(0);
        // While it spins no time passes: it would end after a hundred.
        let always = move |_: Request<String>| {
            let spins = asked.fetch_add(1, Relaxed) < 100;
            async move { Ok(if spins { Outcome::RequeueAfter(Duration::ZERO) } else { Outcome::Done }) }
        };
        let controller = world.builder().reconcile(always).start().expect("it starts");
        sleep(secs(1)).await;
        let counts = controller.status().counts;
        assert_eq!((counts.reconciles, counts.succeeded, counts.requeued), (1, 1, 0));
    });
}

#[test]
fn operator_b_a_standby_forgets_keys_that_are_gone_and_reconciles_what_is_there_when_it_leads() {
    run(|world| async move {
        let leads = Arc::new(AtomicBool::new(false));
        let fence = Arc::clone(&leads);
        let builder = world.builder().workers(4).fenced_by(move || fence.load(Relaxed).then_some(1));
        let controller = world.logging(builder.owns_with(&world.children, Default::default(), text_of));
        for number in 0..500 {
            let key = format!("a/{number}");
            world.apply(&key, "1");
            world.numbers.apply(&format!("a/{number}-x"), number);
            sleep(secs(1)).await;
            world.texts.delete(&key);
            sleep(secs(1)).await;
            world.numbers.delete(&format!("a/{number}-x"));
        }
        world.apply("a/one", "1");
        sleep(secs(60)).await;
        let status = controller.status();
        let known = status.queue.depth.iter().sum::<usize>() + status.queue.processing + status.queue.delayed;
        assert_eq!((known, status.kept.deleted), (1, 0), "{status}");
        assert_eq!(world.lines().await, [""; 0]);
        leads.store(true, Relaxed);
        sleep(secs(2)).await;
        assert_eq!(world.lines().await, ["a/one=1"]);
        world.texts.delete("a/one");
        assert_eq!(world.lines().await, ["a/one gone, was 1"], "the leader is shown what is gone");
    });
}

#[test]
fn operator_b_a_standby_keeps_4096_objects_that_have_left_and_forgets_older_ones() {
    run(|world| async move {
        let texts = world.texts.clone();
        let coverage = Coverage::everything().selectors("shop");
        let source = SourceSpec::new(SourceId::new("shop"), texts.connect(), ReflectorConfig::new("texts"));
        let informer = Informer::builder(&world.runtime, "shop").source_with(source.covering(coverage));
        let informer = informer.start().expect("a sound spec");
        let leads = Arc::new(AtomicBool::new(false));
        let fence = Arc::clone(&leads);
        let builder = Controller::builder(&informer).fenced_by(move || fence.load(Relaxed).then_some(1));
        let controller = world.logging(builder.owns_with(&world.children, Default::default(), text_of));
        for number in 0..MOST_DELETED + 500 {
            world.apply(&format!("a/{number:05}"), "1");
        }
        sleep(secs(10)).await;
        for number in 0..MOST_DELETED + 500 {
            world.texts.delete(&format!("a/{number:05}"));
            world.numbers.apply(&format!("a/{number:05}-x"), 1);
        }
        sleep(secs(60)).await;
        let status = controller.status();
        let known = status.queue.depth.iter().sum::<usize>() + status.queue.processing + status.queue.delayed;
        assert!(
            (MOST_DELETED..=MOST_DELETED + 1).contains(&known),
            "one is in the hands of the worker: {status}"
        );
        assert_eq!(status.kept.deleted, MOST_DELETED);
        leads.store(true, Relaxed);
        sleep(secs(60)).await;
        let lines = world.lines().await;
        let left = lines.iter().filter(|line| line.ends_with("left, was 1")).count();
        assert_eq!((left, lines.len()), (MOST_DELETED, known), "{:?}", lines.first());
        assert_eq!(controller.status().kept.deleted, 0);
    });
}

#[test]
fn operator_b_a_reconcile_that_hangs_is_named_in_the_status_after_ten_minutes() {
    run(|world| async move {
        world.apply("a/one", "1");
        let hangs = |_: Request<String>| std::future::pending::<Answer>();
        let controller = world.builder().reconcile(hangs).start().expect("it starts");
        sleep(secs(599)).await;
        assert_eq!(controller.status().hangs(), None);
        sleep(secs(3_001)).await;
        let status = controller.status();
        let hangs = "controller texts: the reconcile of a/one has not ended for 1h";
        assert_eq!(status.hangs().as_deref(), Some(hangs));
        assert!(status.to_string().contains(hangs), "{status}");
        let longer = world.builder().name("longer").time_limit(2 * LONG);
        let longer = longer.reconcile(|_| std::future::pending::<Answer>()).start().expect("it starts");
        sleep(LONG).await;
        assert_eq!(longer.status().hangs(), None, "so long it may take");
    });
}

#[test]
fn lis_42_an_object_that_changes_all_the_time_is_reconciled_when_it_is_quiet_and_others_at_their_time() {
    run(|world| async move {
        world.apply("a/one", "0");
        let began = world.runtime.now();
        let (runtime, log) = (world.runtime.clone(), world.log.clone());
        let noted = move |request: Request<String>| {
            let at = (runtime.now() - began).as_secs();
            log.line(format!("{at} {} [{}]", shown(&request), request.causes()));
            async { DONE }
        };
        let builder = world.builder().maps(&world.children, text_of).debounce(secs(5));
        let controller = builder.reconcile(noted).start().expect("it starts");
        sleep(secs(1)).await;
        assert_eq!(
            world.lines().await,
            ["0 a/one=0 [Added texts a/one (InitialList)]"],
            "a list is not put off"
        );
        for number in 1..5 {
            world.apply("a/one", &number.to_string());
            world.numbers.apply("a/one-x", number);
            if number == 1 {
                world.apply("a/two", "1");
            }
            sleep(secs(3)).await;
        }
        assert_eq!(world.lines().await, ["6 a/two=1 [Added texts a/two (Watch)]"]);
        controller.trigger(key("a/one"));
        assert_eq!(world.lines().await, ["13 a/one=4 [triggered]"], "a trigger is not put off");
        sleep(secs(5)).await;
        let lines = world.lines().await;
        let [line] = &lines[..] else { panic!("one reconcile for all changes: {lines:?}") };
        assert!(
            line.starts_with("15 a/one=4 [Updated texts a/one (Watch), Added numbers a/one-x (Watch)"),
            "{line}"
        );
    });
}

#[test]
fn operator_a10_each_reconcile_has_a_cause_and_an_event_that_comes_with_the_hand_out_leads_to_no_other() {
    run(|world| async move {
        let (log, triggers) = (world.log.clone(), Arc::new(OnceLock::<Trigger>::new()));
        let (trigger, asked) = (Arc::clone(&triggers), AtomicUsize::new(0));
        // It is asked between the hand-out of a key and the begin of its reconcile.
        let fence = move || {
            if let (Some(trigger), 0..100) = (trigger.get(), asked.fetch_add(1, Relaxed)) {
                trigger.trigger(key("a/one"));
            }
            Some(1)
        };
        let noted = move |request: Request<String>| {
            log.line(request.causes().to_string());
            async { Ok(Outcome::RequeueAfter(secs(7))) }
        };
        let builder = world.builder().workers(2).fenced_by(fence);
        let controller = builder.reconcile(noted).start().expect("it starts");
        assert!(triggers.set(controller.triggers()).is_ok());
        world.apply("a/one", "0");
        sleep(secs(1)).await;
        assert_eq!(world.lines().await, ["Added texts a/one (InitialList), triggered"]);
        for number in 1..200 {
            world.apply("a/one", &number.to_string());
            sleep(Duration::from_millis(number * 3 % 41)).await;
        }
        sleep(secs(60)).await;
        let lines = world.lines().await;
        assert!(lines.iter().all(|causes| causes != "not kept"), "{lines:?}");
    });
}

#[test]
fn a_standby_remembers_no_failure_of_a_key_that_is_gone_and_none_once_it_has_asked_whether_it_leads() {
    for is_deleted in [true, false] {
        run(move |world| async move {
            let leads = Arc::new(AtomicBool::new(true));
            let fence = Arc::clone(&leads);
            let retries = if is_deleted { LONG } else { secs(5) };
            let builder = world.builder().rate_limiter(ExponentialPerKey::new(retries, retries));
            let builder = builder.fenced_by(move || fence.load(Relaxed).then_some(1));
            world.apply("a/one", "1");
            let fails = |_: Request<String>| async { Err::<Outcome, _>("no luck".into()) };
            let controller = builder.reconcile(fails).start().expect("it starts");
            sleep(secs(1)).await;
            let told = |why: &str| {
                let queue = &controller.0.shared.queue;
                queue.with(|book, _, moment| {
                    book.tally.failing.handle_failure(&key("a/one"), &why.into(), moment.now)
                })
            };
            assert_eq!(told("no luck"), Telling::Repeat);
            leads.store(false, Relaxed);
            if is_deleted {
                world.texts.delete("a/one");
            }
            sleep(secs(10)).await;
            assert_eq!(told("no luck"), Telling::Warning, "is deleted: {is_deleted}");
        });
    }
}
