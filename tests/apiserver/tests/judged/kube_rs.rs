//! kube-rs: its watcher with both ways to start, the verbs of `Api`, apply, discovery, and a derived definition.
//!
//! They answer: do operators written with kube-rs work against our server, unchanged?
//! 1. A script prints lines; they must be the same on both servers.
use std::pin::pin;

use futures_util::{Stream, TryStreamExt as _};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, VersionMatch};
use kube_client::discovery::Discovery;
use kube_client::{Client, Error, ResourceExt as _};
use kube_core::CustomResourceExt as _;
use kube_derive::CustomResource;
use kube_runtime::watcher::{self, Event, watcher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::harness::judge;
use crate::harness::session::EVENT_LIMIT;
use crate::writes::{deployment, pod};

type Told = Result<Vec<String>, Box<dyn std::error::Error>>;

fn map(name: &str, value: &str) -> ConfigMap {
    from(json!({"metadata": {"name": name, "labels": {"app": "x"}}, "data": {"k": value}}))
}

fn from<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("a value of this kind")
}

/// The code of a refusal.
fn code<T>(result: Result<T, Error>) -> u16 {
    match result {
        Ok(_) => 200,
        Err(Error::Api(status)) => status.code,
        Err(_) => 0,
    }
}

#[test]
fn kube_rs_verbs_of_an_api() {
    async fn script(client: Client, namespace: String) -> Told {
        let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
        let post = PostParams::default();
        let made = maps.create(&post, &map("a", "v")).await?;
        let mut told = vec![format!("again {}", code(maps.create(&post, &map("a", "v")).await))];
        let mut next = made.clone();
        next.data.get_or_insert_default().insert("l".to_owned(), "w".to_owned());
        let next = maps.replace("a", &post, &next).await?;
        told.push(format!("replaced {:?}", next.data));
        told.push(format!("stale {}", code(maps.replace("a", &post, &made).await)));
        let patch = json!({"data": {"l": null, "m": "x"}});
        let patched = maps.patch("a", &PatchParams::default(), &Patch::Merge(&patch)).await?;
        told.push(format!("merged {:?}", patched.data));
        let patch = json!({"metadata": {"labels": {"b": "c"}}});
        let patched = maps.patch("a", &PatchParams::default(), &Patch::Strategic(&patch)).await?;
        told.push(format!("strategic {:?}", patched.labels()));
        maps.create(&PostParams { dry_run: true, ..post.clone() }, &map("dry", "v")).await?;
        maps.create(&post, &map("b", "v")).await?;
        let page = maps.list(&ListParams::default().labels("app=x").limit(1)).await?;
        told.push(format!("page {} left {:?}", page.items.len(), page.metadata.remaining_item_count));
        let metadata = maps.list_metadata(&ListParams::default()).await?;
        told.push(format!(
            "metadata {:?}",
            metadata.items.iter().map(|item| item.name_any()).collect::<Vec<_>>()
        ));
        told.push(format!("none {:?}", maps.get_opt("none").await?.is_some()));
        let deleted = maps.delete("a", &DeleteParams::default()).await?;
        told.push(format!("deleted, a status: {}", deleted.is_right()));
        let all = maps.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        told.push(format!("collection, a list: {}", all.is_left()));
        Ok(told)
    }
    judge(|s| s.kube("verbs", script));
}

