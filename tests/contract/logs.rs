//! What an operator reads in the log: failures, recoveries, relists, ends and restarts, with the informer's name.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use informer_actors::informer::Informer;
use informer_actors::runtime::Runtime;
use informer_actors::subscription::{SubscribeOptions, Subscriber, WhenFull};
use informer_actors::testing::{Faults, Site};
use informer_actors::testing::{Server, kill_at, kill_every};
use informer_core::list_watch_error::ListWatchError;
use informer_core::reflector::SourceState;
use informer_operator::controller::{Controller, Outcome, Request};
use tracing::Level;
use tracing_subscriber::filter::Targets;

use crate::log::{Line, Log, recorded};
use crate::world::{LONG, World, pass, run, run_with, settle, three, until};

const HOUR: Duration = Duration::from_secs(3_600);

fn field<'a>(line: &'a Line, name: &str) -> &'a str {
    line.field(name).unwrap_or_default()
}

/// Every line names the informer, is a single line of bounded length, and shows no value in Rust's Debug
/// form.
fn are_plain(lines: &[Line]) {
    for line in lines {
        assert_eq!(field(line, "informer"), "texts", "{line:?}");
        assert!(!line.message.is_empty() && line.message.len() < 500, "{line:?}");
        assert!(!line.message.contains(['\n', '{', '}']), "{line:?}");
    }
}

fn denied() -> ListWatchError {
    ListWatchError::Denied("texts is forbidden: no access".into())
}

/// Runs a scenario with three objects and a recorder of the log.
fn logged<F: Future<Output = ()>>(faults: Faults, scenario: impl FnOnce(World, Log) -> F) {
    recorded(|log| {
        run_with(faults, three, |world| async {
            let kept = log.clone();
            scenario(world, log).await;
            are_plain(&kept.from(Level::TRACE));
        });
    });
}

// REF-59: given a source that is denied, gone or fails otherwise, when it enters that class, then one WARN
// names informer, source, resource, reason and when it is asked again; while it lasts at most one each 10 min
// and class, also when classes change quickly; when it is followed again one INFO says after how long and how
// many attempts; short outages in a row do not flood the log, and a later one that lasts 30 s is always
// logged; text from other programs is quoted on one line, up to a bound.
// - a the WARN on entering, for each class
// - b each source of an informer is named: `ref_59_each_source_of_an_informer_is_named`
// - c at most one each 10 min while it lasts: `ref_59_a_lasting_outage_is_logged_at_most_each_ten_minutes`
// - d also when classes change quickly, and a new one is logged at once:
//   `ref_59_a_new_class_is_always_logged_and_quick_changes_of_class_do_not_flood_the_log`
// - e the INFO when it is followed again
// - f a list that begins to arrive does not count yet: `ref_59_the_beginning_of_a_list_is_not_a_recovery`
// - g short outages in a row do not flood the log, and are counted:
//   `ref_59_a_source_that_fails_and_recovers_again_and_again_does_not_flood_the_log`
// - h a later one that lasts is logged:
//   `ref_59_a_second_outage_that_lasts_is_logged_soon_although_one_was_logged_shortly_before`
// - i text from other programs is on one line and bounded:
//   `ref_59_a_line_quotes_a_bounded_part_of_foreign_words_on_one_line`
#[test]
fn ref_59_a_source_that_is_denied_gone_or_lost_is_logged_on_entering_and_when_it_has_recovered() {
    type Case = (fn() -> ListWatchError, &'static str, &'static str);
    let cases: [Case; 3] = [
        (denied, "denied", "denied: texts is forbidden: no access"),
        (
            || ListWatchError::NotFound("404 page not found".into()),
            "gone",
            "no such resource: 404 page not found",
        ),
        (|| ListWatchError::source("connection refused"), "failed", "source failed: connection refused"),
    ];
    for (error, reason, words) in cases {
        logged(Faults::default(), |world, log| async move {
            world.synced().await;
            world.streaming().await;
            assert_eq!(log.texts(Level::INFO), [""; 0], "all is well");
            world.server.refuse([error(), error()]);
            world.server.end_watches(Some(error()));
            world.state(|state| !matches!(state, SourceState::Streaming)).await;
            while log.from(Level::INFO).len() < 2 && world.runtime.now() < HOUR {
                pass(Duration::from_secs(1)).await;
            }
            let lines = log.from(Level::INFO);
            let [failed, recovered] = lines.as_slice() else { panic!("{lines:#?}") };
            assert_eq!((failed.level, field(failed, "reason")), (Level::WARN, reason));
            assert_eq!((field(failed, "source"), field(failed, "resource")), ("default", "texts"));
            let begins = format!("cannot list or watch texts: {words}; asked again in ");
            assert!(failed.message.starts_with(&begins), "{}", failed.message);
            assert_eq!((recovered.level, field(recovered, "reason")), (Level::INFO, "recovered"));
            assert!(
                recovered.message.starts_with("lists and watches texts again, after "),
                "{}",
                recovered.message
            );
            assert!(recovered.message.ends_with(" and 3 failed attempts"), "{}", recovered.message);
        });
    }
}

