//! What a reconcile has written is seen by the cache before its key is reconciled again.

use tokio::time::sleep;

use super::*;

/// How long the caches are behind in these tests.
const LAG: Duration = Duration::from_secs(2);

/// Freezes the watch of the numbers for a while, from now on.
fn lag(world: &World) {
    world.numbers.freeze_watches(true);
    let numbers = world.numbers.clone();
    world.runtime.spawn_local(move || async move {
        sleep(LAG).await;
        numbers.freeze_watches(false);
    });
}

/// A controller that makes the number `<key>-x` where the cache does not have it.
fn makes_number(world: &World, builder: ControllerBuilder<String>) -> Controller<String> {
    let within = world.clone();
    let make = move |request: Request<String>| {
        let child = format!("{}-x", request.key());
        let has = within.children.snapshot().get(&key(&child)).is_some();
        within.log.line(format!("{} {}", request.key(), if has { "has" } else { "makes" }));
        if !has {
            lag(&within);
            let version = within.numbers.apply(&child, 1);
            assert_eq!(request.written_as::<u32>(&meta(&child, &version)), 1);
        }
        async { DONE }
    };
    builder.maps(&world.children, text_of).reconcile(make).start().expect("it starts")
}

#[test]
fn ctl_07_a_key_waits_until_the_cache_of_its_child_has_what_was_written_and_no_worker_waits() {
    run(|world| async move {
        world.apply("a/one", "1");
        let controller = makes_number(&world, world.builder());
        assert_eq!(world.lines().await, ["a/one makes"]);
        world.apply("a/one", "2");
        world.apply("a/two", "1");
        sleep(Duration::from_millis(1_500)).await;
        assert_eq!(world.lines().await, ["a/two makes"], "the only worker goes on with others");
        sleep(LAG).await;
        let mut lines = world.lines().await;
        lines.sort();
        // Once more for its own event, if that comes after the others.
        lines.dedup();
        assert_eq!(lines, ["a/one has", "a/two has"]);
        let counts = controller.status().counts;
        assert_eq!((counts.writes_waited, counts.writes_not_seen), (2, 0));
    });
}

#[test]
fn ctl_07_a_write_that_is_not_seen_within_the_bound_is_counted_and_the_key_goes_on() {
    run(|world| async move {
        world.apply("a/one", "1");
        let builder = world.builder().write_wait(secs(1));
        let controller = makes_number(&world, builder);
        assert_eq!(world.lines().await, ["a/one makes"]);
        controller.trigger(key("a/one"));
        sleep(Duration::from_millis(700)).await;
        assert_eq!(world.lines().await, [""; 0]);
        sleep(Duration::from_millis(200)).await;
        assert_eq!(world.lines().await, ["a/one makes"], "the cache is behind still");
        assert_eq!(controller.status().counts.writes_not_seen, 1);
    });
}

#[test]
fn ctl_07_the_bound_is_one_for_all_writes_of_a_reconcile_and_each_that_is_not_seen_is_counted() {
    run(|world| async move {
        world.apply("a/one", "1");
        let within = world.clone();
        let make = move |request: Request<String>| {
            within.log.line(request.key().to_string());
            lag(&within);
            for child in ["a/one-x", "a/one-y", "a/one-z"] {
                let version = within.numbers.apply(child, 1);
                assert_eq!(request.written_as::<u32>(&meta(child, &version)), 1);
            }
            async { DONE }
        };
        let builder = world.builder().write_wait(secs(1)).maps(&world.children, |_| None);
        let controller = builder.reconcile(make).start().expect("it starts");
        assert_eq!(world.lines().await, ["a/one"]);
        controller.trigger(key("a/one"));
        sleep(Duration::from_millis(1_000)).await;
        assert_eq!(world.lines().await, ["a/one"], "after one bound, and not after three");
        assert_eq!(controller.status().counts.writes_not_seen, 3);
    });
}

