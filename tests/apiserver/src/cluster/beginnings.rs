//! The objects that a server creates at its start: namespaces, priorities, the service `kubernetes`, ...
//!
//! Answers: what does a client find on a new server? `beginnings.json` has the objects that a kube-apiserver 1.36.2
//! creates.
//!
//! The rules of the API are applied to them once for a process; each server copies the result, with uids and times of its own.
//! 1. It leaves out what belongs to one process or one day: its identity lease, and the map that records since when
//!    legacy tokens are tracked. A controller writes the endpoints of the service.
//! 2. Each is created, and gets its status, as its controller would do it.
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::ResourceId;
use super::call::{Call, SERVER};
use super::history::Event;
use super::kind::Kind;
use super::metadata::timestamp;
use super::store::{Cluster, Settings};
use super::table::Table;

/// The managers that set the status of priorities and of address ranges, both by applying.
const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";
const RANGES: &str = "kubernetes-service-cidr-controller";
/// The manager that creates priorities.
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";

/// When the copied ones are made: before any clock.
const MADE_AT: i64 = 0;

/// One state of a first object, as it is stored.
#[derive(Debug)]
struct State {
    storage: ResourceId,
    key: Arc<str>,
    value: Value,
    is_new: bool,
}

/// The part of a stored object that holds its field owners.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, rename = "managedFields")]
    entries: Option<&'a RawValue>,
}

impl Cluster {
    /// Creates them.
    pub(crate) fn add_beginnings(&mut self, now: i64) {
        static MADE: [OnceLock<Vec<State>>; 4] = [const { OnceLock::new() }; 4];
        let flags = (self.keeps_owners(), self.validates());
        let made = &MADE[usize::from(flags.0) + 2 * usize::from(flags.1)];
        let (then, now) = (timestamp(MADE_AT), timestamp(now));
        let mut uid = Value::Null;
        for state in made.get_or_init(|| states(flags)) {
            if state.is_new {
                uid = Value::String(self.rng.uid());
            }
            let mut value = state.value.clone();
            value["metadata"]["uid"].clone_from(&uid);
            set_times(&mut value, &then, &now);
            let kind = self.registry.stored(&state.storage).cloned();
            let kind = kind.expect("the table has the kinds of the first objects");
            self.commit(&kind, &state.key, Some(value));
        }
    }

    /// Creates them by the rules of the API.
    fn make_beginnings(&mut self, now: i64) {
        let objects: Vec<Value> =
            serde_json::from_str(include_str!("beginnings.json")).expect("the first objects are JSON");
        for object in objects {
            let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
            let kind = self.registry.by_type(&text("/apiVersion"), &text("/kind")).cloned();
            let kind = kind.expect("the table has the kinds of the first objects");
            self.begin_with(&kind, (&text("/metadata/namespace"), &text("/metadata/name")), object, now);
        }
    }

    fn begin_with(&mut self, kind: &Arc<Kind>, (namespace, name): (&str, &str), mut object: Value, now: i64) {
        let manager = if kind.resource.group.starts_with("flowcontrol") { PRODUCER } else { SERVER };
        let call = Call { manager, ..Call::plain(kind, namespace, name, now) };
        let status = object.as_object_mut().and_then(|object| object.remove("status"));
        let made = self.create(&call, object);
        debug_assert!(made.is_ok(), "{name} is a sound object: {made:?}");
        let (Ok(made), Some(mut status)) = (made, status) else { return };
        let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            condition["lastTransitionTime"] = json!(timestamp(now));
        }
        let owner = match &*kind.resource.plural {
            "flowschemas" => CONSUMER,
            "servicecidrs" => RANGES,
            _ => {
                let mut whole = made.decode_as(kind);
                whole["status"] = status;
                let call = Call { status: true, subresource: "status", ..call };
                let told = self.update(&call, whole);
                debug_assert!(told.is_ok(), "{name} has a sound status");
                return;
            }
        };
        let (version, kind_name) = (kind.api_version(), &*kind.kind);
        let config =
            json!({"apiVersion": version, "kind": kind_name, "metadata": {"name": name}, "status": status});
        let call = Call { status: true, subresource: "status", manager: owner, ..call };
        let told = self.apply(&call, config, true);
        debug_assert!(told.is_ok(), "{name} has a sound status: {told:?}");
    }

    /// Stores the roles and bindings of a new cluster, as far as clients notice them.
    pub(crate) fn add_default_roles(&mut self, now: i64) {
        let defaults: Vec<Value> =
            serde_json::from_str(include_str!("rbac/defaults.json")).expect("the default roles are JSON");
        for object in defaults {
            let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
            let kind = self.registry.by_type(text("apiVersion"), text("kind")).cloned();
            let kind = kind.expect("the table has the kinds of access control");
            let made = self.create(&Call::plain(&kind, "", "", now), object);
            debug_assert!(made.is_ok(), "a default role is a sound object");
        }
    }
}

