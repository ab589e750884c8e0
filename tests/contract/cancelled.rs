//! Async closures whose future never ends: when that future is dropped, and what is reported about it. LIS-27.

use std::future::pending;
use std::sync::{Arc, Weak};
use std::time::Duration;

use informer_actors::informer::Informer;
use informer_actors::subscription::{CALL_GRACE, ShutdownError, Subscriber, Subscription};
use informer_actors::testing::Server;
use tokio::sync::watch;

use crate::blocking::{Gate, on_threads};
use crate::reports::unfinished;
use crate::threads::{LIMIT, informer, start};
use crate::world::{LONG, pass, run, settle, three, until};

const TWO: Duration = Duration::from_secs(2);

/// A closure whose first future never ends, and a record of whether its captures and that future still exist.
async fn endless(informer: &Informer<String>) -> (Subscription<String>, Weak<()>, Weak<()>) {
    let (of_closure, of_future) = (Arc::new(()), Arc::new(()));
    let (closure, future) = (Arc::downgrade(&of_closure), Arc::downgrade(&of_future));
    let mut of_future = Some(of_future);
    let (begun, mut begins) = watch::channel(false);
    let subscription = informer.for_each(move |_| {
        let _captured = &of_closure;
        let kept = of_future.take();
        begun.send_replace(true);
        async move {
            let _kept = kept;
            pending().await
        }
    });
    begins.wait_for(|begun| *begun).await.expect("it is called");
    settle().await;
    (subscription.expect("it runs"), closure, future)
}

fn is_freed(kept: &Weak<()>) -> bool {
    kept.strong_count() == 0
}

#[test]
fn lis_27_after_a_subscription_is_dropped_a_call_that_never_ends_is_cancelled_within_the_grace() {
    run(three, |world| async move {
        world.synced().await;
        let (subscription, closure, future) = endless(&world.informer).await;
        drop(subscription);
        pass(CALL_GRACE - Duration::from_secs(1)).await;
        assert!(!is_freed(&closure) && !is_freed(&future), "it may still end");
        pass(TWO).await;
        assert!(is_freed(&closure) && is_freed(&future));
    });
}

#[test]
fn lis_27_a_call_that_ends_within_the_grace_is_not_cancelled() {
    run(three, |world| async move {
        world.synced().await;
        let (ended, ends) = watch::channel(0);
        let (begun, mut begins) = watch::channel(false);
        let subscription = world.informer.for_each(move |_| {
            begun.send_replace(true);
            let ended = ended.clone();
            async move {
                pass(CALL_GRACE - TWO).await;
                ended.send_modify(|ended| *ended += 1);
            }
        });
        begins.wait_for(|begun| *begun).await.expect("it is called");
        drop(subscription);
        pass(CALL_GRACE).await;
        assert_eq!(*ends.borrow(), 1, "that call has ended, and no further one began");
    });
}

#[test]
fn lis_27_a_subscriptions_shutdown_cancels_a_call_that_never_ends_at_its_limit_and_says_so() {
    run(three, |world| async move {
        world.synced().await;
        let (subscription, closure, future) = endless(&world.informer).await;
        let before = world.runtime.now();
        let unfinished = subscription.shutdown(TWO).await;
        assert!(world.runtime.now() - before < Duration::from_millis(2_500));
        assert!(is_freed(&closure) && is_freed(&future));
        let Err(ShutdownError::Unfinished(unfinished)) = unfinished else { panic!("{unfinished:?}") };
        assert_eq!((unfinished.dropped, unfinished.in_flight, unfinished.still_running), (0, 3, false));
    });
}

#[test]
fn lis_27_an_informers_shutdown_cancels_a_call_that_never_ends_at_its_limit_and_says_so() {
    run(three, |world| async move {
        world.synced().await;
        let (_subscription, closure, future) = endless(&world.informer).await;
        let (dropped, dropped_closure, dropped_future) = endless(&world.informer).await;
        drop(dropped);
        let report = world.informer.shutdown(TWO).await;
        assert!(is_freed(&closure) && is_freed(&future));
        assert!(
            is_freed(&dropped_closure) && is_freed(&dropped_future),
            "that of a dropped subscription, too"
        );
        assert_eq!(unfinished(&report), [("closure-0", 0, 3), ("closure-1", 0, 3)]);
        assert!(!report.still_running && !report.is_clean(), "{report:?}");
    });
}

