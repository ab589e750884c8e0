//! Rows A1 and A4 to A7 of the third reading: whose a child is, and who may take or delete it.
//!
//! Answers "is anything deleted or taken that this controller has not made?".

use actix_informer::client::api::{DeleteParams, Patch, PatchParams};
use actix_informer::reconcile::{Adopt, ChildPolicy};
use actix_informer::representation::Prune;
use k8s_openapi::api::core::v1::Secret;

use super::*;

mod others;

/// A reconcile of a controller, as its request tells of it.
struct InReconcile(u64);

impl WriteLog for InReconcile {
    fn record(&self, _: WriteRecord) {}

    fn reconcile(&self) -> Option<(&str, u64)> {
        Some(("sites", self.0))
    }
}

impl Scene {
    fn children_of(&self, manager: &str) -> Children {
        Children::new(&self.cluster.client, manager).cached(&self.maps.lister())
    }

    /// The deletions so far.
    fn deletions(&self) -> Vec<String> {
        self.cluster.sent().into_iter().filter(|sent| sent.starts_with("delete ")).collect()
    }

    /// The reference of a user's object to the owner.
    fn reference(&self) -> Value {
        json!([{"apiVersion": "example.org/v1", "kind": "Site", "name": "shop", "controller": true,
            "uid": self.owner.object_uid().unwrap().to_string()}])
    }

    /// Somebody makes a map, with this metadata.
    fn make(&self, name: &str, metadata: &Value) {
        let mut map = serde_json::to_value(page(name, "theirs")).unwrap();
        map["metadata"]["namespace"] = "default".into();
        for (field, value) in metadata.as_object().unwrap() {
            map["metadata"][field] = value.clone();
        }
        self.cluster.server.create(map).unwrap();
    }
}

/// Each manager that applies a stored object.
fn appliers(stored: &Value) -> Vec<&str> {
    let entries = stored["metadata"]["managedFields"].as_array().unwrap();
    let applied = entries.iter().filter(|entry| entry["operation"] == "Apply");
    applied.map(|entry| entry["manager"].as_str().unwrap()).collect()
}

#[test]
fn operator_a1_two_controllers_over_one_owner_leave_each_others_children_alone() {
    scene(|scene| async move {
        let (dns, tls) = (scene.children_of("dns"), scene.children_of("tls"));
        for round in 0..6 {
            assert_eq!(pass_of(&dns, &scene.owner, &[("d", "1")]).await.unwrap().1, [""; 0], "round {round}");
            scene.caught_up().await;
            assert_eq!(pass_of(&tls, &scene.owner, &[("t", "1")]).await.unwrap().1, [""; 0], "round {round}");
            scene.caught_up().await;
        }
        assert_eq!(scene.deletions(), [""; 0]);
        // Two applies, and one look of each at what the other has made.
        assert_eq!(scene.cluster.sent().len(), 4, "{:?}", scene.cluster.sent());
        assert_eq!(pass_of(&dns, &scene.owner, &[]).await.unwrap().1, ["ConfigMap default/d"]);
        assert!(scene.cluster.stored("t").is_some() && scene.cluster.stored("d").is_none());
    });
}

#[test]
fn operator_a1_what_a_person_has_made_for_the_owner_is_kept_and_looked_at_once_in_each_of_its_states() {
    scene(|scene| async move {
        scene.make("theirs", &json!({"ownerReferences": scene.reference()}));
        scene.caught_up().await;
        let looks = || scene.cluster.sent().iter().filter(|sent| sent.starts_with("get ")).count();
        for _ in 0..3 {
            assert_eq!(scene.pass(&[("a", "1")]).await.unwrap().1, [""; 0]);
        }
        assert_eq!(looks(), 1);
        let label = json!({"metadata": {"labels": {"new": "state"}}});
        scene.cluster.server.merge_patch("configmaps", "default", "theirs", &label).unwrap();
        scene.caught_up().await;
        for _ in 0..3 {
            assert_eq!(scene.pass(&[("a", "1")]).await.unwrap().1, [""; 0]);
        }
        assert_eq!(looks(), 2);
        assert!(scene.cluster.stored("theirs").is_some());
    });
}

