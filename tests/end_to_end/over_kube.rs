//! Informers over a client of kube-rs that the program has already.
//!
//! Answers "is an informer over somebody else's connections as true as one over its own?" The scenario runs on HTTPS
//! with each server's own credentials; kube-rs opens the connections and shows them.

use actix_informer::client::Client;
use tokio::runtime::Handle;

use crate::stage::{Pod, Stage, eventually};

pub(crate) async fn an_informer_over_a_kube_client_follows_through_a_restart_of_the_server(stage: Stage) {
    let stage = stage.secured().await;
    let kube = stage.server.kube_client().await;
    let client = Client::from_kube(kube.clone(), Handle::current());
    stage.api.create_many(&stage.namespace, 25).await;
    let watched = client.resource::<Pod>().namespace(&*stage.namespace);
    let watched = stage.follow(stage.described("watched", watched), &[&stage.namespace]).await;
    let listed = client.resource::<Pod>().namespace(&*stage.namespace);
    let listed = listed.settings(|settings| settings.watch_list = false);
    let listed = stage.follow(stage.described("listed", listed), &[&stage.namespace]).await;
    for pods in [&watched, &listed] {
        pods.agrees(&stage.api).await;
        pods.streams().await;
    }
    stage.api.label(&stage.namespace, "pod-00003", "second").await;
    stage.api.delete(&stage.namespace, "pod-00004").await;
    watched.agrees(&stage.api).await;
    listed.agrees(&stage.api).await;
    assert_eq!(watched.counters().failures + listed.counters().failures, 0);

    stage.server.restart().await;
    stage.api.create(&stage.namespace, "later").await;
    watched.agrees(&stage.api).await;
    listed.agrees(&stage.api).await;
    let own = kube_client::Api::<Pod>::namespaced(kube, &stage.namespace);
    let own = own.get("later").await.expect("the program's own requests go on");
    let key = stage.key("later");
    let version = own.metadata.resource_version.expect("a version");
    eventually("the informer has what the program has read", || {
        let cached = watched.informer.lister().get(&key).ok_or("nothing")?;
        if cached.version().to_string() == version { Ok(()) } else { Err("another version") }
    })
    .await;
}
