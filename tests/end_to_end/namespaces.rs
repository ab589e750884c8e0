//! Namespaces and clusters that come and go.
//!
//! Answers "does an informer hold exactly the selected namespaces, and what is left of a cluster that is killed?". On a
//! control plane no controller deletes namespaces, so one goes by losing its label.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actix_informer::client::ResourceSource;
use actix_informer::informer::ClusterWide;
use actix_informer::prelude::*;
use http::Method;
use serde_json::json;

use crate::api::{Listing, MERGE_PATCH};
use crate::followed::Followed;
use crate::server::Server;
use crate::stage::{LONG, Pod, Stage, eventually, until};

/// How many namespaces come and go.
const NAMESPACES: usize = 24;
/// How often the label of one changes.
const CHANGES: usize = 120;

/// Gives a namespace the label that is selected, or takes it away.
async fn select(stage: &Stage, namespace: &str, is_selected: bool) {
    let label = is_selected.then_some(&stage.namespace);
    let patch = json!({"metadata": {"labels": {"team": label}}}).to_string().into_bytes();
    let path = format!("/api/v1/namespaces/{namespace}");
    stage.api.try_ask(Method::PATCH, &path, Some((MERGE_PATCH, patch))).await.expect("it is patched");
}

/// Above half of them are followed by one watch, so that they are exchanged in both directions.
pub(crate) async fn inf_91_namespaces_come_and_go_under_load(stage: Stage) {
    fastrand::seed(stage.seed);
    let names: Vec<String> = (0..NAMESPACES).map(|n| format!("{}-{n}", stage.namespace)).collect();
    for name in &names {
        stage.api.create_namespace(name).await;
        stage.api.create(name, "first").await;
    }
    let pods = stage.server.client().resource::<Pod>();
    let pods = pods.namespaces_with_labels(format!("team={}", stage.namespace));
    let pods = pods.cluster_wide(ClusterWide::above(NAMESPACES / 2));
    let followed = Followed::start(stage.described("selected", pods), &[]);
    followed.informer.synced_within(LONG).await.expect("it syncs without a namespace");
    let mut selected = BTreeSet::new();
    let mut was_wide = false;
    for change in 0..CHANGES {
        // The first half mostly selects, the second mostly takes away.
        let name = &names[fastrand::usize(..NAMESPACES)];
        let is_selected = fastrand::usize(..10) < if change < CHANGES / 2 { 9 } else { 2 };
        select(&stage, name, is_selected).await;
        if is_selected {
            selected.insert(name.clone())
        } else {
            selected.remove(name)
        };
        stage.api.create_some(&names[fastrand::usize(..NAMESPACES)]).await;
        was_wide |= followed.informer.status().namespaces.iter().any(|set| set.cluster_wide);
    }
    until("the selection is known", || {
        followed.informer.namespaces().iter().map(|name| name.to_string()).eq(selected.iter().cloned())
    })
    .await;
    followed.informer.namespaces_synced().await.expect("it runs");
    let selected: Vec<&str> = selected.iter().map(String::as_str).collect();
    followed.holds(&stage.api.pods(&selected).await).await;
    assert!(was_wide, "there were enough namespaces for one watch");
    let counted = followed.informer.status().data;
    assert_eq!((counted.older_replaces, counted.stale_messages), (0, 0), "{counted:?}");
}

/// The pods of this stage's namespace on a server, as an informer of several clusters has them.
async fn pods_of(server: &Server, cluster: &str, namespace: &str) -> Listing {
    let listed = crate::api::Api::new(server.client()).pods(&[namespace]).await;
    let cluster = cluster.parse().expect("a name");
    listed.into_iter().map(|(key, state)| (key.in_cluster(&cluster), state)).collect()
}

pub(crate) async fn inf_94_of_two_clusters_one_is_killed_and_comes_back(stage: Stage) {
    let other = match &*stage.server {
        Server::Memory(_) => Some(Server::memory()),
        Server::Real(_) => tokio::task::spawn_blocking(Server::real).await.expect("no panic"),
    };
    let (here, there) = (&stage.server, Arc::new(other.expect("binaries are there")));
    let api = crate::api::Api::new(there.client());
    api.create_namespace(&stage.namespace).await;
    for (api, name) in [(&stage.api, "here"), (&api, "there")] {
        api.create(&stage.namespace, name).await;
        api.create(&stage.namespace, "in-both").await;
    }
    let clients = (here.client(), there.client());
    let pods: ResourceSource<Pod> = clients.0.resource::<Pod>().namespace(&*stage.namespace);
    let pods = pods.in_clusters([("here", &clients.0), ("there", &clients.1)]);
    let followed = Followed::start(pods.informer(&stage.runtime).expect("two names"), &[]);
    followed.informer.synced_within(LONG).await.expect("both list");
    let all = async || {
        let mut all = pods_of(here, "here", &stage.namespace).await;
        all.extend(pods_of(&there, "there", &stage.namespace).await);
        all
    };
    followed.holds(&all().await).await;
    let before = pods_of(&there, "there", &stage.namespace).await;

    there.kill().await;
    let (lister, away) = (followed.informer.lister(), SourceId::new("there"));
    let is_away = || {
        let status = followed.informer.status();
        matches!(status.source(&away).map(|source| source.state.clone()), Some(SourceState::Backoff { .. }))
    };
    until("the cluster is away", is_away).await;
    stage.api.create(&stage.namespace, "later").await;
    let mut expected = pods_of(here, "here", &stage.namespace).await;
    expected.extend(before);
    eventually("its objects stay, and the other goes on", || followed.differs(&expected)).await;
    let aged = || lister.age(&away).is_some_and(|age| age > Duration::from_secs(3));
    until("the age of what it had grows", aged).await;

    there.start().await;
    api.create(&stage.namespace, "again").await;
    followed.holds(&all().await).await;
    let is_fresh = || lister.age(&away).is_some_and(|age| age < Duration::from_secs(3));
    until("its data is new again", is_fresh).await;
}
