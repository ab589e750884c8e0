//! The checks of a definition before it is stored.
//!
//! Answers: which fields of this definition are wrong, with the texts of the API? `versions.rs` checks its versions,
//! `schema_checks.rs` their schemas.
//! 1. All causes are reported, in the order of a real server.
//! 2. Names and scope never change once a definition is stored.
use serde_json::{Map, Value, json};

use super::{Found, escaped, given, list, refuse_label, refuse_subdomain, text, text_at, texts_at, versions};
use crate::cluster::status::Cause;

const APPROVED: &str = "api-approved.kubernetes.io";

/// Fills in what a definition may leave out.
pub(crate) fn complete(definition: &mut Value) {
    let kind = text_at(definition, "/spec/names/kind").to_owned();
    if let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) {
        spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
        let service =
            spec.get_mut("conversion").and_then(|of| of.pointer_mut("/webhook/clientConfig/service"));
        if let Some(service) = service.and_then(Value::as_object_mut) {
            service.entry("port").or_insert_with(|| json!(443));
        }
        if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut).filter(|_| !kind.is_empty())
        {
            fill(names, "singular", &kind.to_lowercase());
            fill(names, "listKind", &format!("{kind}List"));
        }
    }
}

fn fill(names: &mut Map<String, Value>, name: &str, default: &str) {
    let given = names.get(name).and_then(Value::as_str).unwrap_or_default();
    if given.is_empty() {
        names.insert(name.to_owned(), json!(default));
    }
}

/// Everything that is wrong with a definition.
pub(crate) fn causes(definition: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut found = Found::default();
    if old.is_none() {
        name(&mut found, definition);
    }
    spec(&mut found, definition);
    conversion(&mut found, definition);
    if let Some(old) = old {
        immutable(&mut found, definition, old);
    }
    stored_versions(&mut found, definition);
    approval(&mut found, definition, old);
    let stays = old.is_some_and(|old| old.pointer("/spec/preserveUnknownFields") == Some(&json!(true)));
    if definition.pointer("/spec/preserveUnknownFields") == Some(&json!(true)) && !stays {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        found.invalid("spec.preserveUnknownFields".to_owned(), &json!(true), why);
    }
    found.0
}

fn name(found: &mut Found, definition: &Value) {
    let name = text_at(definition, "/metadata/name");
    let field = || "metadata.name".to_owned();
    if let Some(why) = refuse_subdomain(name).filter(|_| !name.is_empty()) {
        found.invalid(field(), &json!(name), &why);
    }
    let wanted =
        format!("{}.{}", text_at(definition, "/spec/names/plural"), text_at(definition, "/spec/group"));
    if name != wanted {
        found.invalid(field(), &json!(name), "must be spec.names.plural+\".\"+spec.group");
    }
}

fn spec(found: &mut Found, definition: &Value) {
    let group = text_at(definition, "/spec/group");
    match refuse_subdomain(group) {
        _ if group.is_empty() => found.required("spec.group".to_owned(), ""),
        Some(why) => found.invalid("spec.group".to_owned(), &json!(group), &why),
        None if !group.contains('.') => {
            found.invalid("spec.group".to_owned(), &json!(group), "should be a domain with at least one dot");
        }
        None => {}
    }
    match text_at(definition, "/spec/scope") {
        "" => found.required("spec.scope".to_owned(), ""),
        "Cluster" | "Namespaced" => {}
        other => found.unsupported("spec.scope".to_owned(), &json!(other), &["Cluster", "Namespaced"]),
    }
    let all = list(&definition["spec"], "versions");
    for (index, version) in all.iter().enumerate() {
        if version.pointer("/schema/openAPIV3Schema").is_none_or(Value::is_null) {
            found.required(format!("spec.versions[{index}].schema.openAPIV3Schema"), "");
        }
    }
    found.0.extend(versions::each(all));
    flags(found, all);
    names_of(found, definition);
    found.0.extend(versions::shared(all));
}

/// A version as a real server shows it: by the fields of its internal type.
fn shown(version: &Value) -> String {
    let flag = |name: &str| version[name] == json!(true);
    format!(
        r#"{{"Name":{},"Served":{},"Storage":{},"Deprecated":{},"DeprecationWarning":{},"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}}"#,
        version["name"],
        flag("served"),
        flag("storage"),
        flag("deprecated"),
        version["deprecationWarning"]
    )
}