#[test]
fn inf_33_and_ref_35_a_source_that_is_refused_for_hours_is_logged_on_entering_and_at_most_each_ten_minutes() {
    for error in [denied, || ListWatchError::NotFound("no such kind".into())] {
        logged(Faults::default(), |world, log| async move {
            world.synced().await;
            world.streaming().await;
            world.server.refuse((0..1_000).map(|_| error()));
            world.server.end_watches(Some(error()));
            settle().await;
            assert_eq!(log.from(Level::INFO).len(), 1, "on entering");
            pass(3 * HOUR).await;
            let lines = log.from(Level::INFO);
            assert!((16..=18).contains(&lines.len()), "{} lines in three hours", lines.len());
            assert!(lines.iter().all(|line| line.level == Level::WARN), "{lines:#?}");
        });
    }
}

#[test]
fn ref_59_quick_changes_of_what_fails_are_each_logged_once_in_ten_minutes() {
    logged(Faults::default(), |world, log| async move {
        world.synced().await;
        world.streaming().await;
        let in_turn = |n| if n % 2 == 0 { denied() } else { ListWatchError::source("down") };
        world.server.refuse((0..1_000).map(in_turn));
        world.server.end_watches(Some(ListWatchError::source("cut")));
        pass(HOUR).await;
        let lines = log.from(Level::INFO);
        let reasons: Vec<_> = lines.iter().map(|line| field(line, "reason")).collect();
        assert_eq!(reasons[..2], ["failed", "denied"], "a new one is never silent");
        assert!(lines.len() <= 12, "{} lines in an hour", lines.len());
    });
}

#[test]
fn ref_59_each_source_of_an_informer_is_named() {
    recorded(|log| {
        Runtime::simulated(7).run(|runtime| async move {
            let servers = ["prod", "staging"].map(|name| {
                let server: Server<String> = Server::named(informer_core::meta::SourceId::new(name));
                three(&server);
                (name, server)
            });
            servers[1].1.refuse([denied()]);
            let builder =
                servers.iter().fold(Informer::builder(&runtime, "texts"), |builder, (name, server)| {
                    builder.source_with(informer_actors::list_watch::SourceSpec::new(
                        informer_core::meta::SourceId::new(*name),
                        server.connect(),
                        informer_core::reflector::ReflectorConfig::new("texts"),
                    ))
                });
            let informer = builder.start().expect("the spec is valid");
            informer.synced_within(LONG).await.expect("it syncs in the end");
            let lines = log.from(Level::INFO);
            assert!(lines.iter().all(|line| field(line, "source") == "staging"), "{lines:#?}");
            assert_eq!(lines.len(), 2, "refused, then recovered: {lines:#?}");
        });
    });
}

// REF-60: given an informer that starts, lists, watches, relists and stops, when its log is read, then each
// relist is one INFO with its reason (DEBUG while the source fails), and the first list, each list and watch
// begun and ended, start and stop are DEBUG lines; every line names the informer.
// - a a relist is INFO with its reason
// - b lists and watches begun and ended are DEBUG:
//   `ref_60_lists_and_watches_that_begin_and_end_are_debug_lines`
// - c start, stop and the first list are DEBUG, and name the informer
#[test]
fn ref_60_a_relist_is_information_with_its_reason_and_the_first_list_is_for_debugging() {
    logged(Faults::default(), |world, log| async move {
        world.synced().await;
        world.streaming().await;
        assert_eq!(log.texts(Level::INFO), [""; 0]);
        let debug = log.texts(Level::DEBUG);
        for expected in [
            "DEBUG the informer has started",
            "DEBUG lists texts by a watch at version \"\"",
            "DEBUG a list of texts is whole: 3 objects at version 4",
        ] {
            assert!(debug.iter().any(|line| line == expected), "{expected} in {debug:#?}");
        }
        world.server.end_watches(Some(ListWatchError::Expired("too old".into())));
        until(|| world.informer.status().relists() == 1).await;
        world.streaming().await;
        let lines = log.from(Level::INFO);
        let [relist] = lines.as_slice() else { panic!("{lines:#?}") };
        assert_eq!((relist.level, field(relist, "reason")), (Level::INFO, "expired"));
        assert!(relist.message.starts_with("lists texts again: the version asked for is not on the server"));
        log.clear();
        assert!(world.informer.shutdown(LONG).await.is_clean());
        assert_eq!(
            log.texts(Level::DEBUG),
            ["DEBUG reflector/default has finished", "DEBUG the informer has stopped"]
        );
    });
}

