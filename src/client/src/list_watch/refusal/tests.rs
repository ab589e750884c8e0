//! The text of each class of refusal, as people read it.

use std::rc::Rc;

use k8s_openapi::api::apps::v1::Deployment;
use kube_core::discovery::ApiResource;
use kube_core::gvk::GroupVersionKind;

use super::{Refusal, Requested};
use crate::error::status;
use crate::scope::Scope;
use crate::wire::RequestedContent;

/// Which resource is requested, and how.
#[derive(Clone, Copy)]
enum What {
    Deployments,
    DeploymentsOfWeb,
    Metadata,
    Widgets,
    WidgetsOfWeb,
    Selected,
    SelectedByLabel,
    Page,
}

fn requested(what: What) -> Requested {
    let widgets = GroupVersionKind::gvk("example.org", "v1", "Widget");
    let resource = match what {
        What::Widgets | What::WidgetsOfWeb => ApiResource::from_gvk_with_plural(&widgets, "widgets"),
        _ => ApiResource::erase::<Deployment>(&()),
    };
    let mut scope = Scope::new(resource);
    if matches!(what, What::DeploymentsOfWeb | What::WidgetsOfWeb) {
        scope.namespace = Some("web".to_owned());
    }
    if matches!(what, What::Selected | What::SelectedByLabel | What::Page) {
        scope.labels = Some("app == shop".to_owned());
    }
    if matches!(what, What::Selected | What::Page) {
        scope.fields = Some("spec.replicas=1".to_owned());
    }
    let content = match what {
        What::Metadata => RequestedContent::Metadata,
        _ => RequestedContent::Objects,
    };
    let path = scope.list(&informer_core::request::ListRequest {
        version: informer_core::request::AskedVersion::Latest,
        limit: None,
        token: None,
        name: None,
    });
    let path = path.split('?').next().expect("a path").to_owned();
    let has_selectors_alone = scope.is_selective() && !matches!(what, What::Page);
    let (scope, audit_id) = (Rc::new(scope), None);
    Requested { scope, content, path, initial_events: false, has_selectors_alone, audit_id }
}

