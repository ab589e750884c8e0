//! The operator on an in-memory API server, with an author of websites and somebody who runs pods.
//!
//! Answers "what does it do?" in a few lines of output, and ends. No part of the operator.

use std::time::Duration;

use actix_informer::client::api::{Api, conditions};
use actix_informer::metrics::Metrics;
use actix_informer::prelude::*;
use actix_informer::probes::ProbeSocket;
use actix_informer::reconcile::is_condition_true;
use informer_apiserver::ApiServer;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use serde_json::{Value, json};

use crate::operator::website::{READY, Website, WebsiteSpec};
use crate::operator::{NAMESPACE, WebsiteOperator, figures, parts};

const LONG: Duration = Duration::from_secs(20);
const DEFINITION: &str = include_str!("../../config/website-operator/crd.yaml");

pub(crate) async fn run() -> anyhow::Result<()> {
    let server = ApiServer::builder().start().await?;
    server.create(serde_saphyr::from_str::<Value>(DEFINITION)?)?;
    server.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))?;
    println!("this is a demo on an in-memory API server; with --kubeconfig FILE it works in a cluster");
    let (client, runtime) = (Client::new(Config::new(server.url())?)?, Runtime::threads().start()?);
    let probes = ProbeSocket::bind(([127, 0, 0, 1], 0).into())?.metrics(Metrics::of(&runtime).registry());
    let WebsiteOperator { builder, events } = WebsiteOperator::new(&client, &runtime, None)?;
    let operator = builder.probes(probes).start()?;
    println!("at the start is missing: {}", operator.unready().join("; "));
    operator.ready_within(LONG).await?;
    operator.wait_until(|status| status.leads == Some(true)).await;
    println!("it is ready and leads");

    lives_of_websites(&client).await?;

    println!("{}\n{}", operator.status(), figures(&runtime, &events));
    let report = operator.drain().await;
    println!("after the stop: {report}");
    anyhow::ensure!(report.is_clean(), "not everything has ended in order");
    Ok(())
}

/// What authors of websites, and a cluster that runs pods, do.
async fn lives_of_websites(client: &Client) -> anyhow::Result<()> {
    let sites = client.api::<Website>().namespaced("default");
    sites.create(&PostParams::default(), &Website::new("shop", spec("shop.example.org"))).await?;
    let deployments = client.api::<Deployment>().namespaced("default");
    deployments.until("shop", conditions::present(), LONG).await?;
    println!("the website shop is made; it has a deployment, a service and a config map");

    let ready = Patch::Merge(json!({"status": {"replicas": 1, "readyReplicas": 1}}));
    deployments.patch_status("shop", &PatchParams::default(), &ready).await?;
    let is_ready = |site: Option<&Website>| {
        let status = site.and_then(|site| site.status.as_ref());
        status.is_some_and(|status| is_condition_true(&status.conditions, READY))
    };
    sites.until("shop", is_ready, LONG).await?;
    println!("its pod runs, so its status says Ready");

    sites.create(&PostParams::default(), &Website::new("copy", spec("shop.example.org"))).await?;
    sites.until("copy", waits_for_its_host, LONG).await?;
    println!("the website copy wants the same host, so it waits");

    let services = client.api::<Service>().namespaced("default");
    services.delete("shop", &DeleteParams::default()).await?;
    services.until("shop", conditions::present(), LONG).await?;
    println!("somebody deletes the service of shop: it is made again");

    delete(&sites, "shop").await?;
    deployments.until("copy", conditions::present(), LONG).await?;
    println!("shop is deleted with all its parts, and copy has the host");
    delete(&sites, "copy").await?;
    let made_here = ListParams::default().labels(parts::MANAGED);
    let left = client.api::<ConfigMap>().list(&made_here).await?.items.len()
        + deployments.list(&made_here).await?.items.len()
        + services.list(&made_here).await?.items.len();
    println!("copy is deleted, too; {left} objects of the operator are left");
    Ok(())
}

fn spec(host: &str) -> WebsiteSpec {
    let (host, page, image) = (host.to_owned(), "hello".to_owned(), "nginx:1.29".to_owned());
    WebsiteSpec { host, page, replicas: 1, image }
}

fn waits_for_its_host(site: Option<&Website>) -> bool {
    let conditions = site.and_then(|site| site.status.as_ref()).map(|status| &status.conditions);
    conditions.into_iter().flatten().any(|condition| condition.reason == "HostTaken")
}

async fn delete(sites: &Api<Website>, name: &str) -> anyhow::Result<()> {
    sites.delete(name, &DeleteParams::default()).await?;
    sites.until(name, conditions::absent(), LONG).await?;
    Ok(())
}
