//! Many informers of ours and of kube-rs, as programs have them.
//!
//! Answers "who follows what?" Invariants:
//! 1. Both follow the same parts of the same kinds as dynamic objects, and count what their handlers receive.
//!
//! Read next: `../many.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix_informer::prelude::*;
use anyhow::ensure;
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use kube_client::api::{ApiResource, DynamicObject};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_runtime::{WatchStreamExt, reflector, watcher};

use super::PARTS;

const LONG: Duration = Duration::from_secs(120);

/// Informers that run.
pub(super) trait Followed {
    /// How many objects the handlers have received.
    fn count(&self) -> u64;

    /// Waits until every first list is in its cache and so many objects were received.
    fn received(&self, expected: u64) -> LocalBoxFuture<'_, anyhow::Result<()>>;
}

/// The resource of this kind.
pub(crate) fn resource(kind: usize) -> ApiResource {
    ApiResource {
        group: "example.org".to_owned(),
        version: "v1".to_owned(),
        api_version: "example.org/v1".to_owned(),
        kind: format!("Kind{kind}"),
        plural: format!("kind{kind}s"),
    }
}

async fn until(counted: &AtomicU64, expected: u64) -> anyhow::Result<()> {
    let waiting = async {
        while counted.load(Ordering::Relaxed) < expected {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    ensure!(tokio::time::timeout(LONG, waiting).await.is_ok(), "not everything was received");
    Ok(())
}

struct Informers {
    factory: InformerFactory,
    /// Each keeps its informer running.
    _subscriptions: Vec<Subscription<DynamicObject>>,
    counted: Arc<AtomicU64>,
}

/// A factory of ours.
pub(super) async fn informer(config: Config, kinds: usize) -> anyhow::Result<impl Followed> {
    let runtime = Runtime::threads().start()?;
    let client = Client::new(config)?;
    let factory = InformerFactory::new(&runtime, &client);
    let (counted, mut subscriptions) = (Arc::new(AtomicU64::new(0)), Vec::new());
    for kind in 0..kinds {
        for (namespace, labels) in PARTS {
            let described = factory.dynamic(&resource(kind));
            let described = match namespace {
                Some(namespace) => described.namespace(namespace),
                None => described,
            };
            let informer = factory.of(described.labels(labels.unwrap_or_default()))?;
            let counted = Arc::clone(&counted);
            subscriptions.push(informer.for_each(move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
                std::future::ready(())
            })?);
        }
    }
    factory.start()?;
    Ok(Informers { factory, _subscriptions: subscriptions, counted })
}

impl Followed for Informers {
    fn count(&self) -> u64 {
        self.counted.load(Ordering::Relaxed)
    }

    fn received(&self, expected: u64) -> LocalBoxFuture<'_, anyhow::Result<()>> {
        Box::pin(async move {
            self.factory.synced_within(LONG).await?;
            until(&self.counted, expected).await
        })
    }
}

struct Reflectors {
    stores: Vec<reflector::Store<DynamicObject>>,
    counted: Arc<AtomicU64>,
}

/// A watcher, a reflector and a store of kube-rs for each.
pub(super) async fn kube(server: &str, kinds: usize) -> anyhow::Result<impl Followed> {
    let config = match server.starts_with("http://") {
        true => kube_client::Config::new(server.parse()?),
        false => {
            let kubeconfig = Kubeconfig::from_yaml(server)?;
            kube_client::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?
        }
    };
    let client = kube_client::Client::try_from(config)?;
    let (counted, mut stores) = (Arc::new(AtomicU64::new(0)), Vec::new());
    for kind in 0..kinds {
        for (namespace, labels) in PARTS {
            let resource = resource(kind);
            let api: kube_client::Api<DynamicObject> = match namespace {
                Some(namespace) => kube_client::Api::namespaced_with(client.clone(), namespace, &resource),
                None => kube_client::Api::all_with(client.clone(), &resource),
            };
            let config = watcher::Config::default();
            let config = match labels {
                Some(labels) => config.labels(labels),
                None => config,
            };
            let writer = reflector::store::Writer::new(resource);
            stores.push(writer.as_reader());
            let stream = watcher(api, config).default_backoff().reflect(writer).applied_objects();
            let counted = Arc::clone(&counted);
            tokio::spawn(stream.for_each(move |object| {
                counted.fetch_add(u64::from(object.is_ok()), Ordering::Relaxed);
                std::future::ready(())
            }));
        }
    }
    Ok(Reflectors { stores, counted })
}

impl Followed for Reflectors {
    fn count(&self) -> u64 {
        self.counted.load(Ordering::Relaxed)
    }

    fn received(&self, expected: u64) -> LocalBoxFuture<'_, anyhow::Result<()>> {
        Box::pin(async move {
            for store in &self.stores {
                store.wait_until_ready().await?;
            }
            until(&self.counted, expected).await
        })
    }
}
