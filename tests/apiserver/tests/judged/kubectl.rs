//! kubectl, reading: discovery, explain, every form of get, describe, watching, waiting, rights.
//!
//! They answer: does kubectl 1.36.2 print the same for our server as for a real one?
//! 1. The real one runs without controllers, so statuses are written by the scripts, on both.
use serde_json::json;

use crate::harness::{Request, Session, judge};

/// Some objects to look at.
fn world(s: &mut Session) {
    s.kubectl_prepare("create configmap a --from-literal=k=v --from-literal=l=w");
    s.kubectl_prepare("create configmap b");
    s.kubectl_prepare("label configmap b app=x");
    s.kubectl_prepare("create deployment web --image=nginx:1 --replicas=2 --port=80");
    s.kubectl_prepare("run p --image=busybox:1 --labels=app=x,tier=front");
    s.kubectl_prepare("create service clusterip web --tcp=80:8080");
}

#[test]
fn kubectl_shows_versions_and_resources() {
    judge(|s| {
        s.kubectl("version -o json");
        s.kubectl("version");
        s.kubectl("api-versions");
        s.kubectl("api-resources --api-group=apps --no-headers");
        s.kubectl("api-resources --api-group=");
        s.kubectl("api-resources --api-group=batch -o wide");
        s.kubectl("api-resources --namespaced=false --verbs=list,get -o name");
        s.kubectl("cluster-info");
        s.kubectl("get --raw /readyz");
    });
}

#[test]
fn kubectl_explains() {
    judge(|s| {
        s.kubectl("explain pods");
        s.kubectl("explain deployment.spec.strategy --recursive");
        s.kubectl("explain pods.spec.containers.image");
        s.kubectl("explain cronjobs --api-version=batch/v1");
        s.kubectl("explain nothings");
        s.kubectl("explain pods.spec.nothing");
    });
}

#[test]
fn kubectl_explains_a_defined_kind() {
    judge(|s| {
        let mut made = crate::definitions::definition();
        made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!("A widget.");
        made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = json!({"spec": {"type": "object", "description": "What is wanted.", "properties": {"size": {"type": "integer"}}}});
        crate::definitions::define(s, &made);
        let document = Request::new("GET", "/openapi/v3/apis/{group}/v1");
        s.until(&document, |answer| answer.code() == 200);
        s.kubectl("explain widgets.{group}");
        s.kubectl("explain widgets.spec --api-version={group}/v1");
    });
}

#[test]
fn kubectl_gets_in_every_form() {
    judge(|s| {
        world(s);
        for line in [
            "get configmaps",
            "get cm a",
            "get cm a b -o name",
            "get pods -o wide",
            "get deploy,svc",
            "get deployments -o wide",
            "get all",
            "get cm a -o yaml",
            "get cm a -o json",
            "get pod p -o yaml",
            "get deployment web -o yaml --show-managed-fields",
            "get cm -o custom-columns=NAME:.metadata.name,K:.data.k",
            "get cm -o jsonpath='{range .items[*]}{.metadata.name}={.data.k}{\"\\n\"}{end}'",
            "get cm -o go-template='{{range .items}}{{.metadata.name}} {{end}}'",
            "get cm -l app=x",
            "get cm -l '!app' --show-labels",
            "get pods -L app,tier",
            "get pods --field-selector=status.phase=Pending",
            "get pods --field-selector=status.phase=Running",
            "get pods --field-selector=spec.nothing=x",
            "get cm --sort-by=.metadata.name --no-headers",
            "get cm --chunk-size=1",
            "get cm -A --field-selector=metadata.namespace={ns}",
            "get nothings",
            "get cm none",
            "get cm none --ignore-not-found",
            "get namespace {ns}",
            // A real server checks its services every few minutes, and reports one that was created at that moment.
            "get events --field-selector=reason!=ClusterIPNotAllocated",
        ] {
            s.kubectl(line);
        }
    });
}

#[test]
fn kubectl_watches_objects_added_and_deleted() {
    judge(|s| {
        s.kubectl_prepare("create configmap a --from-literal=k=v");
        let Some(mut watch) = s.kubectl_start("get configmaps --watch --output-watch-events") else { return };
        watch.lines(s, 2);
        s.kubectl_prepare("create configmap b");
        s.kubectl_prepare("label configmap a app=x");
        s.kubectl_prepare("delete configmap b");
        watch.lines(s, 3);
    });
}

