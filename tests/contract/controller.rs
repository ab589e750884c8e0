//! Controllers of Kubernetes objects (CTL-17, CTL-19, CTL-20): owners, own writes, and an operator on the in-memory server.
//!
//! What does not need Kubernetes is tested beside the controller, in `actors/operator/src/controller/tests`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_informer::client::Client;
use actix_informer::controller::{
    Controller, ControllerBuilder, Outcome, ReconcileError, Request, predicates,
};
use actix_informer::controller::{OwnWrites, Owns};
use actix_informer::representation::Controlled;
use informer_actors::informer::{Body, Informer};
use informer_actors::runtime::Runtime;
use informer_actors::testing::Server;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_core::params::{Patch, PatchParams};
use kube_core::{Resource, ResourceExt};
use serde_json::json;

use crate::factory::{Cluster, run};
use crate::log::recorded;

const MOMENT: Duration = Duration::from_millis(100);

/// The keys that were reconciled since it was asked last.
#[derive(Clone, Default)]
struct Keys(Arc<Mutex<Vec<String>>>);

impl Keys {
    async fn take(&self) -> Vec<String> {
        tokio::time::sleep(MOMENT).await;
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn start<S: Body>(&self, builder: ControllerBuilder<S>) -> Controller<S> {
        let keys = self.clone();
        let noted = move |request: Request<S>| {
            keys.0.lock().unwrap_or_else(PoisonError::into_inner).push(request.key().to_string());
            async { Ok(Outcome::Done) }
        };
        builder.reconcile(noted).start().expect("it starts")
    }
}

fn informer<S: Body>(runtime: &Runtime, name: &str) -> (Server<S>, Informer<S>) {
    let server = Server::<S>::new();
    let connected = server.clone();
    let informer = Informer::builder(runtime, name).source(move || connected.clone());
    (server, informer.start().expect("a sound spec"))
}

/// A body that this object controls.
fn owned<K: Resource + Default>(
    api_version: &str,
    kind: &str,
    (name, uid): (&str, &str),
    controls: bool,
) -> K {
    let mut body = K::default();
    body.meta_mut().owner_references = Some(vec![OwnerReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: Some(controls),
        block_owner_deletion: None,
    }]);
    body
}

#[test]
fn ctl_19_an_owner_is_found_by_group_kind_name_and_uid() {
    Runtime::simulated(7).run(|runtime| async move {
        let (deployments, primary) = informer::<Deployment>(&runtime, "deployments");
        let (maps, children) = informer::<ConfigMap>(&runtime, "maps");
        deployments.apply("shop/web", Deployment::default());
        let keys = Keys::default();
        let _controller = keys.start(Controller::builder(&primary).owns(&children));
        assert_eq!(keys.take().await, ["shop/web"]);
        let strangers = [
            owned("apps/v1", "Deployment", ("web", "life-2"), true),
            owned("apps/v1", "Deployment", ("db", "life-1"), true),
            owned("apps/v1", "ReplicaSet", ("web", "life-1"), true),
            owned("example.org/v1", "Deployment", ("web", "life-1"), true),
            owned("apps/v1", "Deployment", ("web", "life-1"), false),
        ];
        for (n, stranger) in strangers.into_iter().enumerate() {
            maps.apply(&format!("shop/{n}"), stranger);
            assert_eq!(keys.take().await, [""; 0], "number {n}");
        }
        maps.apply("other/it", owned("apps/v1", "Deployment", ("web", "life-1"), true));
        assert_eq!(keys.take().await, [""; 0], "an owner is in the same namespace, or in none");
        maps.apply("shop/it", owned("apps/v1beta1", "Deployment", ("web", "life-1"), true));
        assert_eq!(keys.take().await, ["shop/web"], "the version of the group does not matter");
        maps.apply("shop/it", ConfigMap::default());
        assert_eq!(keys.take().await, ["shop/web"], "it has lost it");
    });
}

// CTL-19: given owned objects, when one changes, then the primary object is reconciled that its controller
// reference names, if group, kind and uid fit, in its namespace or above; through an object between them,
// too.
// - a group, kind, uid and `controller` have to fit: `ctl_19_an_owner_is_found_by_group_kind_name_and_uid`
// - b through an object between them
#[test]
fn ctl_19_a_pod_leads_to_the_deployment_through_its_replica_set() {
    Runtime::simulated(7).run(|runtime| async move {
        let (deployments, primary) = informer::<Deployment>(&runtime, "deployments");
        let (sets, middle) = informer::<ReplicaSet>(&runtime, "replica sets");
        let (pods, children) = informer::<Pod>(&runtime, "pods");
        deployments.apply("shop/web", Deployment::default());
        sets.apply("shop/web-1", owned("apps/v1", "Deployment", ("web", "life-1"), true));
        let keys = Keys::default();
        let _controller = keys.start(Controller::builder(&primary).owns_through(&middle, &children));
        middle.synced_within(MOMENT).await.expect("it syncs");
        assert_eq!(keys.take().await, ["shop/web"]);
        pods.apply("shop/web-1-x", owned("apps/v1", "ReplicaSet", ("web-1", "life-1"), true));
        assert_eq!(keys.take().await, ["shop/web"]);
        pods.apply("shop/other", owned("apps/v1", "ReplicaSet", ("web-1", "life-9"), true));
        assert_eq!(keys.take().await, [""; 0]);
    });
}

