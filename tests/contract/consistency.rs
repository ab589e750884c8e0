//! The published snapshot and the status agree: a caller who sees a change in one sees it in the other.
//!
//! INF-60: figures, state and version. Tested in simulation and, because there the caller is on another thread, many
//! times on real threads.

use std::time::Duration;

use informer_actors::informer::Informer;
use informer_actors::runtime::Runtime;
use informer_actors::testing::Server;
use informer_core::reflector::SourceState;

use crate::threads::{LIMIT, block_on, start};

const OBJECTS: usize = 40;

fn server_of(watch_list: bool) -> Server<String> {
    let server = Server::new();
    server.serve_watch_list(watch_list);
    (0..OBJECTS).for_each(|n| drop(server.apply(&format!("a/{n}"), String::new())));
    server
}

fn informer_of(runtime: &Runtime, server: &Server<String>, name: String) -> Informer<String> {
    let connected = server.clone();
    Informer::builder(runtime, name).source(move || connected.clone()).start().expect("the spec is valid")
}

/// Once `synced` is Ok, everything that can be read agrees with it.
async fn is_consistent_once_synced(runtime: &Runtime, watch_list: bool, round: usize) {
    let server = server_of(watch_list);
    let informer = informer_of(runtime, &server, format!("{watch_list}-{round}"));
    informer.synced_within(LIMIT).await.expect("it syncs");
    let (state, status) = (informer.state(), informer.status());
    let at = format!("round {round}, watch-list {watch_list}: {state:?}, {status:?}");
    assert!(matches!(state, SourceState::Streaming), "{at}");
    assert!(matches!(status.sources[0].state, SourceState::Streaming), "{at}");
    assert!(status.synced, "{at}");
    assert_eq!((status.objects, informer.snapshot().len()), (OBJECTS, OBJECTS), "{at}");
    assert_eq!(status.sources[0].version, Some(server.version()), "{at}");
}

/// A caller who sees an object, sees it in the figures too.
async fn is_consistent_after_a_wait(runtime: &Runtime, rounds: usize) {
    let server = server_of(true);
    let informer = informer_of(runtime, &server, "writes".to_owned());
    informer.synced_within(LIMIT).await.expect("it syncs");
    let lister = informer.lister();
    for round in 1..=rounds {
        let version = server.apply(&format!("b/{round}"), String::new());
        lister.wait_for(&version, Duration::from_secs(3600)).await.expect("it arrives");
        let status = informer.status();
        assert_eq!(status.objects, OBJECTS + round, "round {round}");
        assert_eq!(status.sources[0].version, Some(version), "round {round}");
    }
}

/// The same for a caller who only reads, and does not wait to be woken.
fn is_consistent_for_who_looks(runtime: &Runtime) {
    let server = server_of(true);
    let informer = informer_of(runtime, &server, "looks".to_owned());
    let mut seen = 0;
    while seen < 500 {
        server.apply(&format!("b/{seen}"), String::new());
        let objects = informer.snapshot().len();
        let status = informer.status();
        assert!(status.objects >= objects, "the store held {objects}, the status {}", status.objects);
        assert!(status.synced || objects == 0, "objects are there, and it is not synced");
        seen += 1;
    }
}

// INF-60: given an informer that lists by list or watch-list, when synced() is Ok, then state and status no
// longer say Listing, and objects and version are those of the snapshot; a caller that sees an object, by
// waiting or by reading, on any thread, also sees it in the figures.
// - a once synced, state, figures and version say so
// - b also to callers on other threads, that wait or read:
//   `inf_60_once_synced_state_figures_and_version_say_so_to_callers_on_other_threads`
#[test]
fn inf_60_once_synced_state_figures_and_version_say_so() {
    Runtime::simulated(1).run(|runtime| async move {
        for watch_list in [true, false] {
            is_consistent_once_synced(&runtime, watch_list, 0).await;
        }
    });
    Runtime::simulated(1).run(|runtime| async move { is_consistent_after_a_wait(&runtime, 10).await });
}

#[test]
fn inf_60_once_synced_state_figures_and_version_say_so_to_callers_on_other_threads() {
    block_on(tokio::runtime::Builder::new_multi_thread().worker_threads(2), async {
        let runtime =
            Runtime::threads().start_jitter(Duration::ZERO).start().expect("threads can be started");
        for round in 0..150 {
            for watch_list in [true, false] {
                is_consistent_once_synced(&runtime, watch_list, round).await;
            }
        }
        is_consistent_after_a_wait(&runtime, 500).await;
    });
    is_consistent_for_who_looks(&start());
}
