//! Section B of the third reading: what is not ours is not taken, and what a child's policy says is done.
//!
//! Answers "what becomes of an object that is there already?", and the hazards beside it: selectors, indices, managers, logs.

use std::sync::Arc;
use std::time::Duration;

use actix_informer::controller::{Controller, Outcome, Owns, ReconcileError, Request};
use actix_informer::reconcile::{Adopt, ChildPolicy, Finalize, finalizer, update_status};

use super::*;
use crate::log::recorded;

impl Scene {
    /// A user's map, without an owner, with these labels.
    fn free(&self, name: &str, labels: &Value) {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"text": "theirs"},
            "metadata": {"name": name, "namespace": "default", "labels": labels}});
        self.cluster.server.create(map).unwrap();
    }

    pub(super) async fn apply_with(
        &self,
        child: ConfigMap,
        policy: &ChildPolicy,
    ) -> Result<bool, ChildError> {
        let mut pass = self.children.of(&self.owner, &self.owner)?;
        let applied = pass.apply_with(child, policy).await?;
        let is_written = matches!(applied, Applied::Written(_));
        self.caught_up().await;
        Ok(is_written)
    }

    fn has_owner(&self, name: &str) -> bool {
        !self.cluster.stored(name).unwrap()["metadata"]["ownerReferences"].is_null()
    }
}

#[test]
fn operator_b_an_object_that_nobody_controls_is_not_taken_unless_its_policy_says_so() {
    scene(|scene| async move {
        scene.free("a", &json!({"adopt": "yes"}));
        let before = scene.cluster.stored("a");
        for is_seen in [false, true] {
            let error = scene.pass(&[("a", "1")]).await.unwrap_err();
            assert!(matches!(error, ChildError::NotOurs { .. }), "the cache has it: {is_seen}: {error}");
            let words = "ConfigMap default/a is there already, and field manager \"sites\" has not made it: ";
            assert!(error.to_string().starts_with(words), "{error}");
            assert_eq!(scene.cluster.stored("a"), before, "it is untouched");
            scene.caught_up().await;
        }
        let labelled =
            |selector: &str| ChildPolicy::new().adopt(Adopt::IfLabelled(selector.parse().unwrap()));
        let error = scene.apply_with(page("a", "1"), &labelled("adopt=no")).await.unwrap_err();
        assert!(matches!(error, ChildError::NotOurs { .. }), "{error}");
        assert!(scene.apply_with(page("a", "1"), &labelled("adopt=yes")).await.unwrap());
        assert!(scene.has_owner("a") && scene.cluster.stored("a").unwrap()["data"]["text"] == "1");

        scene.free("b", &json!({}));
        assert!(scene.apply_with(page("b", "1"), &ChildPolicy::new().adopt(Adopt::Always)).await.unwrap());
        assert!(scene.has_owner("b"));
    });
}

#[test]
fn operator_b_nothing_is_adopted_for_an_owner_that_may_not_be_asked_for_or_is_gone() {
    scene(|scene| async move {
        let always = ChildPolicy::new().adopt(Adopt::Always);
        scene.free("a", &json!({}));
        scene.caught_up().await;
        scene.cluster.server.faults().deny("get", "sites.example.org");
        let error = scene.apply_with(page("a", "1"), &always).await.unwrap_err();
        assert!(matches!(error, ChildError::AskForOwner { .. }), "{error}");
        scene.cluster.server.faults().allow("get", "sites.example.org");
        scene.cluster.server.delete("sites.example.org", "default", "shop").unwrap();
        let error = scene.apply_with(page("a", "1"), &always).await.unwrap_err();
        assert!(matches!(error, ChildError::OwnerIsGone { .. }), "{error}");
        assert!(!scene.has_owner("a"));
    });
}

