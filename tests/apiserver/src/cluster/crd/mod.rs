//! Custom kinds: what the server serves because of a CustomResourceDefinition.
//!
//! Answers: which kinds does this definition add, what does it add to their objects, and what is wrong with either?
//! 1. A valid definition whose names are free is served from the moment it is stored, one `Kind` per served version.
//! 2. NamesAccepted and Established follow in a second write, as a watcher of a real server sees it.
//!
//! Next: `naming.rs` accepts names, `ending.rs` is the deletion; `definition/` checks definitions and objects.
mod ending;
mod naming;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Value, json};

use super::defaults::GoType;
use super::definition::{Definition, ScalePaths, check, text_at, texts_at};
use super::kind::{CREATED_COLUMN, Column, GenerationRule, Kind, NAME_COLUMN, Rules, Subresource};
use super::metadata::{member, set_type, timestamp};
use super::names::NameRule;
use super::object::Object;
use super::registry::priority;
use super::status::Cause;
use super::store::Cluster;
use super::{ResourceId, go_json};

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const RULES: Rules = Rules {
    name: NameRule::Subdomain,
    generation: GenerationRule::AllButMetadata,
    unconditional_update: false,
    delete_answers_object: false,
    put_creates: false,
    status_metadata: &[],
    status_on_create: false,
    namespace_field: true,
};

/// Fills in what a client left out of a definition or a custom object. Nulls that were applied are judged.
pub(crate) fn complete(kind: &Kind, body: &mut Value, applied: bool) {
    if kind.is_definition() {
        if let Some(go) = GoType::of(kind) {
            go.read(body);
            go.write(body);
        }
        check::complete(body);
    }
    if let Some(definition) = &kind.definition {
        definition.complete(body, applied);
    }
}

/// Makes what was judged what readers find: with the defaults of a status that was dropped, and numbers as Go writes them.
pub(crate) fn settle(kind: &Kind, body: &mut Value) {
    if let Some(definition) = &kind.definition {
        definition.complete(body, false);
    }
    if kind.custom {
        go_json::numbers(body);
    }
}

/// What is wrong with a definition or a custom object that is about to be stored.
///
/// `old` is the stored state it replaces; what did not change since is not checked again. Of a `status` that is written
/// alone, only that is checked.
pub(crate) fn judge(kind: &Kind, body: &mut Value, old: Option<&Value>, status: bool) -> Vec<Cause> {
    if kind.is_definition() {
        match old {
            None => body["status"] = first_status(body),
            Some(_) => note_storage(body),
        }
        return check::causes(body, old);
    }
    let Some(definition) = &kind.definition else { return Vec::new() };
    let named = !member(body, "name").is_empty();
    // A schema may require them, rules read them, and the stored state does not have them.
    set_type(body, &kind.api_version(), &kind.kind);
    let mut old = old.cloned();
    if let Some(old) = &mut old {
        set_type(old, &kind.api_version(), &kind.kind);
    }
    let old = old.as_ref();
    if status { definition.judge_status(body, old) } else { definition.judge(body, old, named) }
}

/// The kinds that a definition adds once its names are accepted, the stored version first.
pub(crate) fn kinds(definition: &Value) -> Vec<Kind> {
    if !naming::is_established(definition) {
        return Vec::new();
    }
    let all = definition.pointer("/spec/versions").and_then(Value::as_array);
    let mut versions: Vec<&Value> =
        all.into_iter().flatten().filter(|version| version["served"] == json!(true)).collect();
    versions.sort_by_key(|version| version["storage"] != json!(true));
    versions.into_iter().map(|version| kind(definition, version)).collect()
}

fn kind(definition: &Value, version: &Value) -> Kind {
    let name = text_at(definition, "/status/acceptedNames/kind");
    let or = |given: &str, default: String| if given.is_empty() { default } else { given.to_owned() };
    let selectable = version.get("selectableFields").and_then(Value::as_array);
    let paths = selectable.into_iter().flatten().filter_map(|field| field["jsonPath"].as_str());
    let field = |path: &str| (path.trim_start_matches('.').to_owned(), path.replace('.', "/"));
    let resource =
        ResourceId::new(text_at(definition, "/spec/group"), text_at(definition, "/spec/names/plural"));
    Kind {
        storage: resource.clone(),
        resource,
        version: version["name"].as_str().unwrap_or_default().to_owned(),
        stored_version: stored_version(definition).to_owned(),
        kind: name.to_owned(),
        list_kind: or(text_at(definition, "/status/acceptedNames/listKind"), format!("{name}List")),
        singular: or(text_at(definition, "/status/acceptedNames/singular"), name.to_lowercase()),
        short_names: texts_at(definition, "/status/acceptedNames/shortNames"),
        categories: texts_at(definition, "/status/acceptedNames/categories"),
        namespaced: text_at(definition, "/spec/scope") == "Namespaced",
        verbs: VERBS.map(str::to_owned).to_vec(),
        subresources: subresources(version, name),
        scale: ScalePaths::of(version),
        status: version.pointer("/subresources/status").is_some(),
        custom: true,
        rules: RULES,
        fields: paths.map(field).collect(),
        namespace_field: true,
        zero: String::new(),
        columns: columns(version),
        deprecation: deprecation(definition, version),
        terminating: definition.pointer("/metadata/deletionTimestamp").is_some(),
        definition: Definition::of_version(version).map(Arc::new),
        stored_as: storage(definition)
            .filter(|stored| stored["schema"] != version["schema"])
            .and_then(|stored| Definition::of_version(stored).map(Arc::new)),
    }
}

