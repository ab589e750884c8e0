//! kubectl, writing: create, apply, patch, edit, replace, scale, label, delete, expose, taint, diff.
//!
//! They answer: does kubectl 1.36.2 have the same effect on our server as on a real one, and print the same?
use crate::harness::judge;

const MANIFEST: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  labels: {app: x}
data:
  k: v
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: nginx:1, ports: [{containerPort: 80}]}
";

#[test]
fn kubectl_creates_by_command() {
    judge(|s| {
        for line in [
            "create configmap a --from-literal=k=v",
            "create secret generic a --from-literal=k=v",
            "create secret tls t --cert=/nope --key=/nope",
            "create namespace {ns}-made",
            "create deployment a --image=nginx:1 --replicas=2 --port=80",
            "create job a --image=busybox:1 -- date",
            "create cronjob a --image=busybox:1 --schedule='*/5 * * * *' -- date",
            "create job b --from=cronjob/a",
            "create service clusterip a --tcp=80:8080",
            "create service nodeport n --tcp=80:8080",
            "create service loadbalancer l --tcp=80:8080",
            "create service clusterip headless --clusterip=None",
            "create secret docker-registry d --docker-username=me --docker-password=secret --docker-server=example.org",
            "create service externalname e --external-name=example.org",
            "create serviceaccount a",
            "create role a --verb=get,list --resource=pods,configmaps",
            "create role b --verb=get --resource=deployments.apps --resource-name=web",
            "create rolebinding a --role=a --user=nobody --serviceaccount={ns}:a",
            "create clusterrole {ns} --verb=get --resource=nodes",
            "create clusterrolebinding {ns} --clusterrole={ns} --group=some",
            "create quota a --hard=pods=5,configmaps=9",
            "create poddisruptionbudget a --selector=app=x --min-available=1",
            "create ingress a --rule=example.org/path=a:80",
            "create priorityclass {ns} --value=7 --description=judged",
            "create configmap a",
            "create configmap c --dry-run=client -o yaml",
            "create configmap c --dry-run=server -o yaml",
        ] {
            s.kubectl(line);
        }
        s.kubectl("get configmap,secret,deployment,job,cronjob,service,serviceaccount,role,rolebinding,quota,pdb,ingress -o name");
        s.kubectl("get job a -o json");
        s.kubectl("get service n -o json");
        s.kubectl("get rolebinding a -o json");
    });
}

#[test]
fn kubectl_creates_and_replaces_from_files() {
    judge(|s| {
        s.kubectl_reading("create -f -", MANIFEST);
        s.kubectl_reading("create -f -", MANIFEST);
        s.kubectl_reading("replace -f -", &MANIFEST.replace("k: v", "k: w"));
        s.kubectl("get configmap a -o jsonpath={.data.k}");
        s.kubectl_reading(
            "replace --force -f -",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {z: z}}",
        );
        s.kubectl_reading(
            "create -f -",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, dat: {z: z}}",
        );
        s.kubectl_reading(
            "create --validate=warn -f -",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, dat: {z: z}}",
        );
        s.kubectl_reading("create -f -", "{apiVersion: v1, kind: Nothing, metadata: {name: b}}");
        s.kubectl_reading("delete -f -", MANIFEST);
    });
}

#[test]
fn api_41_kubectl_applies_on_the_clients_side() {
    judge(|s| {
        s.kubectl_reading("apply -f -", MANIFEST);
        s.kubectl_reading("apply -f -", MANIFEST);
        s.kubectl_reading("diff -f -", &MANIFEST.replace("replicas: 1", "replicas: 3"));
        s.kubectl_reading(
            "apply -f -",
            &MANIFEST.replace("replicas: 1", "replicas: 3").replace("k: v", "l: w"),
        );
        s.kubectl("get configmap a -o json");
        s.kubectl("get deployment web -o json");
        s.kubectl("apply view-last-applied configmap a");
        s.kubectl_reading("apply --dry-run=server -f -", &MANIFEST.replace("k: v", "k: q"));
        s.kubectl_reading(
            "apply --prune -l app=x -f -",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: other, labels: {app: x}}}",
        );
    });
}

#[test]
fn api_41_kubectl_applies_on_the_servers_side() {
    judge(|s| {
        s.kubectl_reading("apply --server-side -f -", MANIFEST);
        s.kubectl_reading("apply --server-side -f -", MANIFEST);
        s.kubectl_reading(
            "apply --server-side --field-manager=other -f -",
            &MANIFEST.replace("k: v", "k: w"),
        );
        let forced = "apply --server-side --field-manager=other --force-conflicts -f -";
        s.kubectl_reading(forced, &MANIFEST.replace("k: v", "k: w"));
        s.kubectl("get configmap a -o json --show-managed-fields");
        s.kubectl_reading("diff --server-side -f -", &MANIFEST.replace("replicas: 1", "replicas: 3"));
    });
}

