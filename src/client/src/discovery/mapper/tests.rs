//! Names against lists of resources, as kubectl resolves them.

use super::*;
use crate::discovery::documents::{Root, root};
use crate::discovery::model::FailedGroupVersion;

/// A group's versions, and in each the resources as `plural/singular/Kind/short,short/category`.
type Group<'a> = (&'a str, &'a [(&'a str, &'a [&'a str])]);

fn served(groups: &[Group<'_>]) -> ServerResources {
    let resource = |text: &&str| {
        let mut parts = text.split('/');
        let mut next = || parts.next().unwrap_or_default();
        let (plural, singular, kind) = (next(), next(), next());
        let list = |text: &str| {
            text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        let (short, categories) = (list(next()), list(next()));
        serde_json::json!({
            "resource": plural, "singularResource": singular, "responseKind": {"kind": kind}, "scope": "Namespaced",
            "shortNames": short, "categories": categories, "verbs": ["list", "watch"],
        })
    };
    let version = |(name, resources): &(&str, &[&str])| serde_json::json!({"version": name, "resources": resources.iter().map(resource).collect::<Vec<_>>()});
    let group = |(name, versions): &Group<'_>| serde_json::json!({"metadata": {"name": name}, "versions": versions.iter().map(version).collect::<Vec<_>>()});
    let items: Vec<_> = groups.iter().map(group).collect();
    let document = serde_json::json!({"kind": "APIGroupDiscoveryList", "items": items}).to_string();
    match root(document.as_bytes()).unwrap() {
        Root::Aggregated(groups, failed) => ServerResources { groups, failed },
        Root::Legacy(_) => panic!("it is aggregated"),
    }
}

fn name(server: &ServerResources, text: &str) -> String {
    resolve(server, text).map_or_else(|| "nothing".to_owned(), |found| found.resource.full_name())
}

fn check(server: &ServerResources, expected: &[(&str, &str)]) {
    for (text, full) in expected {
        assert_eq!(name(server, text), *full, "{text}");
    }
}

const PODS: &str = "pods/pod/Pod/po/all";

// DYN-09: given "pods" in v1 (preferred) and v2, "peas" only in v2beta1, when mapping, then v1 Pod; v2beta1
// Pea.
// - a the preferred version is taken, and another where only it has the resource
// - b every name of every resource means what it means to kubectl, on both servers:
//   `each_name_of_each_resource_means_what_it_means_to_kubectl`
#[test]
fn dyn_09_the_preferred_version_is_taken_and_another_one_where_only_it_has_the_resource() {
    let server = served(&[("", &[("v1", &[PODS]), ("v2", &[PODS]), ("v2beta1", &["peas/pea/Pea"])])]);
    check(&server, &[("pods", "pods.v1"), ("pod", "pods.v1"), ("Pod", "pods.v1"), ("po", "pods.v1")]);
    check(&server, &[("peas", "peas.v2beta1"), ("pea", "peas.v2beta1"), ("Pea", "peas.v2beta1")]);
    check(&server, &[("pods.v2.", "pods.v2"), ("Pod.v2.", "pods.v2")]);

    let mut server = served(&[("apps", &[("v1beta1", &["sets/set/Set"]), ("v1", &["sets/set/Set"])])]);
    server.groups[0].preferred = Some("v1".to_owned());
    check(&server, &[("sets", "sets.v1.apps"), ("sets.v1beta1.apps", "sets.v1beta1.apps")]);
    let preferred: Vec<_> = server.preferred().iter().map(|resource| resource.full_name()).collect();
    assert_eq!(preferred, ["sets.v1.apps"], "each resource once");
}

#[test]
fn names_are_resolved_by_plural_singular_short_name_and_kind_with_and_without_group_and_version() {
    let server = served(&[
        ("", &[("v1", &[PODS, "events/event/Event/ev"])]),
        ("apps", &[("v1", &["deployments/deployment/Deployment/deploy/all"])]),
        ("events.k8s.io", &[("v1", &["events/event/Event/ev"])]),
        ("storage.k8s.io", &[("v1", &["storageclasses/storageclass/StorageClass/sc"])]),
        ("example.com", &[("v1", &["widgets/gadget/Widget"])]),
    ]);
    for text in
        ["deployments", "deployment", "deploy", "Deployment", "DEPLOYMENTS", "deploy.apps", "Deployment.apps"]
    {
        check(&server, &[(text, "deployments.v1.apps")]);
    }
    for text in ["deployments.v1.apps", "deployment.v1.apps", "deploy.v1.apps", "Deployment.v1.apps"] {
        check(&server, &[(text, "deployments.v1.apps")]);
    }
    check(
        &server,
        &[
            ("events", "events.v1"),
            ("ev", "events.v1"),
            ("ev.events.k8s.io", "events.v1.events.k8s.io"),
            ("Event.v1.events.k8s.io", "events.v1.events.k8s.io"),
            // The beginning of a group, of a plural and of a short name.
            ("storageclass.storage", "storageclasses.v1.storage.k8s.io"),
            ("sc.storage", "storageclasses.v1.storage.k8s.io"),
            ("deployments.v1.app", "nothing"),
            // A kind whose singular is another word; kubectl takes it without its group only in the core group.
            ("gadget", "widgets.v1.example.com"),
            ("Widget.example.com", "widgets.v1.example.com"),
            ("Widget", "widgets.v1.example.com"),
            ("widget.v1.example.com", "widgets.v1.example.com"),
            // Short names have one case.
            ("PO", "nothing"),
            ("deployments.v2.apps", "nothing"),
            ("deployments.batch", "nothing"),
            ("", "nothing"),
            (".", "nothing"),
            ("..", "nothing"),
            (".apps", "nothing"),
        ],
    );
}

#[test]
fn a_short_name_with_a_version_gives_that_version() {
    let hpa = "horizontalpodautoscalers/horizontalpodautoscaler/HorizontalPodAutoscaler/hpa";
    let server = served(&[("autoscaling", &[("v2", &[hpa]), ("v1", &[hpa])])]);
    check(&server, &[("hpa", "horizontalpodautoscalers.v2.autoscaling")]);
    // kubectl 1.36 gives v2.
    check(&server, &[("hpa.v1.autoscaling", "horizontalpodautoscalers.v1.autoscaling")]);
    check(&server, &[("hpa.v3.autoscaling", "nothing")]);
}

#[test]
fn dyn_10_of_an_ambiguous_short_name_the_group_of_highest_priority_wins_and_the_others_are_named() {
    let foos = "foos/foo/Foo/fo";
    let server = served(&[
        ("first.example.com", &[("v1", &[foos]), ("v1beta1", &[foos])]),
        ("second.example.com", &[("v1", &["forms/form/Form/fo"]), ("v1beta1", &["forms/form/Form/fo"])]),
        ("third.example.com", &[("v1", &["fours/four/Four/fo,foo"])]),
    ]);
    let found = resolve(&server, "fo").unwrap();
    assert_eq!(found.resource.full_name(), "foos.v1.first.example.com");
    assert_eq!(found.also, ["forms.second.example.com", "fours.third.example.com"], "each once");
    assert!(
        resolve(&server, "fo.second.example.com").unwrap().also.is_empty(),
        "with its group it is not ambiguous"
    );
    // A resource's own name is no short name of another.
    let own = resolve(&server, "foo").unwrap();
    assert_eq!((own.resource.full_name().as_str(), own.also.len()), ("foos.v1.first.example.com", 0));
}

#[test]
fn version_v1_of_the_core_group_goes_first_and_then_the_groups_in_the_order_of_the_server() {
    let events = "events/event/Event";
    let server = served(&[
        ("b.example.com", &[("v1", &[events])]),
        ("a.example.com", &[("v1", &[events])]),
        ("", &[("v1", &[events])]),
    ]);
    check(&server, &[("events", "events.v1"), ("events.a.example.com", "events.v1.a.example.com")]);
    let without_core = ServerResources { groups: server.groups[..2].to_vec(), ..ServerResources::default() };
    check(&without_core, &[("events", "events.v1.b.example.com")]);
}

#[test]
fn a_category_gives_each_of_its_resources_once_in_its_preferred_version() {
    let sets = "sets/set/Set//all";
    let server = served(&[("", &[("v1", &[PODS])]), ("apps", &[("v1", &[sets]), ("v1beta1", &[sets])])]);
    let found: Vec<_> = category(&server, "all").iter().map(|resource| resource.full_name()).collect();
    assert_eq!(found, ["pods.v1", "sets.v1.apps"]);
    assert!(category(&server, "none").is_empty());
    let Some(Err(error)) = resolve_one(&server, "all") else { panic!("several") };
    assert_eq!(error.to_string(), r#""all" is a category of several resources: pods, sets.apps"#);
}

#[test]
fn the_error_of_an_unknown_name_names_those_that_were_perhaps_meant_and_what_could_not_be_discovered() {
    let mut server = served(&[("", &[("v1", &[PODS, "nodes/node/Node/no"])])]);
    assert_eq!(
        unknown(&server, "podds", None).to_string(),
        r#"the server has no resource named "podds" (did you mean pods?)"#
    );
    let (group, version) = ("metrics.k8s.io".to_owned(), "v1beta1".to_owned());
    server.failed.push(FailedGroupVersion { group, version, reason: "stale".to_owned() });
    assert_eq!(
        unknown(&server, "quotas", Some(Duration::from_secs(2))).to_string(),
        "the server has no resource named \"quotas\"; the resources of metrics.k8s.io/v1beta1 (stale) could not be \
         discovered; the server was not asked again, since too many names were not found: it is asked again in 2s"
    );
    let long = "x".repeat(1 << 20);
    assert!(unknown(&server, &long, None).to_string().len() < 500);
}
