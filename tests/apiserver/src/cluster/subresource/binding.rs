//! `pods/binding`: how a scheduler assigns a pod to a node.
//!
//! Answers: may this pod go to that node, and what does it look like then?
//! 1. A pod is bound once; a second binding is a conflict, whatever its node.
//! 2. A binding raises no generation, but sets the condition PodScheduled.
use serde_json::{Value, json};

use super::super::call::Call;
use super::super::metadata::{member, metadata_mut, timestamp};
use super::super::status::{ApiError, Named};
use super::super::store::Cluster;
use super::super::write::check_precedence;
use super::{Expected, put_at};

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
pub(super) fn set_condition(pod: &mut Value, now: i64, mut condition: Value) {
    condition["lastProbeTime"] = Value::Null;
    condition["lastTransitionTime"] = json!(timestamp(now));
    let known = pod.pointer("/status/conditions").and_then(Value::as_array);
    let others = known.into_iter().flatten().filter(|known| known["type"] != condition["type"]);
    let mut conditions: Vec<Value> = others.cloned().collect();
    conditions.push(condition);
    put_at(pod, "/status/conditions", json!(conditions));
}