#[test]
fn operator_b_a_child_that_is_kept_outlives_its_owner_and_is_not_pruned() {
    scene(|scene| async move {
        let kept = ChildPolicy::new().keep();
        assert!(scene.apply_with(page("data", "1"), &kept).await.unwrap());
        assert!(!scene.apply_with(page("data", "1"), &kept).await.unwrap(), "it is there");
        assert!(!scene.has_owner("data"));
        assert!(scene.apply_with(page("data", "2"), &kept).await.unwrap());
        assert_eq!(scene.pass(&[]).await.unwrap().1, [""; 0]);
        scene.cluster.server.delete("sites.example.org", "default", "shop").unwrap();
        scene.caught_up().await;
        assert_eq!(scene.cluster.stored("data").unwrap()["data"]["text"], "2");
    });
}

#[test]
fn operator_b_a_child_that_is_only_created_keeps_what_others_change() {
    scene(|scene| async move {
        let once = ChildPolicy::new().create_only();
        assert!(scene.apply_with(page("a", "1"), &once).await.unwrap());
        let theirs = json!({"data": {"text": "theirs"}});
        scene.cluster.server.merge_patch("configmaps", "default", "a", &theirs).unwrap();
        scene.caught_up().await;
        for text in ["1", "2"] {
            assert!(!scene.apply_with(page("a", text), &once).await.unwrap());
        }
        assert_eq!(scene.cluster.stored("a").unwrap()["data"]["text"], "theirs");
        let listed = Children::new(&scene.cluster.client, "sites").listed::<ConfigMap>("");
        let mut pass = listed.of(&scene.owner, &scene.owner).unwrap();
        let applied = pass.apply_with(page("a", "3"), &once).await.unwrap();
        assert_eq!(applied.data.as_ref().unwrap()["text"], "theirs", "{applied:?}");
        drop(applied);
        scene.free("b", &json!({}));
        let error = scene.apply_with(page("b", "1"), &once).await.unwrap_err();
        assert!(matches!(error, ChildError::NotOurs { .. }), "{error}");
        scene.cluster.server.delete("configmaps", "default", "a").unwrap();
        scene.caught_up().await;
        assert!(scene.apply_with(page("a", "4"), &once).await.unwrap(), "it is made again");
        assert_eq!(scene.pass(&[]).await.unwrap().1, ["ConfigMap default/a"], "and pruned");
    });
}

#[test]
fn operator_b_a_child_is_made_anew_where_a_field_cannot_be_changed_if_its_policy_says_so() {
    scene(|scene| async move {
        let fixed = |text: &str| ConfigMap { immutable: Some(true), ..page("a", text) };
        let recreate = ChildPolicy::new().recreate();
        assert!(scene.apply_with(fixed("1"), &recreate).await.unwrap());
        let first = scene.cluster.stored("a").unwrap();
        let error = scene.apply_with(fixed("2"), &ChildPolicy::new()).await.unwrap_err();
        assert!(matches!(&error, ChildError::Apply { source, .. } if source.is_invalid()), "{error}");
        assert!(scene.apply_with(fixed("2"), &recreate).await.unwrap());
        let second = scene.cluster.stored("a").unwrap();
        assert_eq!(second["data"]["text"], "2");
        assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);

        let held = json!({"metadata": {"finalizers": ["example.org/hold"]}});
        scene.cluster.server.merge_patch("configmaps", "default", "a", &held).unwrap();
        scene.caught_up().await;
        let error = scene.apply_with(fixed("3"), &recreate).await.unwrap_err();
        assert!(matches!(error, ChildError::StillEnding { .. }), "{error}");
    });
}

#[test]
fn operator_b_a_cache_of_children_gets_its_index() {
    run(|cluster| async move {
        define_sites(&cluster.server);
        let owner = cluster.owner("shop");
        let maps =
            cluster.client.resource::<ConfigMap>().informer(&cluster.runtime).unwrap().start().unwrap();
        let children = Children::new(&cluster.client, "sites").cached(&maps.lister());
        let _again = Children::new(&cluster.client, "other").cached(&maps.lister());
        maps.synced_within(LONG).await.unwrap();
        pass_of(&children, &owner, &[("a", "1")]).await.unwrap();
        let scene = Scene { cluster, owner, maps, children };
        scene.caught_up().await;
        let uid = scene.owner.object_uid().unwrap().to_string();
        assert_eq!(scene.maps.lister().by_index(CONTROLLER_UID, &uid).unwrap().len(), 1);
    });
}

