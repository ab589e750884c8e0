//! The operator with kube-rs, twice: as its guide shows it, and with what its documentation advises for large numbers.
//!
//! Answers "how does a practised user write it?". As it comes: `Controller::new` and `owns`, which watches the metadata
//! of children and keeps none of it. Tuned: the websites' `managedFields` are cleared, updates that change no generation
//! are filtered, and so are events of children whose version is known, as those of a relist.
//!
//! Read next: `informer.rs`, the same with actix-informer; `../controller.rs`, the rule for all.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube_client::api::{Patch, PatchParams};
use kube_client::core::{NamespaceResourceScope, PartialObjectMeta};
use kube_client::{Api, Client, Config, Error, Resource, ResourceExt};
use kube_runtime::controller::Action;
use kube_runtime::{Controller, WatchStreamExt, predicates, reflector, watcher};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::subject::Counts;
use super::website::{MANAGER, Website, children, status_patch};

const LOOK: Duration = Duration::from_millis(10);

/// What each reconcile is given.
struct Context {
    client: Client,
    counts: Arc<Counts>,
}

/// Starts the operator; returns when its caches are synced.
pub(super) async fn start(
    url: &str,
    workers: usize,
    counts: &Arc<Counts>,
    is_tuned: bool,
) -> anyhow::Result<()> {
    let client = Client::try_from(Config::new(url.parse()?))?;
    let controller = if is_tuned { tuned(&client) } else { plain(&client) };
    let store = controller.store();
    let settings = kube_runtime::Config::default().concurrency(workers.try_into()?);
    let context = Arc::new(Context { client, counts: Arc::clone(counts) });
    let done = controller.with_config(settings).run(reconcile, again, context);
    tokio::spawn(done.for_each(|_| std::future::ready(())));
    // The controller waits for its store, too, and of several that wait only the one is woken that asked last.
    while let Err(_elapsed) = tokio::time::timeout(LOOK, store.wait_until_ready()).await {}
    Ok(())
}

fn plain(client: &Client) -> Controller<Website> {
    let config = watcher::Config::default();
    Controller::new(Api::all(client.clone()), config.clone())
        .owns(Api::<ConfigMap>::all(client.clone()), config.clone())
        .owns(Api::<Service>::all(client.clone()), config.clone())
        .owns(Api::<Deployment>::all(client.clone()), config)
}

fn tuned(client: &Client) -> Controller<Website> {
    let (reader, writer) = reflector::store();
    let sites = watcher(Api::<Website>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .modify(|site| site.managed_fields_mut().clear())
        .reflect(writer)
        .applied_objects()
        .predicate_filter(predicates::generation, Default::default());
    Controller::for_stream(sites, reader)
        .owns_stream(owned::<ConfigMap>(client))
        .owns_stream(owned::<Service>(client))
        .owns_stream(owned::<Deployment>(client))
}

/// What happens to the objects of this kind, by their metadata.
fn owned<K>(client: &Client) -> impl Stream<Item = watcher::Result<PartialObjectMeta<K>>> + Send + use<K>
where
    K: Resource<DynamicType = ()> + Clone + fmt::Debug + Send + 'static,
{
    let objects = Api::<PartialObjectMeta<K>>::all(client.clone());
    watcher(objects, watcher::Config::default())
        .default_backoff()
        .touched_objects()
        .predicate_filter(predicates::resource_version, Default::default())
}

async fn reconcile(site: Arc<Website>, context: Arc<Context>) -> Result<Action, Error> {
    context.counts.count(bring(&site, &context.client).await)
}

fn again(_: Arc<Website>, _: &Error, _: Arc<Context>) -> Action {
    Action::requeue(Duration::from_secs(5))
}

async fn bring(site: &Website, client: &Client) -> Result<Action, Error> {
    let (namespace, name, children) = children(site);
    apply(client, (&namespace, &name), &children.map).await?;
    apply(client, (&namespace, &name), &children.service).await?;
    apply(client, (&namespace, &name), &children.deployment).await?;
    if let Some(patch) = status_patch(site) {
        let sites = Api::<Website>::namespaced(client.clone(), &namespace);
        sites.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    Ok(Action::await_change())
}

async fn apply<K>(client: &Client, (namespace, name): (&str, &str), child: &K) -> Result<(), Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Serialize + DeserializeOwned,
    K: Clone + fmt::Debug,
{
    let params = PatchParams::apply(MANAGER).force();
    Api::<K>::namespaced(client.clone(), namespace).patch(name, &params, &Patch::Apply(child)).await?;
    Ok(())
}