#[test]
fn kubectl_migrates_from_one_apply_to_the_other() {
    judge(|s| {
        s.kubectl_reading("apply -f -", MANIFEST);
        s.kubectl_reading("apply --server-side -f -", &MANIFEST.replace("  k: v", "  l: w"));
        s.kubectl("get configmap a -o json --show-managed-fields");
        s.kubectl("get deployment web -o json --show-managed-fields");
        s.kubectl_reading("apply -f -", MANIFEST);
        s.kubectl("get configmap a -o json --show-managed-fields");
    });
}

#[test]
fn kubectl_patches_edits_and_sets() {
    judge(|s| {
        s.kubectl_prepare("create deployment web --image=nginx:1");
        s.kubectl_prepare("create configmap a --from-literal=k=v");
        for line in [
            "patch configmap a --type=merge -p '{\"data\":{\"k\":\"w\"}}'",
            "patch configmap a --type=json -p '[{\"op\":\"add\",\"path\":\"/data/l\",\"value\":\"x\"}]'",
            "patch deployment web -p '{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"side\",\"image\":\"busybox:1\"}]}}}}'",
            "patch configmap a -p '{\"data\":{\"k\":\"w\"}}'",
            "patch configmap none -p '{}'",
            "set image deployment/web nginx=nginx:2",
            "set env deployment/web A=1",
            "set resources deployment/web --limits=cpu=1 -c nginx",
            "scale deployment web --replicas=5",
            "scale deployment web --replicas=6 --current-replicas=1",
            "scale rs none --replicas=1",
            "autoscale deployment web --min=1 --max=3",
            "label configmap a app=x",
            "label configmap a app=y",
            "label configmap a app=y --overwrite",
            "label configmap a app-",
            "annotate configmap a note='some words'",
            "get deployment web -o json",
            "get configmap a -o json",
        ] {
            s.kubectl(line);
        }
    });
}

#[test]
fn kubectl_edits() {
    judge(|s| {
        s.kubectl_prepare("create configmap a --from-literal=k=before");
        s.kubectl_edit("edit configmap a", "sed -i s/before/after/");
        s.kubectl("get configmap a -o jsonpath={.data.k}");
        s.kubectl_edit("edit configmap a", "true");
        s.kubectl_edit("edit configmap none", "true");
    });
}

#[test]
fn api_41_kubectl_deletes_and_waits_for_it() {
    judge(|s| {
        for name in ["a", "b", "c"] {
            s.kubectl_prepare(&format!("create configmap {name}"));
        }
        s.kubectl_prepare("run p --image=busybox:1");
        s.kubectl("delete configmap a");
        s.kubectl("delete configmap a");
        s.kubectl("delete configmap a --ignore-not-found");
        s.kubectl("delete pod p --wait=true");
        s.kubectl("delete configmaps --all");
        s.kubectl_prepare("create configmap held");
        s.kubectl_prepare("patch configmap held --type=merge -p '{\"metadata\":{\"finalizers\":[\"judge.example.com/hold\"]}}'");
        s.kubectl("delete configmap held --timeout=10s");
        s.kubectl("get configmap held -o json");
        s.kubectl_prepare("patch configmap held --type=merge -p '{\"metadata\":{\"finalizers\":null}}'");
        s.kubectl("wait --for=delete configmap/held --timeout=120s");
        s.kubectl_prepare("create deployment web --image=nginx:1");
        s.kubectl("delete deployment web --cascade=orphan --wait=false");
        s.kubectl_prepare("run q --image=busybox:1");
        s.kubectl("delete pod q --now");
        s.kubectl_prepare("run r --image=busybox:1");
        s.kubectl("delete pod r --force --grace-period=0");
        s.kubectl("get configmaps,pods,deployments -o name");
    });
}

#[test]
fn kubectl_runs_exposes_taints_and_cordons() {
    judge(|s| {
        s.kubectl("run p --image=busybox:1 --port=80 --env=A=1 --labels=app=x -- sleep 1");
        s.kubectl("get pod p -o json");
        s.kubectl("expose pod p --port=80 --target-port=8080");
        s.kubectl("get service p -o json");
        s.kubectl_prepare("create deployment web --image=nginx:1");
        s.kubectl("expose deployment web --port=80 --name=front --type=NodePort");
        s.kubectl_reading("create -f -", "{apiVersion: v1, kind: Node, metadata: {name: {ns}}}");
        s.kubectl("taint node {ns} k=v:NoSchedule");
        s.kubectl("taint node {ns} k=v:NoSchedule");
        s.kubectl("taint node {ns} k:NoSchedule-");
        s.kubectl("cordon {ns}");
        s.kubectl("get node {ns}");
        s.kubectl("uncordon {ns}");
        s.kubectl("describe node {ns}");
        s.kubectl("delete node {ns}");
    });
}
