//! Representations: behaviours 36 to 38, E13.
//!
//! They answer: does a read return the requested form?
use serde_json::json;

use crate::definitions::widgets;
use crate::harness::{Request, Session, judge};
use crate::writes::{deployment, pod};

const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

fn table(path: impl Into<String>) -> Request {
    Request::new("GET", path).header("Accept", TABLE)
}

#[test]
fn api_36_metadata_only() {
    judge(|s| {
        let labelled = json!({"metadata": {"name": "a", "labels": {"app": "x"}}, "data": {"k": "v"}});
        let from = s.post(MAPS, &labelled).version();
        let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        let mut get = |path: String, accept: &str| s.send(Request::new("GET", path).header("Accept", accept));
        get(MAPS.to_owned(), list);
        get(format!("{MAPS}/a"), one);
        get(MAPS.to_owned(), one);
        get(format!("{MAPS}/a"), list);
        get(MAPS.to_owned(), &format!("{list},application/json"));
        for accept in [one, list] {
            let path = format!("{MAPS}?watch=1&allowWatchBookmarks=true");
            let mut watch = s.open(Request::new("GET", path).header("Accept", accept));
            watch.events(s, 2);
        }
        let path = format!("{MAPS}?watch=1&resourceVersion={from}");
        let mut watch = s.open(Request::new("GET", path).header("Accept", one));
        s.patch("merge", format!("{MAPS}/a"), &json!({"data": {"k": "w"}}));
        s.send(Request::new("DELETE", format!("{MAPS}/a")).header("Accept", one));
        watch.events(s, 2);
    });
}

#[test]
fn api_37_tables_of_config_maps_and_their_pages() {
    judge(|s| {
        s.send(table(MAPS));
        for name in ["a", "b", "c"] {
            s.prepare(
                Request::new("POST", MAPS).json(&json!({"metadata": {"name": name}, "data": {"k": "v"}})),
            );
        }
        s.send(table(MAPS));
        s.send(table(format!("{MAPS}?limit=2")));
        s.send(table(format!("{MAPS}/a")));
        s.send(table(format!("{MAPS}?includeObject=Object")));
        s.send(table(format!("{MAPS}?includeObject=None")));
        s.send(table(format!("{MAPS}?includeObject=Some")));
        s.send(table(format!("{MAPS}/none")));
    });
}

#[test]
fn api_37_a_watch_of_a_table_sends_its_columns_once() {
    judge(|s| {
        s.prepare(Request::new("POST", MAPS).json(&json!({"metadata": {"name": "a"}})));
        let mut watch = s.open(table(format!("{MAPS}?watch=1")));
        watch.events(s, 2);
        s.patch("merge", format!("{MAPS}/a"), &json!({"data": {"k": "v"}}));
        s.delete(format!("{MAPS}/a"));
        watch.events(s, 2);
    });
}

fn made(s: &mut Session, path: &str, body: &serde_json::Value) {
    s.prepare(Request::new("POST", path).json(body));
    s.send(table(path));
}

#[test]
fn api_37_columns_of_the_core_kinds() {
    judge(|s| {
        let core = "/api/v1/namespaces/{ns}";
        let named = json!({"metadata": {"name": "a"}});
        let spec = |spec: serde_json::Value| json!({"metadata": {"name": "a"}, "spec": spec});
        made(s, &format!("{core}/pods"), &pod("a"));
        let secret = json!({"metadata": {"name": "a"}, "stringData": {"k": "v"}});
        made(s, &format!("{core}/secrets"), &secret);
        made(s, &format!("{core}/services"), &spec(json!({"ports": [{"port": 80, "protocol": "TCP"}]})));
        made(s, &format!("{core}/serviceaccounts"), &named);
        made(s, &format!("{core}/endpoints"), &named);
        made(s, &format!("{core}/resourcequotas"), &spec(json!({"hard": {"pods": "9"}})));
        let limits = json!({"limits": [{"type": "Pod", "max": {"cpu": "1"}}]});
        made(s, &format!("{core}/limitranges"), &spec(limits));
        let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        made(s, &format!("{core}/persistentvolumeclaims"), &spec(claim));
        s.send(table("/api/v1/namespaces/{ns}"));
    });
}

#[test]
fn api_37_columns_of_workloads() {
    judge(|s| {
        let apps = "/apis/apps/v1/namespaces/{ns}";
        let batch = "/apis/batch/v1/namespaces/{ns}";
        let containers = json!([{"name": "c", "image": "i"}]);
        let labels = json!({"labels": {"app": "a"}});
        let once = json!({"metadata": labels, "spec": {"restartPolicy": "Never", "containers": containers}});
        let serving = json!({"metadata": labels, "spec": {"containers": containers}});
        let select = json!({"matchLabels": {"app": "a"}});
        let spec = |spec: serde_json::Value| json!({"metadata": {"name": "a"}, "spec": spec});
        made(s, &format!("{apps}/deployments"), &deployment("a"));
        let set = json!({"selector": select, "template": serving});
        made(s, &format!("{apps}/replicasets"), &spec(set.clone()));
        made(s, &format!("{apps}/daemonsets"), &spec(set));
        let set = json!({"serviceName": "a", "selector": select, "template": serving});
        made(s, &format!("{apps}/statefulsets"), &spec(set));
        made(s, &format!("{batch}/jobs"), &spec(json!({"template": once})));
        let cron = json!({"schedule": "* * * * *", "jobTemplate": {"spec": {"template": once}}});
        made(s, &format!("{batch}/cronjobs"), &spec(cron));
        let budget = json!({"minAvailable": 1, "selector": select});
        made(s, "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets", &spec(budget));
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"});
        let scaler = json!({"maxReplicas": 3, "scaleTargetRef": target});
        made(s, "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers", &spec(scaler));
    });
}

