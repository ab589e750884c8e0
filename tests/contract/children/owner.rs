//! OPR-24: children of an owner that is gone, which a cache does not know yet.
//!
//! Answers "does a reconciler stop making what the garbage collector deletes?" Read next: `actors/operator/src/reconcile/kubernetes/children/owner_check.rs`.

use std::sync::Arc;
use std::time::Duration;

use actix_informer::controller::{Controller, Outcome, Owns, Request};
use actix_informer::reconcile::ChildPolicy;

use super::*;

const SITES: &str = "sites.example.org";
const SECOND: Duration = Duration::from_secs(1);

impl Scene {
    /// The owner goes, and its child with it; the cache of the owner does not see that, that of the child does.
    async fn owner_goes(&self) {
        self.cluster.server.delete(SITES, "default", "shop").unwrap();
        drop(self.cluster.server.delete("configmaps", "default", "a"));
        self.caught_up().await;
    }

    fn gets(&self) -> usize {
        self.cluster.sent().iter().filter(|sent| sent.starts_with("get ")).count()
    }
}

/// Says of itself that it may be an old state.
struct Behind;

impl WriteLog for Behind {
    fn record(&self, _: WriteRecord) {}

    fn may_be_behind(&self) -> bool {
        true
    }
}

// OPR-24: given an owner that is gone and a cache that does not know it yet, when a child is made that this
// process has made before, or one is applied whose owner's cache does not follow its source, then the server
// is asked for the owner once a pass, and nothing is made for one that is gone, has another life or is being
// deleted.
// - a a child that is gone with its owner is not made again
// - b one question for all children of a pass, none for what is made for the first time
// - c another life of the name is another owner
// - d for an owner that is being deleted only a pass for its clean-up makes something:
//   `opr_24_for_an_owner_that_is_being_deleted_only_its_clean_up_makes_something`
// - e a controller whose watch of the owners is broken:
//   `opr_24_a_controller_whose_watch_of_the_owners_is_broken_makes_nothing_for_one_that_is_gone`
// - f without the right to ask it is made, without an answer it is not:
//   `opr_24_who_may_not_ask_makes_the_child_and_who_gets_no_answer_does_not`
#[test]
fn opr_24_a_child_that_is_gone_with_its_owner_is_not_made_again() {
    scene(|scene| async move {
        let pages = [("a", "1"), ("b", "1")];
        scene.pass(&pages).await.unwrap();
        assert_eq!(scene.gets(), 0, "to make a child for the first time costs no question");
        for name in ["a", "b"] {
            scene.cluster.server.delete("configmaps", "default", name).unwrap();
        }
        scene.caught_up().await;
        assert_eq!(scene.pass(&pages).await.unwrap().0, [true, true], "its owner is there");
        assert_eq!(scene.gets(), 1, "one question for both");

        scene.owner_goes().await;
        let error = scene.pass(&pages).await.unwrap_err();
        assert!(matches!(error, ChildError::OwnerIsGone { .. }), "{error}");
        let words = "Site default/shop is gone or is being deleted, which the cache does not show yet: nothing is made for it";
        assert_eq!(error.to_string(), words);
        scene.cluster.owner("shop");
        let error = scene.pass(&pages).await.unwrap_err();
        assert!(matches!(error, ChildError::OwnerIsGone { .. }), "another life of the name: {error}");
        assert!(scene.cluster.stored("a").is_none());
    });
}

#[test]
fn opr_24_for_an_owner_that_is_being_deleted_only_its_clean_up_makes_something() {
    scene(|scene| async move {
        let held = json!({"metadata": {"finalizers": ["example.org/hold"]}});
        scene.cluster.server.merge_patch(SITES, "default", "shop", &held).unwrap();
        scene.cluster.server.delete(SITES, "default", "shop").unwrap();
        let mut pass = scene.children.of(&Behind, &scene.owner).unwrap();
        let error = pass.apply(page("a", "1")).await.unwrap_err();
        assert!(matches!(error, ChildError::OwnerIsGone { .. }), "{error}");

        let ending = scene.cluster.server.get(SITES, "default", "shop").unwrap();
        let ending: Object<Site> = from_body(serde_json::from_value(ending).unwrap()).unwrap();
        let mut pass = scene.children.of(&Behind, &ending).unwrap();
        let error = pass.apply(page("a", "1")).await.unwrap_err();
        assert!(matches!(error, ChildError::OwnerIsEnding { .. }), "only if it is asked for: {error}");
        let mut pass = scene.children.of(&Behind, &ending).unwrap().for_clean_up();
        assert!(matches!(pass.apply(page("a", "1")).await.unwrap(), Applied::Written(_)));
    });
}

#[test]
fn opr_24_who_may_not_ask_makes_the_child_and_who_gets_no_answer_does_not() {
    scene(|scene| async move {
        let faults = scene.cluster.server.faults();
        faults.deny("get", SITES);
        let mut pass = scene.children.of(&Behind, &scene.owner).unwrap();
        assert!(matches!(pass.apply(page("a", "1")).await.unwrap(), Applied::Written(_)));
        faults.allow("get", SITES);
        faults.refuse_connections();
        let mut pass = scene.children.of(&Behind, &scene.owner).unwrap();
        let error = pass.apply(page("b", "1")).await.unwrap_err();
        assert!(matches!(error, ChildError::AskForOwner { .. }), "{error}");
        let words = "it is not known whether Site default/shop is still there: ";
        assert!(error.to_string().starts_with(words), "{error}");
    });
}

