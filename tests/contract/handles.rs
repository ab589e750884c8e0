//! Handles that do not keep the informer running, and handles without a type (INF-64, INF-65).
//!
//! What all handles together do at the end of an informer is tested in `endings.rs`.

use std::sync::Arc;
use std::time::Duration;

use informer_actors::informer::AnyInformer;
use informer_actors::informer::{Informer, WaitError};
use informer_actors::runtime::Runtime;
use informer_actors::testing::Server;
use informer_core::list_watch_error::ListWatchError;
use informer_core::reflector::SourceState;

use crate::world::{LONG, nothing, pass, run, three};

const TENTH: Duration = Duration::from_millis(100);

// INF-64: given a weak handle (`Informer::downgrade`), when another handle exists, then it gives the
// informer; when the last other one is dropped, then the informer stops within 100 ms, frees its objects, and
// the weak handle gives nothing any more but its name.
// - a it gives the informer while another handle exists, also a lister
// - b it keeps nothing running and nothing in memory:
//   `inf_64_a_weak_handle_keeps_neither_the_informer_running_nor_its_objects_in_memory`
// - c what it gave keeps the informer running
#[test]
fn inf_64_a_weak_handle_gives_the_informer_while_another_handle_keeps_it_running() {
    run(three, |world| async move {
        world.synced().await;
        let weak = world.informer.downgrade();
        let lister = world.informer.lister();
        drop(world.informer);
        pass(TENTH).await;
        let again = weak.upgrade().expect("a lister is a handle");
        drop(lister);
        pass(TENTH).await;
        let version = world.server.apply("a/one", "still followed".to_owned());
        again
            .lister()
            .wait_for(&version, LONG)
            .await
            .expect("the handle that it gave keeps the informer running");
        assert!(weak.clone().upgrade().is_some());
        assert_eq!((weak.name(), again.name()), ("texts", "texts"));
    });
}

#[test]
fn inf_64_a_weak_handle_keeps_neither_the_informer_running_nor_its_objects_in_memory() {
    Runtime::simulated(1).run(|runtime| async move {
        let body = Arc::new(());
        let objects = Arc::downgrade(&body);
        let server = Server::new();
        server.apply("a/one", body);
        let informer = Informer::builder(&runtime, "units").source({
            let server = server.clone();
            move || server.clone()
        });
        let informer = informer.start().expect("the spec is valid");
        informer.synced_within(LONG).await.expect("it syncs");
        let weak = informer.downgrade();
        drop(server);
        drop(informer);
        pass(TENTH).await;
        assert!(weak.upgrade().is_none(), "it has stopped");
        assert_eq!(objects.strong_count(), 0, "its objects and its source are freed");
        assert_eq!(weak.name(), "units");
    });
}

#[test]
fn inf_65_informers_of_several_kinds_are_one_list_that_is_waited_for_read_and_stopped() {
    Runtime::simulated(1).run(|runtime| async move {
        let (texts, numbers) = (Server::new(), Server::new());
        three(&texts);
        numbers.apply("a/number", 7_u64);
        let informers: [AnyInformer; 2] = [
            Informer::builder(&runtime, "texts").source(move || texts.clone()).start().unwrap().into(),
            Informer::builder(&runtime, "numbers").source(move || numbers.clone()).start().unwrap().into(),
        ];
        for informer in &informers {
            informer.synced_within(LONG).await.expect("it syncs");
            informer.synced().await.expect("latched");
            let streaming = |state: &SourceState| matches!(state, SourceState::Streaming);
            let status = informer.wait_until(|status| streaming(&status.state())).await.expect("it runs");
            assert!(streaming(&informer.state()) && informer.last_error().is_none());
            assert_eq!((status.objects, &*status.name), (informer.objects(), informer.name()));
        }
        let seen = informers.each_ref().map(|informer| (informer.name().to_owned(), informer.objects()));
        assert_eq!(seen, [("texts".to_owned(), 3), ("numbers".to_owned(), 1)]);
        for informer in &informers {
            assert!(informer.shutdown(LONG).await.is_clean());
            assert!(informer.status().stopped);
        }
        assert!(format!("{:?}", informers[1]).contains("numbers"));
    });
}

// INF-65: given informers of several kinds, when each is taken as an `AnyInformer`, then one list of them
// shows names, states, figures and failures, waits for all first lists, ends such a wait as the informer's
// own does, stops them, and each keeps its informer running.
// - a names, states, figures and failures
// - b it waits for first lists and stops:
//   `inf_65_informers_of_several_kinds_are_one_list_that_is_waited_for_read_and_stopped`
// - c its waits end as the informer's own do
// - d it keeps its informer running, and the last one stops it:
//   `inf_65_an_informer_without_its_type_is_a_handle_like_the_others`
#[test]
fn inf_65_a_wait_without_a_type_ends_as_the_informers_own_does() {
    let denied = |server: &Server<String>| {
        server.refuse((0..1000).map(|_| ListWatchError::Denied("no".into())));
    };
    run(denied, |world| async move {
        let any = AnyInformer::from(&world.informer);
        let (own, erased) = tokio::join!(world.informer.synced_within(LONG), any.synced_within(LONG));
        let own = own.map_err(|error| error.to_string());
        assert_eq!(erased.map_err(|error| error.to_string()), own);
        assert!(own.is_err_and(|error| error.contains("no")));
        assert!(matches!(any.last_error(), Some(ListWatchError::Denied(_))));
        world.informer.shutdown(LONG).await;
        assert!(matches!(any.synced().await, Err(WaitError::Stopped { .. })));
        assert!(matches!(any.wait_until(|_| false).await, Err(WaitError::Stopped { .. })));
    });
}

#[test]
fn inf_65_an_informer_without_its_type_is_a_handle_like_the_others() {
    run(nothing, |world| async move {
        world.synced().await;
        let weak = world.informer.downgrade();
        let any = AnyInformer::from(world.informer);
        let second = any.clone();
        drop(any);
        pass(TENTH).await;
        assert!(weak.upgrade().is_some() && !second.status().stopped);
        drop(second);
        pass(TENTH).await;
        assert!(weak.upgrade().is_none());
    });
}