/// The version that objects are stored in.
fn storage(definition: &Value) -> Option<&Value> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    versions.into_iter().flatten().find(|version| version["storage"] == json!(true))
}

fn stored_version(definition: &Value) -> &str {
    storage(definition).and_then(|version| version["name"].as_str()).unwrap_or_default()
}

fn subresources(version: &Value, kind: &str) -> Vec<Subresource> {
    let served = ["status", "scale"].into_iter().filter(|name| version["subresources"].get(name).is_some());
    let row = |name: &str| {
        let (group, version, kind) =
            if name == "scale" { ("autoscaling", "v1", "Scale") } else { ("", "", kind) };
        Subresource {
            name: name.to_owned(),
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            verbs: ["get", "patch", "update"].map(str::to_owned).to_vec(),
        }
    };
    served.map(row).collect()
}

fn column(name: &str, value_type: &str, format: &str, description: &str) -> Column {
    let (path, description) = (String::new(), description.to_owned());
    let (name, value_type, format) = (name.to_owned(), value_type.to_owned(), format.to_owned());
    Column { name, value_type, format, priority: 0, description, path }
}

/// The name, then the columns of the definition; the age if it has none.
fn columns(version: &Value) -> Vec<Column> {
    let mut columns = vec![column("Name", "string", "name", NAME_COLUMN)];
    let asked = version.get("additionalPrinterColumns").and_then(Value::as_array);
    let Some(asked) = asked.filter(|asked| !asked.is_empty()) else {
        let age = column("Age", "date", "", CREATED_COLUMN);
        columns.push(Column { path: ".metadata.creationTimestamp".to_owned(), ..age });
        return columns;
    };
    columns.extend(asked.iter().map(|asked| {
        let text = |at: &str| asked.get(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        Column {
            name: text("name"),
            value_type: text("type"),
            format: text("format"),
            priority: asked.get("priority").and_then(Value::as_i64).unwrap_or(0),
            description: match text("description") {
                none if none.is_empty() => {
                    format!("Custom resource definition column (in JSONPath format): {}", text("jsonPath"))
                }
                description => description,
            },
            path: text("jsonPath"),
        }
    }));
    columns
}

/// The warning for clients of a deprecated version.
fn deprecation(definition: &Value, version: &Value) -> Option<String> {
    if version["deprecated"] != json!(true) {
        return None;
    }
    let name = |version: &Value| version["name"].as_str().unwrap_or_default().to_owned();
    if let Some(warning) = version["deprecationWarning"].as_str() {
        return Some(warning.to_owned());
    }
    let (group, kind) = (text_at(definition, "/spec/group"), text_at(definition, "/spec/names/kind"));
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let current = |other: &&Value| {
        let better = priority(&name(other)) < priority(&name(version));
        better && other["served"] == json!(true) && other["deprecated"] != json!(true)
    };
    let best = versions.into_iter().flatten().filter(current).min_by_key(|other| priority(&name(other)));
    let instead = best.map_or_else(String::new, |best| format!("; use {group}/{} {kind}", name(best)));
    Some(format!("{group}/{} {kind} is deprecated{instead}", name(version)))
}

fn stored_versions(definition: &Value) -> Vec<&Value> {
    storage(definition).map(|version| &version["name"]).into_iter().collect()
}

/// Records the version in which objects are stored from now on.
fn note_storage(definition: &mut Value) {
    let storage: Vec<Value> = stored_versions(definition).into_iter().cloned().collect();
    let noted = definition.pointer_mut("/status/storedVersions").and_then(Value::as_array_mut);
    if let Some(noted) = noted {
        let new: Vec<Value> = storage.into_iter().filter(|version| !noted.contains(version)).collect();
        noted.extend(new);
    }
}

/// The status of a definition before its names are accepted.
fn first_status(definition: &Value) -> Value {
    json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored_versions(definition)})
}

fn condition(name: &str, reason: &str, message: &str, now: i64) -> Value {
    json!({"type": name, "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": timestamp(now)})
}

impl Cluster {
    /// Converts the stored objects of a kind to the current schema: new defaults are filled in, fields that
    /// are not described any more are removed, selectable fields are extracted. Their versions stay, and no
    /// watch is notified.
    pub(super) fn reread(&mut self, resource: &ResourceId) {
        let Some(kind) = self.registry.stored(resource).cloned() else { return };
        let Some(definition) = kind.stored_as.as_ref().or(kind.definition.as_ref()) else { return };
        let table = self.table_mut(resource);
        let stored: Vec<_> =
            table.objects.iter().map(|(key, object)| (key.clone(), Arc::clone(object))).collect();
        for (key, object) in stored {
            let mut read = Object::encode(&kind, definition.read(object.decode()), object.revision);
            read.reread = object.reread || read.body != object.body;
            table.objects.insert(key, Arc::new(read));
        }
    }
}
