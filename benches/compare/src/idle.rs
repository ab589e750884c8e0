//! Measures what controllers cost while nothing changes.
//!
//! Answers "what do 100 idle controllers on one runtime cost?" by the processor time of this process; the server is a
//! process of its own. Each controller has its own informer of its own kind. Invariant:
//! 1. It is measured when every object was reconciled once, and only if nothing was reconciled meanwhile.
//!
//! Read next: `many/server.rs`, the server; `meter.rs`, the clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix_informer::controller::{Controller, Outcome, Request};
use actix_informer::operator::{Operator, controller};
use actix_informer::prelude::*;
use anyhow::ensure;
use kube_client::api::DynamicObject;

use crate::many::{self, Serving};
use crate::meter::Meter;

const LONG: Duration = Duration::from_secs(120);

/// How many controllers there are, and for how long nothing changes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Plan {
    /// How many controllers there are, each with an informer of its own.
    #[arg(long, default_value_t = 100)]
    controllers: usize,
    /// How many objects each has.
    #[arg(long, default_value_t = 40)]
    objects: usize,
    /// How long nothing changes.
    #[arg(long, default_value_t = 60)]
    idle_seconds: u64,
}

/// Starts the controllers, waits until each object was reconciled, and measures the rest.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<()> {
    let serving = Serving::start(&many::Plan::of(plan.controllers, plan.objects))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(serving.place(), plan))
}

async fn measure(url: &str, plan: &Plan) -> anyhow::Result<()> {
    let (runtime, client) = (Runtime::threads().start()?, Client::new(Config::new(url)?)?);
    let reconciled = Arc::new(AtomicU64::new(0));
    let mut builder = Operator::builder(&runtime);
    for kind in 0..plan.controllers {
        let objects = client.dynamic(&many::resource(kind)).informer(&runtime)?.declare()?;
        let (primary, reconciled) = (objects.clone(), Arc::clone(&reconciled));
        let start = move || {
            let reconciled = Arc::clone(&reconciled);
            let reconcile = move |_: Request<DynamicObject>| {
                reconciled.fetch_add(1, Ordering::Relaxed);
                std::future::ready(Ok(Outcome::Done))
            };
            Controller::builder(&primary).reconcile(reconcile).start()
        };
        builder = builder.cache(objects).work(controller(format!("controller {kind}"), start));
    }
    let operator = builder.start()?;
    operator.ready_within(LONG).await?;
    let all = (plan.controllers * plan.objects) as u64;
    let done = async {
        while reconciled.load(Ordering::Relaxed) < all {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    ensure!(tokio::time::timeout(LONG, done).await.is_ok(), "not every object was reconciled");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let meter = Meter::start();
    tokio::time::sleep(Duration::from_secs(plan.idle_seconds)).await;
    let cost = meter.cost();
    ensure!(reconciled.load(Ordering::Relaxed) == all, "something was reconciled twice");
    println!(
        "{} controllers, idle for {:.0} s: {:.3} s of processor time, {:.3} % of a core",
        plan.controllers,
        cost.wall,
        cost.cpu,
        100.0 * cost.cpu / cost.wall
    );
    let report = operator.drain().await;
    ensure!(report.is_clean(), "{report}");
    Ok(())
}
