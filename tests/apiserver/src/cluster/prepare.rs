//! The checks of a body before it is stored, and what the server writes into it.
//!
//! Answers: does this body match the request, and which members may the client not set? It uses no state.
//! 1. Each check is one function from a body to a refusal.
//! 2. uid, creationTimestamp, generation and deletion marks are always the server's.
//!
//! Next: `write.rs` runs these in the order of the API.
use serde_json::{Map, Value, json};

use super::call::Call;
use super::kind::{GenerationRule, Kind};
use super::metadata::{member, metadata_mut, timestamp};
use super::status::{ApiError, Cause, Named};
use super::{convert, names};
use crate::protobuf::SCHEME;

/// Checks that the body is an object of this kind with valid metadata.
pub(crate) fn check_shape(kind: &Kind, body: &mut Value) -> Result<(), ApiError> {
    let Some(root) = body.as_object() else {
        let message = format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; it is not a JSON object",
            kind.kind
        );
        return Err(ApiError::bad_request(message));
    };
    convert::check(kind, body)?;
    let text = |name: &str| root.get(name).and_then(Value::as_str).unwrap_or_default();
    let (given_kind, given_version) = (text("kind"), text("apiVersion"));
    if kind.custom && (given_kind.is_empty() || given_version.is_empty()) {
        let missing = if given_kind.is_empty() { "Kind" } else { "apiVersion" };
        let message = format!(
            "the object provided is unrecognized (must be of type {}): Object '{missing}' is missing in '{body}'",
            kind.kind
        );
        return Err(ApiError::bad_request(message));
    }
    if kind.custom && given_version != kind.api_version() {
        let message = format!(
            "the API version in the data ({given_version}) does not match the expected API version ({})",
            kind.api_version()
        );
        return Err(ApiError::bad_request(message));
    }
    if !given_version.is_empty() && given_version != kind.api_version() {
        let message = format!(
            "{given_kind} in version {given_version:?} cannot be handled as a {}: no kind {given_kind:?} is registered for version {given_version:?}{SCHEME}",
            kind.kind
        );
        return Err(ApiError::bad_request(message));
    }
    if !given_kind.is_empty() && given_kind != kind.kind {
        let package = kind.go_package();
        let message = format!(
            "{given_kind} in version {given_version:?} cannot be handled as a {}: converting ({}.{given_kind}) to ({package}.{}): unknown conversion",
            kind.kind, kind.version, kind.kind
        );
        let wrong = Cause::invalid("kind", given_kind, &format!("must be {}", kind.kind));
        let about = Named { kind: given_kind, ..kind.named_kind(member(body, "name")) };
        let custom = || ApiError::invalid(about, &[wrong]);
        return Err(if kind.custom { custom() } else { ApiError::bad_request(message) });
    }
    check_metadata(kind, body)
}

fn check_metadata(kind: &Kind, body: &mut Value) -> Result<(), ApiError> {
    let root = body.as_object_mut().expect("checked above");
    let metadata = root.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let unreadable = |what: &str, expected: &str| {
        ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: json: cannot unmarshal {what} into a Go value of type {expected}",
            kind.kind, kind.version, kind.kind
        ))
    };
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    let Some(metadata) = metadata.as_object_mut() else { return Err(unreadable("metadata", "ObjectMeta")) };
    metadata.retain(|_, value| !value.is_null());
    for name in ["name", "namespace", "generateName", "uid", "resourceVersion", "deletionTimestamp"] {
        if metadata.get(name).is_some_and(|value| !value.is_string()) {
            return Err(unreadable(name, "string"));
        }
    }
    for name in ["labels", "annotations"] {
        let texts = |map: &Map<String, Value>| map.values().all(Value::is_string);
        if metadata.get(name).is_some_and(|value| !value.as_object().is_some_and(texts)) {
            return Err(unreadable(name, "map[string]string"));
        }
    }
    let names = |list: &Vec<Value>| list.iter().all(Value::is_string);
    if metadata.get("finalizers").is_some_and(|value| !value.as_array().is_some_and(names)) {
        return Err(unreadable("finalizers", "[]string"));
    }
    metadata.remove("selfLink");
    Ok(())
}

