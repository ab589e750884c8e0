//! The rows of kinds that control others: namespaces, accounts, roles, budgets, quotas, priorities, admission, leases.
//!
//! Answers: to which objects does it apply, and what does it allow?
//! 1. For other kinds it returns none; roles and limit ranges show their name and time of creation.
use serde_json::{Value, json};

use super::view::{View, human};
use crate::cluster::selector;

pub(super) fn cells(group: &str, plural: &str, view: &View<'_>) -> Option<Vec<Value>> {
    let mut cells = vec![view.name()];
    let text = |at: &str| json!(view.text(at));
    match (group, plural) {
        ("", "namespaces") => cells.extend([text("/status/phase"), view.age()]),
        ("", "serviceaccounts") => cells.push(view.age()),
        ("", "resourcequotas") => cells.extend(quota(view)),
        ("", "componentstatuses") => cells.extend(component(view)),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => cells.extend(binding(view)),
        ("policy", "poddisruptionbudgets") => {
            let bound = |at: &str| match view.at(at) {
                Some(Value::String(text)) => json!(text),
                Some(number) => json!(number.to_string()),
                None => json!("N/A"),
            };
            cells.extend([bound("/spec/minAvailable"), bound("/spec/maxUnavailable")]);
            cells.extend([json!(view.number("/status/disruptionsAllowed")), view.age()]);
        }
        ("coordination.k8s.io", "leases") => cells.extend([text("/spec/holderIdentity"), view.age()]),
        ("node.k8s.io", "runtimeclasses") => cells.extend([text("/handler"), view.age()]),
        ("scheduling.k8s.io", "priorityclasses") => {
            cells.extend([
                json!(view.number("/value")),
                json!(view.flag("/globalDefault", false)),
                view.age(),
            ]);
            cells.push(text("/preemptionPolicy"));
        }
        ("certificates.k8s.io", "certificatesigningrequests") => cells.extend(signing_request(view)),
        ("apiregistration.k8s.io", "apiservices") => cells.extend(api_service(view)),
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => cells.extend(flow_schema(view)),
        ("flowcontrol.apiserver.k8s.io", _) => cells.extend(priority_level(view)),
        ("admissionregistration.k8s.io", _) => cells.extend(admission(plural, view)),
        _ => return None,
    }
    Some(cells)
}

fn quota(view: &View<'_>) -> Vec<Value> {
    let used = view.map("/status/used");
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (name, hard) in view.map("/status/hard").into_iter().flatten() {
        let used = used.and_then(|used| used.get(name)).map_or_else(|| "0".to_owned(), plain);
        let column = if name.starts_with("limits.") { &mut limits } else { &mut requests };
        column.push(format!("{name}: {used}/{}", plain(hard)));
    }
    vec![json!(requests.join(", ")), json!(limits.join(", ")), view.age()]
}

fn component(view: &View<'_>) -> Vec<Value> {
    let healthy = view.list("/conditions").iter().find(|condition| condition["type"] == "Healthy");
    let text =
        |name: &str| healthy.map_or_else(|| json!(""), |one| json!(one[name].as_str().unwrap_or_default()));
    let status = match healthy {
        Some(condition) if condition["status"] == "True" => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    };
    vec![json!(status), text("message"), text("error")]
}

fn binding(view: &View<'_>) -> Vec<Value> {
    let role = format!("{}/{}", view.text("/roleRef/kind"), view.text("/roleRef/name"));
    let subjects = |kind: &str| {
        let name = |subject: &Value| {
            let text = |name: &str| subject[name].as_str().unwrap_or_default();
            if kind == "ServiceAccount" {
                format!("{}/{}", text("namespace"), text("name"))
            } else {
                text("name").to_owned()
            }
        };
        let of_kind = view.list("/subjects").iter().filter(|subject| subject["kind"] == kind);
        json!(of_kind.map(name).collect::<Vec<_>>().join(", "))
    };
    vec![json!(role), view.age(), subjects("User"), subjects("Group"), subjects("ServiceAccount")]
}

fn signing_request(view: &View<'_>) -> Vec<Value> {
    let has = |name: &str| view.condition(name).is_some();
    let mut status = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !view.text("/status/certificate").is_empty() {
        status.push_str(",Issued");
    }
    let asked = view.at("/spec/expirationSeconds").and_then(Value::as_i64);
    let asked = asked.map_or_else(|| "<none>".to_owned(), human);
    let signer = view.or("/spec/signerName", "<none>");
    vec![view.age(), signer, json!(view.text("/spec/username")), json!(asked), json!(status)]
}

fn api_service(view: &View<'_>) -> Vec<Value> {
    let service = match view.at("/spec/service") {
        Some(_) => format!("{}/{}", view.text("/spec/service/namespace"), view.text("/spec/service/name")),
        None => "Local".to_owned(),
    };
    let available = match view.condition("Available") {
        None => "Unknown".to_owned(),
        Some(condition) => {
            let text = |name: &str| condition[name].as_str().unwrap_or_default();
            match (text("status"), text("reason")) {
                ("True", _) => "True".to_owned(),
                (status, "") => status.to_owned(),
                (status, reason) => format!("{status} ({reason})"),
            }
        }
    };
    vec![json!(service), json!(available), view.age()]
}

fn flow_schema(view: &View<'_>) -> Vec<Value> {
    let dangling =
        view.condition("Dangling").and_then(|condition| condition["status"].as_str()).unwrap_or("?");
    vec![
        json!(view.text("/spec/priorityLevelConfiguration/name")),
        json!(view.number("/spec/matchingPrecedence")),
        view.or("/spec/distinguisherMethod/type", "<none>"),
        view.age(),
        json!(dangling),
    ]
}

fn priority_level(view: &View<'_>) -> Vec<Value> {
    let number =
        |at: &str| view.at(&format!("/spec/limited/{at}")).cloned().unwrap_or_else(|| json!("<none>"));
    vec![
        json!(view.text("/spec/type")),
        number("nominalConcurrencyShares"),
        number("limitResponse/queuing/queues"),
        number("limitResponse/queuing/handSize"),
        number("limitResponse/queuing/queueLengthLimit"),
        view.age(),
    ]
}

fn admission(plural: &str, view: &View<'_>) -> Vec<Value> {
    let parameter_kind = || match view.at("/spec/paramKind") {
        Some(_) => json!(format!(
            "{}/{}",
            view.text("/spec/paramKind/apiVersion"),
            view.text("/spec/paramKind/kind")
        )),
        None => json!("<unset>"),
    };
    match plural {
        "mutatingadmissionpolicies" => {
            vec![json!(view.len("/spec/mutations")), parameter_kind(), view.age()]
        }
        "validatingadmissionpolicies" => {
            vec![json!(view.len("/spec/validations")), parameter_kind(), view.age()]
        }
        "mutatingadmissionpolicybindings" | "validatingadmissionpolicybindings" => {
            vec![json!(view.text("/spec/policyName")), json!(parameter(view)), view.age()]
        }
        _ => vec![json!(view.len("/webhooks")), view.age()],
    }
}

fn parameter(view: &View<'_>) -> String {
    let (namespace, name) = (view.text("/spec/paramRef/namespace"), view.text("/spec/paramRef/name"));
    match (name, view.at("/spec/paramRef/selector")) {
        ("", None) => "<unset>".to_owned(),
        ("", Some(selector)) => selector::label_text(selector),
        _ if namespace.is_empty() => format!("*/{name}"),
        _ => format!("{namespace}/{name}"),
    }
}
