//! Which rights a user may grant: behaviour 42.
//!
//! They answer: what does a user who manages roles get for a role with more rights than the user has? The scripts
//! impersonate users, so that they do not affect other scripts.
use serde_json::{Value, json};

use crate::harness::{Request, Session, judge};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}";
const WHOLE: &str = "/apis/rbac.authorization.k8s.io/v1";
const GROUP: &str = "rbac.authorization.k8s.io";

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

fn role(name: &str, rules: &Value) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

fn binding(name: &str, role: (&str, &str), user: &str) -> Value {
    json!({"metadata": {"name": name}, "subjects": [{"kind": "User", "apiGroup": GROUP, "name": user}],
        "roleRef": {"apiGroup": GROUP, "kind": role.0, "name": role.1}})
}

fn jane(request: Request) -> Request {
    request
        .header("Impersonate-User", "jane-{ns}")
        .header("Impersonate-Group", "g1")
        .header("Impersonate-Group", "g2")
}

fn may(verb: &str, group: &str, resource: &str, name: &str) -> Request {
    let asked = json!({"spec": {"resourceAttributes": {"namespace": "{ns}", "verb": verb, "group": group, "resource": resource, "name": name}}});
    jane(Request::new("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").json(&asked))
}

/// A user who manages roles and reads config maps.
fn manager(s: &mut Session) {
    let rules = json!([
        rule(GROUP, &["roles", "rolebindings"], &["get", "list", "create", "update", "patch", "delete"]),
        rule("", &["configmaps", "pods/log"], &["get", "list"]),
    ]);
    s.prepare(Request::new("POST", format!("{RBAC}/roles")).json(&role("manager", &rules)));
    let strong = json!([
        rule("", &["secrets"], &["*"]),
        rule("apps", &["deployments", "deployments/scale"], &["get"])
    ]);
    s.prepare(Request::new("POST", format!("{RBAC}/roles")).json(&role("strong", &strong)));
    let bound = binding("manager", ("Role", "manager"), "jane-{ns}");
    s.prepare(Request::new("POST", format!("{RBAC}/rolebindings")).json(&bound));
    s.until(&may("create", GROUP, "roles", ""), |answer| answer.json()["status"]["allowed"] == json!(true));
}

#[test]
fn api_42_a_user_cannot_grant_rights_that_the_user_does_not_have() {
    judge(|s| {
        manager(s);
        for (name, rules) in [
            ("held", json!([rule("", &["configmaps"], &["get"])])),
            ("empty", json!([])),
            ("more", json!([rule("", &["configmaps", "secrets"], &["list", "get", "watch"])])),
            (
                "named",
                json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["b", "a"]}]),
            ),
            ("sub", json!([rule("", &["pods/log"], &["get"]), rule("", &["pods/exec"], &["create"])])),
            ("all", json!([rule("*", &["*"], &["*"])])),
            ("unsound", json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": []}])),
        ] {
            s.send(jane(Request::new("POST", format!("{RBAC}/roles")).json(&role(name, &rules))));
        }
        let patch = |path: &str, body: &Value| {
            jane(
                Request::new("PATCH", format!("{RBAC}/{path}"))
                    .body("application/merge-patch+json", body.to_string()),
            )
        };
        s.send(patch("roles/held", &json!({"metadata": {"labels": {"a": "b"}}})));
        s.send(patch("roles/strong", &json!({"metadata": {"labels": {"a": "b"}}})));
        s.send(patch("roles/strong", &json!({"metadata": {"finalizers": ["a.b/c"]}})));
        s.send(patch("roles/held", &json!({"rules": [rule("", &["secrets"], &["get"])]})));
        for (name, kind, of) in [
            ("held", "Role", "held"),
            ("strong", "Role", "strong"),
            ("none", "Role", "none"),
            ("nowhere", "ClusterRole", "none-{ns}"),
            ("odd", "Thing", "held"),
        ] {
            s.send(jane(Request::new("POST", format!("{RBAC}/rolebindings")).json(&binding(
                name,
                (kind, of),
                "bob",
            ))));
        }
        s.send(patch(
            "rolebindings/held",
            &json!({"subjects": [{"kind": "Group", "apiGroup": GROUP, "name": "g"}]}),
        ));
        s.send(patch("rolebindings/held", &json!({"roleRef": {"name": "strong"}})));
        s.patch("merge", format!("{RBAC}/rolebindings/held"), &json!({"roleRef": {"name": "strong"}}));
    });
}

#[test]
fn api_42_escalate_and_bind_are_rights_of_their_own() {
    judge(|s| {
        manager(s);
        let rules = json!([
            {"apiGroups": [GROUP], "resources": ["roles"], "verbs": ["bind"], "resourceNames": ["strong"]},
            {"apiGroups": [GROUP], "resources": ["roles"], "verbs": ["escalate"]},
        ]);
        s.prepare(Request::new("POST", format!("{RBAC}/roles")).json(&role("lifted", &rules)));
        let bound = binding("lifted", ("Role", "lifted"), "jane-{ns}");
        s.prepare(Request::new("POST", format!("{RBAC}/rolebindings")).json(&bound));
        s.until(&may("bind", GROUP, "roles", "strong"), |answer| {
            answer.json()["status"]["allowed"] == json!(true)
        });
        let strong = binding("strong", ("Role", "strong"), "bob");
        s.send(jane(Request::new("POST", format!("{RBAC}/rolebindings")).json(&strong)));
        let own = json!([rule("*", &["*"], &["*"])]);
        s.send(jane(Request::new("POST", format!("{RBAC}/roles")).json(&role("all", &own))));
        s.until(&Request::new("GET", format!("{RBAC}/roles/all")), |answer| answer.code() == 200);
        s.send(jane(Request::new("POST", format!("{RBAC}/rolebindings")).json(&binding(
            "all",
            ("Role", "all"),
            "bob",
        ))));
    });
}

