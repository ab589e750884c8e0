//! What a person can do about a refused request, behind the server's own words. Advice is given only if the
//! answer says what is wrong. Of credentials, it names kind, file or program.

use http::Method;
use kube_core::response::Status;

use crate::request::{RequestKind, RequestTarget};

pub(crate) const ANONYMOUS: &str =
    "the server does not know who asks: configure a token, a client certificate or a credential plugin";
/// For 429 and answers that name a wait.
pub(crate) const OVERLOADED: &str = "if this lasts, raise the server's limits for this client (FlowSchema, \
                                     PriorityLevelConfiguration)";
pub(crate) const REDIRECTED: &str =
    "redirects are not followed: configure the endpoint of the API server itself";
pub(crate) const SERVER_FAULT: &str =
    "the fault is the server's, or that of a proxy before it: their logs say more";
/// For 406 and 415.
pub(crate) const NO_JSON: &str = "this API does not send JSON: nothing else is understood here";
const NEEDS_TLS: &str = "the server speaks TLS on this port: its URL begins with https://";
/// Words of Go's HTTP server, with code 400.
const PLAIN_ON_TLS: &str = "Client sent an HTTP request to an HTTPS server";

pub(crate) fn unauthorized(credentials: Option<&str>) -> String {
    let sent = credentials.map(|kind| format!("it was sent with {kind}; ")).unwrap_or_default();
    format!("{sent}use credentials that this cluster accepts and that have not expired")
}

pub(crate) fn of_words(code: u16, message: &str) -> Option<&'static str> {
    (code == 400 && message.contains(PLAIN_ON_TLS)).then_some(NEEDS_TLS)
}

pub(crate) fn install(group: &str) -> &'static str {
    match is_built_in(group) {
        true => "correct its group, version and plural, or use a server that has it",
        false => "install its CustomResourceDefinition, or correct its group, version and plural",
    }
}

/// Kubernetes' own groups with a dot. Other groups below `k8s.io` are installed, such as the Gateway API.
const OWN_GROUPS: [&str; 18] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

fn is_built_in(group: &str) -> bool {
    !group.contains('.') || OWN_GROUPS.contains(&group)
}

/// `verbs`: JSON strings.
pub(crate) fn rule((group, resource): (&str, &str), namespace: Option<&str>, verbs: &str) -> String {
    let role = match namespace {
        Some(namespace) => format!("a Role in the namespace {namespace}"),
        None => "a ClusterRole".to_owned(),
    };
    format!(
        "to allow it, bind {role} with the rule apiGroups: [\"{group}\"], resources: [\"{resource}\"], verbs: [{verbs}]"
    )
}

/// `None` if only the server's words can say it.
pub(crate) fn of_request(
    (method, path): (&Method, &str),
    status: &Status,
    credentials: Option<&str>,
) -> Option<String> {
    let named = RequestTarget::of(path);
    let names_object = status.details.as_ref().is_some_and(|details| !details.name.is_empty());
    match status.code {
        401 => Some(unauthorized(credentials)),
        403 if status.message.contains("system:anonymous") => Some(ANONYMOUS.to_owned()),
        // Admission also refuses with 403: no rule of RBAC would change that.
        403 if status.message.contains(" cannot ") => Some(denied(method, path, &named, &status.message)),
        404 if !names_object && !named.plural.is_empty() => Some(not_served(&named)),
        405 => Some("this resource does not have this verb".to_owned()),
        415 if *method == Method::PATCH => {
            Some("this kind does not take this sort of patch: use a merge patch or a JSON patch".to_owned())
        }
        406 | 415 => Some(NO_JSON.to_owned()),
        // A disruption budget also answers 429, to an eviction.
        429 if named.subresource != "/eviction" => Some(OVERLOADED.to_owned()),
        300..=399 => Some(REDIRECTED.to_owned()),
        500.. => Some(SERVER_FAULT.to_owned()),
        code => of_words(code, &status.message).map(str::to_owned),
    }
}

fn denied(method: &Method, path: &str, named: &RequestTarget<'_>, message: &str) -> String {
    let verb = match message.contains(" cannot watch ") {
        true => "watch",
        false => named.verb(method, RequestKind::Unary),
    };
    if named.plural.is_empty() {
        return format!(
            "to allow it, bind a ClusterRole with the rule nonResourceURLs: [\"{path}\"], verbs: [\"{verb}\"]"
        );
    }
    let resource = format!("{}{}", named.plural, named.subresource);
    rule((named.group, &resource), named.namespace, &format!("\"{verb}\""))
}

