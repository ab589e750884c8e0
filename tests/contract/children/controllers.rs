//! OPR-25: children of which the cache keeps their controllers alone.
//!
//! Answers "does a cache without bodies save the same requests, and delete the same children?" Read next:
//! `actors/operator/src/reconcile/kubernetes/children/shown.rs`.

use actix_informer::representation::ControllerOf;

use super::*;

/// A site, and an informer of the controllers of config maps.
struct Lean {
    cluster: Cluster,
    owner: Object<Site>,
    maps: Informer<ControllerOf<ConfigMap>>,
    children: Children,
}

fn lean<F: Future<Output = ()>>(is_indexed: bool, scenario: impl FnOnce(Lean) -> F) {
    run(|cluster| async move {
        define_sites(&cluster.server);
        let owner = cluster.owner("shop");
        let maps = cluster.client.controllers_of::<ConfigMap>().informer(&cluster.runtime).unwrap();
        let maps = if is_indexed { maps.index(CONTROLLER_UID, controller_uid) } else { maps };
        let maps = maps.start().unwrap();
        maps.synced_within(LONG).await.unwrap();
        let children = Children::new(&cluster.client, "sites").cached_controllers(&maps.lister());
        scenario(Lean { cluster, owner, maps, children }).await;
    });
}

impl Lean {
    async fn caught_up(&self) {
        let newest = self.cluster.beat();
        self.maps.lister().wait_for(&newest, LONG).await.unwrap();
    }

    /// One pass, which the cache has seen then.
    async fn pass(&self, pages: &[(&str, &str)]) -> Result<(Vec<bool>, Vec<String>), ChildError> {
        let passed = pass_of(&self.children, &self.owner, pages).await?;
        self.caught_up().await;
        Ok(passed)
    }
}

// OPR-25: given an informer that keeps of children their controllers alone, when passes run, then a child at
// the version of the server's last answer costs no request and any other version one apply; unwanted children
// are deleted as the server has them now, and no others; a child of another controller is refused.
// - a the version of the last answer costs no request, any other one apply
// - b unwanted children are deleted, and no others:
//   `opr_25_unwanted_children_are_deleted_and_no_others_with_and_without_an_index`
// - c a child of another controller is refused:
//   `opr_25_a_child_of_another_controller_is_refused_without_a_request`
// - d what was not sent reads as it was given:
//   `opr_25_what_was_not_sent_reads_as_it_was_given_with_its_owner`
// - e the owner is asked for before a child is made again:
//   `opr_25_the_owner_is_asked_for_before_a_child_is_made_again`
// - f a write is waited for in such a cache, too: `opr_25_a_write_is_recorded_for_informers_of_controllers`
#[test]
fn opr_25_a_child_at_the_version_of_the_last_answer_costs_no_request_and_any_other_version_one_apply() {
    lean(true, |lean| async move {
        let pages = [("a", "1"), ("b", "1")];
        assert_eq!(lean.pass(&pages).await.unwrap().0, [true, true], "made");
        let before = lean.cluster.sent().len();
        assert_eq!(lean.pass(&pages).await.unwrap().0, [false, false], "nothing has changed");
        assert_eq!(lean.cluster.sent().len(), before, "no request");
        assert_eq!(lean.pass(&[("a", "1"), ("b", "2")]).await.unwrap().0, [false, true], "another text");

        let theirs = json!({"metadata": {"labels": {"theirs": "yes"}}});
        lean.cluster.server.merge_patch("configmaps", "default", "a", &theirs).unwrap();
        let ours = json!({"data": {"text": "theirs"}});
        lean.cluster.server.merge_patch("configmaps", "default", "b", &ours).unwrap();
        lean.caught_up().await;
        let pages = [("a", "1"), ("b", "2")];
        assert_eq!(lean.pass(&pages).await.unwrap().0, [true, true], "what was changed is not shown");
        assert_eq!(lean.cluster.stored("b").unwrap()["data"]["text"], "2", "put right");
        assert_eq!(lean.cluster.stored("a").unwrap()["metadata"]["labels"]["theirs"], "yes", "kept");
        assert_eq!(
            lean.pass(&pages).await.unwrap().0,
            [false, false],
            "the answer of an apply that changed nothing counts"
        );

        lean.cluster.server.delete("configmaps", "default", "a").unwrap();
        lean.caught_up().await;
        assert_eq!(lean.pass(&pages).await.unwrap().0, [true, false], "made again");
    });
}

