//! Defaults of built-in kinds: what the server writes into members that the client did not set.
//!
//! Answers: what does this object look like once everything has its default? It refuses nothing.
//! 1. Constant defaults are data (`table.txt`): a path, and the text that is written if the member is missing. Rows of a
//!    pod's spec are relative to it, and apply to pods and to every template of them.
//! 2. Defaults that depend on other members are code: `pods.rs`, `services.rs`, `workloads.rs`, `hardware.rs`.
//! 3. Completing an object twice changes nothing the second time, so an update may be completed as well as a creation.
//! 4. A path has members, and `*` for every element of a list or member of a map; `?name` before a member means: only if
//!    the object there has that member. Only the last member is ever created: a path through a missing member leads nowhere.

mod golang;
mod hardware;
mod pods;
mod services;
mod workloads;

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

pub(super) use golang::GoType;
use services::Addresses;

use super::call::Call;
use super::convert;
use super::kind::Kind;
use super::store::Cluster;
use super::warnings;

impl Cluster {
    /// Writes the defaults of a built-in object: those of every server for this body.
    pub(super) fn complete(&self, kind: &Kind, body: &mut Value) {
        if is_completed(kind) {
            complete(kind, body);
        }
    }

    /// Gives a new job without labels the labels of its pods.
    pub(super) fn label(&self, kind: &Kind, body: &mut Value) {
        if kind.resource.is("batch", "jobs") {
            workloads::label_like_pods(body);
        }
    }

    /// Writes what this server adds to an object that it accepts: addresses, marks, what admission sets.
    /// `old` is the stored state, if there is one.
    pub(super) fn admit(&self, call: &Call<'_>, body: &mut Value, old: Option<&Value>) {
        let kind = call.kind;
        if !is_completed(kind) {
            return;
        }
        let (group, plural) = (&*kind.resource.group, &*kind.resource.plural);
        if old.is_none() {
            workloads::create(group, plural, body, call.now);
        }
        hardware::admit(group, plural, body, call.now);
        match (group, plural) {
            ("apps", "daemonsets") => workloads::count_templates(body, old),
            ("apps", "statefulsets") => workloads::drop_unserved(body),
            ("", "pods") => pods::admit(body, old.is_none(), call.now, &|class| self.priority(class)),
            ("", "services") => {
                let mut services = || {
                    let table = self.table(&kind.storage);
                    table.map_or_else(Vec::new, |table| {
                        table.objects.values().map(|object| object.decode()).collect()
                    })
                };
                services::admit(body, old, &mut Addresses(&mut services));
            }
            _ => {}
        }
        if let Some(go) = GoType::of(kind) {
            go.store(body);
        }
    }

    /// The class of this name, if there is one; without a name, the default class.
    fn priority(&self, class: &str) -> Option<Value> {
        let kind = self.registry.find("scheduling.k8s.io", "v1", "priorityclasses")?;
        let classes = &self.table(&kind.storage)?.objects;
        if !class.is_empty() {
            return classes.get(class).map(|class| class.decode());
        }
        classes.values().map(|class| class.decode()).find(|class| class["globalDefault"] == true)
    }
}

/// Definitions and custom objects have defaults of another kind: see `definition/version.rs`.
fn is_completed(kind: &Kind) -> bool {
    !kind.custom && !kind.is_definition()
}

fn complete(kind: &Kind, body: &mut Value) {
    let (group, plural) = (&*kind.resource.group, &*kind.resource.plural);
    // First the values in the form of the types, then the defaults; last the members that are written even if
    // they are zero.
    let go = GoType::of(kind);
    if let Some(go) = go {
        go.read(body);
    }
    workloads::complete(group, plural, body);
    hardware::complete(group, plural, body);
    if (group, plural) == ("", "services") {
        services::complete(body);
    }
    if let Some(at) = warnings::template(group, plural)
        && let Some(spec) = body.pointer_mut(at).and_then(|pod| pod.get_mut("spec"))
        && spec.is_object()
    {
        pods::spec(spec);
    }
    if (group, plural) == ("", "pods") {
        pods::pod(body);
    }
    if convert::is_older_autoscaler(kind) {
        put_missing(body, "/spec/minReplicas", "1");
        convert::renew_autoscaler(body);
    } else {
        for (at, text) in rows(&kind.resource.to_string()) {
            put_missing(body, at, text);
        }
    }
    if let Some(go) = go {
        go.write(body);
    }
}

/// Writes the JSON text `text` at each place of `path` that has no value.
fn put_missing(value: &mut Value, path: &str, text: &str) {
    let steps: Vec<&str> = path.split('/').skip(1).collect();
    put(value, &steps, text);
}

fn put(value: &mut Value, steps: &[&str], text: &str) {
    let Some((step, rest)) = steps.split_first() else { return };
    if *step == "*" {
        match value {
            Value::Array(list) => list.iter_mut().for_each(|element| put(element, rest, text)),
            Value::Object(map) => map.values_mut().for_each(|element| put(element, rest, text)),
            _ => {}
        }
        return;
    }
    let Some(map) = value.as_object_mut() else { return };
    if let Some(needed) = step.strip_prefix('?') {
        if map.contains_key(needed) {
            put(value, rest, text);
        }
        return;
    }
    if !rest.is_empty() {
        if let Some(inner) = map.get_mut(*step) {
            put(inner, rest, text);
        }
        return;
    }
    if !map.contains_key(*step) {
        let default = serde_json::from_str(text).expect("the defaults of the table are JSON");
        map.insert((*step).to_owned(), default);
    }
}

type Rows = Vec<(&'static str, &'static str)>;

static TABLE: LazyLock<HashMap<&'static str, Rows>> = LazyLock::new(|| {
    let mut table = HashMap::<_, Rows>::new();
    let mut names = "";
    for line in include_str!("table.txt").lines().filter(|line| !line.starts_with('#')) {
        match line.split_once(' ').filter(|_| line.starts_with('/')) {
            Some(row) => names.split(' ').for_each(|name| table.entry(name).or_default().push(row)),
            None => names = line,
        }
    }
    table
});

/// The rows of a kind (plural and group), except those of pods inside it, or of a part of an object.
fn rows(name: &str) -> &'static [(&'static str, &'static str)] {
    TABLE.get(name).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_default_is_written_into_a_missing_member() {
        let mut value = json!({"list": [{"a": 1}, {}], "map": {"x": {}}});
        for path in ["/list/*/a", "/map/*/b", "/none/c", "/top", "/?list/with", "/?none/without"] {
            put_missing(&mut value, path, "7");
        }
        assert_eq!(value, json!({"list": [{"a": 1}, {"a": 7}], "map": {"x": {"b": 7}}, "top": 7, "with": 7}));
    }
}
