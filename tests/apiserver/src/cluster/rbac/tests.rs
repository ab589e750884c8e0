//! What roles and bindings allow, on the core.
use serde_json::{Value, json};

use super::{Decision, GROUP, On, Wish};
use crate::access::user::User;
use crate::cluster::call::Call;
use crate::cluster::store::{Cluster, Settings};

fn cluster() -> Cluster {
    Cluster::new(
        Settings {
            first_revision: 10,
            event_window: 10,
            watch_queue: 10,
            seed: 1,
            managed_fields: true,
            validation: true,
        },
        0,
    )
}

fn store(cluster: &mut Cluster, plural: &str, namespace: &str, object: Value) {
    let kind = cluster.registry.find(GROUP, "v1", plural).cloned().unwrap();
    cluster.create(&Call::plain(&kind, namespace, "", 0), object).unwrap();
}

fn pods<'a>(verb: &'a str, sub: &'a str, namespace: &'a str, name: &'a str) -> Wish<'a> {
    Wish { verb, on: On::Resource { group: "", plural: "pods", sub, namespace, name } }
}

fn decide(cluster: &mut Cluster, user: &User, wish: &Wish<'_>) -> Decision {
    cluster.policy().decide(user, wish)
}

fn binding(name: &str, role: (&str, &str), subjects: &Value) -> Value {
    json!({"metadata": {"name": name}, "subjects": subjects,
        "roleRef": {"apiGroup": GROUP, "kind": role.0, "name": role.1}})
}

#[test]
fn a_role_allows_in_its_namespace_what_its_rules_say() {
    let mut cluster = cluster();
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/status"], "resourceNames": ["a"]}]);
    store(&mut cluster, "roles", "default", json!({"metadata": {"name": "r"}, "rules": rules}));
    let subjects = json!([{"kind": "User", "name": "jane"}, {"kind": "ServiceAccount", "name": "sa"}]);
    store(&mut cluster, "rolebindings", "default", binding("b", ("Role", "r"), &subjects));
    let jane = User::new("jane");
    let told = decide(&mut cluster, &jane, &pods("get", "", "default", "a"));
    let reason = "RBAC: allowed by RoleBinding \"b/default\" of Role \"r\" to User \"jane\"".to_owned();
    assert_eq!(told, Decision { allowed: true, reason });
    assert!(decide(&mut cluster, &jane, &pods("get", "status", "default", "a")).allowed);
    for refused in [
        pods("get", "", "default", "b"),
        pods("list", "", "default", ""),
        pods("get", "log", "default", "a"),
        pods("get", "", "kube-system", "a"),
        pods("get", "", "", "a"),
    ] {
        assert_eq!(decide(&mut cluster, &jane, &refused), Decision { allowed: false, reason: String::new() });
    }
    let account = User::service_account("default", "sa");
    assert!(
        decide(&mut cluster, &account, &pods("get", "", "default", "a"))
            .reason
            .ends_with("ServiceAccount \"sa/default\"")
    );
    assert!(
        !decide(&mut cluster, &User::service_account("other", "sa"), &pods("get", "", "default", "a"))
            .allowed
    );
}

#[test]
fn a_change_of_a_binding_counts_at_once() {
    let mut cluster = cluster();
    let jane = User::new("jane").group("dev");
    let wish = pods("list", "", "default", "");
    let subjects = json!([{"kind": "Group", "name": "dev"}]);
    store(&mut cluster, "clusterrolebindings", "", binding("b", ("ClusterRole", "r"), &subjects));
    let missing = "RBAC: clusterrole.rbac.authorization.k8s.io \"r\" not found".to_owned();
    assert_eq!(decide(&mut cluster, &jane, &wish), Decision { allowed: false, reason: missing });
    let rules = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
    store(&mut cluster, "clusterroles", "", json!({"metadata": {"name": "r"}, "rules": rules}));
    assert!(decide(&mut cluster, &jane, &wish).allowed);
    assert!(!decide(&mut cluster, &jane, &Wish { verb: "get", on: On::Path("/metrics") }).allowed);
}

