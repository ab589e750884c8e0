//! Waits for a condition on a cached object (DYN-15).
//!
//! Answers "does a wait end with the object, the condition's error, or a timeout that says why?" for an informer; a wait
//! by list and watch alone is in `tests/client/api_watch.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use informer_actors::informer::{UntilError, WaitError};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey};
use informer_core::reflector::SourceState;
use informer_core::until::LastSeen;

use crate::world::{LONG, World, nothing, run, settle, three};

fn key() -> ObjectKey {
    "a/one".parse().expect("a key")
}

/// The body is this.
fn is(wanted: &str) -> impl FnMut(Option<&Object<String>>) -> bool + use<> {
    let wanted = wanted.to_owned();
    move |object| object.is_some_and(|object| *object.body() == wanted)
}

fn absent(object: Option<&Object<String>>) -> bool {
    object.is_none()
}

/// The text of a wait that ends at its limit.
async fn late(world: &World, wanted: &str, limit: Duration) -> (LastSeen, SourceState, String) {
    match world.informer.until(&key(), is(wanted), limit).await {
        Err(UntilError::Deadline(why)) => {
            assert_eq!((&*why.informer, &why.key, why.waited), ("texts", &key(), limit));
            (why.seen.clone(), why.state.clone(), why.to_string())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn dyn_15_a_wait_gives_the_object_of_the_state_in_which_the_condition_holds() {
    run(three, |world| async move {
        let waiting = world.informer.clone();
        let wait = actix_rt::spawn(async move { waiting.until(&key(), is("ready"), LONG).await });
        settle().await;
        assert!(!wait.is_finished());
        world.apply("a/one", "not yet").await;
        world.apply("a/two", "ready").await;
        settle().await;
        assert!(!wait.is_finished(), "another object");
        let version = world.apply("a/one", "ready").await;
        let found = wait.await.expect("no panic").expect("it holds").expect("an object");
        assert_eq!(found.version(), &version);
        let before = world.runtime.now();
        let again = world.informer.until(&key(), is("ready"), Duration::MAX).await.expect("it holds already");
        assert_eq!((again.expect("an object").version(), world.runtime.now()), (&version, before), "at once");
    });
}

#[test]
fn dyn_15_an_absence_counts_after_the_first_list_only_and_also_where_another_object_has_the_name() {
    run(
        |server| {
            three(server);
            server.hold_lists(true);
        },
        |world| async move {
            let waiting = world.informer.clone();
            let wait = actix_rt::spawn(async move { waiting.until(&key(), absent, LONG).await });
            settle().await;
            assert!(!wait.is_finished(), "nothing is known before the first list");
            world.server.hold_lists(false);
            world.synced().await;
            settle().await;
            assert!(!wait.is_finished(), "it is there");
            // Deleted and created again in a gap: no publish shows the absence.
            world.server.freeze_watches(true);
            world.server.delete("a/one");
            world.server.apply("a/one", "another".to_owned());
            world.server.compact();
            world.server.freeze_watches(false);
            world.server.end_watches(None);
            assert!(wait.await.expect("no panic").expect("the first one is gone").is_none());
        },
    );
}

#[test]
fn dyn_15_a_deletion_is_seen_although_nothing_else_is_published_after_it() {
    run(three, |world| async move {
        world.synced().await;
        let waiting = world.informer.clone();
        let wait = actix_rt::spawn(async move { waiting.until(&key(), absent, Duration::MAX).await });
        settle().await;
        world.delete("a/one").await;
        settle().await;
        assert!(wait.is_finished(), "its deletion is the only publish");
        assert!(wait.await.expect("no panic").expect("it is gone").is_none());
        // Created and deleted again, one publish each.
        let waiting = world.informer.clone();
        let mut was_there = false;
        let gone_again = move |object: Option<&Object<String>>| {
            let before = std::mem::replace(&mut was_there, object.is_some());
            before && object.is_none()
        };
        let wait = actix_rt::spawn(async move { waiting.until(&key(), gone_again, Duration::MAX).await });
        settle().await;
        world.apply("a/one", "again").await;
        settle().await;
        world.delete("a/one").await;
        settle().await;
        assert!(wait.is_finished());
    });
}

#[test]
fn dyn_15_an_error_of_the_condition_ends_the_wait() {
    run(three, |world| async move {
        let fails = |object: Option<&Object<String>>| match object.map(|object| object.body().as_str()) {
            Some("broken") => Err("it is broken"),
            _ => Ok(false),
        };
        let waiting = world.informer.clone();
        let wait = actix_rt::spawn(async move { waiting.until(&key(), fails, LONG).await });
        settle().await;
        assert!(!wait.is_finished());
        world.apply("a/one", "broken").await;
        let error = wait.await.expect("no panic").expect_err("the condition fails");
        assert!(matches!(error, UntilError::Condition("it is broken")), "{error:?}");
        assert_eq!(error.to_string(), "the condition failed: it is broken");
    });
}

#[test]
fn dyn_15_at_the_limit_the_error_has_what_was_seen_the_state_and_the_last_error() {
    run(nothing, |world| async move {
        let minute = Duration::from_secs(60);
        world.synced().await;
        let (seen, ..) = late(&world, "ready", minute).await;
        assert_eq!(seen, LastSeen::Absent);
        let version = world.apply("a/one", "not yet").await;
        world.streaming().await;
        let (seen, state, text) = late(&world, "ready", minute).await;
        assert_eq!(seen, LastSeen::Present { version: version.to_string() });
        assert!(matches!(state, SourceState::Streaming), "{state:?}");
        let expected = format!(
            "the condition for a/one of informer \"texts\" did not hold within 60s; last seen: the object at version {version}"
        );
        assert_eq!(text, expected);
    });
    run(
        |server| server.refuse((0..100).map(|_| ListWatchError::Denied("pods is forbidden".into()))),
        |world| async move {
            let before = world.runtime.now();
            let (seen, state, text) = late(&world, "ready", Duration::from_secs(5)).await;
            assert_eq!((seen, world.runtime.now() - before), (LastSeen::Nothing, Duration::from_secs(5)));
            assert!(matches!(state, SourceState::Denied { .. }), "{state:?}");
            assert!(text.contains("last seen: nothing") && text.contains("pods is forbidden"), "{text}");
        },
    );
}

#[test]
fn dyn_15_a_wait_ends_when_the_informer_stops_and_asks_about_each_state_once() {
    run(three, |world| async move {
        world.synced().await;
        let asked = Arc::new(AtomicUsize::new(0));
        let (waiting, counted) = (world.informer.clone(), Arc::clone(&asked));
        let never = move |_: Option<&Object<String>>| {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        };
        let wait = actix_rt::spawn(async move { waiting.until(&key(), never, Duration::MAX).await });
        settle().await;
        for n in 0..3 {
            world.apply("a/two", &n.to_string()).await;
            settle().await;
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1, "the object has not changed");
        world.apply("a/one", "changed").await;
        settle().await;
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        world.informer.shutdown(LONG).await;
        let ended = wait.await.expect("no panic");
        assert!(matches!(ended, Err(UntilError::Wait(WaitError::Stopped { .. }))), "{ended:?}");
    });
}
