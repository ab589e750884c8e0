//! What a program hears of the failures of sources: LIS-43.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use informer_actors::informer::SourceFailure;
use informer_core::list_watch_error::ListWatchError;

use crate::world::{World, pass, run, three, until};

fn refused(times: usize) -> Vec<ListWatchError> {
    vec![ListWatchError::source("connection refused"); times]
}

/// What a handler was told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<SourceFailure>>>);

impl Told {
    fn all(&self) -> Vec<SourceFailure> {
        self.0.lock().expect("no panic").clone()
    }

    fn add(&self, failure: SourceFailure) -> usize {
        let mut told = self.0.lock().expect("no panic");
        told.push(failure);
        told.len()
    }
}

async fn has_failed(world: &World, times: u64) {
    let failed = world.informer.wait_until(|status| status.sources[0].counters.failures >= times).await;
    failed.expect("it runs");
}

#[test]
fn lis_43_each_failure_is_told_with_its_error_its_attempts_and_its_next_try() {
    run(
        |server| {
            three(server);
            server.refuse(refused(3));
        },
        |world| async move {
            let told = Told::default();
            let noted = told.clone();
            let runtime = world.runtime.clone();
            world.informer.on_error(move |failure| {
                assert!(failure.next_try.is_some_and(|next| next > runtime.now()));
                noted.add(failure);
                async {}
            });
            world.synced().await;
            let all = told.all();
            assert_eq!(all.iter().map(|failure| failure.attempts).collect::<Vec<_>>(), [1, 2, 3]);
            assert!(all.iter().all(|failure| failure.missed == 0 && &*failure.informer == "texts"));
            assert_eq!(all[0].to_string(), format!("source default of texts: {}", refused(1)[0]));
            assert_eq!(world.informer.status().error_handler_panics, 0);
        },
    );
}

// LIS-43: given a handler of failures, when requests of a source fail, then it is told of each, with source,
// typed error, attempts in a row and the next try, one at a time; while it is busy the newest of each source
// waits, with the number of those that it stands for; it delays no request, a panic in it is counted and it
// is called again, and it neither keeps the informer nor outlives it.
// - a each failure with source, error, attempts and next try:
//   `lis_43_each_failure_is_told_with_its_error_its_attempts_and_its_next_try`
// - b while it is busy the newest waits with the number of those before, and nothing is delayed
// - c a panic is counted, and it is called again: `lis_43_a_handler_that_panics_is_counted_and_called_again`
// - d a stream ends with the informer, and does not keep it:
//   `lis_43_the_stream_of_failures_ends_with_the_informer_and_does_not_keep_it`
#[test]
fn lis_43_a_handler_that_is_busy_hears_of_the_newest_failure_and_how_many_it_missed() {
    run(
        |server| {
            three(server);
            server.refuse(refused(6));
        },
        |world| async move {
            let told = Told::default();
            let noted = told.clone();
            world.informer.on_error(move |failure| {
                let nth = noted.add(failure);
                async move {
                    if nth == 1 {
                        tokio::time::sleep(Duration::from_secs(600)).await;
                    } else {
                        pending::<()>().await;
                    }
                }
            });
            world.synced().await;
            assert_eq!(told.all().len(), 1, "the source was not delayed");
            pass(Duration::from_secs(600)).await;
            let all = told.all();
            assert_eq!((all.len(), all[1].missed, all[1].next_try), (2, 4, None), "followed by then");
        },
    );
}

#[test]
fn lis_43_a_handler_that_panics_is_counted_and_called_again() {
    run(
        |server| {
            three(server);
            server.refuse(refused(3));
        },
        |world| async move {
            let told = Told::default();
            let noted = told.clone();
            world.informer.on_error(move |failure| {
                let nth = noted.add(failure);
                assert!(nth != 1, "on purpose");
                async move { assert!(nth != 2, "on purpose") }
            });
            has_failed(&world, 3).await;
            until(|| told.all().len() == 3).await;
            assert_eq!(world.informer.status().error_handler_panics, 2);
        },
    );
}

#[test]
fn lis_43_the_stream_of_failures_ends_with_the_informer_and_does_not_keep_it() {
    run(
        |server| {
            three(server);
            server.refuse(refused(1));
        },
        |world| async move {
            let World { informer, runtime, server: _server } = world;
            let (mut failures, weak) = (informer.failures(), informer.downgrade());
            informer.synced().await.expect("it recovers");
            assert_eq!(failures.next().await.map(|failure| failure.missed), Some(0));
            drop(informer);
            assert!(weak.upgrade().is_none(), "the stream does not keep it");
            assert!(failures.next().await.is_none());
            drop(runtime);
        },
    );
}
