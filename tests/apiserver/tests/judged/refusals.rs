//! Built-in objects with several mistakes at once: E20.
//!
//! They answer: which causes does a client get, in which order, and which of them twice?
use serde_json::{Value, json};

use crate::harness::{Session, judge};
use crate::writes::{deployment, pod};

fn named(spec: &Value) -> Value {
    json!({"metadata": {"name": "a"}, "spec": spec})
}

/// Each spec as a new object; the comparison is useful only if both servers refuse it.
fn refused(s: &mut Session, path: &str, specs: &[Value]) {
    for spec in specs {
        s.post(path, &named(spec));
    }
}

fn pods_of(spec: Value) -> Value {
    json!({"metadata": {"labels": {"app": "a"}}, "spec": spec})
}

#[test]
fn e20_causes_of_pods() {
    judge(|s| {
        let one = json!([{"name": "c", "image": "i"}]);
        refused(
            s,
            "/api/v1/namespaces/{ns}/pods",
            &[
                json!({}),
                json!({"containers": [{}]}),
                json!({"containers": [{"name": "A_", "image": " i", "imagePullPolicy": "x", "terminationMessagePolicy": "x"}]}),
                json!({"containers": [{"name": "c", "image": "i"}, {"name": "c"}, {"name": "c", "image": "i"}]}),
                json!({"containers": one, "initContainers": [{"name": "c"}, {"name": "d", "image": "i"}, {"name": "d", "image": "i"}]}),
                json!({"containers": [{"name": "c", "image": "i", "ports": [{}, {"containerPort": 0, "name": "A"},
                    {"containerPort": 70000, "protocol": "X", "hostPort": 70000}, {"containerPort": 1, "name": "p"}, {"containerPort": 2, "name": "p"}]}]}),
                json!({"containers": [{"name": "c", "image": "i", "env": [{}, {"name": "a=b", "value": "1"},
                    {"name": "b", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}, {"name": "c", "valueFrom": {}}]}]}),
                json!({"containers": [{"name": "c", "image": "i", "volumeMounts": [{}, {"name": "none", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}]}],
                    "volumes": [{}, {"name": "v"}, {"name": "v", "emptyDir": {}}, {"name": "B", "emptyDir": {}}]}),
                json!({"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "-1"}, "requests": {"cpu": "2", "memory": "1"}}}]}),
                json!({"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}]}),
                json!({"containers": [{"name": "c", "image": "i", "livenessProbe": {"periodSeconds": -1}, "readinessProbe": {"httpGet": {"port": 0}, "exec": {}}}]}),
                json!({"containers": one, "restartPolicy": "x", "dnsPolicy": "x", "terminationGracePeriodSeconds": -1, "activeDeadlineSeconds": 0}),
                json!({"containers": one, "nodeName": "A_", "serviceAccountName": "A_", "hostname": "A_", "subdomain": "A_", "schedulerName": "A_"}),
                json!({"containers": one, "nodeSelector": {"-": "x y"}, "tolerations": [{"operator": "x"}, {"key": "a", "operator": "Exists", "value": "b"}, {"effect": "x"}]}),
                json!({"containers": one, "dnsPolicy": "None", "hostAliases": [{"ip": "x", "hostnames": ["A_"]}]}),
                json!({"containers": one, "restartPolicy": "x", "initContainers": [{"name": "c"}], "volumes": [{"name": "v"}]}),
            ],
        );
        s.post(
            "/api/v1/namespaces/{ns}/pods",
            &json!({"metadata": {"name": "A_", "labels": {"-": "x y"}, "annotations": {"-": "x"},
            "finalizers": ["x", "-/"], "ownerReferences": [{}]}, "spec": {"containers": []}}),
        );
        let longest = "x".repeat(64);
        s.post("/api/v1/namespaces/{ns}/pods", &json!({"metadata": {"name": longest, "labels": {longest.as_str(): longest}}, "spec": {"containers": one}}));
        s.post("/api/v1/namespaces/{ns}/pods", &pod("a"));
        for patch in [
            json!({"spec": {"containers": [{"name": "c", "image": ""}]}}),
            json!({"spec": {"restartPolicy": "x", "nodeName": "n"}}),
            json!({"spec": {"containers": [{"name": "d", "image": "i"}, {"name": "d"}]}}),
            json!({"metadata": {"labels": {"-": "x y"}}}),
            json!({"metadata": {"labels": {"-": "x"}}, "spec": {"containers": [{"name": "c", "image": ""}]}}),
            json!({"spec": {"activeDeadlineSeconds": -1}}),
        ] {
            s.patch("merge", "/api/v1/namespaces/{ns}/pods/a", &patch);
        }
    });
}

#[test]
fn e20_causes_of_workloads() {
    judge(|s| {
        let broken = json!({"restartPolicy": "Never", "containers": [{"name": "C"}]});
        let selector = json!({"matchLabels": {"app": "a"}});
        let other = json!({"matchLabels": {"app": "b"}, "matchExpressions": [{"key": "-", "operator": "x"}, {"key": "a", "operator": "In"}, {"key": "a", "operator": "Exists", "values": ["b"]}]});
        let one = json!({"containers": [{"name": "c", "image": "i"}]});
        for kind in ["deployments", "replicasets", "daemonsets", "statefulsets"] {
            refused(
                s,
                &format!("/apis/apps/v1/namespaces/{{ns}}/{kind}"),
                &[
                    json!({}),
                    json!({"replicas": -1, "minReadySeconds": -1, "revisionHistoryLimit": -1}),
                    json!({"selector": {}, "template": pods_of(one.clone())}),
                    json!({"selector": other, "template": pods_of(one.clone())}),
                    json!({"replicas": -1, "minReadySeconds": -1, "revisionHistoryLimit": -1, "selector": {"matchLabels": {"app": "b"}}, "template": pods_of(broken.clone())}),
                    json!({"selector": selector, "template": {"metadata": {"labels": {"app": "a", "-": "x y"}, "annotations": {"-": ""}}, "spec": one}}),
                    json!({"selector": selector, "template": pods_of(json!({"restartPolicy": "OnFailure", "containers": []}))}),
                ],
            );
        }
        let updates = |strategy: Value| json!({"selector": selector, "template": pods_of(one.clone()), "strategy": strategy, "updateStrategy": strategy});
        for kind in ["deployments", "daemonsets", "statefulsets"] {
            refused(
                s,
                &format!("/apis/apps/v1/namespaces/{{ns}}/{kind}?dryRun=All"),
                &[
                    updates(json!({"type": "x"})),
                    updates(
                        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
                    ),
                    updates(
                        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "x", "partition": -1}}),
                    ),
                    updates(json!({"type": "Recreate", "rollingUpdate": {"maxUnavailable": 1}})),
                    updates(
                        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "101%", "maxSurge": -1}}),
                    ),
                ],
            );
        }
        s.post("/apis/apps/v1/namespaces/{ns}/deployments", &deployment("a"));
        for patch in [
            json!({"spec": {"replicas": -1, "template": {"spec": {"containers": [{"name": "C"}]}}}}),
            json!({"spec": {"selector": {"matchLabels": {"app": "b"}}, "replicas": -1}}),
            json!({"metadata": {"labels": {"-": "x y"}}, "spec": {"replicas": -1}}),
        ] {
            s.patch("merge", "/apis/apps/v1/namespaces/{ns}/deployments/a", &patch);
        }
    });
}