/// Checks that the body's namespace is the path's, and writes it in where it is missing.
pub(crate) fn check_namespace(call: &Call<'_>, body: &mut Value) -> Result<(), ApiError> {
    let given = member(body, "namespace").to_owned();
    if !call.kind.namespaced {
        metadata_mut(body).remove("namespace");
        return Ok(());
    }
    if !given.is_empty() && given != call.namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(message));
    }
    metadata_mut(body).insert("namespace".into(), json!(call.namespace));
    Ok(())
}

/// What is wrong with the name in the metadata.
pub(crate) fn name_causes(kind: &Kind, name: &str) -> Vec<Cause> {
    if name.is_empty() {
        return vec![Cause::required("metadata.name", "name or generateName is required")];
    }
    let faults = names::faults(name, kind.rules.name);
    faults.iter().map(|why| Cause::invalid("metadata.name", name, why)).collect()
}

/// What is wrong with the beginning of a name that is to be generated. Before a dash at its end nothing is looked at but what
/// comes before the last two letters, as on a real server.
pub(crate) fn prefix_causes(kind: &Kind, prefix: &str) -> Vec<Cause> {
    let masked =
        prefix.len().checked_sub(2).filter(|_| prefix.ends_with('-')).and_then(|end| prefix.get(..end));
    let masked = masked.map(|start| format!("{start}a"));
    let faults = match masked.as_deref().unwrap_or(prefix) {
        "" => Vec::new(),
        begun => names::faults(begun, kind.rules.name),
    };
    faults.iter().map(|why| Cause::invalid("metadata.generateName", prefix, why)).collect()
}

/// Writes what the server sets on a new object.
pub(crate) fn complete_new(call: &Call<'_>, body: &mut Value, uid: String) {
    let kind = call.kind;
    let metadata = metadata_mut(body);
    metadata.insert("uid".into(), json!(uid));
    metadata.insert("creationTimestamp".into(), json!(timestamp(call.now)));
    metadata.remove("deletionTimestamp");
    metadata.remove("deletionGracePeriodSeconds");
    if !matches!(kind.rules.generation, GenerationRule::Absent | GenerationRule::SpecOnceChanged) {
        metadata.insert("generation".into(), json!(1));
    }
    let quality = body.pointer("/status/qosClass").cloned();
    if kind.status && !kind.rules.status_on_create {
        body.as_object_mut().expect("checked to be an object").remove("status");
    }
    match (&*kind.resource.group, &*kind.resource.plural) {
        ("", "pods") => {
            body["status"] = json!({"phase": "Pending"});
            // A class that the client has set is accepted.
            put_back(body["status"].as_object_mut().expect("made above"), quality.as_ref(), "qosClass");
        }
        ("", "persistentvolumes") => {
            body["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": timestamp(call.now)});
        }
        ("", "namespaces") => {
            let asked = body.pointer("/spec/finalizers").and_then(Value::as_array);
            let mut finalizers = asked.cloned().unwrap_or_default();
            if !finalizers.contains(&json!("kubernetes")) {
                finalizers.push(json!("kubernetes"));
            }
            body["spec"] = json!({ "finalizers": finalizers });
            body["status"] = json!({"phase": "Active"});
        }
        _ => {}
    }
}

/// Writes the label by which selectors find a namespace by its name.
pub(crate) fn name_namespace(kind: &Kind, body: &mut Value) {
    if !kind.resource.is("", "namespaces") {
        return;
    }
    let name = member(body, "name").to_owned();
    let labels = metadata_mut(body).entry("labels").or_insert_with(|| json!({}));
    labels["kubernetes.io/metadata.name"] = json!(name);
}

