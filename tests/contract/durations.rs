//! INF-55: every public duration may have any value, from zero to the longest possible one.
//!
//! Answers "what does this setting do at its extremes?" with one table: each row sets one duration of the public API
//! to each extreme value, and then an informer runs for an hour with it. Limits of single calls are a second table.

use std::time::Duration;

use actix::Actor;
use informer_actors::informer::Informer;
use informer_actors::informer::InformerBuilder;
use informer_actors::list_watch::SourceSpec;
use informer_actors::runtime::Runtime;
use informer_actors::subscription::SubscribeOptions;
use informer_actors::testing::{Recorder, Server};
use informer_core::backoff::BackoffPolicy;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::SourceId;
use informer_core::reflector::ReflectorConfig;
use informer_core::restart::RestartPolicy;

use crate::threads::{LIMIT, block_on};
use crate::world::{LONG, pass, three};

const EXTREMES: [Duration; 4] =
    [Duration::MAX, Duration::ZERO, Duration::from_secs(u64::MAX), Duration::from_secs(i64::MAX as u64)];

/// What one informer is built from.
struct Settings {
    config: ReflectorConfig,
    restarts: RestartPolicy,
    subscribe: SubscribeOptions<String>,
}

/// A setting, and the function that sets it to a duration.
type Setting = (&'static str, fn(&mut Settings, Duration));

const SETTINGS: [Setting; 16] = [
    ("min_watch_timeout", |all, value| all.config.min_watch_timeout = value),
    ("initial_events_deadline", |all, value| all.config.initial_events_deadline = value),
    ("short_watch", |all, value| all.config.short_watch = value),
    ("reconnect_interval", |all, value| all.config.reconnect_interval = value),
    ("renew_after", |all, value| all.config.renew_after = value),
    ("renew_at_most", |all, value| all.config.renew_at_most = value),
    ("answer_deadline", |all, value| all.config.answer_deadline = value),
    ("refused_wait", |all, value| all.config.refused_wait = value),
    ("early_backoff", |all, value| all.config.early_backoff = BackoffPolicy { base: value, cap: value }),
    ("early_for", |all, value| all.config.early_for = value),
    ("backoff.base", |all, value| all.config.backoff = BackoffPolicy { base: value, cap: value }),
    ("backoff.cap", |all, value| all.config.backoff.cap = value),
    ("RestartPolicy::window", |all, value| all.restarts.window = value),
    ("RestartPolicy::backoff", |all, value| all.restarts.backoff = BackoffPolicy { base: value, cap: value }),
    ("resync_every", |all, value| all.subscribe = SubscribeOptions::new().resync_every(value)),
    ("callback_limit", |all, value| all.subscribe = SubscribeOptions::new().callback_limit(value)),
];

fn builder(runtime: &Runtime, server: &Server<String>, settings: &Settings) -> InformerBuilder<String> {
    let source = SourceSpec::new(SourceId::default(), server.connect(), settings.config.clone());
    Informer::builder(runtime, "texts").source_with(source).restarts(settings.restarts)
}

#[test]
fn inf_55_with_every_duration_at_an_extreme_the_informer_syncs_follows_and_no_actor_panics() {
    for (name, set) in SETTINGS {
        for value in EXTREMES {
            let mut settings = Settings {
                config: ReflectorConfig::new("texts"),
                restarts: RestartPolicy::default(),
                subscribe: SubscribeOptions::new(),
            };
            set(&mut settings, value);
            let what = format!("{name} = {value:?}");
            Runtime::simulated(1).run(|runtime| async move {
                let server = Server::new();
                three(&server);
                let informer = builder(&runtime, &server, &settings).start().expect("it starts");
                let (recorder, received) = Recorder::new();
                let subscription =
                    informer.subscribe_with(settings.subscribe.clone(), recorder.start()).expect("it runs");
                assert!(informer.synced_within(LONG).await.is_ok(), "{what}: syncs");
                assert!(subscription.synced_within(LONG).await.is_ok(), "{what}: the subscriber syncs");
                let version = server.apply("a/one", "followed".to_owned());
                let followed = informer.lister().wait_for(&version, LONG).await;
                assert!(followed.is_ok(), "{what}: {followed:?}");
                // A quiet hour, an end of the stream, a failure and a refusal: no actor panics in any of
                // these waits.
                pass(Duration::from_secs(3600)).await;
                server.end_watches(None);
                pass(Duration::from_secs(60)).await;
                server.refuse([ListWatchError::source("down"), ListWatchError::Denied("no".into())]);
                server.end_watches(Some(ListWatchError::source("down")));
                pass(Duration::from_secs(600)).await;
                let status = informer.status();
                assert_eq!((status.restarts, status.failed.clone()), (0, None), "{what}");
                assert!(!status.stopped && subscription.ended().is_none(), "{what}: {status:?}");
                assert!(server.requests().len() < 10_000, "{what}: {} requests", server.requests().len());
                received.agrees_with(&informer.snapshot()).expect("the events replay to the store");
                assert!(informer.shutdown(LONG).await.is_clean(), "{what}");
            });
        }
    }
}

// INF-55: given any public duration at zero, at the longest there is or in between, when the informer runs
// with it, then it syncs and follows, no actor panics, nothing spins, and `Duration::MAX` means never.
// - a settings of reflector, restarts and resync:
//   `inf_55_with_every_duration_at_an_extreme_the_informer_syncs_follows_and_no_actor_panics`
// - b limits of waits and shutdowns, the longest
// - c and zero, which looks once: `inf_55_a_limit_of_zero_checks_once`
// - d the spread of the start:
//   `inf_55_a_start_that_is_spread_over_for_ever_never_comes_and_does_not_delay_the_stop`
// - e a backoff never panics and never waits nothing:
//   `inf_55_a_backoff_of_any_durations_gives_a_wait_that_is_not_zero`
// - f the client asks a server for a watch as long as servers can count:
//   `inf_55_the_longest_requested_watch_is_one_that_servers_can_count`
// - g limits of the drain of an operator:
//   `inf_55_an_operator_whose_parts_may_take_for_ever_drains_each_of_them`
#[test]
fn inf_55_a_limit_of_a_wait_may_be_the_longest_there_is() {
    for limit in [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_secs(i64::MAX as u64)] {
        Runtime::simulated(1).run(|runtime| async move {
            let server = Server::new();
            three(&server);
            let connected = server.clone();
            let informer = Informer::builder(&runtime, "texts").source(move || connected.clone()).start();
            let informer = informer.expect("it starts");
            pass(Duration::from_secs(5)).await;
            let subscription = informer.for_each(|_| std::future::ready(())).expect("it runs");
            informer.synced_within(limit).await.expect("it syncs");
            subscription.synced_within(limit).await.expect("it syncs");
            informer.lister().wait_for(&server.version(), limit).await.expect("it is reached");
            assert_eq!(subscription.shutdown(limit).await, Ok(()));
            assert!(informer.shutdown(limit).await.is_clean());
            assert_eq!(runtime.shutdown(limit).await, Ok(()));
        });
    }
}

#[test]
fn inf_55_a_limit_of_zero_checks_once() {
    Runtime::simulated(1).run(|runtime| async move {
        let server = Server::new();
        three(&server);
        let connected = server.clone();
        let informer = Informer::builder(&runtime, "texts").source(move || connected.clone()).start();
        let informer = informer.expect("it starts");
        assert!(informer.synced_within(Duration::ZERO).await.is_err(), "not yet");
        informer.synced().await.expect("it syncs");
        informer.synced_within(Duration::ZERO).await.expect("it is synced");
        let lister = informer.lister();
        lister.wait_for(&server.version(), Duration::ZERO).await.expect("it is reached");
        assert!(lister.wait_for(&"999".parse().expect("a version"), Duration::ZERO).await.is_err());
        let subscription = informer.for_each(|_| std::future::ready(())).expect("it runs");
        assert!(subscription.synced_within(Duration::ZERO).await.is_err(), "not yet");
        drop(subscription.shutdown(Duration::ZERO).await);
        drop(informer.shutdown(Duration::ZERO).await);
        assert!(informer.synced().await.is_ok(), "latched");
    });
}

#[test]
fn inf_55_a_start_that_is_spread_over_for_ever_never_comes_and_does_not_delay_the_stop() {
    Runtime::simulation(1).start_jitter(Duration::MAX).build().run(|runtime| async move {
        let server = Server::<String>::new();
        let connected = server.clone();
        let informer = Informer::builder(&runtime, "texts").source(move || connected.clone()).start();
        let informer = informer.expect("it starts");
        assert!(informer.synced_within(Duration::from_secs(24 * 3600)).await.is_err());
        assert_eq!((server.requests().len(), informer.status().restarts), (0, 0));
        assert!(informer.shutdown(LONG).await.is_clean());
    });
    for jitter in [Duration::MAX, Duration::ZERO, Duration::from_secs(u64::MAX)] {
        block_on(&mut tokio::runtime::Builder::new_current_thread(), async {
            let runtime = Runtime::threads().start_jitter(jitter).start().expect("threads can be started");
            let server = Server::<String>::new();
            let informer = Informer::builder(&runtime, "texts").source(move || server.clone()).start();
            let informer = informer.expect("it starts");
            assert!(!informer.shutdown(LIMIT).await.still_running, "{jitter:?}");
            assert_eq!(informer.status().restarts, 0, "{jitter:?}");
            runtime.shutdown(LIMIT).await.expect("nothing blocks it");
        });
    }
}
