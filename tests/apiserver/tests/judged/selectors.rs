//! Selectors: behaviour 31.
//!
//! They answer: which objects does a selector match, and which selectors does a kind not support?
use serde_json::json;

use crate::harness::{Answer, Request, Session, judge};
use crate::writes::pod;

const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";
/// The old path of a watch of one object.
const NAMED: &str = "/api/v1/watch/namespaces/{ns}/configmaps/a";
const PODS: &str = "/api/v1/namespaces/{ns}/pods";

/// Selectors that are accepted; the objects that they match are compared.
const SOUND_LABELS: [&str; 46] = [
    "",
    " ",
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
    "tier<2",
    "tier>1",
    "app>0",
    "none>0",
    "tier > 0",
    "tier>0,tier<9",
    "app in ()",
    "app notin ()",
    "app=",
    "app!=",
    "app==",
    "app= ",
    "app=x ,tier",
    " app = x ",
    "\tapp\n=\rx",
    "app in (,x)",
    "app in (x,)",
    "app in (x,,y)",
    "app in(x)",
    "app notin(x,y),tier",
    "app in (x, y )",
    "in",
    "notin",
    "in in (in)",
    "notin notin (notin)",
    "!in",
    "app=in",
    "app=notin",
    "app=x,app=y",
    "app=x,app!=y",
    "a.example.com/b_C-d=1",
    "app in (in,notin,x)",
    "! app",
];
/// Selectors that are refused; the error text is compared.
const BROKEN_LABELS: [&str; 64] = [
    "=x",
    "==x",
    "!=x",
    ",",
    ",app",
    "app,",
    "app=x,",
    "app=x,,tier=1",
    "app=x y",
    "app x",
    "app in",
    "app in x",
    "app in (",
    "app in (x",
    "app in (x y)",
    "app in (x=y)",
    "app in (=)",
    "app in x)",
    "app in )",
    "app in (x))",
    "app notin",
    "app notin x",
    "app notin (!x)",
    "(app)",
    ")",
    "(",
    "!",
    "!!app",
    "!=",
    "!(app)",
    "!app=x",
    "!app in (x)",
    "app!",
    "app!x",
    "app!!=x",
    "app===x",
    "app=!x",
    "app=(x)",
    "app=x=y",
    "app=<",
    "app><1",
    "app>",
    "app<",
    "tier>x",
    "tier<1.5",
    "tier>1,tier<z",
    "tier>-1",
    "tier> ,app",
    "a/b/c=x",
    "/a=x",
    "a/=x",
    "/=x",
    "A.B/c=x",
    "-a=x",
    "a-=x",
    "a..b/c",
    "app=-x",
    "app in (x,-,_y)",
    "app notin (a/b)",
    "app=a:b",
    "a:b",
    "app gt 1",
    "app exists",
    "\u{e4}=x",
];