#[test]
fn operator_b_a_child_outside_of_the_informers_selector_is_not_waited_for_and_told_of_once() {
    recorded(|log| {
        run(|cluster| async move {
            define_sites(&cluster.server);
            cluster.owner("shop");
            let sites =
                cluster.client.resource::<Site>().informer(&cluster.runtime).unwrap().start().unwrap();
            let maps = cluster.client.resource::<ConfigMap>().labels("made=here").informer(&cluster.runtime);
            let maps = maps.unwrap().start().unwrap();
            let children = Children::new(&cluster.client, "sites").cached(&maps.lister());
            let passes: Arc<Mutex<Vec<Duration>>> = Arc::default();
            let (told, runtime) = (Arc::clone(&passes), cluster.runtime.clone());
            let reconcile = move |request: Request<Site>| {
                let (children, told, runtime) = (children.clone(), Arc::clone(&told), runtime.clone());
                async move {
                    let Some(site) = request.object().cloned() else {
                        return Ok::<_, ReconcileError>(Outcome::Done);
                    };
                    let text = told.lock().unwrap().len().to_string();
                    children.of(&request, &site)?.apply(page("a", &text)).await?;
                    told.lock().unwrap().push(runtime.now());
                    Ok(Outcome::RequeueAfter(Duration::from_secs(1)))
                }
            };
            let _controller = Controller::builder(&sites).owns(&maps).reconcile(reconcile).start().unwrap();
            tokio::time::sleep(Duration::from_secs(20)).await;
            let passes = passes.lock().unwrap();
            assert!(passes.len() >= 15, "one a second: {passes:?}");
            assert_eq!(cluster.stored("a").unwrap()["data"]["text"], *(passes.len() - 1).to_string());
            assert_eq!(log.with("is not among what the informer").len(), 1);
        })
    });
}

#[test]
fn operator_b_finalizers_and_statuses_are_written_under_the_name_of_the_controller() {
    run(|cluster| async move {
        define_sites(&cluster.server);
        cluster.owner("shop");
        let sites = cluster.client.resource::<Site>().informer(&cluster.runtime).unwrap().start().unwrap();
        let client = cluster.client.clone();
        let reconcile = move |request: Request<Site>| {
            let client = client.clone();
            async move {
                let (client, request) = (&client, &request);
                finalizer(client, request, "example.org/shops", |event| async move {
                    let Finalize::Apply(site) = event else { return Ok(Outcome::Done) };
                    update_status(client, request, &site, |status: &mut SiteStatus| {
                        status.ready = Some(true)
                    })
                    .await?;
                    Ok::<_, ReconcileError>(Outcome::Done)
                })
                .await
            }
        };
        let controller = Controller::builder(&sites).name("shop-operator").reconcile(reconcile);
        let _controller = controller.start().unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let stored = cluster.server.get("sites.example.org", "default", "shop").unwrap();
        let entries = stored["metadata"]["managedFields"].as_array().unwrap();
        let of = |field: &str| {
            let has = |entry: &&Value| entry["fieldsV1"].to_string().contains(field);
            entries.iter().find(has).map(|entry| entry["manager"].clone())
        };
        assert_eq!(of("f:finalizers"), Some(json!("shop-operator")), "{entries:?}");
        assert_eq!(of("f:ready"), Some(json!("shop-operator")), "{entries:?}");
    });
}

#[test]
fn operator_a1_each_deletion_is_logged_with_the_child_and_its_owner() {
    recorded(|log| {
        scene(|scene| async move {
            scene.pass(&[("a", "1")]).await.unwrap();
            scene.pass(&[]).await.unwrap();
            let line = "INFO deleted ConfigMap default/a, which Site default/shop does not want any more";
            assert_eq!(log.texts(tracing::Level::INFO), [line]);
        });
    });
}