#[test]
fn ref_60_watches_that_begin_and_end_are_debug_lines() {
    logged(Faults::default(), |world, log| async move {
        world.synced().await;
        world.streaming().await;
        world.apply("a/one", "x").await;
        log.clear();
        world.server.end_watches(None);
        until(|| world.server.requests().len() == 2).await;
        world.streaming().await;
        let debug = log.texts(Level::DEBUG);
        assert!(debug[0].starts_with("DEBUG a watch of texts has ended after "), "{debug:#?}");
        assert_eq!(debug[1], "DEBUG watches texts from version 5");
    });
}

#[test]
fn inf_63_a_subscription_that_ends_is_logged_with_its_name_and_reason() {
    logged(Faults::default(), |world, log| async move {
        let named = |name: &str| world.watched_with(SubscribeOptions::new().name(name.to_owned()));
        let (dropped, kept) = (named("dropped"), named("kept"));
        let tight = SubscribeOptions::new().name("tight").every(100, WhenFull::Disconnect);
        let overflowing = world
            .informer
            .subscribe_with(tight, Subscriber::each(|_| std::future::pending::<()>()))
            .expect("the informer runs");
        kept.synced().await;
        drop(dropped);
        (0..100).for_each(|n| drop(world.server.apply("a/one", n.to_string())));
        overflowing.end().await;
        world.informer.shutdown(Duration::from_secs(1)).await;
        let lines = log.from(Level::INFO);
        let ended = |name| {
            let of_it =
                |line: &&Line| field(line, "subscription") == name && line.message.contains(" has ended: ");
            let lines: Vec<_> = lines.iter().filter(of_it).collect();
            assert_eq!(lines.len(), 1, "{name} ends once: {lines:#?}");
            (lines[0].level, lines[0].message.clone())
        };
        let text = |why: &str| format!("the subscription {why}");
        assert_eq!(ended("dropped"), (Level::INFO, text("dropped has ended: unsubscribed")));
        assert_eq!(ended("kept"), (Level::INFO, text("kept has ended: the informer has stopped")));
        let (level, words) = ended("tight");
        assert_eq!(level, Level::WARN);
        assert!(words.starts_with("the subscription tight has ended: its backlog was full: "), "{words}");
    });
}

// INF-63: given subscriptions that end and actors that crash, when the log is read, then each end is one line
// with the subscription's name and reason (INFO when the user ended it or the informer stopped, else WARN),
// each restart one ERROR with actor, panic's text and when it starts again, and giving up one ERROR that says
// what follows; every line names the informer.
// - a the end of a subscription: `inf_63_a_subscription_that_ends_is_logged_with_its_name_and_reason`
// - b of one whose listener crashed
// - c a restart, of a reflector, of the group, of the supervisor:
//   `inf_63_a_restart_is_an_error_with_the_actor_the_panics_text_and_when_it_starts_again`
// - d giving up on a reflector, on the group: `inf_63_giving_up_is_an_error_that_says_what_follows`
#[test]
fn inf_63_a_listener_that_panics_ends_its_subscription_with_a_warning_that_has_the_panics_text() {
    logged(kill_at(Site::ListenerChanges, 1), |world, log| async move {
        let watched = world.watched_with(SubscribeOptions::new().name("unlucky"));
        watched.subscription.end().await;
        let lines = log.from(Level::WARN);
        let [ended] = lines.as_slice() else { panic!("{lines:#?}") };
        let expected =
            "the subscription unlucky has ended: the listener failed: panicked: killed at ListenerChanges";
        assert_eq!((ended.level, ended.message.as_str()), (Level::WARN, expected));
    });
}

#[test]
fn inf_63_a_restart_is_an_error_with_the_actor_the_panics_text_and_when_it_starts_again() {
    logged(kill_at(Site::ReflectorReceived, 2), |world, log| async move {
        world.synced().await;
        world.streaming().await;
        let lines = log.from(Level::INFO);
        let restart = &lines[0];
        assert_eq!((restart.level, field(restart, "actor")), (Level::ERROR, "reflector/default"));
        let begins = "reflector/default has panicked: killed at ReflectorReceived; it starts again in ";
        assert!(restart.message.starts_with(begins) && restart.message.ends_with('s'), "{}", restart.message);
    });
    logged(kill_at(Site::IndexerApply, 2), |world, log| async move {
        world.synced().await;
        world.streaming().await;
        world.apply("a/one", "x").await;
        let lines = log.from(Level::INFO);
        assert_eq!((lines[0].level, field(&lines[0], "actor")), (Level::ERROR, "indexer"));
        let text = &lines[0].message;
        assert!(text.contains("; delta-fifo, indexer and processor start again in "), "{text}");
        let relist = &lines[1];
        assert_eq!((relist.level, field(relist, "reason")), (Level::INFO, "restarted"), "{relist:?}");
    });
    let killed = Mutex::new(Vec::new());
    let each_once = Faults::new(move |site| {
        let mut killed = killed.lock().unwrap_or_else(PoisonError::into_inner);
        if [Site::ReflectorReceived, Site::SupervisorExited].contains(&site) && !killed.contains(&site) {
            killed.push(site);
            panic!("killed at {site:?}");
        }
    });
    logged(each_once, |world, log| async move {
        world.synced().await;
        let errors = log.from(Level::ERROR);
        assert_eq!(errors.len(), 2, "{errors:#?}");
        let expected = "supervisor has panicked: killed at SupervisorExited; it starts again in 0s";
        assert_eq!((errors[0].message.as_str(), field(&errors[0], "actor")), (expected, "supervisor"));
        assert_eq!(field(&errors[1], "actor"), "reflector/default");
    });
}

