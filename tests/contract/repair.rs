//! REF-32 and REF-41 to REF-43 on the running pipeline: objects that cannot be read, and how they are repaired.

use std::time::Duration;

use informer_core::list_watch_error::ListWatchError;

use crate::world::{Watched, World, pass, run, settle, three};

const MINUTE: Duration = Duration::from_secs(60);

/// The GETs so far.
fn gets(world: &World) -> usize {
    world.server.requests().iter().filter(|line| line.starts_with("GET ")).count()
}

/// Waits for the next GET and returns how long that took.
async fn next_get(world: &World) -> Duration {
    let (before, asked) = (world.runtime.now(), gets(world));
    while gets(world) == asked {
        pass(Duration::from_secs(1)).await;
        assert!(world.runtime.now() - before < 20 * MINUTE, "it is not asked for any more");
    }
    world.runtime.now() - before
}

/// A subscriber that has received the three objects, whose `a/one` has become undecodable since.
async fn broken(world: &World) -> Watched {
    world.synced().await;
    let watched = world.watched();
    watched.synced().await;
    watched.received.clear_lines();
    world.server.poison("a/one");
    world.apply("a/one", "unreadable").await;
    assert_eq!(world.informer.status().undecodable, 1);
    watched
}

// REF-32: given a watch frame whose object fails to decode or transform but whose metadata is readable, when
// received, then it is *set aside*: key, version and error are listed and counted, its last good version
// stays in the store, marked, the source's version moves on, and nothing relists.
// - a what fails to decode is set aside: key, version and error are listed and counted
// - b what fails to transform likewise:
//   `ref_32_and_rf_23_what_a_transform_refuses_in_a_watch_or_a_list_is_undecodable_with_its_error`
// - c its last good version stays in the store, marked
// - d the source's version moves on:
//   `ref_32_an_undecodable_object_keeps_its_last_good_version_and_the_version_moves_on`
// - e nothing relists
#[test]
fn ref_32_a_frame_that_cannot_be_read_is_undecodable_and_nothing_relists() {
    run(three, |world| async move {
        let watched = broken(&world).await;
        let snapshot = world.informer.snapshot();
        let undecodable = snapshot.undecodable().next().expect("one is undecodable");
        assert_eq!(
            (undecodable.key.to_string(), undecodable.version.clone()),
            ("a/one".to_owned(), world.server.version())
        );
        assert_eq!(
            snapshot.get(&undecodable.key).map(|object| object.body().as_str()),
            Some("1"),
            "the last good version"
        );
        let status = world.informer.status();
        assert_eq!((status.data.undecodable, status.relists(), status.restarts), (1, 0, 0));
        assert_eq!((watched.received.len(), gets(&world)), (0, 0));
    });
}

#[test]
fn ref_41_an_undecodable_object_is_asked_for_after_1_min_and_then_at_gaps_of_1_to_10_min_for_hours() {
    run(three, |world| async move {
        broken(&world).await;
        let mut gaps = Vec::new();
        while gaps.iter().sum::<Duration>() < 3 * 60 * MINUTE {
            gaps.push(next_get(&world).await);
        }
        let second = Duration::from_secs(1);
        assert!(gaps[0] >= MINUTE && gaps[0] <= 2 * MINUTE + second, "{:?}", gaps[0]);
        assert!(gaps.iter().all(|gap| *gap + second >= MINUTE && *gap <= 10 * MINUTE + second), "{gaps:?}");
        assert!(gaps[4..].iter().all(|gap| *gap + second >= 5 * MINUTE), "{gaps:?}");
        assert!(world.server.requests().iter().all(|line| !line.starts_with("LIST")), "nothing relists");
    });
}

