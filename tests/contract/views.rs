//! One scripted server as a whole cluster, and sources that see one of its namespaces, or all.
//!
//! Answers "how does a scenario follow namespaces of one cluster?". A view gives back what the server says of its
//! namespace, as objects of its own source; what happens elsewhere moves its version.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use actix::Actor;
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use informer_actors::informer::{Informer, InformerBuilder, OfCluster, OfNamespace};
use informer_actors::list_watch::{
    Connect, Coverage, KnownObjects, ListStream, ListWatch, SourceSpec, WatchStream,
};
use informer_actors::subscription::Subscription;
use informer_actors::testing::{Recorder, RecorderHandle, Server};
use informer_core::delta::{ListPart, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{ClusterName, Meta, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::reflector::ReflectorConfig;
use informer_core::request::{ListRequest, WatchRequest};

use crate::world::{LONG, settle, until};

/// A cluster.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) server: Server<String>,
    /// Whether views of all namespaces are refused, and how often that was done.
    denied: Arc<AtomicBool>,
    /// Whether every second refusal is no refusal but a failure.
    by_turns: Arc<AtomicBool>,
    refused: Arc<AtomicUsize>,
}

/// Whether a source sees the object of a key.
type Sees = Arc<dyn Fn(&ObjectKey) -> bool + Send + Sync>;

/// What a source sees of it.
struct View {
    cluster: Cluster,
    source: SourceId,
    /// `None`: everything.
    sees: Option<Sees>,
}

impl Cluster {
    /// A cluster with these objects.
    pub(crate) fn of(keys: &[&str]) -> Self {
        let server = Server::new();
        keys.iter().for_each(|key| drop(server.apply(key, String::new())));
        Self { server, denied: Arc::default(), by_turns: Arc::default(), refused: Arc::default() }
    }

    /// What makes the source of a namespace, named after it. An empty name is refused.
    pub(crate) fn each(&self) -> OfNamespace<String> {
        let cluster = self.clone();
        Arc::new(move |namespace| match namespace {
            "" => Err("it is empty".into()),
            namespace => Ok(cluster.view(namespace, Some(in_namespace(namespace)))),
        })
    }

    /// What makes the source of all namespaces, named `*`.
    pub(crate) fn all(&self) -> OfCluster<String> {
        let cluster = self.clone();
        Arc::new(move || Ok(cluster.view("*", None)))
    }

    /// Refuses views of all namespaces, or serves them.
    pub(crate) fn forbid(&self, forbid: bool) {
        self.denied.store(forbid, Ordering::Relaxed);
    }

    /// Every second refusal of views of all namespaces is a failure of the server.
    pub(crate) fn fail_by_turns(&self) {
        self.by_turns.store(true, Ordering::Relaxed);
    }

    /// How often a view of all namespaces was refused.
    pub(crate) fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// The objects of these namespaces.
    pub(crate) fn content(&self, namespaces: &[&str]) -> Vec<(ObjectKey, ResourceVersion)> {
        let is_in =
            |key: &ObjectKey| key.namespace().is_some_and(|namespace| namespaces.contains(&namespace));
        self.server.content().into_iter().filter(|(key, _)| is_in(key)).collect()
    }

    /// As [`Self::each`], for an informer of several clusters.
    pub(crate) fn each_of(&self, name: &ClusterName) -> OfNamespace<String> {
        let (cluster, name) = (self.clone(), name.clone());
        Arc::new(move |namespace| {
            let source = format!("{name}|{namespace}");
            Ok(cluster.view(&source, Some(in_namespace(namespace))).in_cluster(name.clone()))
        })
    }

    /// The `n`th of so many shards: each has the objects whose names, as numbers, leave this rest.
    pub(crate) fn shard(&self, n: usize, of: usize) -> SourceSpec<String> {
        let name = format!("shard-{n}/{of}");
        let sees = move |key: &ObjectKey| key.name().parse::<usize>().is_ok_and(|number| number % of == n);
        let coverage = Coverage::everything().selectors(&*name);
        self.view(&name, Some(Arc::new(sees))).covering(coverage)
    }

    fn view(&self, name: &str, sees: Option<Sees>) -> SourceSpec<String> {
        let (cluster, source) = (self.clone(), SourceId::new(name));
        let id = source.clone();
        let connect: Connect<String> = Arc::new(move || {
            let (cluster, source, sees) = (cluster.clone(), source.clone(), sees.clone());
            Box::new(View { cluster, source, sees })
        });
        SourceSpec::new(id, connect, ReflectorConfig::new("texts"))
    }
}

fn in_namespace(namespace: &str) -> Sees {
    let namespace = namespace.to_owned();
    Arc::new(move |key| key.namespace() == Some(&namespace))
}

impl View {
    fn refusal(&self) -> Option<ListWatchError> {
        let denied = self.sees.is_none() && self.cluster.denied.load(Ordering::Relaxed);
        denied.then(|| {
            let before = self.cluster.refused.fetch_add(1, Ordering::Relaxed);
            if self.cluster.by_turns.load(Ordering::Relaxed) && before % 2 == 1 {
                return ListWatchError::source("down");
            }
            ListWatchError::Denied("only single namespaces".into())
        })
    }
}

fn own(source: &SourceId, object: &Object<String>) -> Object<String> {
    let meta = Meta::new(object.key().clone(), object.version().clone(), source.clone());
    Object::new(meta.uid(object.object_uid().cloned()).wire_bytes(100), object.body().clone())
}

impl ListWatch<String> for View {
    fn list(&self, request: ListRequest, _known: KnownObjects<String>) -> ListStream<String> {
        if let Some(error) = self.refusal() {
            return stream::iter([Err(error)]).boxed_local();
        }
        let (source, sees) = (self.source.clone(), self.sees.clone());
        let parts = self.cluster.server.list(request, KnownObjects::nothing());
        let seen = parts.map(move |part| {
            let sees = |object: &&Object<String>| sees.as_ref().is_none_or(|sees| sees(object.key()));
            Ok(match part? {
                ListPart::Objects(objects) => ListPart::Objects(
                    objects.iter().filter(sees).map(|object| own(&source, object)).collect(),
                ),
                other => other,
            })
        });
        seen.boxed_local()
    }

    fn watch(&self, request: WatchRequest, _known: KnownObjects<String>) -> WatchStream<String> {
        if let Some(error) = self.refusal() {
            return stream::iter([Err(error)]).boxed_local();
        }
        let (source, sees) = (self.source.clone(), self.sees.clone());
        let batches = self.cluster.server.watch(request, KnownObjects::nothing());
        let seen = batches.map(move |parts| {
            let part = |part: WatchPart<String>| match part {
                part if sees.as_ref().zip(part.key()).is_some_and(|(sees, key)| !sees(key)) => {
                    WatchPart::Bookmark { version: part.version().clone(), initial_events_end: false }
                }
                WatchPart::Applied(object) => WatchPart::Applied(own(&source, &object)),
                WatchPart::Deleted(object) => WatchPart::Deleted(own(&source, &object)),
                other => other,
            };
            Ok(parts?.into_iter().map(part).collect())
        });
        seen.boxed_local()
    }

    fn get(
        &self,
        _key: ObjectKey,
    ) -> LocalBoxFuture<'static, Result<Option<Object<String>>, ListWatchError>> {
        async { Ok(None) }.boxed_local()
    }
}