#[test]
fn inf_63_giving_up_is_an_error_that_says_what_follows() {
    logged(kill_every(Site::ReflectorReceived, 1, 100), |world, log| async move {
        until(|| world.informer.status().failed.is_some()).await;
        let errors = log.from(Level::ERROR);
        assert_eq!(errors.len(), 6, "five restarts, and then no more");
        let text = &errors[5].message;
        assert!(text.starts_with("reflector/default is not started again: panicked: killed at "), "{text}");
        assert!(
            text.ends_with("(after 5 restarts within 600s); its source is not followed until it is revived"),
            "{text}"
        );
    });
    logged(kill_every(Site::IndexerStarted, 1, 100), |world, log| async move {
        until(|| world.informer.status().stopped).await;
        let errors = log.from(Level::ERROR);
        let last = &errors.last().expect("it is logged").message;
        assert!(last.ends_with("(after 5 restarts within 600s); the informer stops"), "{last}");
    });
}

#[test]
fn inf_23_a_callback_that_panics_is_logged_with_the_informer_the_subscription_and_the_key() {
    recorded(|log| {
        run(three, |world| async move {
            let options = SubscribeOptions::new().name("clumsy");
            let clumsy = world.informer.subscribe_with(
                options,
                Subscriber::each(|notify| async move {
                    assert!(notify.key().name() != "two", "two is too much");
                }),
            );
            clumsy.expect("the informer runs").synced_within(LONG).await.expect("a panic is skipped");
            let errors = log.from(Level::ERROR);
            let [skipped] = errors.as_slice() else { panic!("{errors:#?}") };
            assert_eq!(field(skipped, "informer"), "texts");
            let expected = "a callback of clumsy has panicked on a/two, which is skipped: two is too much";
            assert_eq!((field(skipped, "key"), skipped.message.as_str()), ("a/two", expected));
        });
    });
}

#[test]
fn newcomer_3_the_filter_actix_informer_shows_what_every_part_logs() {
    let filter: Targets = "actix_informer=trace".parse().expect("a filter");
    recorded(|log| {
        run_with(kill_at(Site::IndexerApply, 2), three, |world| async move {
            let reconcile = |_: Request<String>| async { Ok(Outcome::Done) };
            let controller = Controller::builder(&world.informer).reconcile(reconcile).start();
            let controller = controller.expect("the runtime runs");
            world.server.refuse([denied()]);
            world.changes().await;
            settle().await;
            drop(controller);
        });
        for words in ["cannot list or watch texts", "indexer has panicked", "span reconcile", "has started"] {
            assert!(!log.with(words).is_empty(), "this scenario logs {words:?}");
        }
        let hidden: Vec<Line> =
            log.lines().into_iter().filter(|line| !filter.would_enable(&line.target, &line.level)).collect();
        assert!(hidden.is_empty(), "a filter with the name of the crate hides {hidden:#?}");
    });
}

#[test]
fn newcomer_12_a_second_informer_of_a_name_is_told_once_of_the_factory_that_shares_one() {
    recorded(|log| {
        run(three, |world| async move {
            world.synced().await;
            let start = |name: &str| {
                let server = world.server.clone();
                let builder = Informer::builder(&world.runtime, name).source(move || server.clone());
                builder.start().expect("the spec is valid")
            };
            let other = start("others");
            assert_eq!(log.texts(Level::INFO), [""; 0], "another name, and no advice");
            let second = start("texts");
            let lines = log.from(Level::INFO);
            let [advice] = lines.as_slice() else { panic!("{lines:#?}") };
            assert_eq!((advice.level, field(advice, "informer")), (Level::INFO, "texts-2"));
            assert!(advice.message.ends_with("these are kept twice; an InformerFactory shares one informer"));
            drop((other, second));
        });
    });
}
