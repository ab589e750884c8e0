//! Streams at a shutdown: which the shutdown waits for, and which it gives up. LIS-26.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::poll_immediate;
use informer_actors::subscription::Events;
use informer_actors::testing::{Recorder, RecorderHandle};

use crate::reports::unfinished;
use crate::world::{LONG, World, nothing, run, settle, three};

const TEN: Duration = Duration::from_secs(10);
const AT_ONCE: Duration = Duration::from_millis(500);

/// Reads a stream to its end and works for some time on each event.
async fn read(mut events: Events<String>, received: RecorderHandle<String>) {
    while let Some(notify) = events.next().await {
        tokio::time::sleep(Duration::from_millis(900)).await;
        received.record(&notify);
    }
}

/// Shuts down and returns how long it took and which subscriptions were unfinished.
async fn shut_down(world: &World, limit: Duration) -> (Duration, Vec<(String, usize, usize)>) {
    let before = world.runtime.now();
    let report = world.informer.shutdown(limit).await;
    assert!(!report.still_running && !report.unapplied, "{report:?}");
    let unfinished =
        unfinished(&report).into_iter().map(|(name, dropped, flying)| (name.into(), dropped, flying));
    (world.runtime.now() - before, unfinished.collect())
}

#[test]
fn lis_26_a_stream_that_was_never_polled_is_given_up_at_once_with_what_waits_for_it() {
    run(three, |world| async move {
        world.synced().await;
        let mut events = world.informer.events().expect("it runs");
        settle().await;
        let (took, unfinished) = shut_down(&world, TEN).await;
        assert_eq!(unfinished, [("stream-0".to_owned(), 3, 0)]);
        assert!(took < AT_ONCE, "{took:?}");
        assert!(events.next().await.is_none(), "it has ended");
    });
}

#[test]
fn lis_26_a_stream_that_was_never_polled_is_given_up_also_when_the_shutdown_comes_before_its_start() {
    run(three, |world| async move {
        world.synced().await;
        let _events = world.informer.events().expect("it runs");
        let (took, unfinished) = shut_down(&world, TEN).await;
        assert_eq!(unfinished, [("stream-0".to_owned(), 3, 0)]);
        assert!(took < AT_ONCE, "{took:?}");
    });
}

#[test]
fn lis_26_a_stream_that_is_polled_receives_all_that_waits_for_it() {
    run(three, |world| async move {
        let received: RecorderHandle<String> = Recorder::new().1;
        let reader = actix_rt::spawn(read(world.informer.events().expect("it runs"), received.clone()));
        world.synced().await;
        settle().await;
        for n in 0..5 {
            world.apply("a/one", &n.to_string()).await;
        }
        let (took, unfinished) = shut_down(&world, LONG).await;
        assert_eq!(unfinished, []);
        assert_eq!(received.len(), 4, "three, and one coalesced change: {:?}", received.lines());
        assert!(took < Duration::from_secs(4), "{took:?}");
        received.agrees_with(&world.informer.snapshot()).expect("the events replay to the store");
        reader.await.expect("the stream ends");
    });
}

#[test]
fn lis_26_a_polled_stream_receives_all_also_when_the_shutdown_comes_before_its_start() {
    run(three, |world| async move {
        world.synced().await;
        let received: RecorderHandle<String> = Recorder::new().1;
        let mut events = world.informer.events().expect("it runs");
        assert!(poll_immediate(events.next()).await.is_none(), "it waits");
        let reader = actix_rt::spawn(read(events, received.clone()));
        let (_, unfinished) = shut_down(&world, LONG).await;
        assert_eq!((unfinished, received.len()), (vec![], 3));
        reader.await.expect("the stream ends");
    });
}

#[test]
fn lis_26_a_stream_without_waiting_events_delays_nothing() {
    run(nothing, |world| async move {
        world.synced().await;
        let _unpolled = world.informer.events().expect("it runs");
        let received: RecorderHandle<String> = Recorder::new().1;
        let reader = actix_rt::spawn(read(world.informer.events().expect("it runs"), received));
        settle().await;
        let (took, unfinished) = shut_down(&world, TEN).await;
        assert_eq!(unfinished, []);
        assert!(took < AT_ONCE, "{took:?}");
        reader.await.expect("the stream ends");
    });
}

// LIS-26: given an informer's shutdown and a stream that is owed something, when it is polled, then it is
// drained; if it was never polled it is given up at once, and if it was left after a second, with what it was
// owed, also when the shutdown comes before its start; owed nothing it delays nothing.
// - a a stream that is polled receives all that it is owed:
//   `lis_26_a_stream_that_is_polled_receives_all_that_waits_for_it`
// - b also when the shutdown comes before its start:
//   `lis_26_a_polled_stream_receives_all_also_when_the_shutdown_comes_before_its_start`
// - c one that was never polled is given up at once, with what it was owed:
//   `lis_26_a_stream_that_was_never_polled_is_given_up_at_once_with_what_waits_for_it`
// - d also when the shutdown comes before its start:
//   `lis_26_a_stream_that_was_never_polled_is_given_up_also_when_the_shutdown_comes_before_its_start`
// - e one that was left is given up after a second
// - f what it has taken it still gives, and then it ends
// - g owed nothing it delays nothing: `lis_26_a_stream_without_waiting_events_delays_nothing`
#[test]
fn lis_26_a_stream_that_was_left_is_given_up_after_a_second() {
    run(three, |world| async move {
        world.synced().await;
        let mut events = world.informer.events().expect("it runs");
        events.next().await.expect("the first of three");
        let (took, unfinished) = shut_down(&world, TEN).await;
        assert_eq!(unfinished, [("stream-0".to_owned(), 0, 3)]);
        assert!((Duration::from_secs(1)..Duration::from_secs(2)).contains(&took), "{took:?}");
        assert!(events.next().await.is_some() && events.next().await.is_some(), "what it has taken it gives");
        assert!(events.next().await.is_none(), "then it has ended");
    });
}
