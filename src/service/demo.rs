//! The demo: an in-memory API server, and pods that live on it.
//!
//! Answers "what is there to be seen without a cluster?". The workload changes the server's store directly, as
//! controllers and kubelets of a cluster would through the API; who watches cannot tell. Invariants:
//! 1. Everything written goes to the server that was started here.
//! 2. The same seed tells the same story, tick by tick.
//! 3. Dropping it ends the workload and the server.
//!
//! Bounds: one change a tick, at most 1,000 ticks a second. Read next: `demo/population.rs`, what happens to pods.

use std::sync::Arc;
use std::time::Duration;

use informer_apiserver::{ApiError, ApiServer};
use serde_json::json;
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;

use super::config::DemoConfig;
use super::error::Error;
use population::{Act, Population};

mod cast;
mod population;

/// The server and its workload.
#[derive(Debug)]
pub(super) struct Demo {
    server: Arc<ApiServer>,
    workload: AbortHandle,
    config: DemoConfig,
}

impl Demo {
    /// Starts the server with all pods there, then the changes. Must be called inside a tokio runtime.
    pub(super) fn start(config: &DemoConfig) -> Result<Self, Error> {
        let failed = |error| Error::Embedded(Box::new(error));
        let server = ApiServer::builder().seed(config.seed).start_blocking().map_err(failed)?;
        let failed = |error: ApiError| Error::Embedded(error.to_string().into());
        for namespace in cast::NAMESPACES {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            server.create(object).map_err(failed)?;
        }
        let mut population = Population::new(config.pods, config.seed);
        for act in population.settle() {
            perform(&server, act).map_err(failed)?;
        }
        let server = Arc::new(server);
        let period = Duration::from_secs(1) / config.changes_per_second;
        let workload = tokio::spawn(live(Arc::clone(&server), population, period)).abort_handle();
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
            format!("told of no cluster, so this is a demo: an in-memory API server at {url}"),
            format!(
                "about {pods} pods live there, {rate} changes a second; `kubectl --server {url} get pods -A` sees them too"
            ),
        ]
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.workload.abort();
    }
}

async fn live(server: Arc<ApiServer>, mut population: Population, period: Duration) {
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let act = population.next();
        if let Err(error) = perform(&server, act) {
            // Somebody else has changed the pod (the server is open to kubectl): the story goes on without it.
            tracing::debug!(%error, "the demo's change was refused");
        }
    }
}

fn perform(server: &ApiServer, act: Act) -> Result<(), ApiError> {
    match act {
        Act::Create { object, status } => {
            let (namespace, name) = place(&object);
            server.create(object)?;
            match status {
                Some(status) => server.merge_patch("pods/status", &namespace, &name, &status).map(drop),
                None => Ok(()),
            }
        }
        Act::Patch { resource, namespace, name, patch } => {
            server.merge_patch(resource, namespace, &name, &patch).map(drop)
        }
        Act::Delete { namespace, name } => server.delete("pods", namespace, &name).map(drop),
    }
}

fn place(object: &serde_json::Value) -> (String, String) {
    let text =
        |at: &str| object.pointer(at).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    (text("/metadata/namespace"), text("/metadata/name"))
}
