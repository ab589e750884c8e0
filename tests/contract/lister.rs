//! LST on the running pipeline: reading, and reading one's own writes.

use std::time::Duration;

use informer_actors::informer::{Informer, WaitForError};
use informer_actors::list_watch::{Coverage, SourceSpec};
use informer_actors::runtime::Runtime;
use informer_actors::testing::Server;
use informer_core::meta::{Meta, ObjectKey, ResourceVersion, SourceId};
use informer_core::reflector::ReflectorConfig;

use crate::world::{LONG, nothing, run, settle, three};

// LST-03: given objects in many namespaces, when listing namespace a, then only its objects are visited,
// without any index configured.
// - a without any index configured, its objects are listed
// - b only its objects are visited: `lst_03_of_other_namespaces_no_object_is_visited`
#[test]
fn lst_03_a_namespace_is_listed_without_any_index_configured() {
    run(three, |world| async move {
        world.synced().await;
        let names: Vec<_> = world
            .informer
            .lister()
            .list_namespace("a")
            .iter()
            .map(|object| object.key().to_string())
            .collect();
        assert_eq!(names, ["a/one", "a/two"]);
    });
}

// LST-05: given a missing name, or a store not yet listed, when get, then None, never an error or a wait;
// list is empty.
// - a a missing name is None
// - b before the first list get is None and list is empty, without error or wait
#[test]
fn lst_05_a_missing_name_or_a_store_not_yet_listed_is_none_and_empty() {
    run(
        |server| {
            three(server);
            server.hold_lists(true);
        },
        |world| async move {
            settle().await;
            let lister = world.informer.lister();
            let key = "a/one".parse().expect("a key");
            assert!(lister.get(&key).is_none() && lister.list().is_empty());
            assert!(lister.by_index("body", "1").expect("the index is known from the start").is_empty());
            world.server.hold_lists(false);
            world.synced().await;
            assert_eq!(lister.get(&key).expect("it is listed").body(), "1");
            assert!(lister.get(&"a/none".parse().expect("a key")).is_none());
        },
    );
}

// LST-06: given a cached object of `Typed<Pod>`, when read from lister, snapshot, index or Notify, then it
// reads as a `Pod` (deref) with no cast.
// - a an object reads as its body, with no cast
// - b a `Pod` from lister, snapshot, index and Notify:
//   `lst_06_a_cached_pod_reads_as_a_pod_from_lister_snapshot_index_and_notify`
#[test]
fn lst_06_a_cached_object_reads_like_its_body() {
    run(three, |world| async move {
        world.synced().await;
        let object = world.informer.lister().get(&"b/one".parse().expect("a key")).expect("it is listed");
        assert_eq!(object.len(), 1, "String::len through deref");
    });
}

// LST-07: given a source at version r, when wait_for(x, deadline) is called, then Ok at once if r >= x; else
// Ok when an event, a bookmark or a list reaches x; else at the deadline an error that says which version was
// reached; with several sources and none named, an error that lists them.
// - a Ok if r >= x
// - b at once: `lst_07_a_wait_for_a_version_that_is_reached_takes_no_time_and_a_bookmark_ends_one`
// - c else Ok when an event or a list reaches x
// - d or a bookmark: `lst_07_a_wait_for_a_version_that_is_reached_takes_no_time_and_a_bookmark_ends_one`
// - e else at the deadline an error that says which version was reached
// - f with several sources, or an unknown one, a typed error that names them:
//   `inf_36_two_sources_are_one_informer_that_is_synced_when_both_are`
// - g for what a write has returned no source has to be named:
//   `lst_07_a_wait_for_what_a_write_has_returned_ends_when_the_cache_has_the_object_or_its_source_is_past_it`
#[test]
fn lst_07_waiting_for_a_version_ends_when_an_event_a_bookmark_or_a_list_reaches_it() {
    run(three, |world| async move {
        world.synced().await;
        let lister = world.informer.lister();
        lister.wait_for(&world.server.version(), LONG).await.expect("reached already");
        world.server.freeze_watches(true);
        let mine = world.server.apply("a/mine", "x".to_owned());
        let early = lister.wait_for(&mine, Duration::from_secs(1)).await.expect_err("it is not there yet");
        assert!(early.to_string().contains("reached 4"), "{early}");
        world.server.freeze_watches(false);
        lister.wait_for(&mine, LONG).await.expect("by event");
        assert!(lister.get(&"a/mine".parse().expect("a key")).is_some());
        world.server.compact();
        world.server.end_watches(None);
        let listed = world.server.apply("a/more", "y".to_owned());
        lister.wait_for(&listed, LONG).await.expect("by list");
    });
}