fn not_served(named: &RequestTarget<'_>) -> String {
    let RequestTarget { group, version, .. } = named;
    let api_version = if group.is_empty() { (*version).to_owned() } else { format!("{group}/{version}") };
    let scope = match (named.namespace, named.is_object) {
        (Some(_), _) => "; if it is cluster-scoped, leave out the namespace",
        (None, true) => "; if it is in namespaces, name one",
        (None, false) => "",
    };
    let resource = named.resource();
    format!("the server does not serve {resource} in {api_version}: {}{scope}", install(group))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::status;

    fn advice(method: &str, path: &str, code: u16, message: &str) -> Option<String> {
        let body = serde_json::json!({"kind": "Status", "code": code, "message": message}).to_string();
        let method = method.parse().expect("a method");
        let mut status = status::of_frame(&body);
        status.code = code;
        of_request((&method, path), &status, Some("the token of the file \"/run/token\""))
    }

    const POD: &str = "/api/v1/namespaces/web/pods/a";
    const WIDGETS: &str = "/apis/example.org/v1/namespaces/web/widgets";

    #[test]
    fn a_definition_is_advised_for_groups_that_people_install_and_not_for_kubernetes_own() {
        for group in ["example.org", "gateway.networking.k8s.io", "snapshot.storage.k8s.io", "metrics.k8s.io"]
        {
            assert!(install(group).contains("CustomResourceDefinition"), "{group}");
        }
        for group in ["", "apps", "networking.k8s.io", "rbac.authorization.k8s.io"] {
            assert!(!install(group).contains("CustomResourceDefinition"), "{group}");
        }
    }

    /// Method, path, code and message, and the advice.
    const REFUSALS: &[(&str, &str, u16, &str, &str)] = &[
        (
            "GET",
            POD,
            401,
            "Unauthorized",
            "it was sent with the token of the file \"/run/token\"; use credentials that this cluster accepts and that have not expired",
        ),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/web/deployments/a/scale",
            403,
            "User \"u\" cannot patch resource",
            "to allow it, bind a Role in the namespace web with the rule apiGroups: [\"apps\"], resources: [\"deployments/scale\"], verbs: [\"patch\"]",
        ),
        (
            "GET",
            "/api/v1/nodes",
            403,
            "User \"u\" cannot watch resource \"nodes\"",
            "to allow it, bind a ClusterRole with the rule apiGroups: [\"\"], resources: [\"nodes\"], verbs: [\"watch\"]",
        ),
        (
            "GET",
            "/metrics",
            403,
            "User \"u\" cannot get path \"/metrics\"",
            "to allow it, bind a ClusterRole with the rule nonResourceURLs: [\"/metrics\"], verbs: [\"get\"]",
        ),
        ("GET", POD, 403, "User \"system:anonymous\" cannot get", ANONYMOUS),
        (
            "POST",
            WIDGETS,
            404,
            "404 page not found",
            "the server does not serve widgets.example.org in example.org/v1: install its CustomResourceDefinition, or correct its group, version and plural; if it is cluster-scoped, leave out the namespace",
        ),
        (
            "GET",
            "/api/v1/gadgets/a",
            404,
            "could not find the requested resource",
            "the server does not serve gadgets in v1: correct its group, version and plural, or use a server that has it; if it is in namespaces, name one",
        ),
        (
            "PATCH",
            POD,
            415,
            "unsupported",
            "this kind does not take this sort of patch: use a merge patch or a JSON patch",
        ),
        ("GET", POD, 429, "busy", OVERLOADED),
        ("GET", POD, 302, "", REDIRECTED),
        ("GET", POD, 503, "", SERVER_FAULT),
        ("GET", POD, 400, "Client sent an HTTP request to an HTTPS server.\n", NEEDS_TLS),
    ];

    #[test]
    fn each_refusal_that_says_what_is_wrong_has_advice_that_says_what_to_do() {
        for (method, path, code, message, expected) in REFUSALS {
            assert_eq!(
                advice(method, path, *code, message).as_deref(),
                Some(*expected),
                "{code} {method} {path}"
            );
        }
    }

    #[test]
    fn a_refusal_that_only_the_server_can_explain_has_no_advice() {
        let pod = "/api/v1/namespaces/web/pods/a";
        for (method, path, code, message) in [
            ("POST", "/api/v1/namespaces/web/pods", 403, "exceeded quota: few"),
            ("POST", "/api/v1/namespaces/web/pods/a/eviction", 429, "it would violate the disruption budget"),
            ("PUT", pod, 409, "the object has been modified"),
            ("PUT", pod, 422, "invalid"),
            ("GET", "/nowhere", 404, "404 page not found"),
        ] {
            assert_eq!(advice(method, path, code, message), None, "{code} {method} {path}");
        }
        let absent = r#"{"kind":"Status","code":404,"message":"no","details":{"name":"a"}}"#;
        assert_eq!(of_request((&Method::GET, pod), &status::of_frame(absent), None), None);
    }
}