#[test]
fn e20_causes_of_jobs() {
    judge(|s| {
        let template = |policy: &str| json!({"spec": {"restartPolicy": policy, "containers": [{"name": "c", "image": "i"}]}});
        let jobs = [
            json!({}),
            json!({"template": {}}),
            json!({"template": template("Always"), "parallelism": -1, "completions": -1, "activeDeadlineSeconds": -1, "backoffLimit": -1, "ttlSecondsAfterFinished": -1}),
            json!({"template": template("x"), "completionMode": "x"}),
            json!({"template": template("Never"), "completionMode": "Indexed"}),
            json!({"template": template("OnFailure"), "podFailurePolicy": {"rules": [{}]}}),
            json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "C"}]}}, "parallelism": -1}),
            json!({"template": template("Never"), "selector": {"matchLabels": {"a": "b"}}}),
            json!({"template": template("Never"), "manualSelector": true}),
        ];
        refused(s, "/apis/batch/v1/namespaces/{ns}/jobs?dryRun=All", &jobs);
        let crons = [
            json!({}),
            json!({"schedule": "x", "jobTemplate": {}}),
            json!({"schedule": "* * * *", "concurrencyPolicy": "x", "startingDeadlineSeconds": -1, "successfulJobsHistoryLimit": -1,
                "failedJobsHistoryLimit": -1, "jobTemplate": {"spec": {"template": template("Always"), "parallelism": -1}}}),
            json!({"schedule": "61 * * * *", "timeZone": "", "jobTemplate": {"spec": {"template": template("Never")}}}),
            json!({"schedule": "TZ=UTC * * * * *", "timeZone": "Etc/UTC", "jobTemplate": {"spec": {"template": template("Never")}}}),
            json!({"schedule": "@every x", "jobTemplate": {"spec": {"template": template("Never"), "manualSelector": true}}}),
        ];
        refused(s, "/apis/batch/v1/namespaces/{ns}/cronjobs?dryRun=All", &crons);
        let at = |zone: &str| json!({"schedule": "* * * * *", "timeZone": zone, "jobTemplate": {"spec": {"template": template("Never")}}});
        let zones = ["Mars/Olympus", "local", "Europe/Berlin", "UTC", "+01:00"].map(at);
        refused(s, "/apis/batch/v1/namespaces/{ns}/cronjobs?dryRun=All", &zones);
        let long = "x".repeat(60);
        s.post(
            "/apis/batch/v1/namespaces/{ns}/cronjobs",
            &json!({"metadata": {"name": long}, "spec": {"schedule": "x"}}),
        );
    });
}