#[test]
fn kube_rs_subresources() {
    async fn script(client: Client, namespace: String) -> Told {
        let post = PostParams::default();
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
        let made = deployments.create(&post, &from(deployment("web"))).await?;
        let mut told = vec![format!("replicas {:?}", made.spec.and_then(|spec| spec.replicas))];
        let scale = deployments.get_scale("web").await?;
        told.push(format!("scale {:?}", scale.spec.and_then(|spec| spec.replicas)));
        let wanted = json!({"spec": {"replicas": 4}});
        deployments.patch_scale("web", &PatchParams::default(), &Patch::Merge(&wanted)).await?;
        let status = json!({"status": {"replicas": 4, "readyReplicas": 3}});
        let seen = deployments.patch_status("web", &PatchParams::default(), &Patch::Merge(&status)).await?;
        told.push(format!("status {:?}", seen.status.and_then(|status| status.ready_replicas)));
        let restarted = deployments.restart("web").await?;
        told.push(format!("restarted, generation {:?}", restarted.metadata.generation));
        let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        pods.create(&post, &from(pod("p"))).await?;
        let evicted = pods.evict("p", &Default::default()).await?;
        told.push(format!("evicted {:?}", evicted.status));
        let accounts: Api<ServiceAccount> = Api::namespaced(client, &namespace);
        accounts.create(&post, &from(json!({"metadata": {"name": "robot"}}))).await?;
        let request = from(json!({"spec": {"audiences": [], "expirationSeconds": 3600}}));
        let token = accounts.create_token_request("robot", &post, &request).await?;
        told.push(format!(
            "token {}",
            token.status.and_then(|status| status.token).is_some_and(|token| token.split('.').count() == 3)
        ));
        Ok(told)
    }
    judge(|s| s.kube("subresources", script));
}

#[test]
fn kube_rs_server_side_apply() {
    async fn script(client: Client, namespace: String) -> Told {
        let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
        let wanted = |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value}});
        let one = PatchParams::apply("one");
        let made = maps.patch("a", &one, &Patch::Apply(wanted("1"))).await?;
        let owners = |map: &ConfigMap| {
            map.managed_fields().iter().filter_map(|entry| entry.manager.clone()).collect::<Vec<_>>()
        };
        let mut told = vec![format!("applied by {:?}", owners(&made))];
        let two = PatchParams::apply("two");
        told.push(format!("conflict {}", code(maps.patch("a", &two, &Patch::Apply(wanted("2"))).await)));
        let forced = maps.patch("a", &two.force(), &Patch::Apply(wanted("2"))).await?;
        told.push(format!("forced by {:?} {:?}", owners(&forced), forced.data));
        Ok(told)
    }
    judge(|s| s.kube("apply", script));
}

/// The next event, as text.
async fn next<K: kube_core::Resource>(
    stream: &mut (impl Stream<Item = watcher::Result<Event<K>>> + Unpin),
) -> Result<String, Box<dyn std::error::Error>> {
    let event = tokio::time::timeout(EVENT_LIMIT, stream.try_next()).await??;
    let name = |object: &K| object.meta().name.clone().unwrap_or_default();
    Ok(match event {
        Some(Event::Init) => "init".to_owned(),
        Some(Event::InitApply(object)) => format!("init apply {}", name(&object)),
        Some(Event::InitDone) => "init done".to_owned(),
        Some(Event::Apply(object)) => format!("apply {}", name(&object)),
        Some(Event::Delete(object)) => format!("delete {}", name(&object)),
        None => "the end".to_owned(),
    })
}

async fn watched(client: Client, namespace: String, config: watcher::Config) -> Told {
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let mut newest = String::new();
    for name in ["a", "b", "c"] {
        newest = maps
            .create(&PostParams::default(), &map(name, "v"))
            .await?
            .resource_version()
            .unwrap_or_default();
    }
    // kube-rs streams its list from version 0: any state of the watch cache will do, also one before the last write.
    // A list that must be as new as that write makes the cache catch up first.
    maps.list(&ListParams::default().at(&newest).matching(VersionMatch::NotOlderThan)).await?;
    let mut stream = pin!(watcher(maps.clone(), config));
    let mut told = Vec::new();
    for _ in 0..5 {
        told.push(next(&mut stream).await?);
    }
    maps.create(&PostParams::default(), &map("d", "v")).await?;
    let patch = json!({"data": {"k": "w"}});
    maps.patch("a", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    let patch = json!({"metadata": {"labels": {"app": "y"}}});
    maps.patch("b", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    maps.delete("c", &DeleteParams::default()).await?;
    for _ in 0..4 {
        told.push(next(&mut stream).await?);
    }
    Ok(told)
}

#[test]
fn kube_rs_watches_after_a_list_in_pages() {
    async fn script(client: Client, namespace: String) -> Told {
        watched(client, namespace, watcher::Config::default().labels("app=x").page_size(1)).await
    }
    judge(|s| s.kube("watcher", script));
}

#[test]
fn kube_rs_watches_with_a_streamed_list() {
    async fn script(client: Client, namespace: String) -> Told {
        watched(client, namespace, watcher::Config::default().labels("app=x").streaming_lists()).await
    }
    judge(|s| s.kube("watcher", script));
}

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kube-rs.example.com",
    version = "v1",
    kind = "Gadget",
    namespaced,
    status = "GadgetStatus",
    shortname = "gd",
    scale(spec_replicas_path = ".spec.size", status_replicas_path = ".status.seen"),
    printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"),
    crates(kube_core = "kube_core")
)]
struct GadgetSpec {
    #[schemars(range(min = 1, max = 9))]
    size: i32,
    #[serde(default = "red")]
    color: String,
}

