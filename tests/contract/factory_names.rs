//! Kinds that are followed by name, and whose definitions come, go and come back (FAC-13), in one simulation with the
//! in-memory API server.

use std::time::Duration;

use actix_informer::factory::FactoryError;
use informer_actors::informer::Informer;
use informer_core::reflector::SourceState;
use kube_core::DynamicObject;
use serde_json::{Value, json};

use crate::factory::{Cluster, keys, names, recorded, run};
use crate::world::{LONG, pass, settle, until};

const NAME: &str = "websites.example.org";
const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

fn definition(version: &str, scope: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": NAME},
        "spec": {
            "group": "example.org", "scope": scope,
            "names": {"plural": "websites", "singular": "website", "kind": "Website", "listKind": "WebsiteList",
                      "shortNames": ["ws"]},
            "versions": [{"name": version, "served": true, "storage": true, "schema": schema}],
        },
    })
}

fn site(version: &str, namespace: Option<&str>, name: &str) -> Value {
    json!({
        "apiVersion": format!("example.org/{version}"), "kind": "Website",
        "metadata": {"name": name, "namespace": namespace},
    })
}

impl Cluster {
    fn define(&self, version: &str, scope: &str) {
        self.server.create(definition(version, scope)).expect("a new definition");
    }

    fn undefine(&self) {
        self.server.delete(DEFINITIONS, "", NAME).expect("it is defined");
    }
}

async fn is_gone(informer: &Informer<DynamicObject>) -> String {
    let gone = informer.wait_until(|status| matches!(status.state(), SourceState::Gone { .. })).await;
    gone.expect("it runs").state().to_string()
}

fn versions(informer: &Informer<DynamicObject>) -> Vec<String> {
    let types =
        |object: &informer_core::meta::Object<DynamicObject>| object.types.clone().expect("it has them");
    informer.snapshot().iter().map(|object| types(object).api_version).collect()
}

// FAC-13: given an informer of a kind by name, when the kind is defined later, deleted, and defined again
// with another version or scope, then meanwhile its state is Gone with the reason, it follows the new one by
// itself, and subscribers are told exactly the difference; all names of one kind are one informer.
// - a defined later, deleted and defined again otherwise it is followed, and Gone says why meanwhile
// - b subscribers are told exactly the difference
// - c the same on both servers under load, and other informers are not disturbed:
//   `fac_13_a_definition_comes_goes_and_comes_back_otherwise_under_load`
// - d the name is looked up first, and again after each answer that the kind is missing:
//   `fac_13_a_name_is_looked_up_first_and_after_each_answer_that_its_resource_is_missing`
// - e after a change a list that knows nothing comes before the next watch:
//   `fac_13_after_another_resource_was_found_a_list_comes_before_the_next_watch`
// - f all names of one kind are one informer, and a cluster-scoped kind gets no namespace:
//   `fac_13_all_names_of_one_kind_are_one_informer_and_its_scope_decides_about_namespaces`
// - g also an object whose version stays the same is read anew:
//   `fac_13_an_object_that_is_served_in_another_version_unchanged_is_read_anew_and_told_once`
#[test]
fn fac_13_a_kind_that_is_defined_later_goes_away_and_comes_back_otherwise_is_followed_by_its_name() {
    run(|cluster| async move {
        let factory = cluster.factory();
        let sites = factory.of(factory.named(NAME).await.expect("a name")).expect("declared");
        let (subscription, received) = recorded(&sites);
        factory.start().expect("open");
        let text = is_gone(&sites).await;
        assert!(
            text.starts_with("no such resource: the server has no resource named \"websites.example.org\""),
            "{text}"
        );
        pass(Duration::from_secs(120)).await;
        assert!(!sites.status().synced);

        cluster.define("v1", "Namespaced");
        cluster.server.create(site("v1", Some("default"), "a")).expect("defined");
        subscription.synced_within(Duration::from_secs(60)).await.expect("it is asked for again");
        assert_eq!(
            (keys(&sites), versions(&sites)),
            (vec!["default/a".to_owned()], vec!["example.org/v1".to_owned()])
        );
        cluster.server.create(site("v1", Some("default"), "b")).expect("defined");
        until(|| keys(&sites).len() == 2).await;

        cluster.undefine();
        is_gone(&sites).await;
        cluster.define("v2", "Cluster");
        cluster.server.create(site("v2", None, "a")).expect("defined");
        until(|| keys(&sites) == ["a"]).await;
        assert_eq!(versions(&sites), ["example.org/v2"]);
        cluster.server.create(site("v2", None, "later")).expect("defined");
        until(|| keys(&sites).len() == 2).await;
        settle().await;
        assert_eq!(received.agrees_with(&sites.snapshot()), Ok(()));
        let told: Vec<_> = received
            .lines()
            .iter()
            .map(|line| line.split(['(', ')']).step_by(2).collect::<String>())
            .collect();
        let told: Vec<_> = told.iter().map(|line| line.split('@').next().unwrap_or_default()).collect();
        assert_eq!(
            told,
            [
                "Added default/a",
                "Added default/b",
                "Deleted default/a",
                "Deleted default/b",
                "Added a",
                "Added later"
            ],
            "exactly the difference"
        );
        assert_eq!(sites.status().restarts, 0);
    });
}