/// Starts it with a subscriber, and waits until both are synced.
pub(crate) async fn synced(builder: InformerBuilder<String>) -> Followed {
    let informer = builder.start().expect("the description is sound");
    informer.synced_within(LONG).await.expect("it syncs");
    let (recorder, received) = Recorder::new();
    let subscription = informer.subscribe(recorder.start()).expect("it runs");
    subscription.synced_within(LONG).await.expect("what there is is delivered");
    let followed = Followed { informer, received, _subscription: subscription };
    followed.lines().await;
    followed
}

/// An informer with a subscriber.
pub(crate) struct Followed {
    pub(crate) informer: Informer<String>,
    pub(crate) received: RecorderHandle<String>,
    _subscription: Subscription<String>,
}

impl Followed {
    /// The events since the last call, once the last change of the namespaces is carried out.
    pub(crate) async fn lines(&self) -> Vec<String> {
        self.informer.namespaces_synced().await.expect("it runs");
        until(|| self.received.agrees_with(&self.informer.snapshot()).is_ok()).await;
        settle().await;
        let lines = self.received.lines();
        self.received.clear_lines();
        lines
    }

    pub(crate) fn sources(&self) -> Vec<String> {
        self.informer.status().sources.iter().map(|source| source.source.as_str().to_owned()).collect()
    }

    /// Whether it holds what the cluster has in these namespaces.
    pub(crate) fn holds(&self, cluster: &Cluster, namespaces: &[impl AsRef<str>]) {
        let snapshot = self.informer.snapshot();
        let held: Vec<_> =
            snapshot.iter().map(|object| (object.key().clone(), object.version().clone())).collect();
        let namespaces: Vec<&str> = namespaces.iter().map(AsRef::as_ref).collect();
        assert_eq!(held, cluster.content(&namespaces));
    }
}
