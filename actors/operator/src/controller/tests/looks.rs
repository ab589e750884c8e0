//! What a controller looks at in an informer of many sources.

use informer_actors::inner::Followed;
use informer_core::list_watch_error::ListWatchError;
use tokio::time::sleep;

use super::*;

const SOURCES: u64 = 40;

/// An informer whose sources list one after the other, one a second.
fn many_sources(world: &World) -> (Informer<String>, Vec<Server<String>>) {
    let servers: Vec<Server<String>> =
        (0..SOURCES).map(|number| Server::named(SourceId::new(format!("{number}")))).collect();
    let mut builder = Informer::builder(&world.runtime, "many");
    for (number, server) in servers.iter().enumerate() {
        server.hold_lists(true);
        let config = ReflectorConfig::new("texts");
        let spec = SourceSpec::new(SourceId::new(format!("{number}")), server.connect(), config);
        builder = builder.source_with(spec);
    }
    (builder.start().expect("a sound spec"), servers)
}

#[test]
fn workers_that_wait_for_the_sync_of_many_sources_copy_no_status() {
    run(|world| async move {
        let (informer, servers) = many_sources(&world);
        let builder = Controller::builder(&informer).workers(8);
        let controller = world.logging(builder);
        let copies = || informer.status_copies();
        let before = copies();
        for server in &servers {
            server.apply("a/one", "1".to_owned());
            server.hold_lists(false);
            sleep(secs(1)).await;
        }
        assert_eq!(copies() - before, 0);
        assert!(informer.status().synced && controller.status().counts.reconciles > 0);
    });
}

#[test]
fn a_request_that_asks_whether_its_object_may_be_behind_copies_no_status() {
    run(|world| async move {
        world.apply("a/one", "1");
        let log = world.log.clone();
        let asks = move |request: Request<String>| {
            log.line(format!("{} {}", request.key(), request.may_be_behind()));
            async { DONE }
        };
        let controller = world.builder().reconcile(asks).start().expect("it starts");
        assert_eq!(world.lines().await, ["a/one false"]);
        let copies = || world.informer.status_copies();
        let before = copies();
        world.texts.refuse([ListWatchError::Denied("no access".into())]);
        world.texts.end_watches(None);
        sleep(secs(1)).await;
        controller.trigger(key("a/one"));
        assert_eq!(world.lines().await, ["a/one true"]);
        assert_eq!(copies() - before, 0);
    });
}