#[test]
fn kubectl_describes() {
    judge(|s| {
        world(s);
        for line in [
            "describe configmap a",
            "describe pod p",
            "describe deployment web",
            "describe service web",
            "describe namespace {ns}",
            "describe cm -l app=x",
            "describe pod none",
        ] {
            s.kubectl(line);
        }
        s.kubectl_prepare("create secret generic s --from-literal=k=v");
        s.kubectl("describe secret s");
        s.kubectl_prepare("create serviceaccount robot");
        s.kubectl("describe serviceaccount robot");
        s.kubectl_prepare("create role reader --verb=get,list --resource=pods");
        s.kubectl("describe role reader");
        s.kubectl_prepare("create quota q --hard=pods=5");
        s.kubectl("describe quota q");
    });
}

/// One object of each kind that `describe` supports.
const ZOO: &str = r#"
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: set}, spec: {serviceName: s, replicas: 2, selector: {matchLabels: {app: s}},
  template: {metadata: {labels: {app: s}}, spec: {containers: [{name: c, image: "i:1", resources: {requests: {cpu: 500m, memory: 64Mi}},
    env: [{name: A, value: b}, {name: P, valueFrom: {fieldRef: {fieldPath: metadata.name}}}],
    livenessProbe: {httpGet: {path: /, port: 80}}, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, emptyDir: {}}]}}}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: daemon}, spec: {selector: {matchLabels: {app: d}},
  template: {metadata: {labels: {app: d}}, spec: {containers: [{name: c, image: "i:1"}]}}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: replicas}, spec: {selector: {matchLabels: {app: r}},
  template: {metadata: {labels: {app: r}}, spec: {containers: [{name: c, image: "i:1"}]}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: job}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "i:1"}]}}}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: cron}, spec: {schedule: "*/5 * * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "i:1"}]}}}}}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: way}, spec: {tls: [{hosts: [example.org], secretName: t}], rules: [{host: example.org,
  http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: wall}, spec: {podSelector: {matchLabels: {app: x}}, policyTypes: [Ingress],
  ingress: [{from: [{podSelector: {}}, {ipBlock: {cidr: 10.1.0.0/16, except: [10.1.1.0/24]}}], ports: [{port: 80}]}]}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: budget}, spec: {minAvailable: 1, selector: {matchLabels: {app: x}}}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: scaler}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web},
  minReplicas: 2, maxReplicas: 5, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: limits}, spec: {limits: [{type: Container, default: {cpu: 500m}, defaultRequest: {cpu: 100m}, max: {cpu: "1"}}]}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: claim}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: "{ns}"}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /d}}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: "{ns}"}, provisioner: example.org/p, parameters: {a: b}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: "{ns}"}, value: 5}
---
{apiVersion: v1, kind: Endpoints, metadata: {name: ends}, subsets: [{addresses: [{ip: 10.1.0.1}], ports: [{port: 80}]}]}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: slice}, addressType: IPv4, endpoints: [{addresses: [10.1.0.1]}], ports: [{port: 80}]}
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: lease}, spec: {holderIdentity: me, leaseDurationSeconds: 15}}
---
{apiVersion: v1, kind: Node, metadata: {name: "{ns}", labels: {role: x}}, spec: {taints: [{key: k, value: v, effect: NoSchedule}]}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: bound}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r},
  subjects: [{kind: User, name: u, apiGroup: rbac.authorization.k8s.io}]}
---
{apiVersion: v1, kind: ReplicationController, metadata: {name: old}, spec: {replicas: 1, template: {metadata: {labels: {app: o}}, spec: {containers: [{name: c, image: "i:1"}]}}}}
"#;