#[test]
fn ctl_07_what_is_not_watched_or_seen_already_is_not_waited_for() {
    run(|world| async move {
        let version = world.apply("a/one", "1");
        let log = world.log.clone();
        let writes = move |request: Request<String>| {
            log.line(shown(&request));
            assert_eq!(request.written_as::<u64>(&meta("a/one", &version)), 0, "no informer has such bodies");
            assert_eq!(request.written_as::<String>(&meta("a/one", &version)), 1);
            async { DONE }
        };
        let controller = world.builder().reconcile(writes).start().expect("it starts");
        assert_eq!(world.lines().await, ["a/one=1"]);
        assert_eq!((controller.status().counts.writes_waited, controller.status().queue.processing), (0, 0));
    });
}

#[test]
fn ctl_07_a_key_waits_until_the_cache_no_longer_has_what_was_removed() {
    run(|world| async move {
        world.apply("a/one", "1");
        world.numbers.apply("a/one-x", 1);
        let within = world.clone();
        let remove = move |request: Request<String>| {
            let child = within.children.snapshot().get(&key("a/one-x")).cloned();
            within.log.line(if child.is_some() { "removes" } else { "has none" });
            if let Some(child) = child {
                lag(&within);
                within.numbers.delete("a/one-x");
                assert!(request.removed_from(&within.children, child.cached_meta()));
            }
            async { DONE }
        };
        let builder = world.builder().maps(&world.children, text_of);
        let controller = builder.reconcile(remove).start().expect("it starts");
        assert_eq!(world.lines().await, ["removes"]);
        controller.trigger(key("a/one"));
        sleep(Duration::from_millis(1_500)).await;
        assert_eq!(world.lines().await, [""; 0]);
        sleep(LAG).await;
        assert_eq!(world.lines().await[0], "has none");
        assert_eq!(controller.status().counts.writes_not_seen, 0);
    });
}

/// What the cache has.
fn number(world: &World, child: &str) -> Option<u32> {
    world.children.snapshot().get(&key(child)).map(|number| *number.body())
}

/// Reconciles by writing the number 7 to `<key>-x`, unless the cache has it; it takes a second after that.
fn writes_seven(world: &World, builder: ControllerBuilder<String>) -> Controller<String> {
    let within = world.clone();
    let write = move |request: Request<String>| {
        within.log.line(request.key().to_string());
        let child = format!("{}-x", request.key());
        if number(&within, &child) != Some(7) {
            let version = within.numbers.apply(&child, 7);
            assert_eq!(request.written_as::<u32>(&meta(&child, &version)), 1);
        }
        async {
            sleep(secs(1)).await;
            DONE
        }
    };
    let builder = builder.owns_with(&world.children, Default::default(), text_of);
    builder.reconcile(write).start().expect("it starts")
}

#[test]
fn ctl_21_what_a_reconcile_was_answered_is_no_reason_for_another_one_and_any_other_state_is() {
    run(|world| async move {
        world.apply("a/one", "1");
        let controller = writes_seven(&world, world.builder().ignore_own_writes());
        sleep(secs(10)).await;
        assert_eq!(world.lines().await, ["a/one"], "its event came while it was reconciled");
        lag(&world);
        world.apply("a/two", "1");
        sleep(secs(10)).await;
        assert_eq!(world.lines().await, ["a/two"], "its event came late");
        assert_eq!(controller.status().kept.answered, 2);

        world.numbers.apply("a/one-x", 8);
        sleep(secs(10)).await;
        assert_eq!(world.lines().await, ["a/one"], "somebody else has written it");
        world.numbers.delete("a/one-x");
        sleep(secs(10)).await;
        assert_eq!(world.lines().await, ["a/one"], "somebody else has deleted it");
        assert_eq!(number(&world, "a/one-x"), Some(7));
    });
}

#[test]
fn ctl_21_what_somebody_else_writes_while_a_key_is_reconciled_leads_to_another_reconcile() {
    run(|world| async move {
        world.apply("a/one", "1");
        let _controller = writes_seven(&world, world.builder().ignore_own_writes());
        sleep(Duration::from_millis(700)).await;
        assert_eq!(world.lines().await, ["a/one"], "it is under way");
        world.numbers.apply("a/one-x", 8);
        sleep(secs(10)).await;
        assert_eq!(world.lines().await, ["a/one"]);
        assert_eq!(number(&world, "a/one-x"), Some(7));
    });
}