fn flags(found: &mut Found, all: &[Value]) {
    let shown: Vec<String> = all.iter().map(shown).collect();
    let shown = escaped(&format!("[{}]", shown.join(",")));
    let mut wrong = |why: &str| {
        let message = format!("Invalid value: {shown}: {why}");
        found.0.push(Cause { reason: "FieldValueInvalid", message, field: "spec.versions".to_owned() });
    };
    let mut names: Vec<String> = all.iter().map(|version| version["name"].to_string()).collect();
    names.sort();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        wrong("must contain unique version names");
    }
    if all.iter().filter(|version| version["storage"] == json!(true)).count() != 1 {
        wrong("must have exactly one version marked as storage version");
    }
    // A definition has the first of its versions in `spec.version`, as before it could have several.
    let first = all.first().map(|version| text(version, "name")).unwrap_or_default();
    if let Some(why) = refuse_label(first).filter(|_| !first.is_empty()) {
        found.invalid("spec.version".to_owned(), &json!(first), &why);
    }
}

fn names_of(found: &mut Found, definition: &Value) {
    let given = |name: &str| text_at(definition, &format!("/spec/names/{name}"));
    let all = [("plural", false), ("singular", false), ("kind", true), ("listKind", true)];
    for (name, _) in all {
        if given(name).is_empty() {
            found.required(format!("spec.names.{name}"), "");
        }
    }
    let mut check = |field: String, name: &str, mixed: bool| {
        let judged = if mixed { name.to_lowercase() } else { name.to_owned() };
        if let Some(why) = refuse_label(&judged).filter(|_| !name.is_empty()) {
            let may = if mixed { "may have mixed case, but should otherwise match: " } else { "" };
            found.invalid(field, &json!(name), &format!("{may}{why}"));
        }
    };
    for (name, mixed) in all {
        check(format!("spec.names.{name}"), given(name), mixed);
    }
    for (index, name) in texts_at(definition, "/spec/names/shortNames").iter().enumerate() {
        check(format!("spec.names.shortNames[{index}]"), name, false);
    }
    let same = !given("kind").is_empty() && given("kind") == given("listKind");
    if same {
        let why = "kind and listKind may not be the same";
        found.invalid("spec.names.listKind".to_owned(), &json!(given("kind")), why);
    }
    for (index, name) in texts_at(definition, "/spec/names/categories").iter().enumerate() {
        if let Some(why) = refuse_label(name) {
            found.invalid(format!("spec.names.categories[{index}]"), &json!(name), &why);
        }
    }
}

fn conversion(found: &mut Found, definition: &Value) {
    let field = |name: &str| format!("spec.conversion.{name}");
    let Some(conversion) = definition.pointer("/spec/conversion") else { return };
    let strategy = text(conversion, "strategy");
    match strategy {
        "" => found.required(field("strategy"), ""),
        "None" | "Webhook" => {}
        other => found.unsupported(field("strategy"), &json!(other), &["None", "Webhook"]),
    }
    let client = conversion.pointer("/webhook/clientConfig").filter(|client| !client.is_null());
    let reviews = conversion.pointer("/webhook/conversionReviewVersions").and_then(Value::as_array);
    let reviews = reviews.map_or(&[][..], Vec::as_slice);
    if strategy != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            found.forbidden(field("webhookClientConfig"), why);
        }
        if !reviews.is_empty() {
            found.forbidden(field("conversionReviewVersions"), why);
        }
        return;
    }
    match client {
        None => found.required(field("webhookClientConfig"), "required when strategy is set to Webhook"),
        Some(client) => webhook(found, client),
    }
    review_versions(found, reviews, &field("conversionReviewVersions"));
}

fn webhook(found: &mut Found, client: &Value) {
    let field = |name: &str| format!("spec.conversion.webhookClientConfig{name}");
    match (given(client, "url").and_then(Value::as_str), given(client, "service")) {
        (Some(url), None) => {
            const FORM: &str = "; desired format: https://host[/path]";
            let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
            if scheme != "https" {
                let why = format!("'https' is the only allowed URL scheme{FORM}");
                found.invalid(field(".url"), &json!(scheme), &why);
            }
            if scheme.is_empty() || rest.is_empty() || rest.starts_with('/') {
                found.invalid(field(".url"), &json!(""), &format!("host must be specified{FORM}"));
            }
        }
        (None, Some(service)) => {
            // A real server confuses the two.
            for (name, told) in [("namespace", "name"), ("name", "namespace")] {
                if text(service, name).is_empty() {
                    found.required(field(&format!(".service.{told}")), "");
                }
            }
            let port = service.get("port").cloned().unwrap_or_default();
            if !port.as_i64().is_some_and(|port| (1..=65_535).contains(&port)) {
                let why = "port is not valid: must be between 1 and 65535, inclusive";
                found.invalid(field(".service.port"), &port, why);
            }
            let path = text(service, "path");
            if !path.is_empty() && !path.starts_with('/') {
                found.invalid(field(".service.path"), &json!(path), "must start with a '/'");
            }
        }
        _ => found.required(field(""), "exactly one of url or service is required"),
    }
}

