//! Webhook configurations: their endpoints, rules and versions.
//!
//! Answers: could an API server call this webhook? No webhook is called here.
//! 1. A webhook has a URL or a service, not both, and speaks a version that is known.
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::causes::{Causes, list, text};
use super::selectors;
use crate::cluster::names::{self, NameRule};

const VERSIONS: &str = "v1, v1beta1";
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

pub(super) fn check(plural: &str, body: &Value, causes: &mut Causes) {
    if !matches!(plural, "validatingwebhookconfigurations" | "mutatingwebhookconfigurations") {
        return;
    }
    let mut seen = BTreeSet::new();
    for (at, hook) in list(body, "webhooks").iter().enumerate() {
        let field = format!("webhooks[{at}]");
        check_hook(&field, hook, causes);
        versions(&format!("{field}.admissionReviewVersions"), list(hook, "admissionReviewVersions"), causes);
        let name = text(hook, "name");
        if !name.is_empty() && !seen.insert(name) {
            causes.duplicate(&format!("{field}.name"), name);
        }
    }
}

fn check_hook(at: &str, hook: &Value, causes: &mut Causes) {
    let field = |name: &str| format!("{at}.{name}");
    let name = text(hook, "name");
    if name.is_empty() {
        causes.required(&field("name"), "");
    } else {
        let faults = names::faults(name, NameRule::Subdomain);
        if faults.is_empty() && name.split('.').count() < 3 {
            let why = "should be a domain with at least three segments separated by dots";
            causes.invalid(&field("name"), &json!(name), why);
        }
        causes.invalid_for(&field("name"), &json!(name), faults);
    }
    for (index, rule) in list(hook, "rules").iter().enumerate() {
        check_rule(&format!("{at}.rules[{index}]"), rule, causes);
    }
    causes.one_of(&field("failurePolicy"), hook.get("failurePolicy"), &["Fail", "Ignore"]);
    causes.one_of(&field("matchPolicy"), hook.get("matchPolicy"), &["Equivalent", "Exact"]);
    match hook.get("sideEffects").filter(|effects| !effects.is_null()) {
        None => causes.required(&field("sideEffects"), "must specify one of None, NoneOnDryRun"),
        effects => causes.one_of(&field("sideEffects"), effects, &["None", "NoneOnDryRun"]),
    }
    if let Some(seconds) = hook.get("timeoutSeconds")
        && !seconds.as_i64().is_some_and(|seconds| (1..=30).contains(&seconds))
    {
        let why = "the timeout value must be between 1 and 30 seconds";
        causes.invalid(&field("timeoutSeconds"), seconds, why);
    }
    for name in ["namespaceSelector", "objectSelector"] {
        selectors::check(&field(name), hook.get(name), causes);
    }
    client(&field("clientConfig"), &hook["clientConfig"], causes);
}

fn client(field: &str, client: &Value, causes: &mut Causes) {
    match (client.get("url").and_then(Value::as_str), client.get("service")) {
        (None, None) | (Some(_), Some(_)) => {
            causes.required(field, "exactly one of url or service is required")
        }
        (Some(url), None) => {
            if !url.starts_with("https://") {
                let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
                let why = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
                causes.invalid(&format!("{field}.url"), &json!(scheme), why);
            }
        }
        (None, Some(service)) => {
            for name in ["name", "namespace"].into_iter().filter(|name| text(service, name).is_empty()) {
                causes.required(&format!("{field}.service.{name}"), "");
            }
        }
    }
}

fn check_rule(at: &str, rule: &Value, causes: &mut Causes) {
    let field = |name: &str| format!("{at}.{name}");
    let operations = list(rule, "operations");
    if operations.is_empty() {
        causes.required(&field("operations"), "");
    }
    if operations.len() > 1 && operations.contains(&json!("*")) {
        let why = "if '*' is present, must not specify other operations";
        causes.invalid(&field("operations"), &json!(operations), why);
    }
    for (index, operation) in operations.iter().enumerate() {
        causes.one_of(&format!("{at}.operations[{index}]"), Some(operation), &OPERATIONS);
    }
    for (name, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let values = list(rule, name);
        if values.is_empty() {
            causes.required(&field(name), "");
        }
        if values.len() > 1 && values.contains(&json!("*")) {
            let why = format!("if '*' is present, must not specify other {what}");
            causes.invalid(&field(name), &json!(values), &why);
        }
        for (index, _) in
            values.iter().enumerate().filter(|(_, value)| name == "apiVersions" && **value == json!(""))
        {
            causes.required(&format!("{at}.{name}[{index}]"), "");
        }
    }
    resources(&field("resources"), list(rule, "resources"), causes);
}

fn resources(field: &str, resources: &[Value], causes: &mut Causes) {
    if resources.is_empty() {
        causes.required(field, "");
    }
    for (index, _) in resources.iter().enumerate().filter(|(_, resource)| **resource == json!("")) {
        causes.required(&format!("{field}[{index}]"), "");
    }
    if resources.len() > 1 && resources.contains(&json!("*/*")) {
        let why = "if '*/*' is present, must not specify other resources";
        causes.invalid(field, &json!(resources), why);
    }
}

fn versions(field: &str, versions: &[Value], causes: &mut Causes) {
    if versions.is_empty() {
        causes.required(field, &format!("must specify one of {VERSIONS}"));
        return;
    }
    let (mut seen, mut known) = (BTreeSet::new(), false);
    for (at, version) in versions.iter().enumerate() {
        let (field, text) = (format!("{field}[{at}]"), version.as_str().unwrap_or_default());
        if !seen.insert(text) {
            causes.invalid(&field, version, "duplicate version");
            continue;
        }
        if !names::old_label_faults(text).is_empty() {
            causes.invalid(&field, version, names::OLD_LABEL);
        }
        known |= matches!(text, "v1" | "v1beta1");
    }
    if !known {
        causes.invalid(field, &json!(versions), &format!("must include at least one of {VERSIONS}"));
    }
}
