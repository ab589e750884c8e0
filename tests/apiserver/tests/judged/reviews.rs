//! Reviews and tokens: behaviours 42 and 44, and who a request comes from.
//!
//! They answer: which user does a request come from, and what may it do?
use serde_json::json;

use crate::harness::{Request, judge};

const AUTHORIZATION: &str = "/apis/authorization.k8s.io/v1";
const AUTHENTICATION: &str = "/apis/authentication.k8s.io/v1";

#[test]
fn api_42_a_user_may_ask_who_it_is_and_what_it_may_do() {
    judge(|s| {
        let me = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        s.post(format!("{AUTHENTICATION}/selfsubjectreviews"), &me);
        s.send(Request::new("POST", format!("{AUTHENTICATION}/selfsubjectreviews")).json(&me).powerlessly());
        let may = json!({"spec": {"resourceAttributes": {"namespace": "{ns}", "verb": "list", "resource": "pods"}}});
        s.post(format!("{AUTHORIZATION}/selfsubjectaccessreviews"), &may);
        s.send(
            Request::new("POST", format!("{AUTHORIZATION}/selfsubjectaccessreviews"))
                .json(&may)
                .powerlessly(),
        );
        // A path that only one binding covers: of several bindings, a real server names a random one.
        let path = json!({"spec": {"nonResourceAttributes": {"path": "/apis/apps", "verb": "get"}}});
        s.send(
            Request::new("POST", format!("{AUTHORIZATION}/selfsubjectaccessreviews"))
                .json(&path)
                .powerlessly(),
        );
        s.post(format!("{AUTHORIZATION}/selfsubjectaccessreviews"), &json!({"spec": {}}));
        let rules = json!({"spec": {"namespace": "{ns}"}});
        s.post(format!("{AUTHORIZATION}/selfsubjectrulesreviews"), &rules);
    });
}

#[test]
fn api_44_a_service_may_ask_for_others() {
    judge(|s| {
        let other = json!({"spec": {"user": "powerless", "resourceAttributes": {"namespace": "{ns}", "verb": "get", "resource": "pods"}}});
        s.post(format!("{AUTHORIZATION}/subjectaccessreviews"), &other);
        let local = json!({"metadata": {"namespace": "{ns}"}, "spec": {"user": "powerless", "resourceAttributes": {"namespace": "{ns}", "verb": "get", "resource": "pods"}}});
        s.post(format!("{AUTHORIZATION}/namespaces/{{ns}}/localsubjectaccessreviews"), &local);
        s.post(format!("{AUTHENTICATION}/tokenreviews"), &json!({"spec": {"token": "wrong"}}));
        s.send(
            Request::new("POST", format!("{AUTHENTICATION}/tokenreviews"))
                .json(&json!({"spec": {"token": "wrong"}}))
                .powerlessly(),
        );
    });
}

#[test]
fn api_42_rights_come_from_roles() {
    judge(|s| {
        let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}";
        let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"], "resourceNames": []});
        s.post(format!("{rbac}/roles"), &json!({"metadata": {"name": "reader"}, "rules": [rule]}));
        let subject = json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "powerless"});
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"});
        s.post(
            format!("{rbac}/rolebindings"),
            &json!({"metadata": {"name": "reader"}, "subjects": [subject], "roleRef": role}),
        );
        let maps = "/api/v1/namespaces/{ns}/configmaps";
        s.until(&Request::new("GET", maps).powerlessly(), |answer| answer.code() == 200);
        s.send(Request::new("GET", maps).powerlessly());
        s.send(Request::new("POST", maps).json(&json!({"metadata": {"name": "a"}})).powerlessly());
        s.send(Request::new("GET", "/api/v1/configmaps").powerlessly());
        s.send(Request::new("GET", format!("{maps}/none")).powerlessly());
    });
}

#[test]
fn api_42_a_service_account_gets_tokens() {
    judge(|s| {
        let accounts = "/api/v1/namespaces/{ns}/serviceaccounts";
        s.prepare(Request::new("POST", accounts).json(&json!({"metadata": {"name": "robot"}})));
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}});
        let made = s.prepare(Request::new("POST", format!("{accounts}/robot/token")).json(&request));
        s.note("kind", made.text("/kind"));
        s.note("expirationSeconds", made.json()["spec"]["expirationSeconds"].clone());
        let token = made.text("/status/token");
        s.note("a token of three parts", token.split('.').count());
        let bearer = format!("Bearer {token}");
        s.send(Request::new("GET", "/api/v1/namespaces/{ns}/configmaps").header("Authorization", &bearer));
        s.post(format!("{accounts}/none/token"), &request);
    });
}