#[test]
fn ctl_21_what_somebody_else_has_written_before_a_drain_is_reconciled_in_it() {
    run(|world| async move {
        world.apply("a/one", "1");
        let controller = writes_seven(&world, world.builder().ignore_own_writes());
        sleep(Duration::from_millis(700)).await;
        assert_eq!(world.lines().await, ["a/one"], "it is under way");
        world.numbers.apply("a/one-x", 8);
        sleep(Duration::from_millis(50)).await;
        controller.drain(secs(10)).await.expect("what waits is reconciled");
        assert_eq!(world.lines().await, ["a/one"]);
        assert_eq!(number(&world, "a/one-x"), Some(7));
    });
}

#[test]
fn ctl_21_unless_it_is_asked_for_each_own_write_leads_to_one_more_reconcile() {
    run(|world| async move {
        world.apply("a/one", "1");
        let _controller = writes_seven(&world, world.builder());
        sleep(secs(10)).await;
        assert_eq!(world.lines().await, ["a/one", "a/one"]);
    });
}

// CTL-15: given a child that is deleted the moment it is made, 300 times in a row, when that ends, then it is
// there.
#[test]
fn ctl_15_a_child_that_is_deleted_the_moment_it_is_made_is_made_again_300_times_in_a_row() {
    made_again(|builder| builder, 602);
}

#[test]
fn ctl_21_a_child_that_is_deleted_the_moment_it_is_made_is_made_again_by_one_that_ignores_own_writes() {
    made_again(ControllerBuilder::ignore_own_writes, 301);
}

/// A child is deleted 300 times the moment it is made; it takes so many reconciles at most.
fn made_again(change: impl FnOnce(ControllerBuilder<String>) -> ControllerBuilder<String>, most: u64) {
    run(|world| async move {
        world.apply("a/one", "1");
        let numbers = world.numbers.clone();
        let deletions = cell(0_u32);
        let within = world.clone();
        let make = move |request: Request<String>| {
            let child = "a/one-x";
            if within.children.snapshot().get(&key(child)).is_none() {
                let version = numbers.apply(child, 1);
                request.written_as::<u32>(&meta(child, &version));
                let mut deletions = locked(&deletions);
                if *deletions < 300 {
                    *deletions += 1;
                    // In the same read of the watch as its creation.
                    numbers.delete(child);
                }
            }
            async { DONE }
        };
        let builder = change(world.builder()).owns_with(&world.children, Default::default(), text_of);
        let controller = builder.reconcile(make).start().expect("it starts");
        sleep(secs(60)).await;
        assert_eq!(world.numbers.content().len(), 1, "it is there at last: {}", controller.status());
        let counts = controller.status().counts;
        assert_eq!((counts.errors, counts.writes_not_seen), (0, 0));
        assert!((301..=most).contains(&counts.reconciles), "{counts:?}");
    });
}

#[test]
fn informer_3_a_key_waits_for_its_own_write_also_when_a_source_of_the_cache_is_removed_meanwhile() {
    run(|world| async move {
        let (spare, name) = (Server::<u32>::named(SourceId::new("spare")), SourceId::new("spare"));
        let source = SourceSpec::new(name.clone(), spare.connect(), ReflectorConfig::new("numbers"));
        world.children.add_source(source).expect("a new name");
        world.children.source_synced(&name).await.expect("it lists");
        world.apply("a/one", "1");
        let controller = makes_number(&world, world.builder());
        assert_eq!(world.lines().await, ["a/one makes"]);
        world.apply("a/one", "2");
        world.children.remove_source(&name).await.expect("it is there");
        sleep(Duration::from_millis(1_500)).await;
        assert_eq!(world.lines().await, [""; 0], "the cache has not its write");
        sleep(LAG).await;
        let mut lines = world.lines().await;
        lines.dedup();
        assert_eq!(lines, ["a/one has"]);
        assert_eq!(controller.status().counts.writes_not_seen, 0);
    });
}
