//! Informers over protobuf, beside informers over JSON on the same server.
//!
//! Answers "does the second wire show what the first one shows?" The server's own encoder is the judge: the same objects
//! come both ways, and everything that can be read of them is compared.

use std::collections::BTreeMap;

use actix_informer::client::ResourceSource;
use actix_informer::prelude::*;
use actix_informer::representation::{Lazy, LazyBody, Prune, WireKind};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::followed::Followed;
use crate::stage::{LONG, Pod, Stage};

fn is_protobuf<K>(body: &LazyBody<K>) -> bool {
    body.read(|object| matches!(object.wire(), WireKind::Protobuf(_)))
}

fn content<K: Serialize + DeserializeOwned + Send + Sync + 'static>(
    informer: &Informer<LazyBody<K>>,
) -> BTreeMap<String, (Value, Value)> {
    let shown = |object: &Object<LazyBody<K>>| {
        let text = serde_json::from_str(&object.text()).expect("a text is JSON");
        let decoded = serde_json::to_value(&*object.decoded().expect("it decodes")).expect("writable");
        (format!("{}@{}", object.key(), object.version()), (text, decoded))
    };
    informer.snapshot().iter().map(shown).collect()
}

/// All objects of this kind, which nobody changes now.
async fn reads_alike<K>(stage: &Stage, name: &str)
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    let source = stage.server.client().resource::<K>().prune(Prune::nothing()).lazy();
    let start = |source: ResourceSource<K, Lazy<K>>, wire: &str| {
        let builder = source.name(format!("{name} {wire}")).informer(&stage.runtime).expect("valid");
        builder.start().expect("a new name")
    };
    let (json, protobuf) = (start(source.clone(), "json"), start(source.protobuf(), "protobuf"));
    for informer in [&json, &protobuf] {
        informer.synced_within(LONG).await.expect("the informer syncs");
    }
    assert!(protobuf.snapshot().iter().all(|object| is_protobuf(object)), "{name}");
    crate::stage::eventually(name, || {
        let (expected, found) = (content(&json), content(&protobuf));
        let same = expected == found;
        let differs = expected.iter().find(|(key, value)| found.get(*key) != Some(value));
        if same {
            Ok(())
        } else {
            Err(format!("{differs:?} is {:?}", differs.map(|(key, _)| found.get(key))))
        }
    })
    .await;
}

pub(crate) async fn informers_over_protobuf_show_what_those_over_json_show(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    api.create_many(namespace, 25).await;
    let client = stage.server.client();
    let pods = client.resource::<Pod>().namespace(namespace);
    let json = stage.follow(stage.described("json", pods.clone().lazy()), &[namespace]).await;
    let watched =
        stage.follow(stage.described("watched", pods.clone().lazy().protobuf()), &[namespace]).await;
    let listed = pods.clone().lazy().protobuf().settings(|settings| {
        settings.watch_list = false;
        settings.page_size = Some(10);
    });
    let listed = stage.follow(stage.described("listed", listed), &[namespace]).await;
    let typed = stage.follow(stage.described("typed", pods.protobuf()), &[namespace]).await;
    let metadata = client.metadata::<Pod>().namespace(namespace).protobuf();
    let metadata = stage.follow(stage.described("metadata", metadata), &[namespace]).await;

    let agree = async || {
        json.agrees(api).await;
        for pods in [&watched, &listed] {
            pods.agrees(api).await;
            assert!(pods.informer.snapshot().iter().all(|pod| is_protobuf(pod)));
            assert_eq!(content(&pods.informer), content(&json.informer));
        }
        typed.agrees(api).await;
        metadata.agrees(api).await;
        let none_failed = |counters: informer_core::reflector::SourceCounters| counters.failures == 0;
        assert!(none_failed(watched.counters()) && none_failed(listed.counters()));
    };
    agree().await;
    api.label(namespace, "pod-00003", "second").await;
    api.delete(namespace, "pod-00004").await;
    api.create(namespace, "later").await;
    agree().await;
    let labelled = |pods: &Followed<LazyBody<Pod>>| {
        pods.informer.snapshot().labelled(&"app=second".parse().expect("a selector")).count()
    };
    assert_eq!((labelled(&watched), labelled(&listed), labelled(&json)), (1, 1, 1));

    reads_alike::<Namespace>(&stage, "namespaces").await;
    reads_alike::<Service>(&stage, "services").await;
    reads_alike::<Secret>(&stage, "secrets").await;
    reads_alike::<ClusterRole>(&stage, "cluster roles").await;
    reads_alike::<Deployment>(&stage, "deployments").await;
    reads_alike::<CustomResourceDefinition>(&stage, "definitions").await;
}