/// The definition with two versions, of which one is served.
fn served(version: &str) -> Value {
    let mut definition = definition("v1", "Namespaced");
    let versions = definition["spec"]["versions"].as_array_mut().expect("a list");
    let mut second = versions[0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    versions.push(second);
    versions.iter_mut().for_each(|of| of["served"] = (of["name"] == version).into());
    definition
}

#[test]
fn fac_13_an_object_that_is_served_in_another_version_unchanged_is_read_anew_and_told_once() {
    run(|cluster| async move {
        cluster.server.create(served("v1")).expect("a new definition");
        cluster.server.create(site("v1", Some("default"), "a")).expect("defined");
        let factory = cluster.factory();
        let sites = factory.of(factory.named(NAME).await.expect("a name")).expect("declared");
        let (subscription, received) = recorded(&sites);
        factory.start().expect("open");
        subscription.synced_within(LONG).await.expect("it is there");
        let version = || sites.snapshot().iter().next().map(|object| object.version().clone());
        let before = version();
        assert_eq!(versions(&sites), ["example.org/v1"]);

        let only_v2 = json!({"spec": {"versions": served("v2")["spec"]["versions"]}});
        cluster.server.merge_patch(DEFINITIONS, "", NAME, &only_v2).expect("it is defined");
        cluster.server.faults().end_watches();
        until(|| versions(&sites) == ["example.org/v2"]).await;
        assert_eq!(version(), before, "the object is unchanged");
        settle().await;
        assert_eq!(received.agrees_with(&sites.snapshot()), Ok(()));
        let lines = received.lines();
        assert!(lines.len() == 2 && lines[1].starts_with("Updated(Relist) default/a"), "{lines:?}");
        // Another list of the same resource tells nothing.
        cluster.server.faults().compact();
        cluster.server.faults().end_watches();
        pass(Duration::from_secs(120)).await;
        assert_eq!((received.lines().len(), versions(&sites)), (2, vec!["example.org/v2".to_owned()]));
    });
}

#[test]
fn fac_13_all_names_of_one_kind_are_one_informer_and_its_scope_decides_about_namespaces() {
    run(|cluster| async move {
        cluster.define("v1", "Cluster");
        let factory = actix_informer::factory::InformerFactory::builder(&cluster.runtime, &cluster.client)
            .namespaces(["default"])
            .build();
        let mut informers = Vec::new();
        for name in ["ws", "website", "Website", NAME, "cm", "configmaps", "websites.v1.example.org"] {
            informers.push(factory.of(factory.named(name).await.expect("a name")).expect("declared"));
        }
        let metadata = factory.of(factory.metadata_named("ws").await.expect("a name")).expect("declared");
        assert_eq!(
            names(&factory),
            [NAME, "configmaps/ns=default", "websites.v1.example.org", "websites.example.org/metadata"]
        );
        factory.start().expect("open");
        cluster.server.create(site("v1", None, "a")).expect("defined");
        cluster.create("default", "m");
        factory.synced_within(LONG).await.expect("all list");
        let found: Vec<_> = informers.iter().map(|informer| keys(informer).concat()).collect();
        assert_eq!(found, ["a", "a", "a", "a", "default/m", "default/m", "a"]);
        assert_eq!(keys(&metadata), ["a"]);
        for name in ["all", "tokenreviews"] {
            let refused = factory.named(name).await.expect_err("several, or not to be watched");
            assert!(matches!(refused, FactoryError::Discovery(_)), "{refused}");
        }
        let narrow =
            cluster.client.named(NAME).namespace("default").informer(&cluster.runtime).expect("a name");
        let text = is_gone(&narrow.start().expect("it runs")).await;
        assert_eq!(
            text,
            "no such resource: websites.example.org are cluster-scoped: leave out the namespace \"default\""
        );
    });
}