/// An informer of the namespaces `a` and `b` as two sources, and their servers.
fn two_namespaces(runtime: &Runtime) -> (Informer<String>, [Server<String>; 2]) {
    let servers = ["a", "b"].map(|name| Server::named(SourceId::new(name)));
    let spec = |name: &str, server: &Server<String>| {
        let spec = SourceSpec::new(SourceId::new(name), server.connect(), ReflectorConfig::new("texts"));
        spec.covering(Coverage::everything().namespace(name))
    };
    let [a, b] = &servers;
    let builder = Informer::builder(runtime, "two").source_with(spec("a", a)).source_with(spec("b", b));
    (builder.start().expect("the spec is valid"), servers)
}

#[test]
fn lst_07_a_wait_for_what_a_write_has_returned_ends_when_the_cache_has_the_object_or_its_source_is_past_it() {
    Runtime::simulated(1).run(|runtime| async move {
        let (informer, [a, b]) = two_namespaces(&runtime);
        informer.synced_within(LONG).await.expect("both list");
        a.freeze_watches(true);
        let (lister, key) = (informer.lister(), "b/x".parse::<ObjectKey>().expect("a key"));
        let written = |version| Meta::new(key.clone(), version, SourceId::default());
        let ours = written(b.apply("b/x", "ours".to_owned()));
        lister.wait_for_write(&ours, LONG).await.expect("its source brings it, whatever the other one does");
        assert_eq!(lister.get(&key).expect("it is there").body(), "ours");
        let now = runtime.now();
        lister.wait_for_write(&ours, LONG).await.expect("it is there");
        assert_eq!(runtime.now(), now, "at once");

        b.freeze_watches(true);
        let short = written(b.apply("b/x", "short".to_owned()));
        let limit = Duration::from_secs(5);
        let late = lister.wait_for_write(&short, limit).await.expect_err("the watch is frozen");
        assert!(matches!(&late, WaitForError::Deadline(late) if late.source.as_str() == "b"), "{late}");
        b.delete("b/x").expect("it is there");
        b.freeze_watches(false);
        lister
            .wait_for_write(&short, LONG)
            .await
            .expect("the source is past it, although the object is gone");
    });
}

#[test]
fn a_wait_for_a_write_of_a_key_that_no_source_covers_is_refused() {
    Runtime::simulated(1).run(|runtime| async move {
        let (informer, _servers) = two_namespaces(&runtime);
        let version = ResourceVersion::from_number(5).expect("not zero");
        let written = Meta::new("c/one".parse().expect("a key"), version, SourceId::default());
        let waited = informer.lister().wait_for_write(&written, LONG).await.expect_err("it never comes");
        assert_eq!(waited.to_string(), "informer \"two\" has no source that follows c/one");
    });
}

// LST-08: given wait_for pending, when the informer stops, then Err at once; when it is dropped, nothing
// remains.
// - a when the informer stops, Err
// - b at once, also after the end of the `Runtime`:
//   `inf_54_every_wait_ends_when_the_runtime_is_shut_down_first`
// - c when it is dropped, nothing remains: `lst_08_a_wait_that_is_dropped_keeps_nothing_running`
#[test]
fn lst_08_a_pending_wait_ends_with_an_error_when_the_informer_stops() {
    run(nothing, |world| async move {
        world.synced().await;
        let lister = world.informer.lister();
        let waiting = lister.clone();
        let wait =
            actix_rt::spawn(async move { waiting.wait_for(&"999".parse().expect("a version"), LONG).await });
        settle().await;
        let before = world.runtime.now();
        world.informer.shutdown(LONG).await;
        assert!(matches!(wait.await.expect("no panic"), Err(WaitForError::Stopped { .. })));
        assert_eq!(world.runtime.now(), before, "at once");
    });
}

// LST-09: given a lister and a snapshot moved to any thread, inside or outside a runtime, when read while the
// arbiter is busy, then they answer without mailbox, lock or await.
// - a outside a runtime they answer
// - b while the arbiter is busy, get, list, by_index and snapshot answer, inside or outside a runtime:
//   `lst_09_while_the_arbiter_is_blocked_a_lister_answers_inside_and_outside_of_a_runtime`
#[test]
fn lst_09_a_lister_answers_on_any_thread_without_a_runtime() {
    run(three, |world| async move {
        world.synced().await;
        let lister = world.informer.lister();
        let read = std::thread::spawn(move || lister.list().len()).join().expect("no panic");
        assert_eq!(read, 3);
    });
}