#[test]
fn e20_causes_of_services_and_ingresses() {
    judge(|s| {
        let services = [
            json!({}),
            json!({"type": "x", "ports": []}),
            json!({"ports": [{}]}),
            json!({"ports": [{"port": 80}, {"port": 80}]}),
            json!({"ports": [{"port": 80, "name": "A"}, {"port": 80, "name": "a"}, {"port": 81, "name": "a", "protocol": "X", "targetPort": 0}]}),
            json!({"ports": [{"port": 70000, "targetPort": "A_", "nodePort": 5}], "type": "NodePort"}),
            json!({"ports": [{"port": 80, "nodePort": 30001}], "type": "ClusterIP", "sessionAffinity": "x", "selector": {"-": "x y"}}),
            json!({"type": "ExternalName"}),
            json!({"type": "ExternalName", "externalName": "A_", "clusterIP": "None"}),
            json!({"ports": [{"port": 80}], "clusterIP": "x", "externalIPs": ["x", "127.0.0.1"], "loadBalancerSourceRanges": ["x"]}),
            json!({"ports": [{"port": 80}], "externalTrafficPolicy": "x", "internalTrafficPolicy": "x", "ipFamilyPolicy": "x"}),
        ];
        refused(s, "/api/v1/namespaces/{ns}/services?dryRun=All", &services);
        s.post(
            "/api/v1/namespaces/{ns}/services",
            &json!({"metadata": {"name": "1A"}, "spec": {"ports": []}}),
        );
        let path = |path: Value| json!({"rules": [{"host": "h", "http": {"paths": [path]}}]});
        let backend = json!({"service": {"name": "a", "port": {"number": 80}}});
        let ingresses = [
            json!({}),
            json!({"defaultBackend": {}}),
            json!({"defaultBackend": {"service": {}}}),
            json!({"defaultBackend": {"service": {"name": "A_", "port": {"number": 70000, "name": "A_"}}}}),
            json!({"rules": [{"host": "A_"}, {"host": "1.2.3.4", "http": {}}]}),
            path(json!({})),
            path(json!({"path": "x", "pathType": "Prefix", "backend": backend})),
            path(json!({"path": "/a//b", "pathType": "x", "backend": {}})),
            path(json!({"path": "/a/../b", "pathType": "Exact", "backend": {"service": {"name": "a"}}})),
            json!({"ingressClassName": "A_", "tls": [{"hosts": ["A_"], "secretName": "A_"}], "defaultBackend": backend}),
        ];
        refused(s, "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses?dryRun=All", &ingresses);
        let policies = [
            json!({"podSelector": {"matchLabels": {"-": "x y"}}, "policyTypes": ["x"]}),
            json!({"ingress": [{"ports": [{"protocol": "X", "port": 0}, {"port": 5, "endPort": 3}], "from": [{}, {"ipBlock": {"cidr": "x"}, "podSelector": {}}]}]}),
            json!({"egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/8"]}}], "ports": [{"port": "A_"}]}], "policyTypes": ["Ingress", "Egress", "Egress"]}),
        ];
        refused(s, "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies?dryRun=All", &policies);
    });
}

