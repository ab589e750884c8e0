//! The endpoints below an object that do more than write its status.
//!
//! Answers: what does a scale, a binding, an eviction or a change of one part do to its object?
//! 1. Each ends in the ordinary commit of the object itself; a subresource stores nothing of its own.
//! 2. Preconditions (resourceVersion, uid) in a body count as for an update of the object.
//!
//! Next: `scale.rs`, `eviction.rs`, `part.rs`; `http/subresource.rs` maps paths to them.

mod eviction;
mod part;
mod scale;

use serde_json::{Map, Value, json};

pub(crate) use part::Part;

use super::call::Call;
use super::metadata::{member, metadata_mut, timestamp};
use super::status::{ApiError, Named};
use super::store::Cluster;
use super::write::check_precedence;

/// What the body of a subresource must be.
struct Expected<'a> {
    kind: &'a str,
    api_version: &'a str,
    package: &'a str,
}

impl Expected<'_> {
    /// Checks the type a body names, if it names one.
    fn check(&self, body: &Value) -> Result<(), ApiError> {
        let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
        let (kind, api_version) = (text("kind"), text("apiVersion"));
        if !body.is_object() {
            let message = format!("the body is not a {}", self.kind);
            return Err(ApiError::bad_request(message));
        }
        if kind.is_empty()
            || (kind == self.kind && matches!(api_version, "" | "v1"))
            || api_version == self.api_version
        {
            return Ok(());
        }
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let (expected, package) = (self.kind, self.package);
        Err(ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {expected}: converting ({version}.{kind}) to ({package}.{expected}): unknown conversion"
        )))
    }
}

/// Writes a value at a JSON pointer, and creates missing objects on the path.
fn put_at(value: &mut Value, pointer: &str, new: Value) {
    let mut at = value;
    for name in pointer.split('/').skip(1) {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = at.as_object_mut().expect("made one above").entry(name).or_insert(Value::Null);
    }
    *at = new;
}

const BINDING: Expected<'_> = Expected { kind: "Binding", api_version: "v1", package: "core" };

impl Cluster {
    /// Sets the node of a pod.
    ///
    /// # Errors 400 for a body about another pod, 404, 409 for a pod that has a node or is being deleted, 500
    /// for a wrong target.
    pub(crate) fn bind(&mut self, call: &Call<'_>, body: &Value) -> Result<(), ApiError> {
        BINDING.check(body)?;
        if member(body, "name") != call.name {
            return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
        }
        let text = |at: &str| body.pointer(at).and_then(Value::as_str).unwrap_or_default();
        match (text("/target/kind"), text("/target/name")) {
            ("" | "Node", "") => return Err(ApiError::untyped("target.name: Required value")),
            ("" | "Node", _) => {}
            (kind, _) => {
                let message = format!(
                    "target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\""
                );
                return Err(ApiError::untyped(message));
            }
        }
        let old = self.get(call.kind, call.namespace, call.name)?;
        check_precedence(call, &old, body)?;
        let mut pod = old.decode();
        let refused = |why: &str| {
            Err(ApiError::conflict(Named { group: "", kind: "pods/binding", name: call.name }, why))
        };
        if !member(&pod, "deletionTimestamp").is_empty() {
            return refused(&format!("pod {} is being deleted, cannot be assigned to a host", call.name));
        }
        if let Some(node) =
            pod.pointer("/spec/nodeName").and_then(Value::as_str).filter(|node| !node.is_empty())
        {
            return refused(&format!("pod {} is already assigned to node {node:?}", call.name));
        }
        put_at(&mut pod, "/spec/nodeName", json!(text("/target/name")));
        if let Some(given) = body.pointer("/metadata/annotations").and_then(Value::as_object) {
            let annotations = metadata_mut(&mut pod).entry("annotations").or_insert_with(|| json!({}));
            for (name, value) in given {
                annotations[name] = value.clone();
            }
        }
        set_condition(&mut pod, call.now, json!({"type": "PodScheduled", "status": "True"}));
        if !call.dry_run {
            let key = call.kind.key(call.namespace, call.name);
            self.commit(call.kind, &key, Some(pod));
        }
        Ok(())
    }
}

/// Puts a condition into the status of a pod, in place of one of the same type.
fn set_condition(pod: &mut Value, now: i64, mut condition: Value) {
    condition["lastProbeTime"] = Value::Null;
    condition["lastTransitionTime"] = json!(timestamp(now));
    let known = pod.pointer("/status/conditions").and_then(Value::as_array);
    let others = known.into_iter().flatten().filter(|known| known["type"] != condition["type"]);
    let mut conditions: Vec<Value> = others.cloned().collect();
    conditions.push(condition);
    put_at(pod, "/status/conditions", json!(conditions));
}
