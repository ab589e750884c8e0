//! A real operator: websites, each with a deployment, a service, a config map, a host name, a status and a finalizer.
//!
//! Shows how the parts of this crate make an operator: informers, a controller, children by server-side apply, a finalizer
//! for what the garbage collector cannot reach, conditions, events, leader election, unit tests (`tests.rs`). The operator
//! itself is in `operator/`; this file gives it a cluster. Without arguments that is an in-memory API server, on which it
//! shows what it does, and ends:
//!
//! ```sh
//! cargo run --example website_operator
//! kubectl apply -f config/website-operator/crd.yaml && kubectl create namespace website-operator
//! cargo run --example website_operator -- --kubeconfig ~/.kube/config   # until Ctrl-C
//! ```

use std::time::Duration;

use actix_informer::prelude::*;

mod demo;
mod operator;
#[cfg(all(test, feature = "testing"))]
mod tests;

/// For each of three steps: together they are shorter than the grace period of its pod.
const DRAIN: Duration = Duration::from_secs(8);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let config = match arguments[..] {
        [] => return demo::run().await,
        ["--kubeconfig", file] => Config::from_kubeconfig_file(file, None)?,
        ["--in-cluster"] => Config::in_cluster()?,
        _ => anyhow::bail!("usage: website_operator [--kubeconfig FILE | --in-cluster]"),
    };
    let (client, runtime) = (Client::new(config)?, Runtime::threads().start()?);
    let operator = operator::start(&client, &runtime)?;
    end_of_process().await?;
    println!("{}", operator.report());
    operator.stop(DRAIN).await
}

/// Returns at Ctrl-C, or when the kubelet ends the pod.
async fn end_of_process() -> std::io::Result<()> {
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminated.recv() => Ok(()),
    }
}