// REF-41: given a set-aside object, when simulated time passes, then it is asked by GET no sooner than 1 min
// and then at gaps of 1 to 10 min; a good answer is delivered as Added or Updated{cause: Watch} and ends the
// mark; one older than what the store or the watch has by then is dropped, and older frames of that key
// change nothing after it.
// - a it is asked by GET no sooner than 1 min and then at gaps of 1 to 10 min:
//   `ref_41_the_first_question_comes_after_1_to_2_min_and_the_gaps_double_up_to_5_to_10_min`
// - b a good answer is delivered as Added or Updated{cause: Watch} and ends the mark
// - c one older than what the store or the watch has by then is dropped:
//   `ref_41_a_fetched_object_is_dropped_when_the_watch_has_brought_a_newer_state_by_then`
// - d older frames of that key change nothing after it:
//   `ref_41_a_fetched_object_ends_the_mark_and_leaves_the_sources_version_where_the_watch_is`
#[test]
fn ref_41_a_good_answer_is_delivered_with_cause_watch_and_ends_the_mark() {
    run(three, |world| async move {
        let watched = broken(&world).await;
        world.server.poison("c/new");
        let newest = world.apply("c/new", "unreadable from the start").await;
        world.server.heal("a/one");
        world.server.heal("c/new");
        until_after(&world, 3 * MINUTE, || watched.received.len() == 2).await;
        let mut lines = watched.received.lines();
        lines.sort();
        assert_eq!(lines, ["Added(Watch) c/new@6".to_owned(), "Updated(Watch) a/one@5".to_owned()]);
        assert_eq!(world.informer.status().undecodable, 0);
        assert_eq!(
            *world.informer.snapshot().versions().first().expect("one source"),
            newest,
            "a GET moves no version on"
        );
        world.agrees().await;
        watched.agrees(&world).await;
        let asked = gets(&world);
        pass(60 * MINUTE).await;
        assert_eq!(gets(&world), asked, "what is repaired is not asked for again");
    });
}

#[test]
fn ref_41_many_undecodable_objects_are_asked_for_one_a_second_and_counted() {
    run(three, |world| async move {
        world.synced().await;
        let names: Vec<String> = (0..200).map(|n| format!("c/{n}")).collect();
        for name in &names {
            world.server.poison(name);
            world.server.apply(name, "unreadable".to_owned());
        }
        world.reaches(&world.server.version()).await;
        let repairs = || world.informer.status().sources[0].repairs;
        let (mut asked, mut busiest) = (0, 0);
        while world.runtime.now() < 10 * MINUTE {
            pass(Duration::from_secs(1)).await;
            (busiest, asked) = (busiest.max(gets(&world) - asked), gets(&world));
        }
        assert_eq!(busiest, 1, "in one second");
        let counted = repairs();
        assert_eq!((counted.asked, counted.repaired, counted.not_repaired), (asked as u64, 0, asked as u64));
        assert!(asked >= 400, "each is asked for more than once: {asked}");
        names.iter().for_each(|name| world.server.heal(name));
        until_after(&world, 20 * MINUTE, || world.informer.status().undecodable == 0).await;
        assert_eq!((repairs().repaired, repairs().not_repaired), (200, asked as u64));
        world.agrees().await;
    });
}

/// Waits for a condition, for at most this simulated time.
async fn until_after(world: &World, limit: Duration, condition: impl Fn() -> bool) {
    let before = world.runtime.now();
    while !condition() {
        assert!(world.runtime.now() - before < limit, "the condition did not come true within {limit:?}");
        pass(Duration::from_millis(500)).await;
    }
}

#[test]
fn ref_41_frames_older_than_a_fetched_object_change_nothing_and_a_restart_asks_at_the_watchs_version() {
    run(three, |world| async move {
        let watched = broken(&world).await;
        let reached = world.server.version();
        world.server.freeze_watches(true);
        world.server.apply("b/one", "delivered late".to_owned());
        world.server.apply("a/one", "between".to_owned());
        world.server.heal("a/one");
        let newest = world.server.apply("a/one", "ahead of the watch".to_owned());
        until_after(&world, 3 * MINUTE, || watched.received.len() == 1).await;
        assert_eq!(watched.received.lines(), [format!("Updated(Watch) a/one@{newest}")]);
        assert_eq!(
            *world.informer.snapshot().versions().first().expect("one source"),
            reached,
            "the watch has not delivered so much"
        );
        world.server.end_watches(None);
        world.server.freeze_watches(false);
        world.agrees().await;
        watched.agrees(&world).await;
        let last = world.server.requests().into_iter().rfind(|line| line.starts_with("WATCH"));
        assert_eq!(last, Some(format!("WATCH version=\"{reached}\"")));
        assert_eq!(
            watched.received.lines()[1..],
            ["Updated(Watch) b/one@6".to_owned()],
            "only the other object"
        );
    });
}

#[test]
fn ref_41_an_answer_that_is_older_than_the_watch_is_dropped() {
    run(three, |world| async move {
        let watched = broken(&world).await;
        world.server.heal("a/one");
        world.server.hold_gets(true);
        next_get(&world).await;
        let newest = world.apply("a/one", "delivered by the watch").await;
        world.server.hold_gets(false);
        settle().await;
        assert_eq!(watched.lines(1).await, [format!("Updated(Watch) a/one@{newest}")]);
        pass(30 * MINUTE).await;
        assert_eq!((watched.received.len(), gets(&world)), (1, 1));
        world.agrees().await;
    });
}