#[test]
fn opr_24_a_controller_whose_watch_of_the_owners_is_broken_makes_nothing_for_one_that_is_gone() {
    scene(|scene| async move {
        let sites = scene.cluster.client.resource::<Site>().informer(&scene.cluster.runtime).unwrap();
        let sites = sites.start().unwrap();
        let passes: Arc<Mutex<Vec<(bool, String)>>> = Arc::default();
        let (client, maps, told) = (scene.cluster.client.clone(), scene.maps.clone(), Arc::clone(&passes));
        let reconcile = move |request: Request<Site>| {
            // As a process that has just begun to lead: it has made nothing before.
            let children = Children::new(&client, "sites").cached(&maps.lister());
            let told = Arc::clone(&told);
            async move {
                let Some(site) = request.object().cloned() else { return Ok(Outcome::Done) };
                let ended = children.of(&request, &site)?.apply(page("a", "1")).await;
                let ended = ended.map_or_else(|error| error.to_string(), |_| "applied".to_owned());
                told.lock().unwrap().push((request.may_be_behind(), ended));
                Ok(Outcome::RequeueAfter(10 * SECOND))
            }
        };
        let _controller = Controller::builder(&sites).owns(&scene.maps).reconcile(reconcile).start().unwrap();
        tokio::time::sleep(SECOND).await;
        assert_eq!(passes.lock().unwrap().drain(..).next(), Some((false, "applied".to_owned())));

        let faults = scene.cluster.server.faults();
        for verb in ["list", "watch"] {
            faults.deny(verb, SITES);
        }
        faults.end_watches();
        tokio::time::sleep(SECOND).await;
        passes.lock().unwrap().clear();
        scene.owner_goes().await;
        tokio::time::sleep(25 * SECOND).await;
        let passes = std::mem::take(&mut *passes.lock().unwrap());
        let is_refused =
            |(behind, ended): &(bool, String)| *behind && ended.contains("nothing is made for it");
        assert!(passes.len() >= 2 && passes.iter().all(is_refused), "{passes:?}");
        assert!(scene.cluster.stored("a").is_none());
    });
}

#[test]
fn opr_24_for_an_old_state_of_an_owner_nothing_is_deleted_while_its_cache_is_behind() {
    scene(|scene| async move {
        scene.pass(&[("a", "1"), ("b", "1")]).await.unwrap();
        let server = &scene.cluster.server;
        let wants = json!({"spec": {"pages": ["b"]}});
        server.merge_patch(SITES, "default", "shop", &wants).unwrap();
        let prune = async |owner: &Object<Site>| {
            let mut pass = scene.children.of(&Behind, owner).unwrap();
            pass.apply(page("a", "1")).await.unwrap();
            pass.prune().await
        };
        let error = prune(&scene.owner).await.unwrap_err();
        let words = "Site default/shop has changed, which the cache does not show yet: none of its children is deleted for an old \
                     state of it";
        assert_eq!(error.to_string(), words);
        assert!(scene.cluster.stored("b").is_some());
        let newest =
            from_body(serde_json::from_value(server.get(SITES, "default", "shop").unwrap()).unwrap());
        assert_eq!(prune(&newest.unwrap()).await.unwrap()[0].to_string(), "ConfigMap default/b");
    });
}

#[test]
fn opr_24_for_an_old_state_of_an_owner_no_child_is_made_anew_while_its_cache_is_behind() {
    scene(|scene| async move {
        let (recreate, fixed) = (ChildPolicy::new().recreate(), |text: &str| ConfigMap {
            immutable: Some(true),
            ..page("a", text)
        });
        scene.apply_with(fixed("newest"), &recreate).await.unwrap();
        let server = &scene.cluster.server;
        server.merge_patch(SITES, "default", "shop", &json!({"spec": {"pages": ["b"]}})).unwrap();
        let before = scene.cluster.stored("a");
        let mut pass = scene.children.of(&Behind, &scene.owner).unwrap();
        let error = pass.apply_with(fixed("old"), &recreate).await.unwrap_err();
        assert!(matches!(error, ChildError::OwnerHasChanged { .. }), "{error}");
        assert_eq!(scene.cluster.stored("a"), before);
    });
}

#[test]
fn opr_24_a_clean_up_gives_a_child_that_was_left_behind_no_reference_back() {
    scene(|scene| async move {
        scene.pass(&[("a", "1")]).await.unwrap();
        let server = &scene.cluster.server;
        let held = json!({"metadata": {"finalizers": ["example.org/hold"]}});
        server.merge_patch(SITES, "default", "shop", &held).unwrap();
        server.delete(SITES, "default", "shop").unwrap();
        // The collector has left the child behind, and taken its own finalizer from the owner.
        let free = json!({"metadata": {"ownerReferences": null}});
        server.merge_patch("configmaps", "default", "a", &free).unwrap();
        scene.caught_up().await;
        let ending = server.get(SITES, "default", "shop").unwrap();
        let ending: Object<Site> = from_body(serde_json::from_value(ending).unwrap()).unwrap();
        let mut pass = scene.children.of(&ending, &ending).unwrap().for_clean_up();
        let error = pass.apply(page("a", "2")).await.unwrap_err();
        assert!(matches!(error, ChildError::OwnerIsGone { .. }), "{error}");
        assert_eq!(scene.cluster.stored("a").unwrap()["metadata"]["ownerReferences"], Value::Null);
        assert!(matches!(pass.apply(page("new", "1")).await.unwrap(), Applied::Written(_)));
    });
}
