//! The scripted server itself: its answers take time, as on a network.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use futures_util::stream::{self, LocalBoxStream};
use futures_util::{FutureExt, StreamExt};
use informer_actors::list_watch::{KnownObjects, ListWatch};
use informer_actors::runtime::Runtime;
use informer_actors::testing::Server;
use informer_core::list_watch_error::ListWatchError;
use informer_core::request::{AskedVersion, ListRequest, WatchRequest};

use crate::world::{pass, three};

type Answer = LocalBoxStream<'static, ()>;

const MINUTE: Duration = Duration::from_secs(60);

/// Runs `ask` against a server of three objects, each in a part of its own, and returns after how many
/// milliseconds the parts of the answer came, within a minute.
fn arrivals(prepare: impl FnOnce(&Server<String>), ask: impl FnOnce(&Server<String>) -> Answer) -> Vec<u128> {
    Runtime::simulated(1).run(|runtime| async move {
        let server = Server::new();
        three(&server);
        server.objects_per_part(1);
        prepare(&server);
        let arrived = Rc::new(RefCell::new(Vec::new()));
        let asked = runtime.now();
        let parts = ask(&server).for_each(|_| {
            arrived.borrow_mut().push((runtime.now() - asked).as_millis());
            std::future::ready(())
        });
        drop(tokio::time::timeout(MINUTE, parts).await);
        arrived.take()
    })
}

fn list(server: &Server<String>) -> Answer {
    let request = ListRequest { version: AskedVersion::Any, limit: None, token: None, name: None };
    server.list(request, KnownObjects::nothing()).map(drop).boxed_local()
}

fn watch_list(server: &Server<String>) -> Answer {
    let request = WatchRequest { version: AskedVersion::Latest, initial_events: true, timeout: MINUTE };
    server.watch(request, KnownObjects::nothing()).map(drop).boxed_local()
}

#[test]
fn no_answer_of_the_scripted_server_comes_in_the_poll_of_its_request() {
    assert_eq!(arrivals(|_| (), list), [5, 5, 5, 5]);
    assert_eq!(arrivals(|_| (), watch_list), [5, 5, 5, 5, 5]);
    let get =
        |server: &Server<String>| stream::once(server.get("a/one".parse().unwrap()).map(drop)).boxed_local();
    assert_eq!(arrivals(|_| (), get), [5]);
    let refused = |server: &Server<String>| server.refuse([ListWatchError::source("down")]);
    assert_eq!(arrivals(refused, list), [5]);
}

#[test]
fn a_test_sets_how_long_the_scripted_server_takes_until_its_head_and_between_parts() {
    let slow = |server: &Server<String>| {
        server.answer_after(Duration::from_millis(100));
        server.pause_between_parts(Duration::from_millis(30));
    };
    assert_eq!(arrivals(slow, list), [100, 130, 160, 190]);
    assert_eq!(arrivals(slow, watch_list), [100, 130, 160, 190, 220]);
    let at_once = |server: &Server<String>| server.answer_after(Duration::ZERO);
    assert_eq!(arrivals(at_once, list), [0, 0, 0, 0]);
}

#[test]
fn an_event_takes_the_pause_between_parts_to_arrive() {
    let come = |server: &Server<String>| {
        server.pause_between_parts(Duration::from_millis(30));
        let later = server.clone();
        let applied = async move {
            pass(Duration::from_secs(1)).await;
            later.apply("a/two", "changed".to_owned());
        };
        stream::select(watch_list(server), stream::once(applied)).boxed_local()
    };
    assert_eq!(arrivals(|_| (), come), [5, 35, 65, 95, 125, 1_000, 1_030]);
}