fn text(what: What, code: u16, reason: &str, message: &str, credentials: Option<&str>) -> String {
    let body = match reason {
        "" => message.to_owned(),
        reason => format!(r#"{{"kind":"Status","reason":"{reason}","message":"{message}","code":{code}}}"#),
    };
    let answer = http::Response::builder().status(code).body(()).expect("a valid code");
    let status = status::of_parts(&answer.into_parts().0, body.as_bytes());
    let credentials = credentials.map(Into::into);
    requested(what).refused(Refusal { status, credentials, audit_id: None }).to_string()
}

const PATH: &str = "/apis/apps/v1/deployments";

/// A text and what it must be.
type Case = (String, String);

/// Who asks is not known, or may not.
fn of_rights() -> Vec<Case> {
    let web = "/apis/apps/v1/namespaces/web/deployments";
    let rule =
        r#"with the rule apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list", "watch"]"#;
    let (no_user, anonymous) = ("User cannot list deployments", "User system:anonymous cannot list");
    let renew = "use credentials that this cluster accepts and that have not expired";
    let token = "the token of the file \"/run/token\"";
    vec![
        (
            text(What::Deployments, 401, "Unauthorized", "Unauthorized", Some(token)),
            format!(
                "not authenticated: Unauthorized, requested at {PATH}; it was sent with {token}; {renew}"
            ),
        ),
        (
            text(What::Deployments, 401, "", "no", None),
            format!("not authenticated: no, requested at {PATH}; {renew}"),
        ),
        (
            text(What::Deployments, 403, "Forbidden", no_user, None),
            format!("denied: {no_user}, requested at {PATH}; to allow it, bind a ClusterRole {rule}"),
        ),
        (
            text(What::DeploymentsOfWeb, 403, "Forbidden", no_user, None),
            format!(
                "denied: {no_user}, requested at {web}; to allow it, bind a Role in the namespace web {rule}"
            ),
        ),
        (
            text(What::Deployments, 403, "Forbidden", anonymous, None),
            format!(
                "denied: {anonymous}, requested at {PATH}; the server does not know who asks: configure a token, a \
                 client certificate or a credential plugin"
            ),
        ),
        (
            text(What::Deployments, 403, "", "go away", None),
            format!(
                "denied: go away, requested at {PATH}; the API server words it otherwise: a proxy before it may have \
                 refused"
            ),
        ),
    ]
}

/// What is requested is not there.
fn of_kinds() -> Vec<Case> {
    let serves = "the server does not serve";
    let crd = "install its CustomResourceDefinition, or correct its group, version and plural";
    vec![
        (
            text(What::Deployments, 404, "", "404 page not found", None),
            format!(
                "no such resource: 404 page not found, requested at {PATH}; {serves} deployments.apps in apps/v1: \
                 correct its group, version and plural, or use a server that has it"
            ),
        ),
        (
            text(What::Widgets, 404, "NotFound", "not found", None),
            format!(
                "no such resource: not found, requested at /apis/example.org/v1/widgets; {serves} \
                 widgets.example.org in example.org/v1: {crd}"
            ),
        ),
        (
            text(What::WidgetsOfWeb, 404, "NotFound", "not found", None),
            format!(
                "no such resource: not found, requested at /apis/example.org/v1/namespaces/web/widgets; {serves} \
                 widgets.example.org in example.org/v1: {crd}; if it is cluster-scoped, leave out the namespace"
            ),
        ),
        (
            text(What::Deployments, 410, "Expired", "too old", None),
            format!("expired: too old, requested at {PATH}"),
        ),
    ]
}

/// The request does not suit the server.
fn of_requests() -> Vec<Case> {
    let answered = "server answered";
    vec![
        (
            text(What::Selected, 400, "BadRequest", "field label not supported: spec.replicas", None),
            format!(
                "selector rejected: labels=app == shop, fields=spec.replicas=1: field label not supported: \
                 spec.replicas, requested at {PATH}; select deployments.apps by fields that the server knows for \
                 them, or by labels"
            ),
        ),
        (
            text(What::SelectedByLabel, 422, "Invalid", "unable to parse", None),
            format!(
                "selector rejected: labels=app == shop: unable to parse, requested at {PATH}; correct the label \
                 selector of deployments.apps"
            ),
        ),
        (
            text(What::Metadata, 406, "NotAcceptable", "not acceptable", None),
            format!(
                "{answered} 406 NotAcceptable: not acceptable, requested at {PATH}; this API cannot send the \
                 metadata of objects alone: follow the objects themselves"
            ),
        ),
        (
            text(What::Deployments, 415, "", "unsupported", None),
            format!(
                "{answered} 415: unsupported, requested at {PATH}; this API does not send JSON: nothing else is \
                 understood here"
            ),
        ),
        (
            text(What::Deployments, 405, "MethodNotAllowed", "not allowed", None),
            format!(
                "{answered} 405 MethodNotAllowed: not allowed, requested at {PATH}; this resource can be neither \
                 listed nor watched"
            ),
        ),
    ]
}

/// The server, or what is before it, is not able to answer.
fn of_servers() -> Vec<Case> {
    vec![
        (
            text(What::Deployments, 302, "", "to the login", None),
            format!(
                "server answered 302: to the login, requested at {PATH}; redirects are not followed: configure the \
                 endpoint of the API server itself"
            ),
        ),
        (
            text(What::Deployments, 429, "", "slow down", None),
            format!(
                "overloaded: slow down, requested at {PATH}; if this lasts, raise the server's limits for this \
                 client (FlowSchema, PriorityLevelConfiguration)"
            ),
        ),
        (
            text(What::Deployments, 503, "ServiceUnavailable", "no endpoints", None),
            format!(
                "server answered 503 ServiceUnavailable: no endpoints, requested at {PATH}; the fault is the \
                 server's, or that of a proxy before it: their logs say more"
            ),
        ),
    ]
}

#[test]
fn ref_61_each_refusal_names_the_path_and_what_to_do() {
    for (text, expected) in [of_rights(), of_kinds(), of_requests(), of_servers()].concat() {
        assert_eq!(text, expected);
    }
}

#[test]
fn ref_63_only_what_the_server_itself_finds_invalid_in_a_request_with_selectors_alone_is_their_fault() {
    for (what, code, reason, is_rejected) in [
        (What::Selected, 400, "BadRequest", true),
        (What::Selected, 422, "Invalid", true),
        (What::Selected, 400, "", false),
        (What::Selected, 500, "InternalError", false),
        (What::Page, 400, "BadRequest", false),
        (What::Deployments, 400, "BadRequest", false),
    ] {
        let text = text(what, code, reason, "words", None);
        assert_eq!(text.starts_with("selector rejected: "), is_rejected, "{text}");
        assert!(text.contains(&format!("requested at {PATH}")), "{text}");
    }
}

#[test]
fn ref_61_what_to_do_is_never_cut_off_by_long_words_of_the_server() {
    let long = "x".repeat(5_000);
    let text = text(What::Deployments, 403, "Forbidden", &long, None);
    assert!(text.ends_with(r#"verbs: ["get", "list", "watch"]"#) && text.len() < 700, "{text}");
}