#[test]
fn api_42_cluster_roles_are_checked_alike() {
    judge(|s| {
        let rules = json!([
            rule(GROUP, &["clusterroles", "clusterrolebindings"], &["create", "update", "get"]),
            {"nonResourceURLs": ["/healthz", "/logs/*"], "verbs": ["get"]},
            rule("", &["nodes"], &["get"]),
        ]);
        s.prepare(Request::new("POST", format!("{WHOLE}/clusterroles")).json(&role("manager-{ns}", &rules)));
        let bound = binding("manager-{ns}", ("ClusterRole", "manager-{ns}"), "jane-{ns}");
        s.prepare(Request::new("POST", format!("{WHOLE}/clusterrolebindings")).json(&bound));
        s.until(&may("create", GROUP, "clusterroles", ""), |answer| {
            answer.json()["status"]["allowed"] == json!(true)
        });
        for (name, body) in [
            (
                "a",
                json!({"rules": [rule("", &["nodes"], &["get"]), {"nonResourceURLs": ["/logs/x", "/healthz"], "verbs": ["get"]}]}),
            ),
            ("b", json!({"rules": [{"nonResourceURLs": ["/metrics", "/logs/x"], "verbs": ["get", "post"]}]})),
            ("c", json!({"rules": [rule("", &["nodes", "pods"], &["get", "list"])]})),
            (
                "d",
                json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a-{ns}": "b"}}]}, "rules": []}),
            ),
        ] {
            let mut body = body;
            body["metadata"] = json!({"name": format!("{name}-{{ns}}")});
            s.send(jane(Request::new("POST", format!("{WHOLE}/clusterroles")).json(&body)));
        }
        for of in ["manager-{ns}", "cluster-admin", "none-{ns}"] {
            let body = binding("x-{ns}", ("ClusterRole", of), "bob");
            s.send(jane(Request::new("POST", format!("{WHOLE}/clusterrolebindings?dryRun=All")).json(&body)));
        }
    });
}

#[test]
fn api_42_roles_and_bindings_must_be_valid() {
    judge(|s| {
        for rules in [
            json!([{"verbs": ["get"]}]),
            json!([{"verbs": ["get"], "nonResourceURLs": ["/a"]}]),
            json!([{"verbs": ["get"], "nonResourceURLs": ["/a"], "resources": ["pods"], "apiGroups": [""]}]),
        ] {
            s.post(format!("{RBAC}/roles?dryRun=All"), &role("a", &rules));
            s.post(format!("{WHOLE}/clusterroles?dryRun=All"), &role("a-{ns}", &rules));
        }
        let mut aggregated = role("a-{ns}", &json!([]));
        aggregated["aggregationRule"] = json!({"clusterRoleSelectors": []});
        s.post(format!("{WHOLE}/clusterroles?dryRun=All"), &aggregated);
        for subject in [
            json!({"kind": "User", "apiGroup": "x", "name": "a"}),
            json!({"kind": "ServiceAccount", "apiGroup": GROUP, "name": "a"}),
            json!({"kind": "ServiceAccount", "name": "a"}),
            json!({"kind": "Thing", "name": "a"}),
            json!({"kind": "Group", "name": ""}),
        ] {
            let mut body = binding("a-{ns}", ("ClusterRole", "view"), "x");
            body["subjects"] = json!([subject]);
            s.post(format!("{RBAC}/rolebindings?dryRun=All"), &body);
            s.post(format!("{WHOLE}/clusterrolebindings?dryRun=All"), &body);
        }
        s.post(format!("{WHOLE}/clusterrolebindings?dryRun=All"), &binding("a-{ns}", ("Role", "a"), "x"));
        let mut odd = binding("a", ("ClusterRole", "view"), "x");
        odd["roleRef"]["apiGroup"] = json!("x");
        s.post(format!("{RBAC}/rolebindings?dryRun=All"), &odd);
    });
}

#[test]
fn api_42_reviews_show_what_roles_allow() {
    judge(|s| {
        manager(s);
        for (verb, group, resource, name) in [
            ("get", "", "configmaps", ""),
            ("get", "", "configmaps", "x"),
            ("delete", "", "configmaps", ""),
            ("bind", GROUP, "roles", "strong"),
        ] {
            s.send(may(verb, group, resource, name));
        }
        let rules = json!({"spec": {"namespace": "{ns}"}});
        s.send(jane(
            Request::new("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews").json(&rules),
        ));
        let asked = |spec: Value| json!({"spec": spec});
        let on = json!({"namespace": "{ns}", "verb": "get", "resource": "configmaps"});
        for spec in [
            json!({"user": "jane-{ns}", "resourceAttributes": on}),
            json!({"user": "bob", "groups": ["system:masters"], "resourceAttributes": on}),
            json!({"groups": ["system:authenticated"], "nonResourceAttributes": {"path": "/apis/apps", "verb": "get"}}),
            json!({"user": "x", "resourceAttributes": on, "nonResourceAttributes": {"path": "/a", "verb": "get"}}),
            json!({"resourceAttributes": on}),
        ] {
            s.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &asked(spec));
        }
        s.send(jane(Request::new("GET", "/api/v1/namespaces/{ns}/secrets")));
        s.send(jane(Request::new("GET", "/api/v1/namespaces/{ns}/configmaps/none")));
    });
}
