//! The demo: an in-memory API server and a workload that changes its pods, and writes nowhere else. Equal seeds give equal
//! changes. The drop ends both.

use std::sync::Arc;
use std::time::Duration;

use informer_apiserver::{ApiError, ApiServer};
use serde_json::json;
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;

use super::Error;
use super::config::DemoConfig;
use population::{Change, Population};

mod population;

#[derive(Debug)]
pub(super) struct Demo {
    server: Arc<ApiServer>,
    workload: AbortHandle,
    config: DemoConfig,
}

impl Demo {
    /// Must be called inside a tokio runtime.
    pub(super) fn start(config: &DemoConfig) -> Result<Self, Error> {
        let failed = |error| Error::Embedded(Box::new(error));
        let server = ApiServer::builder().seed(config.seed).start_blocking().map_err(failed)?;
        let failed = |error: ApiError| Error::Embedded(error.to_string().into());
        for namespace in NAMESPACES {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            server.create(object).map_err(failed)?;
        }
        let mut population = Population::new(config.pods, config.seed);
        for change in population.initial_changes() {
            apply(&server, change).map_err(failed)?;
        }
        let server = Arc::new(server);
        let period = Duration::from_secs(1) / config.changes_per_second;
        let workload = tokio::spawn(change_pods(Arc::clone(&server), population, period)).abort_handle();
        Ok(Self { server, workload, config: config.clone() })
    }

    pub(super) fn url(&self) -> String {
        self.server.url()
    }

    pub(super) fn stop_workload(&self) {
        self.workload.abort();
    }

    pub(super) fn announcement(&self) -> [String; 2] {
        let (url, pods, rate) = (self.url(), self.config.pods, self.config.changes_per_second);
        [
            format!("no cluster is configured, so this is a demo: reading an in-memory API server at {url}"),
            format!(
                "it has about {pods} pods and {rate} changes per second; `kubectl --server {url} get pods -A` shows them"
            ),
        ]
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.workload.abort();
    }
}

async fn change_pods(server: Arc<ApiServer>, mut population: Population, period: Duration) {
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let change = population.next();
        if let Err(error) = apply(&server, change) {
            // Another client, as kubectl, has changed the pod.
            tracing::debug!(target: "actix_informer::informerd", %error, "the server refused a change of the demo; the next change follows");
        }
    }
}

fn apply(server: &ApiServer, change: Change) -> Result<(), ApiError> {
    match change {
        Change::Create { object, status } => {
            let (namespace, name) = namespace_and_name(&object);
            server.create(object)?;
            match status {
                Some(status) => server.merge_patch("pods/status", &namespace, &name, &status).map(drop),
                None => Ok(()),
            }
        }
        Change::Patch { resource, namespace, name, patch } => {
            server.merge_patch(resource, namespace, &name, &patch).map(drop)
        }
        Change::Delete { namespace, name } => server.delete("pods", namespace, &name).map(drop),
    }
}

fn namespace_and_name(object: &serde_json::Value) -> (String, String) {
    let text =
        |at: &str| object.pointer(at).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    (text("/metadata/namespace"), text("/metadata/name"))
}

// Fixtures.

const NAMESPACES: [&str; 4] = ["shop", "payments", "batch", "monitoring"];

const NODES: [&str; 6] = ["node-a1", "node-a2", "node-b1", "node-b2", "node-c1", "node-c2"];

const TRACKS: [&str; 3] = ["stable", "canary", "beta"];

#[derive(Debug, Clone, Copy)]
struct App {
    namespace: &'static str,
    name: &'static str,
    image: &'static str,
    /// Rolled out in turn.
    tags: [&'static str; 2],
    /// Its pods end by themselves, as those of a Job.
    job: bool,
    /// A second container, a proxy.
    sidecar: bool,
}

const SERVICE: App = App {
    namespace: "shop",
    name: "web",
    image: "registry.example/shop/web",
    tags: ["2.4.1", "2.5.0"],
    job: false,
    sidecar: false,
};
const JOB: App = App { namespace: "batch", tags: ["1.0", "1.1"], job: true, ..SERVICE };

/// Each has an equal share of the pods.
const APPS: [App; 10] = [
    App { sidecar: true, ..SERVICE },
    App { name: "cart", image: "registry.example/shop/cart", ..SERVICE },
    App { name: "search", image: "registry.example/shop/search", tags: ["0.9.3", "0.9.4"], ..SERVICE },
    App {
        namespace: "payments",
        name: "ledger",
        image: "registry.example/pay/ledger",
        sidecar: true,
        ..SERVICE
    },
    App { namespace: "payments", name: "gateway", image: "registry.example/pay/gateway", ..SERVICE },
    App { namespace: "monitoring", name: "agent", image: "registry.example/mon/agent", ..SERVICE },
    App { namespace: "monitoring", name: "store", image: "registry.example/mon/store", ..SERVICE },
    App { name: "invoice", image: "registry.example/jobs/invoice", ..JOB },
    App { name: "reindex", image: "registry.example/jobs/reindex", ..JOB },
    App { name: "thumbnails", image: "registry.example/jobs/thumbnails", ..JOB },
];
