//! Discovery, versions, health, OpenAPI: behaviours 32, 33, 35, 40 and 43.
//!
//! They answer: how does a server describe itself?
use serde_json::{Value, json};

use crate::harness::{Request, Session, judge};

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

#[test]
fn api_32_the_groups() {
    judge(|s| {
        s.get("/api");
        s.get("/api/");
        // Other scripts make definitions on the shared server: their groups are ignored here.
        let groups = s.prepare(Request::new("GET", "/apis")).json();
        let built_in = |group: &&Value| !group["name"].as_str().unwrap_or_default().contains(".example.com");
        let groups: Vec<Value> = groups["groups"]
            .as_array()
            .map(|all| all.iter().filter(built_in).cloned().collect())
            .unwrap_or_default();
        s.note("groups", groups);
    });
}

#[test]
fn api_32_the_resources_of_each_group() {
    judge(|s| {
        s.get("/api/v1");
        for group in GROUPS {
            s.get(format!("/apis/{group}"));
            s.get(format!("/apis/{group}/{}", version_of(group)));
        }
    });
}

const GROUPS: [&str; 21] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "internal.apiserver.k8s.io",
];

fn version_of(group: &str) -> &'static str {
    match group {
        "autoscaling" => "v2",
        "internal.apiserver.k8s.io" => "v1alpha1",
        _ => "v1",
    }
}

fn aggregated(s: &mut Session, path: &str, accept: &str) -> Value {
    s.prepare(Request::new("GET", path).header("Accept", accept)).json()
}

#[test]
fn api_33_discovery_in_one_answer() {
    judge(|s| {
        s.send(Request::new("GET", "/api").header("Accept", AGGREGATED));
        let mut groups = aggregated(s, "/apis", AGGREGATED);
        if let Some(items) = groups["items"].as_array_mut() {
            items.retain(|item| {
                !item["metadata"]["name"].as_str().unwrap_or_default().contains(".example.com")
            });
        }
        s.note("groups", groups);
        let old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        s.send(Request::new("GET", "/api").header("Accept", old));
        s.send(Request::new("GET", "/api").header("Accept", &format!("{old},application/json")));
    });
}

#[test]
fn api_40_the_index_of_openapi() {
    judge(|s| {
        let index = s.prepare(Request::new("GET", "/openapi/v3")).json();
        let paths: Vec<Value> = index["paths"]
            .as_object()
            .map(|paths| {
                paths
                    .keys()
                    .filter(|path| !path.contains(".example.com"))
                    .map(|path| path.as_str().into())
                    .collect()
            })
            .unwrap_or_default();
        s.note("paths", paths);
        let version = s.prepare(Request::new("GET", "/openapi/v3/version")).json();
        s.note("the document of /version", version);
    });
}

#[test]
fn api_40_the_document_of_a_group() {
    judge(|s| {
        for path in ["/openapi/v3/apis/coordination.k8s.io/v1", "/openapi/v3/apis/policy/v1"] {
            s.get(path);
        }
    });
}

#[test]
fn api_40_documents_may_be_protobuf() {
    judge(|s| {
        let media = |version: &str, sign: &str| {
            format!("application/com.github.proto-openapi.spec.{version}{sign}v1.0+protobuf")
        };
        let (new, old) = (media("v3", "."), media("v3", "@"));
        for path in
            ["api", "api/v1", "apis/apps/v1", "apis/apiextensions.k8s.io/v1", "apis/batch/v1", "version"]
        {
            s.send(Request::new("GET", format!("/openapi/v3/{path}")).header("Accept", &new));
        }
        for accept in [
            old.clone(),
            format!("application/json;q=0.5,{new}"),
            format!("{old},application/json"),
            format!("{new};q=0.1,*/*"),
            "application/*".to_owned(),
            media("v2", "."),
        ] {
            s.send(Request::new("GET", "/openapi/v3/apis/policy/v1").header("Accept", &accept));
        }
        for accept in [media("v2", "."), media("v2", "@"), "*/*".to_owned()] {
            let answer = s.prepare(Request::new("GET", "/openapi/v2").header("Accept", &accept));
            s.note(&accept, answer.head.header("content-type").unwrap_or_default());
        }
    });
}

#[test]
fn api_40_the_older_form_defines_the_same_schemas() {
    judge(|s| {
        let document = s.prepare(Request::new("GET", "/openapi/v2")).json();
        let definitions = document["definitions"].as_object().cloned().unwrap_or_default();
        // Another script defines a kind of a group of the community.
        let own = |name: &str| name.starts_with("io.k8s.") && !name.contains(".com.example.");
        for (name, schema) in definitions.into_iter().filter(|(name, _)| own(name)) {
            // These two name all groups there are, those of other scripts too.
            if !name.ends_with(".DeleteOptions") && !name.ends_with(".WatchEvent") {
                s.note(&name, schema);
            }
        }
    });
}

#[test]
fn api_43_health_for_scripts() {
    judge(|s| {
        for path in [
            "/healthz",
            "/livez",
            "/readyz",
            "/livez/ping",
            "/healthz/etcd",
            "/healthz/nope",
            "/version",
            "/version/",
        ] {
            s.get(path);
        }
        s.send(Request::new("HEAD", "/healthz"));
    });
}

#[test]
fn api_35_versions_are_preferred_by_their_maturity() {
    judge(|s| {
        let mut made = crate::definitions::definition();
        let first = made["spec"]["versions"][0].clone();
        let names =
            ["v1alpha1", "v2beta1", "v1", "v10", "v2", "v1beta2", "foo", "v2alpha3", "bar1", "v3beta"];
        let version = |(at, name): (usize, &&str)| {
            let mut version = first.clone();
            version["name"] = json!(name);
            version["storage"] = json!(at == 0);
            version["served"] = json!(*name != "v10");
            version
        };
        made["spec"]["versions"] = names.iter().enumerate().map(version).collect();
        crate::definitions::define(s, &made);
        s.until(&Request::new("GET", "/apis/{group}/v3beta"), |answer| answer.code() == 200);
        s.get("/apis/{group}");
        let group = s.filled("{group}");
        let groups = aggregated(s, "/apis", AGGREGATED);
        let own = groups["items"]
            .as_array()
            .and_then(|all| all.iter().find(|item| item["metadata"]["name"] == group.as_str()).cloned());
        s.note("the group", own.unwrap_or_default());
        s.kubectl("get widgets");
    });
}