/// Gives each secret a config map with its name.
async fn reconcile(client: Client, request: Request<Secret>) -> Result<Outcome, ReconcileError> {
    let Some(secret) = request.object() else { return Ok(Outcome::Done) };
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": request.key().name(), "ownerReferences": [secret.controller_owner_ref(&())]},
        "data": {"of": secret.name_any()},
    });
    let maps = client.api::<ConfigMap>().namespaced("default");
    let apply = PatchParams::apply("ctl-20").force();
    let written = maps.patch(request.key().name(), &apply, &Patch::Apply(map)).await?;
    assert_eq!(request.written(&written), 1);
    Ok(Outcome::Done)
}

/// An operator whose cache of owned objects is this one converges, and makes again what is deleted the moment it was made.
async fn converges<T: Body + Controlled>(cluster: &Cluster, maps: Informer<T>) {
    let secrets = cluster.client.resource::<Secret>().informer(&cluster.runtime).expect("sound");
    let secrets = secrets.start().expect("it starts");
    let client = cluster.client.clone();
    let controller = Controller::builder(&secrets)
        .owns(&maps)
        .filter(predicates::version_changed())
        .workers(4)
        .reconcile(move |request| reconcile(client.clone(), request))
        .start()
        .expect("it starts");
    for name in ["a", "b", "c"] {
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}});
        cluster.server.create(secret).expect("a new object");
    }
    let mut deleted = 0;
    for _ in 0..100_000 {
        if deleted == 100 {
            break;
        }
        deleted += u32::from(cluster.server.delete("configmaps", "default", "b").is_ok());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(deleted, 100, "{}", controller.status());
    let names = cluster.server.list("configmaps").expect("a list");
    let names: Vec<_> =
        names.iter().filter_map(|map| map["data"]["of"].as_str().map(str::to_owned)).collect();
    assert_eq!(names, ["a", "b", "c"], "{}", controller.status());
    let counts = controller.status().counts;
    assert_eq!((counts.panics, counts.writes_not_seen), (0, 0), "{counts:?}");
    assert!(counts.writes_waited > 0, "{counts:?}");
}

// CTL-20: given a program that makes an owned object by the API server's answer, when it runs against a
// server, then it converges, reads its own writes, and makes again what is deleted the moment it was made.
#[test]
fn ctl_20_an_operator_converges_and_makes_again_a_child_that_is_deleted_the_moment_it_was_made() {
    run(|cluster| async move {
        let maps = cluster.client.resource::<ConfigMap>().informer(&cluster.runtime).expect("sound");
        converges(&cluster, maps.start().expect("it starts")).await;
    });
}

// CTL-25: given an informer that keeps of each owned object only which object controls it, when an owned
// object changes, is made or is gone, then its owner is reconciled as with whole objects, and own writes are
// waited for; the owner that is kept is that of the whole metadata.
// - a converges, reads its own writes, makes again what is deleted
// - b the same owner as the whole metadata has:
//   `ctl_25_what_is_kept_names_the_same_controller_as_the_whole_metadata`
#[test]
fn ctl_25_so_does_one_that_knows_of_its_children_only_which_object_controls_them() {
    run(|cluster| async move {
        let maps = cluster.client.controllers_of::<ConfigMap>().informer(&cluster.runtime).expect("sound");
        let maps = maps.start().expect("it starts");
        converges(&cluster, maps.clone()).await;
        let kept = maps.lister().list_namespace("default");
        let controllers: Vec<_> =
            kept.iter().filter_map(|map| map.body().controller()).map(|found| found.name).collect();
        assert_eq!(controllers, ["a", "b", "c"]);
    });
}

// CTL-17: given a reconcile, when it logs, then its span has the controller, its number, the key and the
// cause.
#[test]
fn ctl_17_what_a_reconcile_logs_is_in_a_span_with_its_controller_number_key_and_cause() {
    recorded(|log| {
        Runtime::simulated(7).run(|runtime| async move {
            let (texts, informer) = informer::<String>(&runtime, "texts");
            texts.apply("a/one", "1".to_owned());
            let keys = Keys::default();
            let _controller = keys.start(Controller::builder(&informer).name("texter"));
            keys.take().await;
        });
        let spans = log.with("span reconcile");
        let field = |name| spans[0].field(name).unwrap_or_default().to_owned();
        let shown = ["controller", "id", "key", "cause"].map(field);
        assert_eq!(shown, ["texter", "1", "a/one", "Added texts a/one (InitialList)"]);
        assert_eq!(spans.len(), 1);
    });
}
