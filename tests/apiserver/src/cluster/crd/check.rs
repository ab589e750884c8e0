//! What a definition must look like before it may be stored.
//!
//! Answers: which fields of this definition are wrong, in the words of the API? Its schemas are judged by
//! `structural.rs`.
//! 1. All causes are told, in the order of a real server.
use serde_json::{Map, Value, json};

use super::structural;
use super::{text, texts};
use crate::cluster::object::member;
use crate::cluster::status::Cause;

const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation \
is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// Fills in what a definition may leave out.
pub(super) fn complete(definition: &mut Value) {
    let kind = text(definition, "/spec/names/kind").to_owned();
    if let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) {
        spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
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
pub(super) fn causes(definition: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let group = text(definition, "/spec/group");
    let name = member(definition, "name");
    if name != format!("{}.{group}", text(definition, "/spec/names/plural")) {
        causes.push(Cause::invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
    }
    match group {
        "" => causes.push(Cause::required("spec.group", "")),
        _ if !group.contains('.') => {
            causes.push(Cause::invalid("spec.group", group, "should be a domain with at least one dot"));
        }
        _ => {}
    }
    match text(definition, "/spec/scope") {
        "" => causes.push(Cause::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => {
            let message =
                format!("Unsupported value: {other:?}: supported values: \"Cluster\", \"Namespaced\"");
            causes.push(Cause { reason: "FieldValueNotSupported", message, field: "spec.scope".into() });
        }
    }
    if definition.pointer("/spec/preserveUnknownFields") == Some(&json!(true)) {
        let message = "Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        causes.push(invalid("spec.preserveUnknownFields", message));
    }
    let versions =
        definition.pointer("/spec/versions").and_then(Value::as_array).cloned().unwrap_or_default();
    version_causes(definition, &versions, &mut causes);
    name_causes(definition, &mut causes);
    causes.extend(structural::versions(&versions));
    causes
}

fn invalid(field: &str, message: &str) -> Cause {
    Cause { reason: "FieldValueInvalid", message: message.to_owned(), field: field.to_owned() }
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.len() <= 63
        && text.bytes().all(inner)
        && text.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
        && !text.ends_with('-')
}

fn name_causes(definition: &Value, causes: &mut Vec<Cause>) {
    for (name, mixed) in [("plural", false), ("singular", false), ("kind", true), ("listKind", true)] {
        let field = format!("spec.names.{name}");
        let given = text(definition, &format!("/spec/names/{name}"));
        let judged = if mixed { given.to_lowercase() } else { given.to_owned() };
        if given.is_empty() {
            causes.push(Cause::required(&field, ""));
        } else if !is_label(&judged) {
            let may = if mixed { "may have mixed case, but should otherwise match: " } else { "" };
            causes.push(Cause::invalid(&field, given, &format!("{may}{LABEL}")));
        }
    }
    for list in ["shortNames", "categories"] {
        for (index, given) in texts(definition, &format!("/spec/names/{list}")).iter().enumerate() {
            if !is_label(given) {
                causes.push(Cause::invalid(&format!("spec.names.{list}[{index}]"), given, LABEL));
            }
        }
    }
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

fn version_causes(definition: &Value, versions: &[Value], causes: &mut Vec<Cause>) {
    for (index, version) in versions.iter().enumerate() {
        let at = |name: &str| format!("spec.versions[{index}].{name}");
        let name = version["name"].as_str().unwrap_or_default();
        if !is_label(name) {
            causes.push(Cause::invalid(&at("name"), name, LABEL));
        }
        if let (Some(warning), false) =
            (version["deprecationWarning"].as_str(), version["deprecated"] == json!(true))
        {
            causes.push(Cause::invalid(
                &at("deprecationWarning"),
                warning,
                "can only be set for deprecated versions",
            ));
        }
        if version.pointer("/schema/openAPIV3Schema").is_none_or(Value::is_null) {
            causes.push(Cause::required(&at("schema.openAPIV3Schema"), ""));
        }
    }
    let all: Vec<String> = versions.iter().map(shown).collect();
    let all = format!("Invalid value: [{}]", all.join(","));
    let mut names: Vec<&Value> = versions.iter().map(|version| &version["name"]).collect();
    names.sort_by_key(|name| name.to_string());
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        causes.push(invalid("spec.versions", &format!("{all}: must contain unique version names")));
    }
    let stored: Vec<&Value> = versions.iter().filter(|version| version["storage"] == json!(true)).collect();
    if stored.len() != 1 {
        let message = format!("{all}: must have exactly one version marked as storage version");
        causes.push(invalid("spec.versions", &message));
    }
    let conversion = text(definition, "/spec/conversion/strategy");
    if conversion == "Webhook" && definition.pointer("/spec/conversion/webhook/clientConfig").is_none() {
        let why = "required when strategy is set to Webhook";
        causes.push(Cause::required("spec.conversion.webhookClientConfig", why));
    }
    match stored.as_slice() {
        [] => {
            let message = "Invalid value: null: must have at least one stored version";
            causes.push(invalid("status.storedVersions", message));
        }
        [_] => {}
        [first, .., last] => {
            let name = last["name"].as_str().unwrap_or_default();
            let message = format!("Invalid value: [{}]: must have the storage version {name}", first["name"]);
            causes.push(invalid("status.storedVersions", &message));
        }
    }
}
