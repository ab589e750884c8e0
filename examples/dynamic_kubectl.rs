//! A small kubectl: get, apply, delete and logs by any name that the server knows, of kinds unknown at compile time.
//!
//! Shows `Client::resource_named`, which takes names as kubectl does (`deploy`, `Deployment`, `websites.example.org`, `all`),
//! server-side apply of any object, and logs line by line. Without a command it starts an in-memory API server and
//! shows each; with one it works on a real cluster, with its kubeconfig, plugins and proxies:
//!
//! ```sh
//! cargo run --example dynamic_kubectl
//! cargo run --example dynamic_kubectl -- [--kubeconfig FILE] [--namespace NAME] get deploy,svc
//! ```
//! The commands: `get NAMES [NAME]`, `apply FILE` (YAML or JSON), `delete NAME OBJECT`, `logs POD [--follow]`.

use std::time::Duration;

use actix_informer::client::NamedResource;
use actix_informer::client::api::conditions;
use actix_informer::prelude::*;
use anyhow::{Context, bail};
use futures_util::StreamExt;
use informer_apiserver::ApiServer;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::DynamicObject;
use serde_json::Value;

/// What the tour applies: a definition, and then an object of it beside built-in ones.
const DEFINITION: &str = r#"
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: websites.example.org}, spec: {
  group: example.org, scope: Namespaced, names: {kind: Website, plural: websites, singular: website, shortNames: [ws]},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {
    type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}
"#;
const OBJECTS: &str = r#"
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeName: node-1, containers: [{name: main, image: web}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: prices}, data: {apple: "12"}}
---
{apiVersion: example.org/v1, kind: Website, metadata: {name: shop}, spec: {host: shop.example.org}}
"#;

const TOUR: &str =
    "get po,ws; get ConfigMap prices; logs web; delete websites.example.org shop; get ws; get nodez";

struct Kubectl {
    client: Client,
    namespace: String,
}

impl Kubectl {
    async fn run(&self, words: &[&str]) -> anyhow::Result<()> {
        match *words {
            ["get", names] => self.get(names, None).await,
            ["get", names, object] => self.get(names, Some(object)).await,
            ["apply", file] => {
                self.apply(&std::fs::read_to_string(file).context("the file cannot be read")?).await
            }
            ["delete", name, object] => self.delete(name, object).await,
            ["logs", pod] => self.logs(pod, false).await,
            ["logs", pod, "--follow" | "-f"] => self.logs(pod, true).await,
            _ => bail!("get NAMES [NAME], apply FILE, delete NAME OBJECT, or logs POD [--follow]"),
        }
    }

    /// The objects of a resource: those of the namespace if the kind has namespaces.
    fn objects(&self, resource: &NamedResource) -> Api<DynamicObject> {
        if resource.is_namespaced() { resource.api_namespaced(&*self.namespace) } else { resource.api() }
    }

    async fn get(&self, names: &str, object: Option<&str>) -> anyhow::Result<()> {
        for resource in self.client.resources_named(names).await? {
            let found = match object {
                Some(object) => vec![self.objects(&resource).get(object).await?],
                None => self.objects(&resource).list(&ListParams::default()).await?.items,
            };
            if found.is_empty() {
                println!("no {} found", resource.name());
            }
            for object in found {
                println!("{}/{}", resource.name(), object.metadata.name.unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Applies each document of a text.
    async fn apply(&self, text: &str) -> anyhow::Result<()> {
        for document in serde_saphyr::from_multiple::<Value>(text).context("it is not YAML")? {
            let object: DynamicObject = serde_json::from_value(document).context("it is not an object")?;
            let types = object.types.clone().context("an object without a kind")?;
            let name = object.metadata.name.clone().context("an object without a name")?;
            let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
            let kind = format!("{}.{version}.{group}", types.kind);
            let resource = self.client.resource_named(&kind).await?;
            let (params, patch) = (PatchParams::apply("dynamic-kubectl"), Patch::Apply(&object));
            self.objects(&resource).patch(&name, &params, &patch).await?;
            println!("{}/{name} applied", resource.name());
        }
        Ok(())
    }

    async fn delete(&self, name: &str, object: &str) -> anyhow::Result<()> {
        let resource = self.client.resource_named(name).await?;
        self.objects(&resource).delete(object, &DeleteParams::default()).await?;
        println!("{}/{object} deleted", resource.name());
        Ok(())
    }

    async fn logs(&self, pod: &str, follow: bool) -> anyhow::Result<()> {
        let pods = self.client.api::<Pod>().namespaced(&*self.namespace);
        let mut log = pods.log_stream(pod, &LogParams { follow, ..LogParams::default() }).await?;
        while let Some(line) = log.next().await {
            println!("{}", &*line?);
        }
        Ok(())
    }
}

/// Every command on a server of its own.
async fn tour() -> anyhow::Result<()> {
    let server = ApiServer::builder().start().await?;
    let client = Client::new(Config::new(server.url())?)?;
    let definitions = client.api::<CustomResourceDefinition>();
    let kubectl = Kubectl { client, namespace: "default".to_owned() };
    kubectl.apply(DEFINITION).await?;
    definitions.until("websites.example.org", conditions::crd_established(), Duration::from_secs(10)).await?;
    kubectl.apply(OBJECTS).await?;
    // The server has no containers of its own: this is what runs in the pod.
    server.agent().container("default", "web", "main").log("listening on port 80");
    for words in TOUR.split("; ") {
        println!("> {words}");
        if let Err(error) = kubectl.run(&words.split(' ').collect::<Vec<_>>()).await {
            println!("{error:#}");
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (mut words, mut kubeconfig, mut namespace) = (Vec::new(), None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--kubeconfig" => kubeconfig = Some(arguments.next().context("--kubeconfig FILE")?),
            "--namespace" | "-n" => namespace = Some(arguments.next().context("--namespace NAME")?),
            _ => words.push(argument),
        }
    }
    if words.is_empty() && kubeconfig.is_none() {
        return tour().await;
    }
    let client = match kubeconfig {
        Some(file) => Client::new(Config::from_kubeconfig_file(file, None)?)?,
        None => Client::from_environment()?,
    };
    let namespace = namespace.unwrap_or_else(|| client.default_namespace().to_owned());
    Kubectl { client, namespace }.run(&words.iter().map(String::as_str).collect::<Vec<_>>()).await
}