#[test]
fn api_37_columns_of_other_groups() {
    judge(|s| {
        let named = json!({"metadata": {"name": "a"}});
        let networking = "/apis/networking.k8s.io/v1/namespaces/{ns}";
        let backend = json!({"service": {"name": "a", "port": {"number": 80}}});
        let ingress = json!({"metadata": {"name": "a"}, "spec": {"defaultBackend": backend}});
        made(s, &format!("{networking}/ingresses"), &ingress);
        let policy = json!({"metadata": {"name": "a"}, "spec": {"podSelector": {}}});
        made(s, &format!("{networking}/networkpolicies"), &policy);
        let lease = json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}});
        made(s, "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", &lease);
        let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}";
        made(s, &format!("{rbac}/roles"), &named);
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"});
        made(s, &format!("{rbac}/rolebindings"), &json!({"metadata": {"name": "a"}, "roleRef": role}));
        let slice = json!({"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": []});
        made(s, "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices", &slice);
        widgets(s);
        let widget = json!({"apiVersion": "{group}/v1", "kind": "Widget", "metadata": {"name": "a"}});
        made(s, "/apis/{group}/v1/namespaces/{ns}/widgets", &widget);
        s.send(table("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}"));
    });
}

/// The paths of all built-in lists; no object has that name.
fn empty_lists(s: &mut Session) -> Vec<String> {
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let mut paths = Vec::new();
    for root in ["/api", "/apis"] {
        let groups = s.prepare(Request::new("GET", root).header("Accept", accept)).json();
        for group in groups["items"].as_array().into_iter().flatten() {
            let name = group["metadata"]["name"].as_str().unwrap_or_default();
            // Other scripts define kinds on the same server.
            if name.contains(".example.com") {
                continue;
            }
            for version in group["versions"].as_array().into_iter().flatten() {
                let base = [root, name, version["version"].as_str().unwrap_or_default()].join("/");
                let listed = |resource: &&serde_json::Value| {
                    resource["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!("list")))
                };
                for resource in version["resources"].as_array().into_iter().flatten().filter(listed) {
                    let scope = if resource["scope"] == "Namespaced" { "/namespaces/{ns}" } else { "" };
                    let plural = resource["resource"].as_str().unwrap_or_default();
                    let path =
                        format!("{base}{scope}/{plural}?fieldSelector=metadata.name%3Dnone-of-this-name");
                    paths.push(path.replace("//", "/"));
                }
            }
        }
    }
    paths
}

#[test]
fn api_37_every_kind_has_the_columns_of_a_real_server() {
    judge(|s| {
        for path in empty_lists(s) {
            s.send(table(path));
        }
    });
}

#[test]
fn api_37_columns_of_a_definition_are_described() {
    judge(|s| {
        let column =
            |name: &str, kind: &str, path: &str| json!({"name": name, "type": kind, "jsonPath": path});
        let mut told = column("Told", "integer", ".spec.size");
        told["description"] = json!("How large it is.");
        told["priority"] = json!(1);
        told["format"] = json!("int64");
        let columns = json!([
            column("Size", "integer", ".spec.size"),
            told,
            column("Made", "date", ".metadata.creationTimestamp")
        ]);
        let schema =
            json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema, "additionalPrinterColumns": columns});
        let names = json!({"plural": "gauges", "kind": "Gauge", "singular": "gauge"});
        let spec = json!({"group": "{group}", "scope": "Namespaced", "names": names, "versions": [version]});
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "gauges.{group}"}, "spec": spec});
        s.prepare(
            Request::new("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions").json(&definition),
        );
        let path = "/apis/{group}/v1/namespaces/{ns}/gauges";
        s.until(&Request::new("GET", path), |answer| answer.code() == 200);
        s.send(table(path));
        made(
            s,
            path,
            &json!({"apiVersion": "{group}/v1", "kind": "Gauge", "metadata": {"name": "a"}, "spec": {"size": 3}}),
        );
        s.send(table(format!("{path}/a")));
    });
}

#[test]
fn api_38_protobuf_is_sent_where_it_was_requested() {
    judge(|s| {
        s.prepare(Request::new("POST", MAPS).json(&json!({"metadata": {"name": "a"}})));
        let accept = |path: String, accept: &str| Request::new("GET", path).header("Accept", accept);
        s.send(accept(format!("{MAPS}/a"), "application/vnd.kubernetes.protobuf"));
        s.send(accept(format!("{MAPS}/a"), "application/vnd.kubernetes.protobuf,application/json"));
        s.send(accept(MAPS.to_owned(), "application/vnd.kubernetes.protobuf"));
        s.send(Request::new("POST", MAPS).body("application/vnd.kubernetes.protobuf", "k8s"));
        widgets(s);
        s.send(accept("/apis/{group}/v1/widgets".to_owned(), "application/vnd.kubernetes.protobuf"));
        s.send(accept(
            "/apis/{group}/v1/widgets".to_owned(),
            "application/vnd.kubernetes.protobuf,application/json",
        ));
    });
}
