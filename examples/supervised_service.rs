//! A service that kills parts of itself on purpose, and shows that its cache and its subscriber do not notice.
//!
//! Four disasters: the Reflector panics in mid-message, the Indexer dies between a publish and telling of it, a
//! subscriber's callback panics, and the API server goes away. After each the cache must equal the server's list, and
//! what the subscriber was told must add up to it. Needs no cluster; the fault hook needs the feature `testing`:
//!
//! ```sh
//! cargo run --example supervised_service --features testing
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use actix_informer::client::Config;
use actix_informer::faults::{Faults, Site};
use actix_informer::prelude::*;
use actix_informer::testing::Recorder;
use anyhow::{Context, ensure};
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(30);

/// Which part is to die next.
#[derive(Clone, Default)]
struct Assassin(Arc<AtomicU8>);

const REFLECTOR: u8 = 1;
const INDEXER: u8 = 2;

impl Assassin {
    fn send_for(&self, victim: u8) {
        self.0.store(victim, Ordering::Relaxed);
    }

    fn hook(&self) -> Faults {
        let contract = Arc::clone(&self.0);
        Faults::new(move |site| {
            let victim = match site {
                Site::ReflectorReceived => REFLECTOR,
                Site::IndexerPublished => INDEXER,
                _ => return,
            };
            let struck = contract.compare_exchange(victim, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
            assert!(!struck, "killed on purpose at {site:?}");
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
    told: actix_informer::testing::RecorderHandle<Pod>,
}

impl Service {
    /// A change made through the server must arrive, and everything must add up.
    async fn check(&self, disaster: &str) -> anyhow::Result<()> {
        let created = self.server.create(pod(&disaster.to_lowercase().replace(' ', "-")))?;
        let version = created["metadata"]["resourceVersion"].as_str().context("a version")?.parse()?;
        self.pods.lister().wait_for(&version, LONG).await?;
        let snapshot = self.pods.snapshot();
        let listed = self.server.list("pods")?.len();
        ensure!(snapshot.len() == listed, "the cache has {} pods, the server {listed}", snapshot.len());
        let mut agrees = Err(String::new());
        for _ in 0..100 {
            agrees = self.told.agrees_with(&snapshot);
            if agrees.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        agrees.map_err(anyhow::Error::msg)?;
        let streaming = |status: &InformerStatus| matches!(status.state(), SourceState::Streaming);
        let status = self.pods.wait_until(streaming).await?;
        println!(
            "{disaster:<28} {} pods, restarts {}, relists {}; cache and subscriber agree with the server",
            status.objects,
            status.restarts,
            status.relists()
        );
        Ok(())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // What dies on purpose should not fill the screen; the service's own words are on stdout.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("  (a panic: {})", panic.payload_as_str().unwrap_or("?"))
    }));
    let assassin = Assassin::default();
    let server = ApiServer::builder().start().await?;
    (0..100).try_for_each(|n| server.create(pod(&format!("pod-{n}"))).map(drop))?;

    let runtime = Runtime::threads().faults(assassin.hook()).start()?;
    let client = Client::new(Config::new(server.url())?)?;
    let pods = client.resource::<Pod>().informer(&runtime)?.start()?;
    let told = Recorder::<Pod>::new().1;
    let recorded = told.clone();
    let subscription = pods.for_each(move |notify| {
        recorded.record(&notify);
        let fatal = notify.key().name() == "the-callback-panics";
        async move { assert!(!fatal, "the subscriber cannot bear this pod") }
    })?;
    subscription.synced_within(LONG).await?;
    let mut service = Service { server, pods, told };
    service.check("nothing has happened").await?;

    assassin.send_for(REFLECTOR);
    service.check("the reflector is killed").await?;

    assassin.send_for(INDEXER);
    service.check("the indexer is killed").await?;

    service.check("the callback panics").await?;
    println!("{:<28} {} event skipped and counted", "", subscription.status().panics);

    service.server.stop();
    service.pods.wait_until(|status| matches!(status.state(), SourceState::Backoff { .. })).await?;
    println!("{:<28} {}", "the API server is gone", service.pods.last_error().context("an error")?);
    println!("{:<28} still serving {} pods", "", service.pods.lister().snapshot().len());
    service.server.start_again()?;
    service.check("the API server is back").await?;

    let report = service.pods.shutdown(LONG).await;
    println!("stopped, everything delivered: {}", report.is_clean());
    Ok(())
}