/// Their states in the order in which they come about, on a server with field owners or without, with validation or without.
fn states((managed_fields, validation): (bool, bool)) -> Vec<State> {
    let settings = Settings {
        first_revision: 1,
        event_window: 1_000,
        watch_queue: 1,
        seed: 0,
        managed_fields,
        validation,
    };
    let mut cluster = Cluster::new(settings, MADE_AT);
    let from = cluster.revision();
    cluster.make_beginnings(MADE_AT);
    let state = |(storage, event): (ResourceId, Arc<Event>)| {
        let (kind, object) = (cluster.registry.stored(&storage)?, event.new.as_ref()?);
        let mut value = object.decode_in(kind);
        // Their text, whose members have the order of a Go server.
        if let Ok(Body { metadata: Metadata { entries: Some(entries) } }) =
            serde_json::from_slice(&object.body)
        {
            value["metadata"]["managedFields"] = entries.get().into();
        }
        Some(State { storage, key: Arc::clone(&event.key), value, is_new: event.old.is_none() })
    };
    changes(&cluster, from).into_iter().filter_map(state).collect()
}

/// What was committed after a version, oldest first.
fn changes(cluster: &Cluster, from: u64) -> Vec<(ResourceId, Arc<Event>)> {
    let of = |(id, table): (&ResourceId, &Table)| -> Vec<_> {
        table.history.after(from).map(|event| (id.clone(), Arc::clone(event))).collect()
    };
    let mut changes: Vec<_> = cluster.tables.iter().flat_map(of).collect();
    changes.sort_by_key(|(_, event)| event.revision);
    changes
}

/// Replaces one time by another, wherever it stands: the entries of field owners are one text.
fn set_times(value: &mut Value, then: &str, now: &str) {
    match value {
        Value::String(text) if text.contains(then) => *text = text.replace(then, now),
        Value::Array(items) => items.iter_mut().for_each(|item| set_times(item, then, now)),
        Value::Object(members) => members.values_mut().for_each(|member| set_times(member, then, now)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_what_the_rules_of_the_api_make() {
        for (managed_fields, validation) in [(true, true), (true, false), (false, true), (false, false)] {
            let settings = Settings {
                first_revision: 1_000,
                event_window: 1_000,
                watch_queue: 10,
                seed: 7,
                managed_fields,
                validation,
            };
            let (mut made, mut copied) =
                (Cluster::new(settings, 1_700_000_000), Cluster::new(settings, 1_700_000_000));
            let from = made.revision();
            made.make_beginnings(1_700_000_000);
            copied.add_beginnings(1_700_000_000);
            let told = |cluster: &Cluster| -> Vec<String> {
                let text = |(storage, event): (ResourceId, Arc<Event>)| {
                    let object = event.new.as_ref().expect("nothing is deleted");
                    let body = String::from_utf8_lossy(&object.body).into_owned();
                    format!("{} {storage} {} {body}", event.revision, event.key)
                };
                changes(cluster, from).into_iter().map(text).collect()
            };
            let (made, copied) = (told(&made), told(&copied));
            assert!(made.len() > 46);
            for (one, other) in made.iter().zip(&copied) {
                assert_eq!(one, other);
            }
            assert_eq!(made.len(), copied.len());
        }
    }
}