#[test]
fn opr_25_what_was_not_sent_reads_as_it_was_given_with_its_owner() {
    lean(true, |lean| async move {
        lean.pass(&[("a", "1")]).await.unwrap();
        let mut pass = lean.children.of(&lean.owner, &lean.owner).unwrap();
        let applied = pass.apply(page("a", "1")).await.unwrap();
        assert!(matches!(applied, Applied::AsGiven(_)), "{applied:?}");
        assert_eq!(applied.data.as_ref().unwrap()["text"], "1");
        let owners = applied.metadata.owner_references.as_ref().unwrap();
        assert_eq!(*lean.owner.object_uid().unwrap(), owners[0].uid);
    });
}

#[test]
fn opr_25_unwanted_children_are_deleted_and_no_others_with_and_without_an_index() {
    for is_indexed in [true, false] {
        lean(is_indexed, |lean| async move {
            let other = lean.cluster.owner("other");
            lean.pass(&[("a", "1"), ("b", "1"), ("c", "1"), ("held", "1")]).await.unwrap();
            pass_of(&lean.children, &other, &[("of-other", "1")]).await.unwrap();
            let nobody = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "alone", "namespace": "default"}});
            lean.cluster.server.create(nobody).unwrap();
            let held = json!({"metadata": {"finalizers": ["example.org/hold"]}});
            lean.cluster.server.merge_patch("configmaps", "default", "held", &held).unwrap();
            lean.cluster.server.delete("configmaps", "default", "held").unwrap();
            lean.caught_up().await;
            // The cache does not know these yet: the server is asked.
            lean.cluster.server.delete("configmaps", "default", "c").unwrap();
            let (sent, pruned) = pass_of(&lean.children, &lean.owner, &[("a", "1")]).await.unwrap();
            assert_eq!((sent, pruned), (vec![false], vec!["ConfigMap default/b".to_owned()]));
            for name in ["a", "of-other", "alone", "held"] {
                assert!(lean.cluster.stored(name).is_some(), "{name} is kept");
            }
            assert!(lean.cluster.stored("b").is_none());
        });
    }
}

#[test]
fn opr_25_a_child_of_another_controller_is_refused_without_a_request() {
    lean(true, |lean| async move {
        lean.pass(&[("a", "1")]).await.unwrap();
        let other = lean.cluster.owner("other");
        let before = lean.cluster.sent().len();
        let error = pass_of(&lean.children, &other, &[("a", "1")]).await.unwrap_err();
        assert!(matches!(error, ChildError::Owner(OwnerError::Controlled { .. })), "{error}");
        assert!(
            error.to_string().starts_with("ConfigMap default/a is controlled by Site shop (uid "),
            "{error}"
        );
        assert_eq!(lean.cluster.sent().len(), before);
    });
}

#[test]
fn opr_25_the_owner_is_asked_for_before_a_child_is_made_again() {
    lean(true, |lean| async move {
        lean.pass(&[("a", "1")]).await.unwrap();
        lean.cluster.server.delete("sites.example.org", "default", "shop").unwrap();
        drop(lean.cluster.server.delete("configmaps", "default", "a"));
        lean.caught_up().await;
        let error = lean.pass(&[("a", "1")]).await.unwrap_err();
        assert!(matches!(error, ChildError::OwnerIsGone { .. }), "{error}");
    });
}

#[test]
fn opr_25_a_write_is_recorded_for_informers_of_controllers() {
    let written = WriteRecord::written(&{
        let mut map = page("a", "1");
        map.metadata.resource_version = Some("7".to_owned());
        map
    });
    let kept = std::any::TypeId::of::<ControllerOf<ConfigMap>>();
    assert!(written.unwrap().bodies.contains(&kept), "a key waits until they have seen it");
}