#[test]
fn operator_a1_a_child_that_another_controller_applies_too_loses_our_fields_and_stays() {
    scene(|scene| async move {
        let (dns, tls) = (scene.children_of("dns"), scene.children_of("tls"));
        let mut pass = dns.of(&scene.owner, &scene.owner).unwrap();
        let mut ours = page("both", "1");
        ours.data.as_mut().unwrap().insert("dns".to_owned(), "x".to_owned());
        pass.apply(ours).await.unwrap();
        let mut pass = tls.of(&scene.owner, &scene.owner).unwrap();
        let error = pass.apply(page("both", "1")).await.unwrap_err();
        assert!(matches!(error, ChildError::NotOurs { .. }), "{error}");
        let adopting = ChildPolicy::new().adopt(Adopt::Always);
        pass.apply_with(page("both", "1"), &adopting).await.unwrap();
        scene.caught_up().await;
        assert_eq!(pass_of(&dns, &scene.owner, &[]).await.unwrap().1, [""; 0]);
        let stored = scene.cluster.stored("both").unwrap();
        assert_eq!(stored["data"], json!({"text": "1"}));
        assert_eq!(appliers(&stored), ["tls"]);
        assert_eq!(stored["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
        scene.caught_up().await;
        assert_eq!(pass_of(&tls, &scene.owner, &[]).await.unwrap().1, ["ConfigMap default/both"]);
    });
}

#[test]
fn operator_a1_a_cache_that_keeps_managed_fields_says_whose_a_child_is_and_costs_no_look() {
    run(|cluster| async move {
        define_sites(&cluster.server);
        let owner = cluster.owner("shop");
        let maps = cluster.client.resource::<ConfigMap>().prune(Prune::nothing()).informer(&cluster.runtime);
        let maps = maps.unwrap().start().unwrap();
        maps.synced_within(LONG).await.unwrap();
        let children = Children::new(&cluster.client, "sites").cached(&maps.lister());
        let scene = Scene { cluster, owner, maps, children };
        let other = scene.children_of("other");
        pass_of(&other, &scene.owner, &[("theirs", "1")]).await.unwrap();
        scene.pass(&[("a", "1")]).await.unwrap();
        let before = scene.cluster.sent().len();
        assert_eq!(scene.pass(&[]).await.unwrap().1, ["ConfigMap default/a"]);
        assert_eq!(scene.cluster.sent().len(), before + 1, "the deletion");
        assert!(scene.cluster.stored("theirs").is_some());
    });
}

#[test]
fn operator_a1_two_passes_of_one_reconcile_do_not_delete_each_others_children() {
    scene(|scene| async move {
        for id in 0..4 {
            let log = InReconcile(id);
            let mut first = scene.children.of(&log, &scene.owner).unwrap();
            first.apply(page("a", "1")).await.unwrap();
            assert!(first.prune().await.unwrap().is_empty());
            let mut second = scene.children.of(&log, &scene.owner).unwrap();
            let error = second.apply(page("b", "1")).await.unwrap_err();
            assert!(matches!(error, ChildError::SecondPass { .. }), "{error}");
            second.apply(page("a", "1")).await.unwrap();
            second.prune().await.unwrap();
            let third = scene.children.of(&log, &scene.owner).unwrap();
            assert!(third.prune().await.unwrap().is_empty(), "what the first one wants");
            scene.caught_up().await;
        }
        assert_eq!(scene.deletions(), [""; 0]);
        assert!(scene.cluster.stored("a").is_some() && scene.cluster.stored("b").is_none());

        let (pages, links) = (scene.children_of("sites-pages"), scene.children_of("sites-links"));
        for id in 4..8 {
            for (children, name) in [(&pages, "p"), (&links, "l")] {
                let log = InReconcile(id);
                let mut pass = children.of(&log, &scene.owner).unwrap();
                pass.apply(page(name, "1")).await.unwrap();
                assert!(pass.prune().await.unwrap().is_empty());
                scene.caught_up().await;
            }
        }
        assert_eq!(scene.deletions(), [""; 0], "each part has a name of its own");
    });
}

#[test]
fn operator_a6_under_one_manager_two_owners_do_not_take_a_child_from_each_other_whatever_is_remembered() {
    scene(|scene| async move {
        let other = scene.cluster.owner("other");
        let listed = Children::new(&scene.cluster.client, "sites").listed::<ConfigMap>("");
        for children in [&listed, &scene.children] {
            pass_of(children, &scene.owner, &[("a", "1")]).await.unwrap();
            let error = pass_of(children, &other, &[("a", "2")]).await.unwrap_err();
            assert!(matches!(error, ChildError::Owner(OwnerError::Controlled { .. })), "{error}");
        }
        assert_eq!(scene.cluster.stored("a").unwrap()["data"]["text"], "1");
        // The owner lets it go, and the other one has it then.
        scene.cluster.server.delete("configmaps", "default", "a").unwrap();
        pass_of(&listed, &other, &[("a", "2")]).await.unwrap();
        let error = pass_of(&listed, &scene.owner, &[("a", "1")]).await.unwrap_err();
        assert!(matches!(error, ChildError::Owner(OwnerError::Controlled { .. })), "{error}");
        assert_eq!(scene.cluster.stored("a").unwrap()["data"]["text"], "2");
    });
}

#[test]
fn operator_a4_what_another_process_of_this_manager_has_added_meanwhile_is_removed() {
    scene(|scene| async move {
        scene.pass(&[("a", "1")]).await.unwrap();
        // Another process of the same name has led in between.
        let other = scene.children_of("sites");
        let mut pass = other.of(&scene.owner, &scene.owner).unwrap();
        let mut noted = page("a", "1");
        noted.metadata.annotations = Some([("note".to_owned(), "x".to_owned())].into());
        pass.apply(noted).await.unwrap();
        scene.caught_up().await;
        assert_eq!(scene.cluster.stored("a").unwrap()["metadata"]["annotations"]["note"], "x");
        assert_eq!(scene.pass(&[("a", "1")]).await.unwrap().0, [true]);
        assert_eq!(scene.cluster.stored("a").unwrap()["metadata"]["annotations"], Value::Null);
        assert_eq!(scene.pass(&[("a", "1")]).await.unwrap().0, [false]);
    });
}

// OPR-13: given a child that was applied before, when the cache shows another state of it, then it is applied
// once more, unless nothing but its status has changed.
#[test]
fn opr_13_a_change_of_a_childs_status_costs_nothing_and_any_other_change_one_apply() {
    scene(|scene| async move {
        let Scene { cluster, owner, .. } = &scene;
        let sites = cluster.client.resource::<Site>().informer(&cluster.runtime).unwrap().start().unwrap();
        sites.synced_within(LONG).await.unwrap();
        let children = Children::new(&cluster.client, "sites").cached(&sites.lister());
        let pass = async || {
            let child = Site::new("below", SiteSpec { pages: vec!["one".to_owned()] });
            let mut pass = children.of(owner, owner).unwrap();
            let is_sent = matches!(pass.apply(child).await.unwrap(), Applied::Written(_));
            let newest = cluster.server.revision().to_string().parse().unwrap();
            sites.lister().wait_for(&newest, LONG).await.unwrap();
            is_sent
        };
        let change = async |resource: &str, patch: Value| {
            cluster.server.merge_patch(resource, "default", "below", &patch).unwrap();
            let newest = cluster.server.revision().to_string().parse().unwrap();
            sites.lister().wait_for(&newest, LONG).await.unwrap();
        };
        assert!(pass().await && !pass().await);
        change("sites.example.org/status", json!({"status": {"ready": true}})).await;
        assert!(!pass().await, "its status");
        for patch in [json!({"metadata": {"labels": {"a": "b"}}}), json!({"spec": {"pages": ["two"]}})] {
            change("sites.example.org", patch.clone()).await;
            assert!(pass().await && !pass().await, "{patch}");
        }
    });
}

#[test]
fn operator_a5_a_child_of_an_owner_that_was_deleted_with_orphans_does_not_get_its_reference_back() {
    scene(|scene| async move {
        scene.pass(&[("a", "1")]).await.unwrap();
        let sites = scene.cluster.client.api::<Site>().namespaced("default");
        sites.delete("shop", &DeleteParams::orphan()).await.unwrap();
        // This server collects no garbage: what its collector would do.
        let (free, released) = (json!({"ownerReferences": null}), json!({"finalizers": null}));
        for (resource, name, change) in [("configmaps", "a", free), ("sites.example.org", "shop", released)] {
            let change = json!({"metadata": change});
            scene.cluster.server.merge_patch(resource, "default", name, &change).unwrap();
        }
        scene.caught_up().await;
        let error = scene.pass(&[("a", "1")]).await.unwrap_err();
        assert!(matches!(error, ChildError::OwnerIsGone { .. }), "{error}");
        let stored = scene.cluster.stored("a").expect("it was left behind");
        assert_eq!(stored["metadata"]["ownerReferences"], Value::Null);
        // A new life of the owner takes what the manager has made.
        let again = scene.cluster.owner("shop");
        assert_eq!(pass_of(&scene.children, &again, &[("a", "1")]).await.unwrap().0, [true]);
        let stored = scene.cluster.stored("a").unwrap();
        assert_eq!(stored["metadata"]["ownerReferences"][0]["uid"], *again.object_uid().unwrap().to_string());
    });
}

#[test]
fn operator_a5_before_each_object_that_nobody_controls_the_owner_is_asked_for_anew() {
    scene(|scene| async move {
        scene.pass(&[("a", "1"), ("b", "1")]).await.unwrap();
        let server = &scene.cluster.server;
        server.delete("configmaps", "default", "b").unwrap();
        scene.caught_up().await;
        let mut pass = scene.children.of(&scene.owner, &scene.owner).unwrap();
        pass.apply(page("b", "1")).await.unwrap(); // the owner is there
        let free = json!({"metadata": {"ownerReferences": null}});
        server.merge_patch("configmaps", "default", "a", &free).unwrap();
        server.delete("sites.example.org", "default", "shop").unwrap();
        let error = pass.apply(page("a", "2")).await.unwrap_err();
        assert!(matches!(error, ChildError::OwnerIsGone { .. }), "{error}");
        assert_eq!(scene.cluster.stored("a").unwrap()["metadata"]["ownerReferences"], Value::Null);
    });
}

#[test]
fn operator_a5_the_clean_up_of_an_owner_whose_children_are_to_stay_prunes_none() {
    scene(|scene| async move {
        scene.pass(&[("a", "1")]).await.unwrap();
        let mut ending = serde_json::to_value(scene.owner.body()).unwrap();
        ending["metadata"]["deletionTimestamp"] = "2026-11-28T00:00:00Z".into();
        ending["metadata"]["finalizers"] = json!(["example.org/hold", "orphan"]);
        let ending: Object<Site> = from_body(serde_json::from_value(ending).unwrap()).unwrap();
        let pass = scene.children.of(&ending, &ending).unwrap();
        assert!(pass.prune().await.unwrap().is_empty() && scene.cluster.stored("a").is_some());
    });
}

#[test]
fn operator_a5_for_an_owner_that_is_being_deleted_nothing_is_applied_unless_it_is_asked_for() {
    scene(|scene| async move {
        let held = json!({"metadata": {"finalizers": ["example.org/hold"]}});
        scene.cluster.server.merge_patch("sites.example.org", "default", "shop", &held).unwrap();
        scene.cluster.server.delete("sites.example.org", "default", "shop").unwrap();
        let ending = scene.cluster.server.get("sites.example.org", "default", "shop").unwrap();
        let ending: Object<Site> = from_body(serde_json::from_value(ending).unwrap()).unwrap();
        let error = pass_of(&scene.children, &ending, &[("a", "1")]).await.unwrap_err();
        let words = "Site default/shop is being deleted: ConfigMap default/a is not made for it; leave the reconcile before the \
                     pass, or begin the pass with `for_clean_up`";
        assert_eq!(error.to_string(), words);
        let mut pass = scene.children.of(&ending, &ending).unwrap().for_clean_up();
        pass.apply(page("a", "1")).await.unwrap();
        assert!(scene.cluster.stored("a").is_some());
    });
}

#[test]
fn operator_a6_fields_of_a_former_manager_are_moved_over_and_removed_where_they_are_not_wanted() {
    scene(|scene| async move {
        let former = format!("sites/{}", scene.owner.object_uid().unwrap());
        let api = scene.cluster.maps();
        let before = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "ownerReferences": scene.reference()}, "data": {"text": "1", "old": "x"}});
        api.patch("a", &PatchParams::apply(&former), &Patch::Apply(before)).await.unwrap();
        scene.caught_up().await;
        assert_eq!(scene.pass(&[("a", "1")]).await.unwrap().0, [true]);
        let stored = scene.cluster.stored("a").unwrap();
        assert_eq!(stored["data"], json!({"text": "1"}), "{stored}");
        assert_eq!(appliers(&stored), ["sites"]);
        assert_eq!(scene.pass(&[("a", "1")]).await.unwrap().0, [false], "once");

        // Without force the former manager would be another one.
        let before = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "b", "ownerReferences": scene.reference()}, "data": {"text": "1", "old": "x"}});
        api.patch("b", &PatchParams::apply(&former), &Patch::Apply(before)).await.unwrap();
        scene.caught_up().await;
        let mild = scene.children.clone().without_force();
        pass_of(&mild, &scene.owner, &[("a", "1"), ("b", "2")]).await.unwrap();
        assert_eq!(scene.cluster.stored("b").unwrap()["data"], json!({"text": "2"}));
        scene.caught_up().await;
        assert_eq!(scene.pass(&[]).await.unwrap().1, ["ConfigMap default/a", "ConfigMap default/b"]);
    });
}

