//! Unexpected data: counted by reason, and logged in words that name informer, source and object.
//!
//! RF-35 on the running pipeline. Reads the counters as a user does, and the log as an operator does.

use informer_actors::informer::Informer;
use informer_actors::runtime::Runtime;
use informer_actors::testing::Server;
use informer_core::index::Index;
use informer_core::meta::SourceId;
use tracing::Level;

use crate::log::recorded;
use crate::world::{LONG, nothing, pass, run, run_built, settle, three};

const POISONED: usize = 1_000;

#[test]
fn rf_35_a_thousand_objects_that_do_not_decode_are_counted_as_a_thousand() {
    for watch_list in [true, false] {
        let poison = |server: &Server<String>| {
            server.serve_watch_list(watch_list);
            for n in 0..POISONED {
                let key = format!("a/{n}");
                server.poison(&key);
                server.apply(&key, String::new());
            }
        };
        run(poison, |world| async move {
            world.synced().await;
            let status = world.informer.status();
            assert_eq!(status.data.undecodable, POISONED as u64, "{:?}", status.data);
            assert_eq!(status.undecodable, POISONED);
        });
    }
}

#[test]
fn rf_35_every_reason_has_a_counter_of_its_own_under_its_name() {
    run(three, |world| async move {
        world.synced().await;
        world.server.poison("a/two");
        world.apply("a/two", "unreadable").await;
        let failing =
            Index::<String>::fallible("failing", |_| Err(informer_core::index::IndexError::new("no values")));
        world.informer.add_index(failing).await.expect("the name is free");
        settle().await;
        let data = world.informer.status().data;
        let counted: Vec<_> = data.by_reason().filter(|(_, count)| *count > 0).collect();
        let names: Vec<_> = counted.iter().map(|(reason, count)| (reason.name(), *count)).collect();
        assert_eq!(names, [("undecodable", 1), ("index_failed", 3)]);
        for (reason, count) in data.by_reason() {
            assert_eq!(data.count_of(reason), count);
        }
        assert_eq!((data.undecodable, data.index_failures), (1, 3));
    });
}

#[test]
fn rf_35_a_line_about_an_undecodable_object_names_informer_source_and_object_in_plain_words() {
    let lines = recorded(|log| {
        Runtime::simulated(3).run(|runtime| async move {
            let server = Server::named(SourceId::new("prod"));
            server.poison("prod/bad");
            server.apply("prod/bad", String::new());
            let spec = informer_actors::list_watch::SourceSpec::new(
                SourceId::new("prod"),
                server.connect(),
                informer_core::reflector::ReflectorConfig::new("texts"),
            );
            let informer = Informer::builder(&runtime, "pods").source_with(spec).start();
            let informer = informer.expect("the spec is valid");
            informer.synced_within(LONG).await.expect("it syncs");
        });
        log.with("object cannot be decoded")
    });
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(line.level, Level::WARN);
    assert!(line.message.starts_with("object cannot be decoded"), "{}", line.message);
    let field = |name| line.field(name).unwrap_or_default();
    assert_eq!((field("informer"), field("source"), field("key")), ("pods", "prod", "prod/bad"));
    assert_eq!((field("reason"), field("error")), ("undecodable", "poisoned"));
    let whole = format!("{line:?}");
    assert!(!whole.contains("Undecodable"), "no Debug text of a type: {whole}");
}

// RF-35: given 1,000 objects that do not decode, or an index function that fails, when they are applied, then
// the counter of that reason rises by their number and can be read by its reason, a log line names informer,
// source, object and reason in words and quotes at most 200 bytes of the error, beyond 250 of one publish one
// line gives the number, and sound data is logged nowhere.
// - a the counter rises by their number, by list and by watch-list:
//   `rf_35_a_thousand_objects_that_do_not_decode_are_counted_as_a_thousand`
// - b it can be read by its reason: `rf_35_every_reason_has_a_counter_of_its_own_under_its_name`
// - c a line names informer, source, object and reason in words:
//   `rf_35_a_line_about_an_undecodable_object_names_informer_source_and_object_in_plain_words`
// - d it quotes at most 200 bytes of the error
// - e beyond 250 of one publish one line gives the number:
//   `rf_35_what_is_reported_only_as_a_number_is_logged_as_one_line_with_reason_and_count`
// - f sound data is logged nowhere: `rf_35_expected_data_is_not_logged`
#[test]
fn rf_35_a_line_about_an_index_that_fails_quotes_a_bounded_part_of_what_the_function_said() {
    let lines = recorded(|log| {
        let long = |object: &informer_core::meta::Object<String>| {
            assert!(object.body() != "1", "{}", "x".repeat(100_000));
            vec![object.body().clone()]
        };
        let index = Index::<String>::new("picky", long);
        run_built(
            informer_actors::testing::Faults::default(),
            |builder| builder.index_with(index),
            three,
            |world| async move { world.synced().await },
        );
        log.with("index")
    });
    let [line] = &lines[..] else { panic!("{} lines", lines.len()) };
    assert_eq!((line.field("index"), line.field("key")), (Some("picky"), Some("a/one")));
    let error = line.field("error").expect("what the function said");
    assert!(error.starts_with("panicked: xxx") && error.len() < 300, "{} bytes", error.len());
}

#[test]
fn rf_35_what_is_reported_only_as_a_number_is_logged_as_one_line_with_reason_and_count() {
    let lines = recorded(|log| {
        let poison = |server: &Server<String>| {
            (0..POISONED).for_each(|n| {
                server.poison(&format!("a/{n}"));
                server.apply(&format!("a/{n}"), String::new());
            });
        };
        run(poison, |world| async move { world.synced().await });
        log.lines()
    });
    let warnings: Vec<_> = lines.iter().filter(|line| line.level == Level::WARN).collect();
    let omitted: Vec<_> = warnings.iter().filter(|line| line.field("count").is_some()).collect();
    let [line] = &omitted[..] else { panic!("{} lines", omitted.len()) };
    let count: usize = line.field("count").and_then(|count| count.parse().ok()).expect("a number");
    assert_eq!(warnings.len() - 1 + count, POISONED, "each object is in a line, or in the number");
    assert_eq!(line.field("reason"), Some("undecodable"));
    assert_eq!(line.field("informer"), Some("texts"));
}

#[test]
fn rf_35_expected_data_is_not_logged() {
    let lines = recorded(|log| {
        run(nothing, |world| async move {
            world.synced().await;
            world.apply("a/one", "1").await;
            world.delete("a/one").await;
            pass(LONG).await;
        });
        log.lines()
    });
    let odd: Vec<_> = lines.iter().filter(|line| line.level <= Level::WARN).collect();
    assert!(odd.is_empty(), "{odd:?}");
}
