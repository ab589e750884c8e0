//! Discovery against whole servers, with kubectl as the judge.
//!
//! Answers "does a name mean here what it means to kubectl, does a new kind appear, and do both share a cache on disk?"
//! Where names are compared, both read the same documents, from kubectl's cache: a server puts the group of a new
//! definition into its place a moment after it lists it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use actix_informer::client::discovery::{DiscoveredResource, ServerResources};
use actix_informer::client::{Discovery, NamedResource};
use actix_informer::prelude::*;
use serde_json::{Value, json};

use crate::kubectl::Kubectl;
use crate::stage::{LONG, LOOK, Stage};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A definition of a namespaced kind: its names, and its versions with the stored one first.
fn definition(
    group: &str,
    (plural, singular, kind): (&str, &str, &str),
    short: &[&str],
    versions: &[&str],
) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = |(at, name): (usize, &&str)| json!({"name": name, "served": true, "storage": at == 0, "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": singular, "kind": kind, "listKind": format!("{kind}List"),
                      "shortNames": short, "categories": ["made-up"]},
            "versions": versions.iter().enumerate().map(version).collect::<Vec<_>>(),
        },
    })
}

/// Defines a kind, and waits until a client that has asked nothing before finds it.
async fn define(stage: &Stage, definition: &Value) {
    stage.api.post(DEFINITIONS, definition).await;
    let name = definition["metadata"]["name"].as_str().expect("a name");
    loop {
        if stage.server.client().resource_named(name).await.is_ok() {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Two kinds with the same short name, one of them in two versions and with a singular of its own.
async fn define_both(stage: &Stage, group: &str) {
    let (one, other) = (format!("a.{group}"), format!("b.{group}"));
    define(stage, &definition(&one, ("gadgets", "gizmo", "Gadget"), &["gdg"], &["v1", "v1beta1"])).await;
    define(stage, &definition(&other, ("gadgeteers", "gadgeteer", "Gadgeteer"), &["gdg"], &["v1alpha1"]))
        .await;
}

/// The path of a resource in all namespaces.
fn path(resource: &NamedResource) -> String {
    let api = resource.api_resource();
    let root = if api.group.is_empty() { "api" } else { "apis" };
    format!("/{root}/{}/{}", api.api_version, api.plural)
}

/// Every way to write a resource: its names alone, with its group, and with its version and group.
fn names_of(resource: &DiscoveredResource, is_preferred: bool) -> Vec<String> {
    let (group, version) = (&resource.api.group, &resource.api.version);
    let kind = &resource.api.kind;
    let mut words =
        vec![resource.api.plural.clone(), resource.singular.clone(), resource.api.plural.to_uppercase()];
    // kubectl takes a kind without its group only if its singular is the same word.
    let is_singular = resource.singular == kind.to_lowercase();
    words.extend(is_singular.then(|| kind.clone()));
    let mut names: Vec<String> = Vec::new();
    for word in words.iter().chain(&resource.short_names) {
        names.push(word.clone());
        names.extend((!group.is_empty()).then(|| format!("{word}.{group}")));
        // kubectl drops the version that stands behind a short name.
        if is_preferred || !resource.short_names.contains(word) {
            names.push(format!("{word}.{version}.{group}"));
        }
    }
    names.extend((!group.is_empty()).then(|| format!("{kind}.{group}")));
    names.push(format!("{kind}.{version}.{group}"));
    names
}

/// Discovery by the documents that kubectl has.
async fn of_kubectl(stage: &Stage, kubectl: &Kubectl) -> Discovery {
    kubectl.run(&["get", "pods"]).await;
    let discovery = stage.server.client().discovery().cached_on_disk(kubectl.cache());
    let discovery = discovery.expect("a server with a URL");
    discovery.resources().await.expect("it is discovered");
    assert_eq!(
        (discovery.status().disk_hits, discovery.status().requests),
        (1, 0),
        "everything is in the cache"
    );
    discovery
}

/// Every name of every resource of the server.
async fn all_names(discovery: &Discovery) -> BTreeSet<String> {
    let found = discovery.resources().await.expect("it is discovered");
    found.complete().expect("every group answers");
    let preferred: BTreeSet<_> = found.preferred().iter().map(|resource| resource.full_name()).collect();
    found.all().flat_map(|resource| names_of(resource, preferred.contains(&resource.full_name()))).collect()
}

pub(crate) async fn each_name_of_each_resource_means_what_it_means_to_kubectl(stage: Stage) {
    let Some(kubectl) = Kubectl::of(&stage) else { return };
    define_both(&stage, "judged.example.com").await;
    let discovery = of_kubectl(&stage, &kubectl).await;
    let names = all_names(&discovery).await;
    assert!(names.len() > 500, "{}", names.len());
    // kubectl asks for each resource once: a run gets names of different resources.
    let mut runs: Vec<Vec<(String, String)>> = Vec::new();
    for name in names {
        let path = path(&discovery.resource_named(&name).await.unwrap_or_else(|error| panic!("{error}")));
        match runs.iter_mut().find(|run| run.iter().all(|(_, other)| *other != path)) {
            Some(run) => run.push((name, path)),
            None => runs.push(vec![(name, path)]),
        }
    }
    for run in runs {
        let (names, paths): (Vec<_>, Vec<_>) = run.into_iter().unzip();
        let printed = kubectl.run(&["get", &names.join(","), "--all-namespaces", "-v=6"]).await;
        assert_eq!(printed.resources(), paths, "{names:?}\n{}", printed.stderr);
    }
    // Where kubectl drops a part of the name: see the head of `mapper.rs`.
    let printed = kubectl.run(&["get", "hpa.v1.autoscaling", "--all-namespaces", "-v=6"]).await;
    assert_eq!(printed.resources(), ["/apis/autoscaling/v2/horizontalpodautoscalers"]);
    let ours = discovery.resource_named("hpa.v1.autoscaling").await.expect("it is there");
    assert_eq!(path(&ours), "/apis/autoscaling/v1/horizontalpodautoscalers");
}

/// The rows of a table that kubectl prints, by the columns of its head.
fn rows(table: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = table.lines();
    let head = lines.next().expect("a head");
    let starts: Vec<usize> = head
        .char_indices()
        .filter(|(at, c)| *c != ' ' && (*at == 0 || head[..*at].ends_with(' ')))
        .map(|(at, _)| at)
        .collect();
    let cell = |line: &str, column: usize| {
        let end = starts.get(column + 1).copied().unwrap_or(usize::MAX).min(line.len());
        line.get(starts[column]..end).unwrap_or_default().trim().to_owned()
    };
    let row = |line: &str| {
        (0..starts.len()).map(|column| (cell(head, column), cell(line, column))).collect::<BTreeMap<_, _>>()
    };
    lines.map(row).collect()
}

pub(crate) async fn the_resources_are_those_that_kubectl_lists_with_all_their_columns(stage: Stage) {
    let Some(kubectl) = Kubectl::of(&stage) else { return };
    let client = stage.server.client();
    // What other scenarios have defined may still move.
    let is_own = |api_version: &str| !api_version.contains("example.com");
    let printed = kubectl.run(&["api-resources", "-o", "wide"]).await;
    let row = |columns: &BTreeMap<String, String>| {
        let column = |name: &str| columns[name].clone();
        ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND", "VERBS", "CATEGORIES"].map(column)
    };
    let listed: BTreeSet<_> = rows(&printed.stdout).iter().map(row).filter(|row| is_own(&row[2])).collect();
    let ours = |resource: &Arc<DiscoveredResource>| {
        [
            resource.api.plural.clone(),
            resource.short_names.join(","),
            resource.api.api_version.clone(),
            resource.is_namespaced().to_string(),
            resource.api.kind.clone(),
            resource.verbs().join(","),
            resource.categories.join(","),
        ]
    };
    let preferred = client.discovery().preferred().await.expect("it is discovered");
    let preferred: BTreeSet<_> = preferred.iter().map(ours).filter(|row| is_own(&row[2])).collect();
    assert_eq!(preferred, listed, "{}", printed.stderr);
}

pub(crate) async fn dyn_10_of_an_ambiguous_short_name_kubectl_and_this_client_choose_and_warn_alike(
    stage: Stage,
) {
    let Some(kubectl) = Kubectl::of(&stage) else { return };
    define_both(&stage, "ambiguous.example.com").await;
    let found = of_kubectl(&stage, &kubectl).await.resource_named("gdg").await.expect("it is there");
    let printed = kubectl.run(&["get", "gdg", "--all-namespaces", "-v=6"]).await;
    assert_eq!(printed.resources(), [path(&found)], "{}", printed.stderr);
    assert!(!found.also_named().is_empty());
    for also in found.also_named() {
        let warning = format!("short name \"gdg\" could also match lower priority resource {also}");
        assert!(printed.stderr.contains(&warning), "{also}: {}", printed.stderr);
    }
}

pub(crate) async fn a_category_means_the_resources_that_kubectl_gets(stage: Stage) {
    let Some(kubectl) = Kubectl::of(&stage) else { return };
    let all = of_kubectl(&stage, &kubectl).await.resources_named("all").await.expect("it is there");
    let printed = kubectl.run(&["get", "all", "--all-namespaces", "-v=6"]).await;
    assert_eq!(all.iter().map(path).collect::<Vec<_>>(), printed.resources(), "{}", printed.stderr);
    assert!(all.len() > 5);
}

// DYN-18: given a new definition after the first discovery, when its kind is first asked for, then one
// bounded refresh finds it without any reset by the caller.
// - a one refresh finds it
// - b so does informerd, for a kind that it is told to watch:
//   `dyn_18_a_kind_that_the_server_does_not_have_yet_is_watched_as_soon_as_it_has_it`
// - c it is bounded: `dyn_18_names_that_do_not_exist_cannot_make_a_client_ask_without_bound`
pub(crate) async fn dyn_18_a_definition_is_found_by_one_refresh_and_followed_without_a_hand_written_resource(
    stage: Stage,
) {
    let client = stage.server.client();
    client.resource_named("deploy").await.expect("it is there");
    let group = "later.example.com";
    define(&stage, &definition(group, ("latecomers", "latecomer", "Latecomer"), &["ltc"], &["v1"])).await;
    let before = client.discovery().status();
    let latecomers = client.resource_named("ltc").await.expect("it is found when it is first asked for");
    assert_eq!(client.discovery().status().refreshes, before.refreshes + 1);

    let objects = latecomers.api_namespaced(&*stage.namespace);
    let object = json!({"apiVersion": format!("{group}/v1"), "kind": "Latecomer", "metadata": {"name": "one"}, "size": 3});
    let object = serde_json::from_value(object).expect("an object");
    // The server takes objects of a new kind a moment after it lists the kind.
    while objects.create(&PostParams::default(), &object).await.is_err() {
        tokio::time::sleep(LOOK).await;
    }
    let source = latecomers.source().expect("it can be watched").namespace(&*stage.namespace);
    let informer = source.informer(&stage.runtime).expect("valid names").start().expect("it starts");
    informer.synced_within(LONG).await.expect("it syncs");
    let one = informer.lister().get(&stage.key("one")).expect("it is listed");
    assert_eq!(one.data["size"], 3);
    let reviews = client.resource_named("tokenreviews").await.expect("it is there");
    let error = reviews.source().expect_err("it cannot be watched").to_string();
    assert_eq!(error, "tokenreviews.authentication.k8s.io cannot be followed: its verbs are create");
}

pub(crate) async fn kubectl_reads_the_cache_on_disk_that_this_client_has_written(stage: Stage) {
    let Some(kubectl) = Kubectl::of(&stage) else { return };
    let discovery =
        stage.server.client().discovery().cached_on_disk(kubectl.cache()).expect("a server with a URL");
    discovery.resources().await.expect("it is discovered");
    let roots = |printed: &crate::kubectl::Printed| {
        let requests = printed.requests().into_iter();
        requests.filter(|(path, _)| matches!(path.as_str(), "/api" | "/apis")).collect::<Vec<_>>()
    };
    let printed = kubectl.run(&["get", "deploy", "-v=6"]).await;
    assert_eq!(roots(&printed), [], "it asks for no groups: {}", printed.stderr);
    assert_eq!(printed.resources(), ["/apis/apps/v1/namespaces/default/deployments"]);
    // Without the documents it takes the answers, after the server has confirmed their ETags.
    std::fs::remove_dir_all(kubectl.cache().join("discovery")).expect("it is there");
    let printed = kubectl.run(&["get", "deploy", "-v=8"]).await;
    assert_eq!(printed.stderr.matches("X-From-Cache").count(), 2, "{}", printed.stderr);
}

pub(crate) async fn this_client_reads_the_cache_on_disk_that_kubectl_has_written(stage: Stage) {
    let Some(kubectl) = Kubectl::of(&stage) else { return };
    let live = stage.server.client().discovery().resources().await.expect("it is discovered");
    let found = of_kubectl(&stage, &kubectl).await.resources().await.expect("it is known");
    let names = |found: &ServerResources| {
        let all = found.all().filter(|resource| !resource.api.group.contains("example.com"));
        all.map(|resource| format!("{resource:?}")).collect::<Vec<_>>()
    };
    assert_eq!(names(&found), names(&live), "in every detail");
    // What is too old in it still has the ETags.
    let old = stage.server.client().discovery().cached_on_disk(kubectl.cache()).expect("a server with a URL");
    old.clone().ttl(Duration::ZERO).resources().await.expect("it is discovered");
    assert_eq!((old.status().requests, old.status().unchanged), (2, 2));
}
