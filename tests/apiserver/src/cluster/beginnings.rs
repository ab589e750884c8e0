//! The objects that a server creates at its start: namespaces, priorities, the service `kubernetes`, ...
//!
//! Answers: what does a client find on a new server? `beginnings.json` has the objects that a kube-apiserver 1.36.2
//! creates.
//! 1. It leaves out what belongs to one process or one day: its identity lease, and the map that records since when
//!    legacy tokens are tracked. A controller writes the endpoints of the service.
//! 2. Each is created, and gets its status, as its controller would do it.
use std::sync::Arc;

use serde_json::{Value, json};

use super::kind::Kind;
use super::owners;
use super::prepare;
use super::store::{Call, Cluster};

/// The managers that set the status of priorities and of address ranges, both by applying.
const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";
const RANGES: &str = "kubernetes-service-cidr-controller";
/// The manager that creates priorities.
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";

impl Cluster {
    /// Creates them.
    pub(crate) fn add_beginnings(&mut self, now: i64) {
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
        let manager = if kind.resource.group.starts_with("flowcontrol") { PRODUCER } else { owners::SERVER };
        let call = Call { manager, ..Call::plain(kind, namespace, name, now) };
        let status = object.as_object_mut().and_then(|object| object.remove("status"));
        let made = self.create(&call, object);
        debug_assert!(made.is_ok(), "{name} is a sound object: {made:?}");
        let (Ok(made), Some(mut status)) = (made, status) else { return };
        let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            condition["lastTransitionTime"] = json!(prepare::timestamp(now));
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
}