fn red() -> String {
    "red".to_owned()
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct GadgetStatus {
    seen: i32,
}

#[test]
fn kube_rs_a_derived_definition() {
    async fn script(client: Client, namespace: String) -> Told {
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let name = Gadget::crd_name();
        definitions.patch(name, &PatchParams::apply("judge"), &Patch::Apply(Gadget::crd())).await?;
        let established = kube_runtime::wait::conditions::is_crd_established();
        let waiting = kube_runtime::wait::await_condition(definitions.clone(), name, established);
        tokio::time::timeout(EVENT_LIMIT, waiting).await??;
        let gadgets: Api<Gadget> = Api::namespaced(client, &namespace);
        let gadget = json!({"apiVersion": "kube-rs.example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 2}});
        let applied = gadgets.patch("g", &PatchParams::apply("judge"), &Patch::Apply(gadget)).await?;
        let mut told = vec![format!("applied {} {}", applied.spec.size, applied.spec.color)];
        let wrong = json!({"spec": {"size": 10}});
        told.push(format!(
            "refused {}",
            code(gadgets.patch("g", &PatchParams::default(), &Patch::Merge(&wrong)).await)
        ));
        let status = json!({"status": {"seen": 2}});
        let seen = gadgets.patch_status("g", &PatchParams::default(), &Patch::Merge(&status)).await?;
        told.push(format!("status {:?} generation {:?}", seen.status, seen.metadata.generation));
        let scale = gadgets.get_scale("g").await?;
        told.push(format!("scale {:?}", scale.spec.and_then(|spec| spec.replicas)));
        definitions.delete(name, &DeleteParams::default()).await?;
        Ok(told)
    }
    judge(|s| s.kube("definition", script));
}

/// What kube-rs finds by one request for each group. It is asked again when a group, of another test, has gone between the
/// request for the groups and its own.
async fn one_by_one(client: &Client) -> Result<Discovery, Error> {
    let mut left = 100;
    loop {
        match Discovery::new(client.clone()).run().await {
            Err(Error::Api(refused)) if refused.code == 404 && left > 0 => left -= 1,
            discovered => return discovered,
        }
    }
}

#[test]
fn kube_rs_discovers() {
    async fn script(client: Client, _namespace: String) -> Told {
        let own = |name: &str| !name.contains(".example.com");
        let mut told = Vec::new();
        let plain = one_by_one(&client).await?;
        let aggregated = Discovery::new(client.clone()).run_aggregated().await?;
        for discovery in [plain, aggregated] {
            for group in discovery.groups_alphabetical().into_iter().filter(|group| own(group.name())) {
                let kinds: Vec<_> =
                    group.recommended_resources().iter().map(|(kind, _)| kind.kind.clone()).collect();
                told.push(format!("{} {:?} {kinds:?}", group.name(), group.preferred_version()));
            }
        }
        let version = client.apiserver_version().await?;
        told.push(version.git_version);
        Ok(told)
    }
    judge(|s| s.kube("discovery", script));
}