#[test]
fn e20_causes_of_storage_and_policy() {
    judge(|s| {
        let claims = [
            json!({}),
            json!({"accessModes": ["x"], "resources": {"requests": {"storage": "-1"}}}),
            json!({"accessModes": ["ReadWriteOnce", "ReadWriteOncePod"], "resources": {"requests": {"storage": "0"}}, "volumeMode": "x", "storageClassName": "A_"}),
            json!({"accessModes": ["ReadWriteOnce"], "resources": {}, "selector": {"matchLabels": {"-": "x y"}}}),
        ];
        refused(s, "/api/v1/namespaces/{ns}/persistentvolumeclaims?dryRun=All", &claims);
        let scalers = [
            json!({}),
            json!({"maxReplicas": 0, "minReplicas": 0, "scaleTargetRef": {}}),
            json!({"maxReplicas": 1, "minReplicas": 2, "scaleTargetRef": {"kind": "a/b", "name": "c/d", "apiVersion": "x/y/z"}}),
            json!({"maxReplicas": 1, "scaleTargetRef": {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}, "metrics": [{}, {"type": "x"}, {"type": "Resource"},
                {"type": "Resource", "resource": {"name": "", "target": {"type": "x"}}}]}),
        ];
        refused(s, "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers?dryRun=All", &scalers);
        let budgets = [
            json!({"minAvailable": 1, "maxUnavailable": 1}),
            json!({"minAvailable": -1, "selector": {"matchLabels": {"-": "x y"}}}),
            json!({"maxUnavailable": "101%", "unhealthyPodEvictionPolicy": "x"}),
            json!({"maxUnavailable": "x"}),
        ];
        refused(s, "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets?dryRun=All", &budgets);
    });
}

#[test]
fn e20_causes_of_rights_and_webhooks() {
    judge(|s| {
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        for (plural, at) in [("roles", "/namespaces/{ns}"), ("clusterroles", "")] {
            for rules in [
                json!([{}]),
                json!([{"verbs": ["get"]}, {"verbs": [], "apiGroups": [""], "resources": []}]),
                json!([{"verbs": ["get"], "nonResourceURLs": ["/x", "y"]}]),
                json!([{"verbs": ["get"], "nonResourceURLs": ["/x"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}]),
            ] {
                s.post(
                    format!("{rbac}{at}/{plural}?dryRun=All"),
                    &json!({"metadata": {"name": "{ns}"}, "rules": rules}),
                );
            }
        }
        for (plural, at) in [("rolebindings", "/namespaces/{ns}"), ("clusterrolebindings", "")] {
            for (role, subjects) in [
                (json!({}), json!([])),
                (json!({"kind": "x", "name": "a/b", "apiGroup": "x"}), json!([{}])),
                (
                    json!({"kind": "ClusterRole", "name": "a", "apiGroup": "rbac.authorization.k8s.io"}),
                    json!([{"kind": "x", "name": "a"}, {"kind": "ServiceAccount", "name": "A_"}, {"kind": "ServiceAccount", "name": "a", "apiGroup": "x", "namespace": "n"},
                        {"kind": "User", "name": "", "apiGroup": "x"}, {"kind": "Group", "name": "g", "namespace": "n"}]),
                ),
            ] {
                s.post(
                    format!("{rbac}{at}/{plural}?dryRun=All"),
                    &json!({"metadata": {"name": "{ns}"}, "roleRef": role, "subjects": subjects}),
                );
            }
        }
        for plural in ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"] {
            for hooks in [
                json!([{}]),
                json!([{"name": "a", "clientConfig": {}, "sideEffects": "x", "admissionReviewVersions": []}]),
                json!([{"name": "a.b.c", "clientConfig": {"url": "http://x", "service": {"name": "a", "namespace": "b"}}, "sideEffects": "None",
                    "admissionReviewVersions": ["v1"], "timeoutSeconds": 31, "failurePolicy": "x", "matchPolicy": "x"}]),
                json!([{"name": "a.b.c", "clientConfig": {"url": "https://x"}, "sideEffects": "None", "admissionReviewVersions": ["v1", "v1", "A_"],
                    "rules": [{}, {"operations": ["x"], "apiGroups": ["*", "a"], "apiVersions": [""], "resources": ["*/*", "pods"]}]},
                    {"name": "a.b.c", "clientConfig": {"service": {}}, "sideEffects": "None", "admissionReviewVersions": ["v9"]}]),
            ] {
                s.post(
                    format!("/apis/admissionregistration.k8s.io/v1/{plural}?dryRun=All"),
                    &json!({"metadata": {"name": "{ns}"}, "webhooks": hooks}),
                );
            }
        }
    });
}
