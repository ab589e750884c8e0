//! What others have made for the same owner, and what passes that are over have wanted.
//!
//! Answers "does a pass overwrite, keep or delete what another one, or another program, has to decide about?".

use std::sync::Arc;

use actix_informer::client::api::PostParams;
use actix_informer::controller::{Controller, Outcome, ReconcileError, Request};
use actix_informer::reconcile::OwnedBy;

use super::*;

#[test]
fn operator_a1_a_pass_of_a_controller_that_came_before_is_no_pass_of_this_reconcile() {
    scene(|scene| async move {
        let passes: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
        let sites = scene.cluster.client.resource::<Site>().informer(&scene.cluster.runtime).unwrap();
        let sites = sites.start().unwrap();
        // Each term wants another page, and each of its controllers counts its reconciles from one.
        for term in ["one", "two", "three"] {
            let (children, told) = (scene.children.clone(), Arc::clone(&passes));
            let reconcile = move |request: Request<Site>| {
                let (children, told) = (children.clone(), Arc::clone(&told));
                async move {
                    let Some(site) = request.object() else { return Ok::<_, ReconcileError>(Outcome::Done) };
                    let mut pass = children.of(&request, site)?;
                    pass.apply(page(term, "1")).await?;
                    let pruned = pass.prune().await?;
                    told.lock().unwrap().push(pruned.iter().map(ToString::to_string).collect());
                    Ok(Outcome::Done)
                }
            };
            let controller = Controller::builder(&sites).name("sites").reconcile(reconcile).start().unwrap();
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            controller.shut_down();
            controller.ended().await;
            scene.caught_up().await;
        }
        let pruned = std::mem::take(&mut *passes.lock().unwrap());
        assert_eq!(
            pruned,
            [&[][..], &["ConfigMap default/one".to_owned()], &["ConfigMap default/two".to_owned()]]
        );
    });
}

#[test]
fn operator_a1_what_a_pass_has_applied_that_was_never_pruned_is_not_pruned_by_another_one_of_its_reconcile() {
    scene(|scene| async move {
        for id in 1..4 {
            let log = InReconcile(id);
            let mut first = scene.children.of(&log, &scene.owner).unwrap();
            first.apply(page("a", "1")).await.unwrap();
            drop(first);
            scene.caught_up().await;
            let mut second = scene.children.of(&log, &scene.owner).unwrap();
            second.apply(page("b", "1")).await.unwrap();
            assert!(second.prune().await.unwrap().is_empty());
            scene.caught_up().await;
        }
        let log = InReconcile(4);
        let last = scene.children.of(&log, &scene.owner).unwrap();
        assert_eq!(last.prune().await.unwrap().len(), 2, "the next reconcile wants neither");
    });
}

#[test]
fn operator_a1_what_another_has_made_for_the_same_owner_is_not_overwritten_unless_its_policy_says_so() {
    scene(|scene| async move {
        // As a controller in Go does it: it creates the object with the reference, and applies nothing.
        let theirs = page("theirs", "theirs").owned_by(scene.owner.body()).unwrap();
        let maps = scene.cluster.client.api::<ConfigMap>().namespaced("default");
        maps.create(&PostParams::default(), &theirs).await.unwrap();
        let before = scene.cluster.stored("theirs");
        let listed = Children::new(&scene.cluster.client, "sites").listed::<ConfigMap>("");
        for is_seen in [false, true] {
            for children in [&scene.children, &listed] {
                let error = pass_of(children, &scene.owner, &[("theirs", "1")]).await.unwrap_err();
                assert!(matches!(error, ChildError::NotOurs { .. }), "the cache has it: {is_seen}: {error}");
            }
            assert_eq!(scene.cluster.stored("theirs"), before, "it is untouched");
            scene.caught_up().await;
        }
        let mut pass = scene.children.of(&scene.owner, &scene.owner).unwrap();
        let adopting = ChildPolicy::new().adopt(Adopt::Always);
        pass.apply_with(page("theirs", "1"), &adopting).await.unwrap();
        scene.caught_up().await;
        assert_eq!(scene.pass(&[]).await.unwrap().1, [""; 0], "who has made it for the owner has it still");
        let stored = scene.cluster.stored("theirs").expect("it stays");
        assert_eq!(appliers(&stored), [""; 0], "our fields have left it");
        let error = scene.pass(&[("theirs", "2")]).await.unwrap_err();
        assert!(matches!(error, ChildError::NotOurs { .. }), "wanted again, it is judged anew: {error}");
    });
}

#[test]
fn operator_a1_a_new_process_reads_a_child_once_before_it_applies_it() {
    scene(|scene| async move {
        scene.pass(&[("a", "1"), ("b", "1")]).await.unwrap();
        let before = scene.cluster.sent().len();
        let restarted = scene.children_of("sites");
        for sent in [true, false] {
            assert_eq!(
                pass_of(&restarted, &scene.owner, &[("a", "1"), ("b", "1")]).await.unwrap().0,
                [sent; 2]
            );
            scene.caught_up().await;
        }
        let sent: Vec<_> = scene.cluster.sent().split_off(before);
        let verbs: Vec<_> = sent.iter().filter_map(|sent| sent.split(' ').next()).collect();
        assert_eq!(verbs, ["get", "patch", "get", "patch"], "{sent:?}");
    });
}
