//! A service that makes its own parts fail, and shows that its cache and its subscriber stay correct.
//!
//! Four faults: the Reflector panics while it handles a message, the Indexer panics between a publish and its
//! notification, a subscriber's callback panics, and the API server stops. After each the cache must equal the server's
//! list, and the events that the subscriber received must add up to it. Needs no cluster; the fault hook needs the
//! feature `testing`:
//!
//! ```sh
//! cargo run --example supervised_service --features testing
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use actix_informer::client::Config;
use actix_informer::prelude::*;
use actix_informer::testing::Recorder;
use anyhow::{Context, ensure};
use informer_actors::testing::{Faults, Site};
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(30);

/// Makes one part of the informer panic, when asked to.
#[derive(Clone, Default)]
struct FaultInjector(Arc<AtomicU8>);

const NONE: u8 = 0;
const REFLECTOR: u8 = 1;
const INDEXER: u8 = 2;

impl FaultInjector {
    fn panic_once_in(&self, part: u8) {
        self.0.store(part, Ordering::Relaxed);
    }

    fn hook(&self) -> Faults {
        let pending = Arc::clone(&self.0);
        Faults::new(move |site| {
            let part = match site {
                Site::ReflectorReceived => REFLECTOR,
                Site::IndexerPublished => INDEXER,
                _ => return,
            };
            let is_due = pending.compare_exchange(part, NONE, Ordering::Relaxed, Ordering::Relaxed).is_ok();
            assert!(!is_due, "made to fail at {site:?}");
        })
    }
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "example.org/app:1"}]},
    })
}

struct Service {
    server: ApiServer,
    pods: Informer<Pod>,
    received: actix_informer::testing::RecorderHandle<Pod>,
}

impl Service {
    /// A change made through the server must arrive, and everything must add up.
    async fn check(&self, fault: &str) -> anyhow::Result<()> {
        let created = self.server.create(pod(&fault.to_lowercase().replace(' ', "-")))?;
        let version = created["metadata"]["resourceVersion"].as_str().context("a version")?.parse()?;
        self.pods.lister().wait_for(&version, LONG).await?;
        let snapshot = self.pods.snapshot();
        let listed = self.server.list("pods")?.len();
        ensure!(snapshot.len() == listed, "the cache has {} pods, the server {listed}", snapshot.len());
        let mut agrees = Err(String::new());
        for _ in 0..100 {
            agrees = self.received.agrees_with(&snapshot);
            if agrees.is_ok() {
                break;
            }
            // Real threads deliver, and the recorder only shows what has arrived: look again.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        agrees.map_err(anyhow::Error::msg)?;
        let streaming = |status: &InformerStatus| matches!(status.state(), SourceState::Streaming);
        let status = self.pods.wait_until(streaming).await?;
        println!(
            "{fault:<28} {} pods, restarts {}, relists {}; cache and subscriber agree with the server",
            status.objects,
            status.restarts,
            status.relists()
        );
        Ok(())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // One line for each panic, since they are made on purpose. The report is on stdout.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("  (a panic: {})", panic.payload_as_str().unwrap_or("?"))
    }));
    let injector = FaultInjector::default();
    let server = ApiServer::builder().start().await?;
    (0..100).try_for_each(|n| server.create(pod(&format!("pod-{n}"))).map(drop))?;

    let runtime = Runtime::threads().faults(injector.hook()).start()?;
    let client = Client::new(Config::new(server.url())?)?;
    let pods = client.resource::<Pod>().informer(&runtime)?.start()?;
    let received = Recorder::<Pod>::new().1;
    let recorded = received.clone();
    let subscription = pods.for_each(move |notify| {
        recorded.record(&notify);
        let fatal = notify.key().name() == "the-callback-panics";
        async move { assert!(!fatal, "the subscriber fails for this pod") }
    })?;
    subscription.synced_within(LONG).await?;
    let mut service = Service { server, pods, received };
    service.check("no fault").await?;

    injector.panic_once_in(REFLECTOR);
    service.check("the reflector panics").await?;

    injector.panic_once_in(INDEXER);
    service.check("the indexer panics").await?;

    service.check("the callback panics").await?;
    println!("{:<28} {} event skipped and counted", "", subscription.status().panics);

    service.server.stop();
    service.pods.wait_until(|status| matches!(status.state(), SourceState::Backoff { .. })).await?;
    println!("{:<28} {}", "the API server has stopped", service.pods.last_error().context("an error")?);
    println!("{:<28} still serving {} pods", "", service.pods.lister().snapshot().len());
    service.server.start_again()?;
    service.check("the API server runs again").await?;

    let report = service.pods.shutdown(LONG).await;
    println!("stopped, everything delivered: {}", report.is_clean());
    Ok(())
}
