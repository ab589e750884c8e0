//! What no handle can provoke: an arbiter whose thread ends by itself, without a shutdown.

use std::time::Duration;

use futures_util::StreamExt;
use informer_core::meta::ResourceVersion;

use super::{Informer, StartError, WaitError};
use crate::lister::WaitForError;
use crate::pipeline::subscription_state::EndReason;
use crate::runtime::Runtime;
use crate::subscription::SubscribeError;
use crate::testing::Server;

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
