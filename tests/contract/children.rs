//! OPR-09 to OPR-14: the children of an object, over the in-memory API server and an informer of them.
//!
//! Answers "does a pass make what is wanted, delete what is not, and nothing more?" What was sent is read from the server's
//! log of requests.

#![expect(clippy::unwrap_used, reason = "a scene that cannot be set up has failed the test")]

use std::sync::Mutex;

use actix_informer::object::from_body;
use actix_informer::reconcile::{
    Applied, CONTROLLER_UID, ChildError, Children, OwnerError, WriteLog, WriteRecord, controller_uid,
};
use informer_actors::informer::Informer;
use informer_apiserver::ApiServer;
use informer_core::meta::{Object, ResourceVersion};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::factory::{Cluster, run};
use crate::world::LONG;

mod controllers;
mod kinds;
mod owner;
mod ownership;
mod policies;
mod worlds;

#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize)]
#[kube(group = "example.org", version = "v1", kind = "Site", namespaced, schema = "disabled")]
#[kube(status = "SiteStatus", crates(kube_core = "::kube_core"))]
pub(crate) struct SiteSpec {
    #[serde(default)]
    pub(crate) pages: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SiteStatus {
    pub(crate) ready: Option<bool>,
}

pub(crate) fn define_sites(server: &ApiServer) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema}});
    let names = json!({"kind": "Site", "plural": "sites"});
    let spec = json!({"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "sites.example.org"}, "spec": spec});
    server.create(definition).expect("a definition");
}

pub(crate) fn site(name: &str) -> Value {
    let metadata = json!({"name": name, "namespace": "default"});
    json!({"apiVersion": "example.org/v1", "kind": "Site", "metadata": metadata, "spec": {}})
}

/// A config map with one value.
pub(crate) fn page(name: &str, text: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.data = Some([("text".to_owned(), text.to_owned())].into());
    map
}

/// Keeps what it is told.
#[derive(Default)]
struct Log(Mutex<Vec<WriteRecord>>);

impl WriteLog for Log {
    fn record(&self, write: WriteRecord) {
        self.0.lock().unwrap().push(write);
    }
}

/// A site, an informer of config maps, and the children that are looked for in it.
struct Scene {
    cluster: Cluster,
    owner: Object<Site>,
    maps: Informer<ConfigMap>,
    children: Children,
}

fn scene<F: Future<Output = ()>>(scenario: impl FnOnce(Scene) -> F) {
    run(|cluster| async move {
        define_sites(&cluster.server);
        let owner = cluster.owner("shop");
        let maps = cluster.client.resource::<ConfigMap>().informer(&cluster.runtime).unwrap();
        let maps = maps.start().unwrap();
        maps.synced_within(LONG).await.unwrap();
        let children = Children::new(&cluster.client, "sites").cached(&maps.lister());
        scenario(Scene { cluster, owner, maps, children }).await;
    });
}

impl Cluster {
    pub(crate) fn owner(&self, name: &str) -> Object<Site> {
        let made = self.server.create(site(name)).expect("a new site");
        from_body(serde_json::from_value(made).expect("a site")).expect("a server's object")
    }

    fn stored(&self, name: &str) -> Option<Value> {
        self.server.get("configmaps", "default", name).ok()
    }

    /// Makes a new map, and gives its version: what a cache has then, it has wholly.
    fn beat(&self) -> ResourceVersion {
        let beat = json!({"generateName": "beat-", "namespace": "kube-system"});
        let beat = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": beat});
        self.server.create(beat).expect("a new map");
        self.server.revision().to_string().parse().unwrap()
    }

    /// The requests so far but for those of informers.
    fn sent(&self) -> Vec<String> {
        let requests = self.server.requests();
        let sent = requests.iter().filter(|request| !matches!(&*request.verb, "list" | "watch"));
        sent.map(|request| format!("{} {}", request.verb, request.path)).collect()
    }
}

/// One pass of these children that wants these pages: which of them were sent, and what was pruned.
async fn pass_of(
    children: &Children,
    owner: &Object<Site>,
    pages: &[(&str, &str)],
) -> Result<(Vec<bool>, Vec<String>), ChildError> {
    let mut pass = children.of(owner, owner)?;
    let mut sent = Vec::new();
    for (name, text) in pages {
        sent.push(matches!(pass.apply(page(name, text)).await?, Applied::Written(_)));
    }
    let pruned = pass.prune().await?.iter().map(ToString::to_string).collect();
    Ok((sent, pruned))
}

impl Scene {
    /// Waits until the cache has everything that the server has: a new map is the last thing that comes.
    async fn caught_up(&self) {
        let newest = self.cluster.beat();
        self.maps.lister().wait_for(&newest, LONG).await.unwrap();
    }

    /// One pass that wants these pages: which of them were sent, and what was pruned.
    async fn pass_only(&self, pages: &[(&str, &str)]) -> Result<(Vec<bool>, Vec<String>), ChildError> {
        pass_of(&self.children, &self.owner, pages).await
    }

    /// The same, and waits until the cache has seen it.
    async fn pass(&self, pages: &[(&str, &str)]) -> Result<(Vec<bool>, Vec<String>), ChildError> {
        let passed = self.pass_only(pages).await?;
        self.caught_up().await;
        Ok(passed)
    }
}

// OPR-09: given wanted children, when a pass applies them, then each is made once with its owner and the
// field manager, and a pass that finds all of it in the cache sends nothing.
// - a each is made with its owner and the field manager
// - b a pass that finds all of it sends nothing
#[test]
fn opr_09_a_pass_makes_each_child_once_with_its_owner_and_a_pass_that_finds_all_of_it_sends_nothing() {
    scene(|scene| async move {
        assert_eq!(scene.pass(&[("a", "1"), ("b", "2")]).await.unwrap(), (vec![true, true], vec![]));
        let stored = scene.cluster.stored("a").unwrap();
        assert_eq!(stored["data"]["text"], "1");
        assert_eq!(stored["metadata"]["managedFields"][0]["manager"], "sites");
        let owner = &stored["metadata"]["ownerReferences"][0];
        assert_eq!(
            (&owner["kind"], &owner["name"], &owner["controller"]),
            (&json!("Site"), &json!("shop"), &json!(true))
        );

        let sent = scene.cluster.sent();
        assert_eq!(scene.pass(&[("a", "1"), ("b", "2")]).await.unwrap(), (vec![false, false], vec![]));
        assert_eq!(scene.cluster.sent(), sent, "nothing was sent");
    });
}

// OPR-10: given a child that others change, when the next pass applies it, then own fields are put right,
// fields of others stay, a deleted child is made again, and a field that is not given any more is removed.
// - a own fields are put right
// - b fields of others stay, and cost one apply
// - c a deleted child is made again
// - d a field that is not given any more is removed
#[test]
fn opr_10_what_others_change_of_a_childs_own_fields_is_put_right_and_what_they_add_stays() {
    scene(|scene| async move {
        let pages = [("a", "1")];
        scene.pass(&pages).await.unwrap();
        let change =
            |patch: Value| scene.cluster.server.merge_patch("configmaps", "default", "a", &patch).unwrap();
        change(json!({"metadata": {"labels": {"foreign": "x"}}}));
        scene.caught_up().await;
        assert_eq!(scene.pass(&pages).await.unwrap().0, [true], "it may be one of a process of this manager");
        assert_eq!(
            scene.pass(&pages).await.unwrap().0,
            [false],
            "the answer shows that it is another manager's"
        );
        change(json!({"data": {"text": "changed"}}));
        scene.caught_up().await;
        assert_eq!(scene.pass(&pages).await.unwrap().0, [true]);
        let stored = scene.cluster.stored("a").unwrap();
        assert_eq!(
            (&stored["data"]["text"], &stored["metadata"]["labels"]["foreign"]),
            (&json!("1"), &json!("x"))
        );

        change(json!({"metadata": {"ownerReferences": null}}));
        scene.caught_up().await;
        assert_eq!(
            scene.pass(&pages).await.unwrap().0,
            [true],
            "the reference to the owner is its field, too"
        );
        scene.cluster.server.delete("configmaps", "default", "a").unwrap();
        scene.caught_up().await;
        assert_eq!(scene.pass(&pages).await.unwrap().0, [true], "it is made again");

        assert_eq!(scene.pass(&[("a", "2")]).await.unwrap().0, [true], "another value is wanted");
        let mut pass = scene.children.of(&scene.owner, &scene.owner).unwrap();
        pass.apply(ConfigMap { data: None, ..page("a", "") }).await.unwrap();
        assert_eq!(
            scene.cluster.stored("a").unwrap()["data"],
            Value::Null,
            "a value that is not given is removed"
        );
    });
}

#[test]
fn opr_11_what_is_not_wanted_is_deleted_and_nothing_else_is() {
    scene(|scene| async move {
        scene.pass(&[("a", "1"), ("b", "2")]).await.unwrap();
        let other = scene.cluster.owner("other");
        let mut pass = scene.children.of(&other, &other).unwrap();
        pass.apply(page("of-the-other", "x")).await.unwrap();
        pass.prune().await.unwrap();
        let plain = serde_json::to_value(page("free", "x")).unwrap();
        let mut plain = plain;
        plain["metadata"]["namespace"] = "default".into();
        let not_controlled = json!([{"apiVersion": "example.org/v1", "kind": "Site", "name": "shop",
            "uid": scene.owner.object_uid().unwrap().to_string()}]);
        plain["metadata"]["ownerReferences"] = not_controlled;
        scene.cluster.server.create(plain).unwrap();
        scene.caught_up().await;

        assert_eq!(scene.pass(&[("b", "2")]).await.unwrap().1, ["ConfigMap default/a"]);
        for (name, is_there) in [("a", false), ("b", true), ("of-the-other", true), ("free", true)] {
            assert_eq!(scene.cluster.stored(name).is_some(), is_there, "{name}");
        }
        assert_eq!(scene.pass(&[]).await.unwrap().1, ["ConfigMap default/b"]);
    });
}

// OPR-12: given a cache that is behind, when a pass is pruned, then an object that has another owner, none,
// or the name of a child by now is kept, one that was only changed is deleted, and one that is gone is no
// error; so it is for children that are listed.
// - a an object that is not the owner's by now is kept
// - b one that was only changed is deleted, and one that is gone is no error
// - c children that are listed are found by label:
//   `opr_12_children_that_are_listed_are_found_by_label_and_deleted_alike`
#[test]
fn opr_12_a_child_is_deleted_only_in_a_state_that_is_known_to_be_the_owners() {
    scene(|scene| async move {
        scene.pass(&[("kept", "1"), ("replaced", "2"), ("touched", "3"), ("gone", "4")]).await.unwrap();
        // The cache does not see what happens from here on.
        scene.cluster.server.faults().freeze_watches(true);
        let server = &scene.cluster.server;
        let change =
            |name: &str, patch: Value| server.merge_patch("configmaps", "default", name, &patch).unwrap();
        change("kept", json!({"metadata": {"ownerReferences": null}}));
        change("touched", json!({"metadata": {"labels": {"a": "b"}}}));
        server.delete("configmaps", "default", "gone").unwrap();
        server.delete("configmaps", "default", "replaced").unwrap();
        let mut foreign = serde_json::to_value(page("replaced", "x")).unwrap();
        foreign["metadata"]["namespace"] = "default".into();
        server.create(foreign).unwrap();

        let pass = scene.children.of(&scene.owner, &scene.owner).unwrap();
        let pruned: Vec<_> = pass.prune().await.unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(pruned, ["ConfigMap default/touched"]);
        for (name, is_there) in [("kept", true), ("replaced", true), ("touched", false), ("gone", false)] {
            assert_eq!(scene.cluster.stored(name).is_some(), is_there, "{name}");
        }
    });
}

// OPR-08: given a child that another object controls, when it is owned or applied, then it is a typed error
// that names the controller; where the cache shows it, nothing is sent.
// - a a typed error that names the controller:
//   `opr_08_a_second_controller_is_refused_and_an_owner_that_controls_nothing_is_kept`
// - b nothing is sent where the cache shows it
// - c without a cache the server is asked, and nothing is sent
#[test]
fn opr_08_a_child_that_another_object_controls_is_refused_before_anything_is_sent() {
    scene(|scene| async move {
        scene.pass(&[("a", "1")]).await.unwrap();
        let (other, sent) = (scene.cluster.owner("other"), scene.cluster.sent());
        let mut pass = scene.children.of(&other, &other).unwrap();
        let error = pass.apply(page("a", "2")).await.unwrap_err();
        assert!(matches!(error, ChildError::Owner(OwnerError::Controlled { .. })), "{error}");
        assert_eq!(scene.cluster.sent(), sent);
        let uncached = Children::new(&scene.cluster.client, "sites").listed::<ConfigMap>("");
        let error = uncached.of(&other, &other).unwrap().apply(page("a", "2")).await.unwrap_err();
        assert!(matches!(error, ChildError::Owner(OwnerError::Controlled { .. })), "{error}");
        assert_eq!(scene.cluster.stored("a").unwrap()["data"]["text"], "1");
    });
}

#[test]
fn opr_11_a_child_whose_apply_has_failed_is_not_pruned() {
    scene(|scene| async move {
        scene.pass(&[("a", "1")]).await.unwrap();
        scene.cluster.server.faults().deny("patch", "configmaps");
        let mut pass = scene.children.of(&scene.owner, &scene.owner).unwrap();
        let error = pass.apply(page("a", "2")).await.unwrap_err().to_string();
        assert!(error.starts_with("ConfigMap default/a was not applied: "), "{error}");
        assert!(pass.prune().await.unwrap().is_empty());
    });
}

// OPR-14: given a reconcile that writes, when the server answers, then each answer is recorded; a deletion as
// a removal, one that a finalizer holds as a write.
// - a each apply and each deletion
// - b each change of a finalizer, the last one as a removal:
//   `opr_14_the_change_of_a_finalizer_is_recorded_and_the_last_one_as_a_removal`
#[test]
fn opr_14_each_answer_is_recorded_a_deletion_as_a_removal_and_one_that_a_finalizer_holds_as_a_write() {
    scene(|scene| async move {
        let log = Log::default();
        let mut pass = scene.children.of(&log, &scene.owner).unwrap();
        for name in ["a", "held"] {
            pass.apply(page(name, "1")).await.unwrap();
        }
        pass.prune().await.unwrap();
        let held = json!({"metadata": {"finalizers": ["example.org/hold"]}});
        scene.cluster.server.merge_patch("configmaps", "default", "held", &held).unwrap();
        scene.caught_up().await;
        scene.children.of(&log, &scene.owner).unwrap().prune().await.unwrap();
        let records = log.0.into_inner().unwrap();
        let told: Vec<_> =
            records.iter().map(|write| (write.meta.key.to_string(), write.is_removed)).collect();
        let expected =
            [("default/a", false), ("default/held", false), ("default/a", true), ("default/held", false)];
        assert_eq!(told, expected.map(|(key, removed)| (key.to_owned(), removed)));
    });
}

#[test]
fn operator_b_a_child_outside_of_the_selector_of_a_list_is_told_of_once_and_one_that_any_way_finds_is_not() {
    crate::log::recorded(|log| {
        run(|cluster| async move {
            define_sites(&cluster.server);
            let owner = cluster.owner("shop");
            let children = Children::new(&cluster.client, "sites");
            let one = children.clone().listed::<ConfigMap>("made=here");
            for text in ["1", "2"] {
                pass_of(&one, &owner, &[("a", text)]).await.unwrap();
            }
            assert_eq!(log.with("is not among what the informer").len(), 1);
            let both = children.listed::<ConfigMap>("made=here").listed::<ConfigMap>("");
            pass_of(&both, &owner, &[("a", "3")]).await.unwrap();
            assert_eq!(log.with("is not among what the informer").len(), 1);
        });
    });
}

#[test]
fn opr_12_children_that_are_listed_are_found_by_label_and_deleted_alike() {
    run(|cluster| async move {
        define_sites(&cluster.server);
        let owner = cluster.owner("shop");
        let children = Children::new(&cluster.client, "sites").listed::<ConfigMap>("made=here");
        let labelled = |name: &str, value: &str| {
            let mut map = page(name, "1");
            map.metadata.labels = Some([("made".to_owned(), value.to_owned())].into());
            map
        };
        let mut pass = children.of(&owner, &owner).unwrap();
        pass.apply(labelled("a", "here")).await.unwrap();
        pass.apply(labelled("b", "elsewhere")).await.unwrap();
        assert!(pass.prune().await.unwrap().is_empty());
        let pruned = children.of(&owner, &owner).unwrap().prune().await.unwrap();
        assert_eq!(pruned.len(), 1, "what the selector leaves out is not looked at: {pruned:?}");
        assert!(cluster.stored("a").is_none() && cluster.stored("b").is_some());
    });
}

// OPR-23: given an informer of several clusters, when a pass of children runs for an owner in one of them,
// then the objects of that cluster count: what is as it should be costs no request, and what is unwanted is
// deleted once.
#[test]
fn opr_23_of_an_informer_of_several_clusters_the_cluster_of_the_owner_counts() {
    run(|cluster| async move {
        define_sites(&cluster.server);
        let owner = cluster.owner("shop");
        let mut meta = owner.cached_meta().clone();
        meta.key = meta.key.in_cluster(&"eu".parse().unwrap());
        let owner = Object::new(meta, owner.body().clone());
        // One server stands for both clusters: each child is there twice.
        let clusters = [("eu", &cluster.client), ("us", &cluster.client)];
        let maps = cluster.client.resource::<ConfigMap>().in_clusters(clusters).informer(&cluster.runtime);
        let maps = maps.unwrap().start().unwrap();
        maps.synced_within(LONG).await.unwrap();
        let children = Children::new(&cluster.client, "sites").cached(&maps.lister());
        let scene = Scene { cluster, owner, maps, children };

        let both = [("a", "1"), ("b", "2")];
        assert_eq!(scene.pass_only(&both).await.unwrap(), (vec![true, true], vec![]));
        // Each cluster has a source of its own.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let sent = scene.cluster.sent();
        assert_eq!(scene.pass_only(&both).await.unwrap(), (vec![false, false], vec![]));
        assert_eq!(scene.cluster.sent(), sent, "nothing was sent");
        assert_eq!(scene.pass_only(&both[..1]).await.unwrap().1, ["ConfigMap default/b"]);
        assert_eq!(
            scene.cluster.sent().len(),
            sent.len() + 2,
            "a look at who has applied it, and one deletion"
        );
    });
}