fn review_versions(found: &mut Found, reviews: &[Value], field: &str) {
    if reviews.is_empty() {
        return found.required(field.to_owned(), "");
    }
    for (index, version) in reviews.iter().enumerate() {
        if reviews[..index].contains(version) {
            found.invalid(format!("{field}[{index}]"), version, "duplicate version");
        } else if let Some(why) = refuse_label(version.as_str().unwrap_or_default()) {
            found.invalid(format!("{field}[{index}]"), version, &why);
        }
    }
    if !reviews.iter().any(|version| matches!(version.as_str(), Some("v1" | "v1beta1"))) {
        found.invalid(field.to_owned(), &json!(reviews), "must include at least one of v1, v1beta1");
    }
}

fn immutable(found: &mut Found, definition: &Value, old: &Value) {
    for (pointer, field) in [
        ("/spec/scope", "spec.scope"),
        ("/spec/names/kind", "spec.names.kind"),
        ("/spec/group", "spec.group"),
        ("/spec/names/plural", "spec.names.plural"),
    ] {
        if text_at(definition, pointer) != text_at(old, pointer) {
            found.invalid(field.to_owned(), &json!(text_at(definition, pointer)), "field is immutable");
        }
    }
}

/// Every version in which objects may be stored must exist.
fn stored_versions(found: &mut Found, definition: &Value) {
    let field = "status.storedVersions";
    let stored = texts_at(definition, "/status/storedVersions");
    if stored.is_empty() {
        return found.invalid(field.to_owned(), &Value::Null, "must have at least one stored version");
    }
    let all = list(&definition["spec"], "versions");
    for version in all.iter().filter(|version| version["storage"] == json!(true)) {
        let name = text(version, "name");
        if !stored.iter().any(|stored| stored == name) {
            let why = format!("must have the storage version {name}");
            found.invalid(field.to_owned(), &json!(stored), &why);
        }
    }
    for (index, name) in stored.iter().enumerate() {
        if !all.iter().any(|version| text(version, "name") == name) {
            let why = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            found.invalid(format!("{field}[{index}]"), &json!(name), &why);
        }
    }
}

/// What a definition says of its approval.
fn annotation(definition: &Value) -> &str {
    let annotations = definition.pointer("/metadata/annotations");
    annotations.and_then(|all| all.get(APPROVED)).and_then(Value::as_str).unwrap_or_default()
}

/// Groups of the community need an approval, or to say that they have none: whether it is there, with reason and message.
pub(crate) fn approval_of(definition: &Value) -> Option<(bool, &'static str, String)> {
    let group = text_at(definition, "/spec/group");
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|owner| group == *owner || group.ends_with(&format!(".{owner}")));
    let must = format!("protected groups must have approval annotation {APPROVED:?}");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    protected.then(|| match annotation(definition) {
        "" => (false, "MissingAnnotation", format!("{must}, {see}")),
        given if given.starts_with("unapproved") => {
            (false, "UnapprovedAnnotation", format!("not approved: {given:?}"))
        }
        given if given.contains("://") => (true, "ApprovedAnnotation", format!("approved in {given}")),
        _ => {
            let either = "with either a URL or a reason starting with \"unapproved\"";
            (false, "InvalidAnnotation", format!("{must} {either}, {see}"))
        }
    })
}

fn approval(found: &mut Found, definition: &Value, old: Option<&Value>) {
    let given = annotation(definition);
    let Some((_, reason, why)) = approval_of(definition) else { return };
    if old.is_some_and(|old| annotation(old) == given) {
        return;
    }
    let field = format!("metadata.annotations[{APPROVED}]");
    match reason {
        "MissingAnnotation" => found.required(field, &why),
        "InvalidAnnotation" => found.invalid(field, &json!(given), &why),
        _ => {}
    }
}