#[test]
fn the_default_roles_are_those_of_a_fresh_cluster() {
    let mut cluster = cluster();
    cluster.add_default_roles(0);
    let jane = User::new("jane").authenticated();
    let path = |path| Wish { verb: "get", on: On::Path(path) };
    let told = decide(&mut cluster, &jane, &path("/apis/apps/v1"));
    assert_eq!(
        told.reason,
        "RBAC: allowed by ClusterRoleBinding \"system:discovery\" of ClusterRole \"system:discovery\" to Group \"system:authenticated\""
    );
    assert!(!decide(&mut cluster, &jane, &path("/metrics")).allowed);
    let nobody = crate::access::user::nobody();
    assert!(decide(&mut cluster, &nobody, &path("/version")).allowed);
    assert!(!decide(&mut cluster, &nobody, &path("/api")).allowed);
    let subjects = json!([{"kind": "User", "name": "jane"}]);
    store(&mut cluster, "rolebindings", "default", binding("view", ("ClusterRole", "view"), &subjects));
    assert!(
        decide(&mut cluster, &jane, &pods("list", "", "default", "")).allowed,
        "aggregated from another role"
    );
    assert!(!decide(&mut cluster, &jane, &pods("create", "", "default", "")).allowed);
    let admin = User::new("admin").group("system:masters");
    assert_eq!(
        decide(&mut cluster, &admin, &path("/metrics")),
        Decision { allowed: true, reason: String::new() }
    );
}

#[test]
fn a_user_cannot_grant_rights_that_the_user_does_not_have() {
    let mut cluster = cluster();
    let own = json!([
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "*/log"]},
        {"verbs": ["create"], "apiGroups": [GROUP], "resources": ["roles", "rolebindings"], "resourceNames": []},
    ]);
    store(&mut cluster, "roles", "default", json!({"metadata": {"name": "own"}, "rules": own}));
    let subjects = json!([{"kind": "User", "apiGroup": GROUP, "name": "jane"}]);
    store(&mut cluster, "rolebindings", "default", binding("own", ("Role", "own"), &subjects));
    let kind = cluster.registry.find(GROUP, "v1", "roles").cloned().unwrap();
    let jane = User::new("jane").group("g");
    let mut write = |name: &str, rule: Value| {
        let call = Call { user: Some(&jane), ..Call::plain(&kind, "default", "", 0) };
        cluster.create(&call, json!({"metadata": {"name": name}, "rules": [rule]}))
    };
    let held = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "pods/log"], "resourceNames": ["a"]});
    assert!(write("held", held).is_ok());
    let more = json!({"verbs": ["get", "delete", "watch"], "apiGroups": [""], "resources": ["pods"]});
    let refused = write("more", more).unwrap_err();
    assert_eq!(refused.code(), 403);
    let told = "user \"jane\" (groups=[\"g\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"watch\"]}";
    assert!(refused.message().ends_with(told), "{}", refused.message());
}

#[test]
fn the_verbs_escalate_and_bind_lift_the_question() {
    let mut cluster = cluster();
    let rule =
        |verb: &str, resource: &str| json!({"verbs": [verb], "apiGroups": [GROUP], "resources": [resource]});
    let own = json!([rule("escalate", "roles"), rule("bind", "clusterroles")]);
    store(&mut cluster, "roles", "default", json!({"metadata": {"name": "own"}, "rules": own}));
    let subjects = json!([{"kind": "User", "apiGroup": GROUP, "name": "jane"}]);
    store(&mut cluster, "rolebindings", "default", binding("own", ("Role", "own"), &subjects));
    let strong = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
    store(&mut cluster, "clusterroles", "", json!({"metadata": {"name": "strong"}, "rules": strong.clone()}));
    let jane = User::new("jane");
    let mut write = |plural: &str, namespace: &str, object: Value| {
        let kind = cluster.registry.find(GROUP, "v1", plural).cloned().unwrap();
        let call = Call { user: Some(&jane), ..Call::plain(&kind, namespace, "", 0) };
        cluster.create(&call, object).map_err(|refused| refused.code())
    };
    assert!(write("roles", "default", json!({"metadata": {"name": "a"}, "rules": strong})).is_ok());
    assert!(write("rolebindings", "default", binding("a", ("ClusterRole", "strong"), &subjects)).is_ok());
    let elsewhere = write("clusterrolebindings", "", binding("a", ("ClusterRole", "strong"), &subjects));
    assert_eq!(elsewhere.unwrap_err(), 403);
}