#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize)]
#[kube(group = "example.org", version = "v1", kind = "Monitor", namespaced, schema = "disabled")]
#[kube(crates(kube_core = "::kube_core"))]
struct MonitorSpec {}

#[test]
fn operator_a7_a_kind_that_is_not_served_and_one_that_is_refused_keep_no_other_kind_from_being_pruned() {
    scene(|scene| async move {
        let client = &scene.cluster.client;
        let children = Children::new(client, "sites").listed::<Monitor>("").cached(&scene.maps.lister());
        pass_of(&children, &scene.owner, &[("a", "1")]).await.unwrap();
        scene.caught_up().await;
        assert_eq!(pass_of(&children, &scene.owner, &[]).await.unwrap().1, ["ConfigMap default/a"]);

        let children = Children::new(client, "sites").listed::<Secret>("").cached(&scene.maps.lister());
        pass_of(&children, &scene.owner, &[("a", "1")]).await.unwrap();
        scene.caught_up().await;
        scene.cluster.server.faults().deny("list", "secrets");
        let error = pass_of(&children, &scene.owner, &[]).await.unwrap_err();
        assert!(matches!(error, ChildError::List { .. }), "{error}");
        assert!(scene.cluster.stored("a").is_none(), "the other kind is pruned before the error is returned");
    });
}
