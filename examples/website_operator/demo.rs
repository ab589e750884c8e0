//! The operator on an in-memory API server, with an author of websites and somebody who runs pods.
//!
//! Answers "what does it do?" in a few lines of output, and ends. No part of the operator.

use std::time::Duration;

use actix_informer::client::api::conditions;
use actix_informer::prelude::*;
use actix_informer::reconcile::is_condition_true;
use informer_apiserver::ApiServer;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use serde_json::{Value, json};

use crate::operator::website::{READY, Website, WebsiteSpec};
use crate::operator::{NAMESPACE, start};

const LONG: Duration = Duration::from_secs(20);
const DEFINITION: &str = include_str!("../../config/website-operator/crd.yaml");

pub(crate) async fn run() -> anyhow::Result<()> {
    let server = ApiServer::builder().start().await?;
    server.create(serde_saphyr::from_str::<Value>(DEFINITION)?)?;
    server.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))?;
    let (client, runtime) = (Client::new(Config::new(server.url())?)?, Runtime::threads().start()?);
    let operator = start(&client, &runtime)?;

    let sites = client.api::<Website>().namespaced("default");
    let spec = |host: &str| WebsiteSpec {
        host: host.to_owned(),
        page: "hello".to_owned(),
        replicas: 1,
        image: "nginx:1.29".to_owned(),
    };
    sites.create(&PostParams::default(), &Website::new("shop", spec("shop.example.org"))).await?;
    let deployments = client.api::<Deployment>().namespaced("default");
    deployments.until("shop", conditions::present(), LONG).await?;
    println!("the website shop has a deployment, a service and a config map");

    let ready = Patch::Merge(json!({"status": {"replicas": 1, "readyReplicas": 1}}));
    deployments.patch_status("shop", &PatchParams::default(), &ready).await?;
    let is_ready = |site: Option<&Website>| {
        let status = site.and_then(|site| site.status.as_ref());
        status.is_some_and(|status| is_condition_true(&status.conditions, READY))
    };
    sites.until("shop", is_ready, LONG).await?;
    println!("its pods run, so it is ready");

    sites.create(&PostParams::default(), &Website::new("copy", spec("shop.example.org"))).await?;
    let waits = |site: Option<&Website>| {
        let conditions = site.and_then(|site| site.status.as_ref()).map(|status| &status.conditions);
        conditions.into_iter().flatten().any(|condition| condition.reason == "HostTaken")
    };
    sites.until("copy", waits, LONG).await?;
    println!("the website copy wants the same host, and waits");

    client.api::<Service>().namespaced("default").delete("shop", &DeleteParams::default()).await?;
    client.api::<Service>().namespaced("default").until("shop", conditions::present(), LONG).await?;
    println!("a service that was deleted is made again");

    sites.delete("shop", &DeleteParams::default()).await?;
    sites.until("shop", conditions::absent(), LONG).await?;
    deployments.until("copy", conditions::present(), LONG).await?;
    println!("shop is deleted with all its parts, and copy has the host");
    sites.delete("copy", &DeleteParams::default()).await?;
    sites.until("copy", conditions::absent(), LONG).await?;
    let left = client
        .api::<ConfigMap>()
        .list(&ListParams::default().labels(crate::operator::parts::MANAGED))
        .await?;
    println!("{} objects are left", left.items.len());
    println!("{}", operator.report());
    operator.stop(LONG).await
}
