//! A whole operator in less than 70 lines: a custom kind, a config map for each object of it, status, finalizer, retries.
//!
//! Shows how little is left to write beside the reconcile function. A config map that somebody deletes or changes is made
//! again, an error is tried again with growing waits, and what is wanted is written only if it is not there. It runs
//! against an in-memory API server, so it needs no cluster; with `KUBECONFIG` it works in a real one until Ctrl-C:
//!
//! ```sh
//! cargo run --example small_operator
//! ```

use actix_informer::controller::{Controller, Outcome, ReconcileError, Request};
use actix_informer::prelude::*;
use actix_informer::reconcile::{
    Children, Condition, Finalize, condition, finalizer, set_condition, update_status,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.org", version = "v1", kind = "Page", namespaced, schema = "disabled")]
#[kube(status = "PageStatus", crates(kube_core = "::kube_core"))]
pub(crate) struct PageSpec {
    pub(crate) text: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PageStatus {
    pub(crate) conditions: Vec<Condition>,
}

#[derive(Clone)]
struct Context {
    client: Client,
    runtime: Runtime,
    children: Children,
}

/// The config map of a page.
fn map(page: &Page) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name.clone_from(&page.metadata.name);
    map.metadata.labels = Some([("made-by".to_owned(), "small-operator".to_owned())].into());
    map.data = Some([("index.html".to_owned(), page.spec.text.clone())].into());
    map
}

async fn reconcile(context: Context, request: Request<Page>) -> Result<Outcome, ReconcileError> {
    let (context, request) = (&context, &request);
    finalizer(&context.client, request, "example.org/small-operator", |event| async move {
        let Finalize::Apply(page) = event else {
            println!("{}: here would be undone what is outside of the cluster", request.key());
            return Ok(Outcome::Done);
        };
        let mut children = context.children.of(request, &page)?;
        children.apply(map(&page)).await?;
        children.prune().await?;
        let published = Condition {
            observed_generation: page.metadata.generation,
            ..condition("Published", true, "MapApplied")
        };
        let report = |status: &mut PageStatus| {
            set_condition(&mut status.conditions, published, context.runtime.wall_time());
        };
        update_status(&context.client, request, &page, report).await?;
        Ok(Outcome::Done)
    })
    .await
}

pub(crate) fn start(client: &Client, runtime: &Runtime) -> Result<Controller<Page>, actix_informer::Error> {
    let pages = client.resource::<Page>().informer(runtime)?.start()?;
    let maps = client.resource::<ConfigMap>().labels("made-by=small-operator").informer(runtime)?.start()?;
    let children = Children::new(client, "small-operator").cached(&maps.lister());
    let context = Context { client: client.clone(), runtime: runtime.clone(), children };
    let controller = Controller::builder(&pages).name("small-operator").owns(&maps).workers(4);
    Ok(controller.reconcile(move |request| reconcile(context.clone(), request)).start()?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cluster = demo::Cluster::start().await?; // a program of yours: Client::from_environment()?
    let controller = start(&cluster.client, &Runtime::threads().start()?)?;
    cluster.show().await?; // ... and tokio::signal::ctrl_c().await?
    println!("{}", controller.status());
    Ok(())
}

/// An in-memory cluster and its users: no part of the operator.
pub(crate) mod demo {
    use std::time::Duration;

    use actix_informer::client::api::conditions;
    use informer_apiserver::ApiServer;
    use serde_json::{Value, json};

    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    pub(crate) struct Cluster {
        pub(crate) server: ApiServer,
        pub(crate) client: Client,
    }

    /// The definition of the kind, as it would be applied by kubectl.
    pub(crate) fn definition() -> Value {
        let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let spec =
            json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
        let version = json!({"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema}});
        let names = json!({"kind": "Page", "plural": "pages"});
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "pages.example.org"},
            "spec": {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]}})
    }

    impl Cluster {
        pub(crate) async fn start() -> anyhow::Result<Self> {
            let server = ApiServer::builder().start().await?;
            server.create(definition())?;
            let client = Client::new(Config::new(server.url())?)?;
            Ok(Self { server, client })
        }

        /// Makes a page, changes it, deletes its config map, deletes it.
        pub(crate) async fn show(&self) -> anyhow::Result<()> {
            let pages = self.client.api::<Page>().namespaced("default");
            let maps = self.client.api::<ConfigMap>().namespaced("default");
            let says = |text: &'static str| {
                move |map: Option<&ConfigMap>| {
                    map.and_then(|map| map.data.as_ref()).is_some_and(|data| data["index.html"] == text)
                }
            };
            pages
                .create(&PostParams::default(), &Page::new("home", PageSpec { text: "hello".into() }))
                .await?;
            maps.until("home", says("hello"), LONG).await?;
            println!("the page at {} has a config map", self.server.url());
            let change = Patch::Merge(json!({"spec": {"text": "welcome"}}));
            pages.patch("home", &PatchParams::default(), &change).await?;
            maps.until("home", says("welcome"), LONG).await?;
            println!("the config map follows the page");
            maps.delete("home", &DeleteParams::default()).await?;
            maps.until("home", says("welcome"), LONG).await?;
            println!("a config map that was deleted is made again");
            pages.delete("home", &DeleteParams::default()).await?;
            pages.until("home", conditions::absent(), LONG).await?;
            println!("the page is gone");
            Ok(())
        }
    }
}
