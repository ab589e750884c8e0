//! Defaults of built-in kinds: what the server writes into members that the client did not set.
//!
//! Answers: what does this object look like once everything has its default? It refuses nothing.
//! 1. Constant defaults are data (`table.txt`): a path, and the text that is written if the member is missing.
//! 2. Defaults that depend on other members are code: `pods.rs`, `services.rs`, `workloads.rs`, `hardware.rs`.
//! 3. Completing an object twice changes nothing the second time, so an update may be completed as well as a creation.
//!
//! Next: `path.rs` reads the paths of the table.
mod golang;
mod hardware;
mod path;
mod pods;
mod services;
mod table;
mod workloads;

use serde_json::Value;

pub(super) use golang::GoType;
use services::Addresses;

use super::call::Call;
use super::convert;
use super::kind::Kind;
use super::store::Cluster;

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

/// Definitions and custom objects have defaults of another kind: see `definition/defaults.rs`.
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
    if let Some(at) = table::pod_spec(group, plural)
        && let Some(spec) = body.pointer_mut(at).filter(|spec| spec.is_object())
    {
        pods::spec(spec);
    }
    if (group, plural) == ("", "pods") {
        pods::pod(body);
    }
    if convert::is_older_autoscaler(kind) {
        path::put_missing(body, "/spec/minReplicas", "1");
        convert::renew_autoscaler(body);
    } else {
        for (at, text) in table::rows(&kind.resource.to_string()) {
            path::put_missing(body, at, text);
        }
    }
    if let Some(go) = go {
        go.write(body);
    }
}
