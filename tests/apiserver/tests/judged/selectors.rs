//! Selectors: behaviour 31.
//!
//! They answer: which objects does a selector choose, and which selectors does a kind not have?
use serde_json::json;

use crate::harness::{Request, judge};
use crate::writes::pod;

const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";
const PODS: &str = "/api/v1/namespaces/{ns}/pods";

#[test]
fn api_31_labels() {
    judge(|s| {
        for (name, labels) in
            [("a", json!({"app": "x", "tier": "1"})), ("b", json!({"app": "y"})), ("c", json!({}))]
        {
            s.prepare(
                Request::new("POST", MAPS).json(&json!({"metadata": {"name": name, "labels": labels}})),
            );
        }
        for selector in [
            "app=x",
            "app==x",
            "app!=x",
            "app in (x,y)",
            "app notin (x)",
            "app",
            "!app",
            "app,tier=1",
            "app=x,!tier",
            "tier>0",
            "tier<1",
            "app in ()",
            "app=",
            "=x",
            "app=x y",
            "a/b/c=x",
            "app=x,,tier=1",
        ] {
            s.get(format!("{MAPS}?labelSelector={}", selector.replace('=', "%3D").replace('&', "%26")));
        }
    });
}

#[test]
fn api_31_fields_by_kind() {
    judge(|s| {
        let mut bound = pod("a");
        bound["spec"]["nodeName"] = json!("n");
        s.prepare(Request::new("POST", PODS).json(&bound));
        s.prepare(Request::new("POST", PODS).json(&pod("b")));
        for selector in [
            "spec.nodeName=n",
            "spec.nodeName=",
            "status.phase=Pending",
            "status.phase!=Pending",
            "metadata.name=b",
            "spec.restartPolicy=Always",
            "spec.schedulerName=default-scheduler",
            "spec.serviceAccountName=",
            "status.podIP=",
            "spec.hostNetwork=false",
            "metadata.namespace={ns},metadata.name=a",
            "spec.image=i",
            "status.nominatedNodeName=",
        ] {
            s.get(format!("{PODS}?fieldSelector={}", selector.replace('=', "%3D")));
        }
        for path in [
            "/api/v1/nodes?fieldSelector=metadata.namespace%3Dx",
            "/api/v1/namespaces?fieldSelector=metadata.namespace%3Dx",
            "/api/v1/namespaces?fieldSelector=status.phase%3DTerminating,metadata.name%3D{ns}",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles?fieldSelector=metadata.namespace%3Dx",
            "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue",
            "/api/v1/namespaces/{ns}/secrets?fieldSelector=type%3DOpaque",
            "/api/v1/namespaces/{ns}/events?fieldSelector=involvedObject.kind%3DPod,reason%3DX,type%3DNormal",
            "/api/v1/namespaces/{ns}/events?fieldSelector=source%3Dx",
            "/apis/events.k8s.io/v1/namespaces/{ns}/events?fieldSelector=regarding.kind%3DPod",
            "/apis/apps/v1/namespaces/{ns}/replicasets?fieldSelector=status.replicas%3D0",
            "/apis/apps/v1/namespaces/{ns}/deployments?fieldSelector=spec.replicas%3D0",
            "/apis/batch/v1/namespaces/{ns}/jobs?fieldSelector=status.successful%3D0",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldSelector=metadata.namespace%3Dx",
        ] {
            s.get(path);
        }
    });
}
