//! Authentication and authorization: tokens, roles, reviews, service account tokens (behaviours 20, 42, 44, E2, E17).
//!
//! They answer: is a request admitted, and with which text is it refused? The roles' own rules have their tables in
//! `src/cluster/rbac/tests.rs`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
use informer_apiserver::{ApiServer, Credential, User};
use serde_json::{Value, json};

use crate::client::{Answer, get, request, server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const ACCESS: &str = "/apis/authorization.k8s.io/v1";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn guarded() -> ApiServer {
    let jane = User::new("jane").uid("7").group("dev");
    ApiServer::builder().token("admin").user_token("jane", jane).rbac().start_blocking().unwrap()
}

fn asked(server: &ApiServer, token: &str, method: &str, path: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    request(server, method, path, &headers, &body.to_string())
}

fn message(answer: &Answer) -> String {
    answer.json()["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn api_e17_a_wrong_token_is_401_everywhere_and_none_is_the_anonymous_user() {
    let server = guarded();
    for path in [MAPS, "/version", "/healthz", "/nope"] {
        assert_eq!(asked(&server, "wrong", "GET", path, &json!(null)).code, 401, "{path}");
    }
    let refused = get(&server, MAPS);
    let words = "configmaps is forbidden: User \"system:anonymous\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\"";
    assert_eq!((refused.code, message(&refused)), (403, words.to_owned()));
    assert_eq!(
        message(&get(&server, "/apis")),
        "forbidden: User \"system:anonymous\" cannot get path \"/apis\""
    );
    for path in ["/version", "/healthz", "/livez", "/readyz"] {
        assert_eq!(get(&server, path).code, 200, "{path}");
    }
    let closed = ApiServer::builder().token("t").anonymous(false).start_blocking().unwrap();
    assert_eq!((get(&closed, MAPS).code, get(&closed, "/version").code), (401, 401));
}

#[test]
fn api_e2_a_user_without_rights_is_403_before_anything_else_is_checked() {
    let server = guarded();
    let received = |method: &str, path: &str, body: &Value| {
        let answer = asked(&server, "jane", method, path, body);
        assert_eq!(answer.code, 403, "{method} {path}");
        message(&answer)
    };
    let nothing = json!(null);
    assert!(received("GET", "/api/v1/nopes", &nothing).contains("cannot list resource \"nopes\""));
    assert!(received("POST", MAPS, &json!("not an object")).contains("cannot create"));
    assert_eq!(
        received("GET", "/apis/apps/v1/namespaces/default/deployments/x/scale", &nothing),
        "deployments.apps \"x\" is forbidden: User \"jane\" cannot get resource \"deployments/scale\" in API group \"apps\" in the namespace \"default\""
    );
    assert!(
        received("GET", "/api/v1/namespaces/default", &nothing).ends_with("in the namespace \"default\"")
    );
    assert!(received("DELETE", MAPS, &nothing).contains("cannot deletecollection"));
    assert!(
        received("GET", &format!("{MAPS}?watch=1&fieldSelector=metadata.name=q"), &nothing)
            .starts_with("configmaps \"q\" is")
    );
    assert_eq!(
        received("POST", "/version", &nothing),
        "forbidden: User \"jane\" cannot post path \"/version\""
    );
    assert_eq!(
        asked(&server, "jane", "GET", "/apis/apps/v1", &nothing).code,
        200,
        "discovery is open to all users"
    );
}

#[test]
fn api_e2_a_binding_applies_from_the_next_request_on() {
    let server = guarded();
    let rules = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]}]);
    let role = json!({"metadata": {"name": "reader"}, "rules": rules});
    let made = asked(&server, "admin", "POST", &format!("{RBAC}/namespaces/default/roles"), &role);
    assert_eq!(made.code, 201, "{}", made.text());
    assert_eq!(asked(&server, "jane", "GET", MAPS, &json!(null)).code, 403);
    let binding = json!({"metadata": {"name": "b"}, "subjects": [{"kind": "Group", "name": "dev"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}});
    asked(&server, "admin", "POST", &format!("{RBAC}/namespaces/default/rolebindings"), &binding);
    assert_eq!(asked(&server, "jane", "GET", MAPS, &json!(null)).code, 200);
    assert_eq!(asked(&server, "jane", "GET", "/api/v1/configmaps", &json!(null)).code, 403);
    asked(&server, "admin", "DELETE", &format!("{RBAC}/namespaces/default/rolebindings/b"), &json!({}));
    assert_eq!(asked(&server, "jane", "GET", MAPS, &json!(null)).code, 403);
}

