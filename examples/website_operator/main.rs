//! A real operator: websites, each with a deployment, a service, a config map, a host name, a status and a finalizer.
//!
//! Shows how the parts of this crate make an operator: informers, a controller, children by server-side apply, a finalizer
//! for what the garbage collector cannot reach, conditions, events, leader election, probes, metrics, the page, and tests in simulated worlds
//! (`tests.rs`). The operator itself is in `operator/`; this file gives it a cluster. Without arguments that is an in-memory
//! API server, on which it shows what it does, and ends:
//!
//! ```sh
//! cargo run --features metrics,page,signals --example website_operator
//! kubectl apply -f config/website-operator/crd.yaml && kubectl create namespace website-operator
//! cargo run --features metrics,page,signals --example website_operator -- --kubeconfig ~/.kube/config   # until Ctrl-C
//! ```

use std::net::SocketAddr;
use std::time::Duration;

use actix_informer::metrics::Metrics;
use actix_informer::operator::{Operator, OperatorStatus};
use actix_informer::page::Page;
use actix_informer::prelude::*;
use actix_informer::probes::ProbeSocket;
use actix_informer::signals::stop_signal;

use crate::operator::{WebsiteOperator, figures};

mod demo;
mod operator;
#[cfg(all(test, feature = "test-kit"))]
mod tests;

/// How often the figures are printed.
const FIGURES_EACH: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => demo::run().await,
        ["--kubeconfig", file] => {
            serve(Config::from_kubeconfig_file(file, None)?, SocketAddr::from(([127, 0, 0, 1], 0))).await
        }
        // The port of the probes in config/website-operator/deployment.yaml.
        ["--in-cluster"] => serve(Config::in_cluster()?, SocketAddr::from(([0, 0, 0, 0], 8081))).await,
        _ => anyhow::bail!("usage: website_operator [--kubeconfig FILE | --in-cluster]"),
    }
}

/// Runs the operator until Ctrl-C, or until the kubelet ends the pod.
async fn serve(config: Config, probes: SocketAddr) -> anyhow::Result<()> {
    let stop = stop_signal()?;
    let probes = ProbeSocket::bind(probes)?; // a taken port ends the program here
    println!(
        "probes at http://{0}/readyz?verbose and /livez, metrics at /metrics, the actors at work at /",
        probes.address()
    );
    let (client, runtime) = (Client::new(config)?, Runtime::threads().start()?);
    let page = Page::of(&runtime, "website-operator");
    let probes = probes.metrics(Metrics::of(&runtime).registry()).page(page);
    let replica = std::env::var("POD_NAME").ok();
    let WebsiteOperator { builder, events } = WebsiteOperator::new(&client, &runtime, replica.as_deref())?;
    let operator = builder.probes(probes).start()?;
    let told = async {
        tokio::select! {
            _signal = stop => println!("stopping: reconciles end, events are sent, the lease is given back"),
            () = tell_state(&operator) => {}
            () = tell_figures(&runtime, &events) => {}
        }
        println!("{}", figures(&runtime, &events));
    };
    let report = operator.run_until(told).await;
    println!("{report}");
    anyhow::ensure!(report.is_clean(), "not everything has ended in order");
    Ok(())
}

/// Says what is missing, and who leads, each time that changes.
async fn tell_state(operator: &Operator) {
    let mut told = String::new();
    loop {
        let status = operator.wait_until(|status| state(status) != told).await;
        if state(&status) == told {
            return; // it has stopped
        }
        told = state(&status);
        println!("{told}");
    }
}

/// One line without times, so that it changes only if something has happened.
fn state(status: &OperatorStatus) -> String {
    let leads = match status.leads {
        Some(true) => "this replica leads",
        _ => "waits for the lease",
    };
    let missing = status.unready();
    if missing.is_empty() { format!("ready; {leads}") } else { format!("not ready: {}", missing.join("; ")) }
}

async fn tell_figures(runtime: &Runtime, events: &Recorder) {
    loop {
        tokio::time::sleep(FIGURES_EACH).await;
        println!("{}", figures(runtime, events));
    }
}