#[test]
fn ref_41_at_most_one_get_is_open_and_one_that_is_never_answered_ends_at_its_deadline() {
    run(three, |world| async move {
        broken(&world).await;
        world.server.poison("a/two");
        world.apply("a/two", "unreadable too").await;
        world.server.hold_gets(true);
        next_get(&world).await;
        let second = next_get(&world).await;
        assert!(second >= Duration::from_secs(29), "{second:?}: the first was open for 30 s");
        world.apply("b/one", "the stream goes on meanwhile").await;
    });
}

// REF-42: given a set-aside object whose GET finds nothing, or an object outside the informer's selectors,
// when answered, then nothing is delivered or stored; the Deleted comes by watch or relist (only if a good
// version was delivered), and then the entry is gone.
// - a a GET that finds nothing delivers and stores nothing
// - b an object outside the selectors is one that is not found:
//   `the_server_evaluates_selectors_in_lists_watches_and_gets`
// - c the Deleted comes by watch, only if a good version was delivered, and then the entry is gone
// - d or by relist, likewise:
//   `ref_42_what_a_list_lacks_is_deleted_only_if_a_good_version_was_delivered_and_either_mark_ends`
#[test]
fn ref_42_a_get_that_finds_nothing_delivers_nothing_and_the_watch_delivers_the_deletion() {
    run(three, |world| async move {
        let watched = broken(&world).await;
        world.server.freeze_watches(true);
        let gone = world.server.delete("a/one").expect("it is there");
        world.server.heal("a/one");
        next_get(&world).await;
        settle().await;
        let status = world.informer.status();
        assert_eq!((watched.received.len(), status.undecodable, status.objects), (0, 1, 3));
        world.server.freeze_watches(false);
        world.reaches(&gone).await;
        assert_eq!(watched.lines(1).await, [format!("Deleted(Watch) a/one@{gone}")]);
        assert_eq!(world.informer.status().undecodable, 0);
    });
}

#[test]
fn ref_42_an_object_that_was_never_readable_is_never_delivered_and_its_entry_ends_with_the_watchs_deletion() {
    run(three, |world| async move {
        world.synced().await;
        let watched = world.watched();
        watched.synced().await;
        world.server.poison("c/new");
        world.apply("c/new", "unreadable from the start").await;
        next_get(&world).await;
        assert_eq!(world.informer.status().undecodable, 1);
        world.delete("c/new").await;
        settle().await;
        assert_eq!((watched.received.len(), world.informer.status().undecodable), (3, 0));
        let asked = gets(&world);
        pass(60 * MINUTE).await;
        assert_eq!(gets(&world), asked);
    });
}

// REF-43: given a Deleted frame whose object does not decode but whose key is readable, when received, then
// Deleted{last: the stored object, exact: false, cause: Watch} and nothing is set aside.
// - a Deleted{last: the stored object, exact: false, cause: Watch}
// - b nothing is set aside
#[test]
fn ref_43_a_deletion_that_cannot_be_read_is_delivered_as_inexact_and_nothing_counts_as_undecodable() {
    run(three, |world| async move {
        world.synced().await;
        let watched = world.watched();
        watched.synced().await;
        watched.received.clear_lines();
        world.server.poison("a/one");
        world.delete("a/one").await;
        assert_eq!(watched.lines(1).await, ["Missed(Watch) a/one@2".to_owned()]);
        assert_eq!(world.informer.status().undecodable, 0);
    });
}

#[test]
fn rf_23_and_ref_41_what_is_undecodable_in_a_list_is_repaired_too_after_restarts_and_relists() {
    run(
        |server| {
            three(server);
            server.serve_watch_list(false);
            server.poison("a/one");
        },
        |world| async move {
            world.synced().await;
            let watched = world.watched();
            watched.synced().await;
            assert_eq!((watched.received.len(), world.informer.status().undecodable), (2, 1));
            pass(MINUTE / 2).await;
            world.server.end_watches(Some(ListWatchError::Expired("too old resource version".into())));
            world.informer.wait_until(|status| status.relists() == 1).await.expect("it relists");
            world.streaming().await;
            settle().await;
            world.server.heal("a/one");
            until_after(&world, 2 * MINUTE, || world.informer.status().undecodable == 0).await;
            assert_eq!(watched.received.lines().last().map(String::as_str), Some("Added(Watch) a/one@2"));
            watched.agrees(&world).await;
        },
    );
}