#[test]
fn api_42_reviews_answer_as_the_request_itself_would_be_decided() {
    let server = guarded();
    let review = |token: &str, kind: &str, spec: Value| {
        let answer = asked(&server, token, "POST", &format!("{ACCESS}/{kind}"), &json!({"spec": spec}));
        assert_eq!(answer.code, 201, "{}", answer.text());
        answer.json()["status"].clone()
    };
    let pods = json!({"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}});
    assert_eq!(review("admin", "selfsubjectaccessreviews", pods.clone()), json!({"allowed": true}));
    assert_eq!(review("jane", "selfsubjectaccessreviews", pods.clone()), json!({"allowed": false}));
    let path = json!({"nonResourceAttributes": {"verb": "get", "path": "/apis"}});
    let why = "RBAC: allowed by ClusterRoleBinding \"system:discovery\" of ClusterRole \"system:discovery\" to Group \"system:authenticated\"";
    assert_eq!(review("jane", "selfsubjectaccessreviews", path), json!({"allowed": true, "reason": why}));
    let other =
        json!({"groups": ["system:masters"], "resourceAttributes": {"verb": "get", "resource": "pods"}});
    assert_eq!(review("admin", "subjectaccessreviews", other), json!({"allowed": true}));
    let mine = review("jane", "selfsubjectrulesreviews", json!({"namespace": "default"}));
    assert_eq!(mine["resourceRules"].as_array().map(Vec::len), Some(2), "{mine}");
    let nothing =
        asked(&server, "jane", "POST", &format!("{ACCESS}/selfsubjectaccessreviews"), &json!({"spec": {}}));
    assert_eq!(nothing.code, 422);
    assert_eq!(
        message(&nothing),
        ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"
    );
    let wrong = json!({"spec": {"user": "jane", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "x"}}});
    let path = format!("{ACCESS}/namespaces/default/localsubjectaccessreviews");
    assert_eq!(asked(&server, "admin", "POST", &path, &wrong).code, 422);
    let before = server.revision();
    review("admin", "selfsubjectaccessreviews", pods);
    assert_eq!(server.revision(), before, "a review is not stored");
}

#[test]
fn api_42_whoami_shows_the_user_and_headers_can_change_it() {
    let server = guarded();
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let who = |headers: &[(&str, &str)]| {
        let answer = request(&server, "POST", path, headers, "{}");
        (answer.code, answer.json()["status"]["userInfo"].clone())
    };
    let jane = json!({"username": "jane", "uid": "7", "groups": ["dev", "system:authenticated"]});
    assert_eq!(who(&[("Authorization", "Bearer jane")]), (201, jane));
    let admin = ("Authorization", "Bearer admin");
    let acted = json!({"username": "bob", "groups": ["ops", "system:authenticated"]});
    assert_eq!(who(&[admin, ("Impersonate-User", "bob"), ("Impersonate-Group", "ops")]), (201, acted));
    assert_eq!(who(&[("Authorization", "Bearer jane"), ("Impersonate-User", "bob")]).0, 403);
    assert_eq!(who(&[admin, ("Impersonate-Group", "ops")]).0, 400);
}

#[test]
fn api_44_a_service_account_token_is_valid_until_it_expires_or_the_account_is_deleted() {
    let server = guarded();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    asked(&server, "admin", "POST", accounts, &json!({"metadata": {"name": "sa"}}));
    let path = format!("{accounts}/sa/token");
    let issued = asked(&server, "admin", "POST", &path, &json!({"spec": {"expirationSeconds": 600}}));
    assert_eq!(issued.code, 201, "{}", issued.text());
    let token = issued.json()["status"]["token"].as_str().unwrap().to_owned();
    let refused = asked(&server, &token, "GET", MAPS, &json!(null));
    assert!(
        message(&refused).contains("User \"system:serviceaccount:default:sa\" cannot list"),
        "{}",
        refused.text()
    );

    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let reviewed = |spec: Value| {
        asked(&server, "admin", "POST", reviews, &json!({"spec": spec})).json()["status"].clone()
    };
    let known = reviewed(json!({"token": token}));
    assert_eq!(known["authenticated"], true, "{known}");
    assert_eq!(known["user"]["groups"][1], "system:serviceaccounts:default");
    assert_eq!(reviewed(json!({"token": "wrong"})), json!({"user": {}, "error": "invalid bearer token"}));
    assert_eq!(reviewed(json!({"token": token, "audiences": ["y"]}))["user"], json!({}));

    let short = asked(&server, "admin", "POST", &path, &json!({"spec": {"expirationSeconds": 60}}));
    assert_eq!(short.code, 422);
    server.clock().advance(std::time::Duration::from_secs(601));
    assert_eq!(asked(&server, &token, "GET", MAPS, &json!(null)).code, 401, "expired");
    let again = asked(&server, "admin", "POST", &path, &json!({"spec": {}})).json();
    let token = again["status"]["token"].as_str().unwrap();
    assert_eq!(asked(&server, token, "GET", "/apis", &json!(null)).code, 200);
    asked(&server, "admin", "DELETE", &format!("{accounts}/sa"), &json!({}));
    assert_eq!(asked(&server, token, "GET", "/apis", &json!(null)).code, 401, "the account is gone");
}

#[test]
fn an_open_server_admits_everyone_and_reports_it() {
    let server = server();
    let pods = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let path = format!("{ACCESS}/selfsubjectaccessreviews");
    assert_eq!(crate::client::post(&server, &path, &pods).json()["status"], json!({"allowed": true}));
    let server = ApiServer::builder().token("t").start_blocking().unwrap();
    assert_eq!((get(&server, MAPS).code, asked(&server, "t", "GET", MAPS, &json!(null)).code), (403, 200));
}

#[test]
fn a_kubeconfig_has_the_requested_credential() {
    let server = guarded();
    assert!(server.kubeconfig().contains("token: \"admin\""));
    assert!(server.kubeconfig_for(&Credential::Token("jane".to_owned())).contains("token: \"jane\""));
    assert!(server.kubeconfig_for(&Credential::None).contains("user: {}"));
    assert!(server.issue_certificate(&User::new("jane")).is_err(), "there is no authority without TLS");
    let random = ApiServer::builder().rbac().start_blocking().unwrap();
    assert!(random.kubeconfig().contains("token: \""), "someone must be able to bind roles");
}
