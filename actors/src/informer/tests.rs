//! What no handle can cause: an arbiter whose thread ends by itself, without a shutdown. And what no handle
//! can see: the number of sources that an event looks at.

use std::sync::Arc;
use std::time::Duration;

use actix::Actor;
use futures_util::StreamExt;
use informer_core::meta::{Meta, ResourceVersion, SourceId};
use informer_core::reflector::ReflectorConfig;

use super::{Informer, NamespaceSources, OfNamespace, StartError, WaitError};
use crate::lister::WaitForError;
use crate::pipeline::source_cells::walks;
use crate::pipeline::source_spec::SourceSpec;
use crate::pipeline::subscription_state::EndReason;
use crate::runtime::Runtime;
use crate::subscription::SubscribeError;
use crate::testing::{Recorder, Server};

/// A limit that no healthy wait comes near.
const LIMIT: Duration = Duration::from_secs(60);

fn start(runtime: &Runtime) -> Result<Informer<String>, StartError> {
    let server = Server::new();
    server.hold_lists(true);
    Informer::builder(runtime, "texts").source(move || server.clone()).start()
}

#[test]
fn inf_54_every_wait_ends_when_the_arbiters_thread_has_ended() {
    let tokio_runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    tokio_runtime.expect("a runtime").block_on(async {
        let runtime = Runtime::threads().start().expect("threads can be started");
        let informer = start(&runtime).expect("it starts");
        let silent = || informer.for_each(|_| std::future::ready(())).expect("it runs");
        let (subscription, ended) = (silent(), silent());
        let mut events = informer.events().expect("it runs");
        runtime.pipeline_arbiter().end_thread();
        let version = ResourceVersion::from_number(999).expect("not zero");
        let waits = async {
            assert!(matches!(informer.synced().await, Err(WaitError::Stopped { .. })));
            assert!(matches!(informer.wait_until(|_| false).await, Err(WaitError::Stopped { .. })));
            let reached = informer.lister().wait_for(&version, LIMIT).await;
            assert!(matches!(reached, Err(WaitForError::Stopped { .. })), "{reached:?}");
            assert!(matches!(subscription.synced().await, Err(WaitError::Stopped { .. })));
            assert_eq!(ended.end().await, EndReason::InformerStopped);
            assert!(events.next().await.is_none());
            assert!(!informer.shutdown(LIMIT).await.still_running);
        };
        tokio::time::timeout(LIMIT, waits).await.expect("every wait ends");
        let late = informer.for_each(|_| std::future::ready(()));
        assert!(matches!(late.map(drop), Err(SubscribeError::Stopped { .. })));
        // While the thread is still ending, an informer can be started; it ends with the thread.
        let next = loop {
            match start(&runtime) {
                Ok(informer) => {
                    let synced = tokio::time::timeout(LIMIT, informer.synced()).await;
                    assert!(matches!(synced, Ok(Err(WaitError::Stopped { .. }))), "{synced:?}");
                }
                Err(refused) => break refused,
            }
        };
        assert_eq!(next, StartError::RuntimeStopped { informer: "texts".into() });
    });
}

/// How many sources are looked at in an informer with `count` namespaces: until it is synced, and then during
/// a hundred events, including the waits for each.
fn looked_at(count: usize) -> (usize, usize) {
    Runtime::simulated(1).run(move |runtime| async move {
        let name = |n: usize| format!("n{n}");
        let servers: Arc<Vec<Server<String>>> =
            Arc::new((0..count).map(|n| Server::named(SourceId::new(name(n)))).collect());
        let connected = Arc::clone(&servers);
        let each: OfNamespace<String> = Arc::new(move |namespace| {
            let at: usize = namespace[1..].parse().expect("a number");
            let (id, config) = (SourceId::new(namespace), ReflectorConfig::new("texts"));
            Ok(SourceSpec::new(id, connected[at].connect(), config))
        });
        walks::take();
        let namespaces = NamespaceSources::given(each, (0..count).map(name));
        let informer =
            Informer::builder(&runtime, "texts").namespaces(namespaces).start().expect("it starts");
        informer.namespaces_synced().await.expect("it runs");
        let (recorder, received) = Recorder::new();
        let subscription = informer.subscribe(recorder.start()).expect("it runs");
        subscription.synced().await.expect("it runs");
        tokio::time::sleep(LIMIT).await;
        let (start, lister, source) = (walks::take(), informer.lister(), SourceId::new(name(0)));
        for n in 0..100 {
            let key = format!("n0/{}", n % 10);
            let version = servers[0].apply(&key, n.to_string());
            let written = Meta::new(key.parse().expect("a key"), version.clone(), source.clone());
            lister.wait_for_write(&written, LIMIT).await.expect("it is followed");
            lister.wait_for_source(&source, &version, LIMIT).await.expect("it is followed");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(received.len(), 100);
        (start, walks::take())
    })
}

#[test]
fn informer_6_an_event_and_the_waits_for_it_look_at_no_other_source_with_1_and_with_2000() {
    let (one, many) = (looked_at(1), looked_at(2_000));
    assert_eq!((one.1, many.1), (0, 0), "by the events");
    // A few walks over all, and none for each of them.
    assert!((2_000..20 * 2_000).contains(&many.0), "by the start: {} with one, {} with 2,000", one.0, many.0);
}