#[test]
fn lis_27_when_the_last_handle_of_the_informer_goes_a_call_that_never_ends_is_cancelled_within_the_grace() {
    run(three, |world| async move {
        world.synced().await;
        let (subscription, closure, future) = endless(&world.informer).await;
        drop((subscription, world.informer));
        pass(CALL_GRACE + TWO).await;
        assert!(is_freed(&closure) && is_freed(&future));
    });
}

// LIS-27: given an async closure whose future never ends, when its subscription is dropped or the informer
// stops, then its future and captures are dropped 30 s later, or at the limit of a shutdown, which names it;
// one that ends before is not cancelled, one that blocks its thread cannot be and is reported as still
// running, and a panic in the drop affects nothing else.
// - a after its subscription is dropped they are dropped 30 s later, and not before:
//   `lis_27_after_a_subscription_is_dropped_a_call_that_never_ends_is_cancelled_within_the_grace`
// - b after the informer has stopped, too:
//   `lis_27_when_the_last_handle_of_the_informer_goes_a_call_that_never_ends_is_cancelled_within_the_grace`
// - c at the limit of a subscription's shutdown, which says so:
//   `lis_27_a_subscriptions_shutdown_cancels_a_call_that_never_ends_at_its_limit_and_says_so`
// - d at the limit of an informer's shutdown, which names it, also if its subscription was dropped before:
//   `lis_27_an_informers_shutdown_cancels_a_call_that_never_ends_at_its_limit_and_says_so`
// - e one that ends before is not cancelled: `lis_27_a_call_that_ends_within_the_grace_is_not_cancelled`
// - f one that blocks its thread cannot be cancelled, and is reported as still running
// - g a panic in dropping the future affects nothing else:
//   `lis_27_a_panic_in_dropping_a_cancelled_future_affects_nothing_else`
#[test]
fn lis_27_a_call_that_blocks_its_thread_cannot_be_cancelled_and_is_reported_as_still_running() {
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        three(&server);
        let informer = informer(&runtime, &server);
        informer.synced_within(LIMIT).await.expect("it syncs");
        let (gate, held) = Gate::new();
        let (begun, mut begins) = watch::channel(false);
        let subscription = informer.for_each(move |_| {
            begun.send_replace(true);
            held.wait();
            std::future::ready(())
        });
        begins.wait_for(|begun| *begun).await.expect("it is called");
        let report = informer.shutdown(Duration::from_millis(50)).await;
        assert_eq!(unfinished(&report), [("closure-0", 0, 3)]);
        assert!(report.unfinished[0].still_running && report.still_running, "{report:?}");
        drop((gate, subscription));
        assert!(informer.shutdown(LIMIT).await.is_clean(), "it has come back");
    });
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("on purpose, in the drop of a cancelled future");
    }
}

#[test]
fn lis_27_a_panic_in_dropping_a_cancelled_future_affects_nothing_else() {
    run(three, |world| async move {
        world.synced().await;
        let owned = Arc::new(());
        let freed = Arc::downgrade(&owned);
        let (begun, mut begins) = watch::channel(false);
        let subscription = world.informer.for_each(move |_| {
            let _captured = &owned;
            begun.send_replace(true);
            async move {
                let _bomb = Bomb;
                pending().await
            }
        });
        let other = world.watched();
        begins.wait_for(|begun| *begun).await.expect("it is called");
        let unfinished = subscription.expect("it runs").shutdown(TWO).await;
        assert!(matches!(unfinished, Err(ShutdownError::Unfinished(_))), "{unfinished:?}");
        until(|| is_freed(&freed)).await;
        world.apply("a/one", "next").await;
        other.lines(4).await;
    });
}

#[test]
fn a_panic_whose_payload_panics_when_it_is_dropped_loses_only_that_event() {
    run(three, |world| async move {
        let awaiting = world.informer.for_each(|_| async { std::panic::panic_any(Bomb) });
        let blocking = world.informer.subscribe(Subscriber::blocking(|_| std::panic::panic_any(Bomb)));
        for subscription in [awaiting.expect("it runs"), blocking.expect("it runs")] {
            subscription.synced_within(LONG).await.expect("panics count as handled");
            assert_eq!((subscription.status().panics, subscription.ended()), (3, None));
        }
    });
}
