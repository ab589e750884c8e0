//! Sources that supervision has given up, and how they are revived. INF-66.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use informer_actors::informer::{AnyInformer, ReviveError, WaitError};
use informer_actors::list_watch::SourceSpec;
use informer_actors::subscription::SubscribeOptions;
use informer_actors::testing::{Faults, Server, Site};
use informer_core::meta::SourceId;
use informer_core::reflector::{ReflectorConfig, SourceState};

use crate::world::{LONG, pass, run_with, settle, three};

/// Panics in every run of the reflector while the switch is on.
pub(crate) fn panics_while_on() -> (Arc<AtomicBool>, Faults) {
    let switch = Arc::new(AtomicBool::new(false));
    let is_on = Arc::clone(&switch);
    let faults = Faults::new(move |site| {
        let is_reflectors = matches!(site, Site::ReflectorStarted | Site::ReflectorReceived);
        assert!(!(is_reflectors && is_on.load(Ordering::Relaxed)), "killed at {site:?}");
    });
    (switch, faults)
}

// INF-66: given a source that supervision has given up, when `Informer::revive` is called, then its state is
// Starting at once and no failure is shown, it goes on at the version it had reached, subscribers receive
// only true differences, and it may be restarted as often as a new one; waits begun afterwards end Ok; a
// source that is followed, an unknown one and a stopped informer are refused.
// - a it goes on where it was, true differences only, a new history
// - b waits begun afterwards end Ok:
//   `inf_66_an_informer_syncs_after_a_source_that_was_given_up_before_its_first_list_is_revived`
// - c also by an `AnyInformer`, which lists the subscriptions, too:
//   `inf_66_an_informer_without_its_type_revives_a_source_and_shows_its_subscriptions`
// - d what cannot be revived is refused
#[test]
fn inf_66_a_source_that_was_given_up_is_revived_goes_on_where_it_was_and_delivers_only_true_differences() {
    let (panics_while_on, faults) = panics_while_on();
    run_with(faults, three, |world| async move {
        world.synced().await;
        let watched = world.watched();
        watched.synced().await;
        let source = SourceId::default();
        let refused = world.informer.revive(&source).expect_err("it is followed");
        assert!(matches!(refused, ReviveError::NotGivenUp { .. }), "{refused}");
        for round in 0..2 {
            panics_while_on.store(true, Ordering::Relaxed);
            world.server.apply("a/one", format!("lethal {round}"));
            let failed =
                world.informer.wait_until(|status| status.failed.is_some()).await.expect("it runs on");
            assert!(matches!(failed.state(), SourceState::GivenUp { .. }), "{:?}", failed.state());
            world.server.delete("a/two");
            world.server.apply("c/new", format!("created while the source was given up {round}"));
            panics_while_on.store(false, Ordering::Relaxed);
            let before = world.server.requests().len();
            world.informer.revive(&source).expect("it is given up");
            let status = world.informer.status();
            assert!(matches!(status.state(), SourceState::Starting), "at once: {:?}", status.state());
            assert_eq!(status.failed, None);
            world.agrees().await;
            watched.agrees(&world).await;
            world.streaming().await;
            let requests = world.server.requests();
            let time_travel = |line: &String| line.contains("version=\"\"") || line.contains("version=\"0\"");
            assert!(!requests[before..].iter().any(time_travel), "{:?}", &requests[before..]);
            assert_eq!(world.informer.status().restarts, 5 * (round + 1), "with a new history");
        }
        let refused = world.informer.revive(&SourceId::new("elsewhere")).expect_err("there is none");
        assert_eq!(refused.to_string(), "informer \"texts\" has no source \"elsewhere\"");
        assert!(world.informer.shutdown(LONG).await.is_clean());
        let refused = world.informer.revive(&source).expect_err("it has stopped");
        assert_eq!(refused.to_string(), "informer \"texts\" has stopped");
    });
}

#[test]
fn inf_66_an_informer_without_its_type_revives_a_source_and_shows_its_subscriptions() {
    let (panics_while_on, faults) = panics_while_on();
    panics_while_on.store(true, Ordering::Relaxed);
    run_with(faults, three, |world| async move {
        let (any, source) = (AnyInformer::from(&world.informer), SourceId::default());
        let watched = world.watched_with(SubscribeOptions::new().name("auditor"));
        let seen = || {
            let all = any.subscriptions();
            all.into_iter()
                .map(|seen| (seen.name.to_string(), seen.synced, seen.delivered))
                .collect::<Vec<_>>()
        };
        assert!(matches!(any.synced().await, Err(WaitError::SourceGivenUp { .. })));
        assert_eq!(seen(), [("auditor".to_owned(), false, 0)]);
        panics_while_on.store(false, Ordering::Relaxed);
        any.revive(&source).expect("it is given up");
        any.synced().await.expect("it lists");
        watched.synced().await;
        assert_eq!(seen(), [("auditor".to_owned(), true, 3)]);
        assert!(matches!(any.revive(&source), Err(ReviveError::NotGivenUp { .. })));
        drop(watched);
        settle().await;
        assert_eq!(seen(), [], "it has left");
    });
}

#[test]
fn inf_66_an_informer_syncs_after_a_source_that_was_given_up_before_its_first_list_is_revived() {
    let (panics_while_on, faults) = panics_while_on();
    panics_while_on.store(true, Ordering::Relaxed);
    run_with(faults, three, |world| async move {
        let watched = world.watched();
        let given_up = world.informer.synced().await.expect_err("nothing lists");
        assert!(matches!(given_up, WaitError::SourceGivenUp { .. }), "{given_up}");
        panics_while_on.store(false, Ordering::Relaxed);
        world.informer.revive(&SourceId::default()).expect("it is given up");
        world.synced().await;
        watched.synced().await;
        watched.agrees(&world).await;
        assert!(world.informer.shutdown(LONG).await.is_clean());
    });
}

#[test]
fn inf_66_a_source_that_is_added_later_and_panics_from_its_start_makes_the_informer_stale_when_it_is_given_up()
 {
    let (panics_while_on, faults) = panics_while_on();
    run_with(faults, three, |world| async move {
        world.synced().await;
        let stale = || world.informer.status().stale(world.runtime.now());
        assert_eq!(stale(), None);
        panics_while_on.store(true, Ordering::Relaxed);
        let other = Server::<String>::named(SourceId::new("other"));
        let spec = SourceSpec::new(SourceId::new("other"), other.connect(), ReflectorConfig::new("texts"));
        world.informer.add_source(spec).expect("the name is free");
        world.informer.wait_until(|status| status.failed.is_some()).await.expect("it runs on");
        let given_up_at = world.runtime.now();
        panics_while_on.store(false, Ordering::Relaxed);
        pass(Duration::from_secs(60)).await;
        let status = world.informer.status();
        let added = status.source(&SourceId::new("other")).expect("it is there");
        assert!(matches!(added.state, SourceState::GivenUp { .. }), "{:?}", added.state);
        assert_eq!(added.failing_since, Some(given_up_at));
        assert!(stale().is_some(), "a source of it is not followed");
    });
}