#[test]
fn kubectl_describes_every_kind_it_knows() {
    judge(|s| {
        s.kubectl_reading("create -f -", ZOO);
        for line in [
            "describe statefulset set",
            "describe daemonset daemon",
            "describe replicaset replicas",
            "describe job job",
            "describe cronjob cron",
            "describe ingress way",
            "describe networkpolicy wall",
            "describe pdb budget",
            "describe hpa scaler",
            "describe limitrange limits",
            "describe pvc claim",
            "describe pv {ns}",
            "describe storageclass {ns}",
            "describe priorityclass {ns}",
            "describe endpoints ends",
            "describe endpointslice slice",
            "describe lease lease",
            "describe node {ns}",
            "describe rolebinding bound",
            "describe rc old",
            "describe clusterrole view",
            "get all,ingress,networkpolicy,pdb,hpa,limits,pvc,endpoints,lease,rolebinding -o wide",
        ] {
            s.kubectl(line);
        }
    });
}

#[test]
fn kubectl_waits_and_follows_rollouts() {
    judge(|s| {
        s.kubectl_prepare("create deployment web --image=nginx:1 --replicas=1");
        s.kubectl("rollout status deployment web --timeout=10s");
        s.kubectl("rollout history deployment web");
        let status = "{\"status\":{\"observedGeneration\":1,\"replicas\":1,\"updatedReplicas\":1,\"readyReplicas\":1,\
            \"availableReplicas\":1,\"conditions\":[{\"type\":\"Available\",\"status\":\"True\"}]}}";
        s.kubectl(&format!("patch deployment web --subresource=status --type=merge -p '{status}'"));
        s.kubectl("rollout status deployment web --timeout=120s");
        s.kubectl("wait --for=condition=Available deployment/web --timeout=120s");
        s.kubectl("wait --for=condition=Never deployment/web --timeout=10s");
        s.kubectl("wait --for=jsonpath='{.status.readyReplicas}'=1 deployment/web --timeout=120s");
        s.kubectl("wait --for=create configmap/none --timeout=10s");
        s.kubectl("rollout restart deployment web");
        s.kubectl("rollout pause deployment web");
        s.kubectl("rollout resume deployment web");
        s.kubectl("get deployments");
    });
}

#[test]
fn kubectl_asks_for_its_user_and_rights() {
    judge(|s| {
        s.kubectl("auth whoami");
        s.kubectl("auth can-i create pods");
        s.kubectl("auth can-i get pods/log --as=nobody");
        s.kubectl("auth can-i list secrets --as=system:serviceaccount:{ns}:robot");
        s.kubectl("auth can-i --list --as=nobody");
        s.kubectl_prepare("create serviceaccount robot");
        s.kubectl_prepare("create role reader --verb=get,list --resource=pods");
        s.kubectl_prepare("create rolebinding reader --role=reader --serviceaccount={ns}:robot");
        let may = "auth can-i list pods --as=system:serviceaccount:{ns}:robot";
        let review = json!({"spec": {"user": "system:serviceaccount:{ns}:robot",
            "resourceAttributes": {"namespace": "{ns}", "verb": "list", "resource": "pods"}}});
        let review = Request::new("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews").json(&review);
        s.until(&review, |answer| answer.json()["status"]["allowed"] == true);
        s.kubectl(may);
        s.kubectl("get pods --as=system:serviceaccount:{ns}:robot");
        s.kubectl("delete pods --all --as=system:serviceaccount:{ns}:robot");
        let token = s.kubectl_text("create token robot --duration=1h");
        s.note("a token of three parts", token.trim().split('.').count());
    });
}

#[test]
fn kubectl_shows_events() {
    judge(|s| {
        s.kubectl("events");
        for (name, kind, reason) in [("one", "Normal", "Started"), ("two", "Warning", "Failed")] {
            let event = json!({
                "metadata": {"name": name}, "reason": reason, "type": kind, "message": format!("{reason} it"), "count": 2,
                "involvedObject": {"kind": "Pod", "name": "p", "namespace": "{ns}", "apiVersion": "v1"},
                "firstTimestamp": "2020-01-02T03:04:05Z", "lastTimestamp": "2020-01-02T03:04:06Z",
                "source": {"component": "judge"},
            });
            s.prepare(Request::new("POST", "/api/v1/namespaces/{ns}/events").json(&event));
        }
        s.kubectl("events --types=Warning");
        s.kubectl("events --for pod/p -o name");
        s.kubectl("get events --sort-by=.reason");
        s.kubectl("get events -o wide");
    });
}