#[test]
fn operator_b_two_owners_do_not_overwrite_a_child_that_is_kept_and_the_next_life_of_one_gets_it() {
    scene(|scene| async move {
        let kept = ChildPolicy::new().keep();
        let listed = Children::new(&scene.cluster.client, "sites").listed::<ConfigMap>("");
        let other = scene.cluster.owner("other");
        assert!(scene.apply_with(page("data", "1"), &kept).await.unwrap());
        for children in [&scene.children, &listed] {
            let mut pass = children.of(&other, &other).unwrap();
            let error = pass.apply_with(page("data", "2"), &kept).await.unwrap_err();
            assert!(matches!(error, ChildError::KeptForAnother { .. }), "{error}");
            let words = "ConfigMap default/data is kept for another owner, Site.example.org default/shop ";
            assert!(error.to_string().starts_with(words), "{error}");
        }
        let mut pass = scene.children.of(&other, &other).unwrap();
        let error = pass.apply(page("data", "2")).await.unwrap_err();
        assert!(
            matches!(error, ChildError::KeptForAnother { .. }),
            "also with a policy that does not keep it: {error}"
        );
        assert_eq!(scene.cluster.stored("data").unwrap()["data"]["text"], "1");
        scene.cluster.server.delete("sites.example.org", "default", "shop").unwrap();
        let again = scene.cluster.owner("shop");
        let mut pass = scene.children.of(&again, &again).unwrap();
        pass.apply_with(page("data", "3"), &kept).await.unwrap();
        assert_eq!(scene.cluster.stored("data").unwrap()["data"]["text"], "3");
    });
}

#[test]
fn operator_b_the_log_says_why_a_child_is_made_anew_and_one_deletion_is_sent_for_it() {
    recorded(|log| {
        scene(|scene| async move {
            let fixed = |text: &str| ConfigMap { immutable: Some(true), ..page("a", text) };
            let recreate = ChildPolicy::new().recreate();
            scene.apply_with(fixed("1"), &recreate).await.unwrap();
            let held = json!({"metadata": {"finalizers": ["example.org/hold"]}});
            scene.cluster.server.merge_patch("configmaps", "default", "a", &held).unwrap();
            scene.caught_up().await;
            for _ in 0..3 {
                let error = scene.apply_with(fixed("2"), &recreate).await.unwrap_err();
                assert!(matches!(error, ChildError::StillEnding { .. }), "{error}");
                scene.caught_up().await;
            }
            let deletions =
                scene.cluster.sent().into_iter().filter(|sent| sent.starts_with("delete ")).count();
            assert_eq!(deletions, 1);
            let line = "INFO began to delete (its finalizers hold it) ConfigMap default/a, which Site default/shop wants in a \
                        form that it cannot be changed to";
            assert_eq!(log.texts(tracing::Level::INFO), [line]);
        });
    });
}

#[test]
fn operator_b_a_child_that_is_only_created_is_not_made_again_for_an_owner_that_is_gone() {
    scene(|scene| async move {
        let scene = scene;
        let once = ChildPolicy::new().create_only();
        let listed = Children::new(&scene.cluster.client, "sites").listed::<ConfigMap>("");
        let mut pass = listed.of(&scene.owner, &scene.owner).unwrap();
        pass.apply_with(page("a", "1"), &once).await.unwrap();
        for (resource, name) in [("sites.example.org", "shop"), ("configmaps", "a")] {
            scene.cluster.server.delete(resource, "default", name).unwrap();
        }
        let mut pass = listed.of(&scene.owner, &scene.owner).unwrap();
        let error = pass.apply_with(page("a", "1"), &once).await.unwrap_err();
        assert!(matches!(error, ChildError::OwnerIsGone { .. }), "{error}");
    });
}