fn escaped(selector: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    selector.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

fn labelled_maps(s: &mut Session) {
    for (name, labels) in [
        ("a", json!({"app": "x", "tier": "1"})),
        ("b", json!({"app": "y"})),
        ("c", json!({})),
        ("d", json!({"in": "in", "notin": "notin", "a.example.com/b_C-d": "1", "tier": "10"})),
        ("e", json!({"app": "", "tier": "x"})),
    ] {
        s.prepare(Request::new("POST", MAPS).json(&json!({"metadata": {"name": name, "labels": labels}})));
    }
}

/// The names in a list: the objects that a selector matched.
fn chosen(answer: &Answer) -> Vec<String> {
    let items = answer.json()["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["metadata"]["name"].to_string()).collect()
}

#[test]
fn api_31_labels() {
    judge(|s| {
        labelled_maps(s);
        for selector in SOUND_LABELS {
            let found = s.get(format!("{MAPS}?labelSelector={}", escaped(selector)));
            s.note(selector, chosen(&found));
        }
        for value in ["x".repeat(63), "x".repeat(64)] {
            s.get(format!("{MAPS}?labelSelector=app%3D{value}"));
            s.get(format!("{MAPS}?labelSelector={value}"));
            s.get(format!("{MAPS}?labelSelector={value}.com/a"));
        }
        s.get(format!("{MAPS}?labelSelector={}/a", "x.".repeat(126) + "yz"));
    });
}

#[test]
fn api_31_labels_that_cannot_be_read() {
    judge(|s| {
        labelled_maps(s);
        for selector in BROKEN_LABELS {
            s.get(format!("{MAPS}?labelSelector={}", escaped(selector)));
        }
        for selector in ["=x", "app in", "a/b/c", "app=x,,y", "tier>x"] {
            s.get(format!("{MAPS}?watch=1&labelSelector={}", escaped(selector)));
            s.delete(format!("{MAPS}?labelSelector={}", escaped(selector)));
        }
        s.get(format!("{MAPS}?limit=x&labelSelector=%3Dx"));
        s.get(format!("{MAPS}?labelSelector=%3Dx&fieldSelector=x"));
        s.get(format!("{MAPS}?labelSelector=%3Dx&resourceVersionMatch=Exact"));
        s.get(format!("{MAPS}?fieldSelector=x%3Dy&resourceVersionMatch=Exact"));
        s.get(format!("{MAPS}?fieldSelector=x%3Dy&resourceVersion=z"));
        s.get(MAPS);
    });
}

#[test]
fn api_31_labels_of_watches_and_of_deleted_collections() {
    judge(|s| {
        labelled_maps(s);
        for selector in ["tier>0", "tier<10,app", "!tier", "app in (,y)", "in in (in)"] {
            let path = format!(
                "{MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector={}",
                escaped(selector)
            );
            let mut watch = s.watch(path);
            watch.events_until(s, "BOOKMARK");
        }
        for selector in ["tier>5", "app=y,!tier", "app in ()", "none<3"] {
            s.delete(format!("{MAPS}?labelSelector={}", escaped(selector)));
            let left = s.get(MAPS);
            s.note(selector, chosen(&left));
        }
    });
}

/// Field selectors of config maps that are read.
const SOUND_FIELDS: [&str; 41] = [
    "",
    ",",
    ",,",
    "metadata.name=a",
    "metadata.name==a",
    "metadata.name!=a",
    "metadata.name=",
    "metadata.name!=",
    "metadata.name==",
    "metadata.name=a,",
    ",metadata.name=a",
    "metadata.name=a,,metadata.name=a",
    "metadata.name=a,metadata.name=b",
    "metadata.name=a,metadata.name!=b",
    "metadata.name!=a,metadata.name!=b",
    "metadata.name= a",
    "metadata.name=a ",
    "metadata.name=none",
    "metadata.namespace={ns}",
    "metadata.namespace!={ns}",
    "metadata.namespace=",
    "metadata.namespace=other",
    "metadata.namespace={ns},metadata.name=b",
    "metadata.name=b,metadata.namespace={ns}",
    "metadata.namespace=other,metadata.name=b",
    "metadata.name=a\\,b",
    "metadata.name=a\\=b",
    "metadata.name=a\\\\b",
    "metadata.name!=a\\,b",
    "metadata.name=!a",
    "metadata.name=a!",
    "metadata.name!!a",
    "metadata.name=(a)",
    "metadata.name=A",
    "metadata.name=a/b",
    "metadata.name>=a",
    "metadata.name<a=b",
    "metadata.name=a:b",
    "metadata.name!==a",
    "metadata.name=\"a\"",
    "metadata.name='a'",
];
/// Field selectors of config maps that are refused.
const BROKEN_FIELDS: [&str; 44] = [
    "a",
    "metadata.name",
    "!metadata.name",
    "metadata.name>a",
    "metadata.name in (a)",
    "metadata.name a",
    " ",
    "a,b",
    "b,a",
    "=",
    "==",
    "!=",
    "=a",
    "==a",
    "!=a",
    "a=",
    "a=b",
    "name=a",
    "metadata=a",
    "metadata.labels.app=x",
    "metadata.uid=x",
    "metadata.annotations=x",
    "data.k=v",
    "data=",
    "spec.nodeName=n",
    "status.phase=x",
    "METADATA.NAME=a",
    "metadata.Name=a",
    " metadata.name=a",
    "metadata.name =a",
    ".metadata.name=a",
    "metadata.name.=a",
    "metadata.name=a, metadata.name=b",
    "metadata.name=a=b",
    "metadata.name===a",
    "metadata.name==a=b",
    "metadata.name=a\\b",
    "metadata.name=\\",
    "metadata.name=a\\,\\",
    "b=1,a=1",
    "x=1,metadata.name=a=b",
    "metadata.name=a,x",
    "a=b=c,b",
    "apiVersion=v1",
];

#[test]
fn api_31_fields() {
    judge(|s| {
        labelled_maps(s);
        for selector in SOUND_FIELDS {
            let found = s.get(format!("{MAPS}?fieldSelector={}", escaped(&s.filled(selector))));
            s.note(selector, chosen(&found));
        }
        for selector in ["metadata.name=b", "metadata.name!=a,metadata.name!=c", "metadata.name=a\\,b"] {
            let mut watch = s.watch(format!(
                "{MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&fieldSelector={}",
                escaped(selector)
            ));
            watch.events_until(s, "BOOKMARK");
        }
        for selector in ["metadata.name=b", "metadata.name!=a", "metadata.namespace=other"] {
            s.delete(format!("{MAPS}?fieldSelector={}", escaped(selector)));
            let left = s.get(MAPS);
            s.note(selector, chosen(&left));
        }
    });
}

#[test]
fn api_31_fields_that_cannot_be_read() {
    judge(|s| {
        labelled_maps(s);
        for selector in BROKEN_FIELDS {
            s.get(format!("{MAPS}?fieldSelector={}", escaped(selector)));
        }
        for selector in ["a", "a=b", "metadata.name=a=b", "metadata.name=\\x"] {
            s.get(format!("{MAPS}?watch=1&fieldSelector={}", escaped(selector)));
            s.delete(format!("{MAPS}?fieldSelector={}", escaped(selector)));
        }
        for selector in ["metadata.name%3Db", "metadata.name!%3Da", "metadata.namespace%3D{ns}", "x%3Dy"] {
            s.get(format!("{NAMED}?fieldSelector={selector}"));
        }
        let mut watch = s.watch(format!("{NAMED}?fieldSelector=metadata.name%3Da"));
        watch.events(s, 1);
        s.get(MAPS);
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