/// Restores what a client may not change on the main endpoint, and raises the generation.
///
/// # Errors 422 for a deletion mark the client sets, or a finalizer that is added while the object is being
/// deleted.
pub(crate) fn complete_update(call: &Call<'_>, old: &Value, body: &mut Value) -> Result<(), ApiError> {
    let kind = call.kind;
    let deleting = old.pointer("/metadata/deletionTimestamp").is_some();
    let mut causes = Vec::new();
    let marked = member(body, "deletionTimestamp");
    if !marked.is_empty() && marked != member(old, "deletionTimestamp") {
        causes.push(Cause::invalid("metadata.deletionTimestamp", marked, "field is immutable"));
    }
    let added = added_finalizers(old, body);
    if deleting && !added.is_empty() {
        let added: Vec<String> = added.iter().map(Value::to_string).collect();
        let why = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        );
        causes.push(Cause::forbidden("metadata.finalizers", &why));
    }
    if !causes.is_empty() {
        return Err(immutable(call, causes));
    }
    let kept =
        ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName"];
    for name in kept.iter().chain(kind.rules.generation.is_counted().then_some(&"generation")) {
        put_back(metadata_mut(body), old.get("metadata").and_then(|metadata| metadata.get(name)), name);
    }
    if kind.status {
        put_back(body.as_object_mut().expect("checked to be an object"), old.get("status"), "status");
    }
    if kind.resource.is("", "namespaces")
        || kind.resource.is("certificates.k8s.io", "certificatesigningrequests")
    {
        // The finalizers of a namespace are written through their own endpoint; a request for a signature stays as it is.
        put_back(body.as_object_mut().expect("checked to be an object"), old.get("spec"), "spec");
    }
    if !call.status && raises_generation(kind, old, body) {
        raise_generation(body);
    }
    Ok(())
}

/// The refusal of an update; built-ins name each cause twice, as their two rounds of validation do.
pub(crate) fn immutable(call: &Call<'_>, mut causes: Vec<Cause>) -> ApiError {
    if !call.kind.custom {
        causes.extend(causes.clone());
    }
    ApiError::invalid(call.kind.named_kind(call.name), &causes)
}

/// The old object with the new status, and those members of the metadata this kind's status endpoint writes.
pub(crate) fn status_update(kind: &Kind, old: &Value, body: &Value) -> Value {
    let mut merged = old.clone();
    put_back(merged.as_object_mut().expect("stored objects are objects"), body.get("status"), "status");
    let written = if kind.custom { &[] } else { kind.rules.status_metadata };
    for name in written {
        let given = body.get("metadata").and_then(|metadata| metadata.get(name));
        put_back(metadata_mut(&mut merged), given, name);
    }
    merged
}

fn put_back(into: &mut Map<String, Value>, kept: Option<&Value>, name: &str) {
    match kept {
        Some(value) => {
            into.insert(name.to_owned(), value.clone());
        }
        None => {
            into.remove(name);
        }
    }
}

impl GenerationRule {
    pub(crate) fn is_counted(self) -> bool {
        self != Self::Absent
    }
}

fn raises_generation(kind: &Kind, old: &Value, new: &Value) -> bool {
    match kind.rules.generation {
        GenerationRule::Absent => false,
        GenerationRule::Spec | GenerationRule::SpecOnceChanged => old.get("spec") != new.get("spec"),
        GenerationRule::SpecAndAnnotations => {
            let notes = |value: &Value| value.pointer("/metadata/annotations").cloned();
            old.get("spec") != new.get("spec") || notes(old) != notes(new)
        }
        GenerationRule::AllButMetadata => {
            let content = |value: &Value| {
                let mut content = value.as_object().cloned().unwrap_or_default();
                for name in ["metadata", "kind", "apiVersion"] {
                    content.remove(name);
                }
                if kind.status {
                    content.remove("status");
                }
                content
            };
            content(old) != content(new)
        }
    }
}

/// Adds one to the generation.
pub(crate) fn raise_generation(value: &mut Value) {
    let metadata = metadata_mut(value);
    let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or(0);
    metadata.insert("generation".into(), json!(generation + 1));
}

fn added_finalizers(old: &Value, new: &Value) -> Vec<Value> {
    let list = |value: &Value| -> Vec<Value> {
        value.pointer("/metadata/finalizers").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let before = list(old);
    list(new).into_iter().filter(|name| !before.contains(name)).collect()
}
