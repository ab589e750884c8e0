//! Endpoints that write one part of an object and keep the rest: `ephemeralcontainers`, `resize`, `finalize`, `approval`.
//!
//! Answers: what does the object look like when only this part of the body counts?
//! 1. Everything outside the part is the stored state, whatever the body says.
//! 2. The result is stored like an update, under the same preconditions.
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::call::{Call, PatchKind};
use super::super::metadata::member;
use super::super::object::Object;
use super::super::status::{ApiError, Cause};
use super::super::store::Cluster;
use super::super::write::{Written, check_precedence, misnamed};
use super::super::{patch, prepare};
use super::put_at;

/// Which part of an object an endpoint writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The ephemeral containers of a pod: they can be added, never removed.
    EphemeralContainers,
    /// The resources of a pod's containers.
    Resize,
    /// The finalizers in the spec of a namespace.
    Finalize,
    /// The conditions of a certificate signing request.
    Approval,
}

impl Part {
    /// The part a subresource of this name writes.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "ephemeralcontainers" => Some(Self::EphemeralContainers),
            "resize" => Some(Self::Resize),
            "finalize" => Some(Self::Finalize),
            "approval" => Some(Self::Approval),
            _ => None,
        }
    }

    /// The old object with this part of the new one.
    fn taken(self, call: &Call<'_>, old: &Value, new: &Value) -> Result<Value, ApiError> {
        let mut merged = old.clone();
        let at = match self {
            Self::EphemeralContainers => {
                keeps_all(call, old, new)?;
                "/spec/ephemeralContainers"
            }
            Self::Finalize => "/spec/finalizers",
            Self::Approval => "/status/conditions",
            Self::Resize => {
                for list in ["/spec/containers", "/spec/initContainers"] {
                    resize(&mut merged, new, list);
                }
                return Ok(merged);
            }
        };
        match new.pointer(at) {
            Some(part) if !part.is_null() && *part != json!([]) => put_at(&mut merged, at, part.clone()),
            _ => {
                let (parent, name) = at.rsplit_once('/').unwrap_or_default();
                if let Some(parent) = merged.pointer_mut(parent).and_then(Value::as_object_mut) {
                    parent.remove(name);
                }
            }
        }
        Ok(merged)
    }
}

fn names(pod: &Value) -> Vec<&str> {
    let list = pod.pointer("/spec/ephemeralContainers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|container| container["name"].as_str()).collect()
}

fn keeps_all(call: &Call<'_>, old: &Value, new: &Value) -> Result<(), ApiError> {
    let kept = names(new);
    let Some(gone) = names(old).into_iter().find(|name| !kept.contains(name)) else { return Ok(()) };
    let why = format!("existing ephemeral containers {gone:?} may not be removed\n");
    let cause = Cause::forbidden("spec.ephemeralContainers", &why);
    Err(ApiError::invalid(call.kind.named_kind(call.name), &[cause]))
}

fn resize(merged: &mut Value, new: &Value, list: &str) {
    let Some(containers) = merged.pointer_mut(list).and_then(Value::as_array_mut) else { return };
    for container in containers {
        let wanted = new.pointer(list).and_then(Value::as_array).into_iter().flatten();
        let Some(wanted) = wanted.into_iter().find(|wanted| wanted["name"] == container["name"]) else {
            continue;
        };
        for name in ["resources", "resizePolicy"] {
            if let Some(value) = wanted.get(name) {
                container[name] = value.clone();
            }
        }
    }
}

impl Cluster {
    /// Writes one part of an object.
    ///
    /// # Errors
    /// Those of an update, and 422 where the part forbids the change.
    pub(crate) fn update_part(
        &mut self,
        call: &Call<'_>,
        part: Part,
        mut body: Value,
    ) -> Result<Arc<Object>, ApiError> {
        prepare::check_shape(call.kind, &mut body)?;
        if member(&body, "name") != call.name {
            return Err(misnamed(member(&body, "name"), call.name));
        }
        prepare::check_namespace(call, &mut body)?;
        let old = self.get(call.kind, call.namespace, call.name)?;
        check_precedence(call, &old, &body)?;
        let merged = part.taken(call, &old.decode(), &body)?;
        if part == Part::Finalize {
            return self.finalize_namespace(call, &old, merged);
        }
        if part == Part::Approval {
            // The conditions of an approval are status.
            let call = Call { status: true, ..call.clone() };
            let Written { object, .. } = self.store_update(&call, &old, merged, None)?;
            return Ok(object);
        }
        Ok(self.store_part(call, &old, merged))
    }

    /// Stores a part of a pod: what an update may not change, its own endpoint may.
    fn store_part(&mut self, call: &Call<'_>, old: &Arc<Object>, mut merged: Value) -> Arc<Object> {
        let mut before = old.decode();
        self.complete(call.kind, &mut merged);
        let owners = self.owners_after(call, &mut before, &mut merged, None);
        if before == merged {
            return Arc::clone(old);
        }
        if before["spec"] != merged["spec"] {
            prepare::raise_generation(&mut merged);
        }
        owners.write(&mut merged);
        if call.dry_run {
            return Arc::new(Object::encode(call.kind, merged, old.revision));
        }
        let key = call.kind.key(call.namespace, call.name);
        let event = self.commit(call.kind, &key, Some(merged));
        Arc::clone(event.new.as_ref().expect("a change has a state after it"))
    }

    /// Patches an object and writes one part of the result.
    ///
    /// # Errors
    /// Those of a patch and of `update_part`.
    pub(crate) fn patch_part(
        &mut self,
        call: &Call<'_>,
        part: Part,
        kind: PatchKind,
        patch: &[u8],
    ) -> Result<Arc<Object>, ApiError> {
        let old = self.get(call.kind, call.namespace, call.name)?;
        let patched = patch::patched(call, kind, old.decode_as(call.kind), patch)?;
        self.update_part(call, part, patched)
    }

    /// A terminating namespace without finalizers is removed; the answer still shows it at its last version.
    fn finalize_namespace(
        &mut self,
        call: &Call<'_>,
        old: &Arc<Object>,
        merged: Value,
    ) -> Result<Arc<Object>, ApiError> {
        let held =
            merged.pointer("/spec/finalizers").is_some() || merged.pointer("/metadata/finalizers").is_some();
        let going = !member(&merged, "deletionTimestamp").is_empty();
        let changed = Arc::new(Object::encode(call.kind, merged.clone(), old.revision));
        if call.dry_run || changed.body == old.body {
            return Ok(changed);
        }
        let key = call.kind.key(call.namespace, call.name);
        if going && !held {
            self.remove(call, &key);
            return Ok(changed);
        }
        let event = self.commit(call.kind, &key, Some(merged));
        Ok(Arc::clone(event.new.as_ref().expect("a change has a state after it")))
    }
}
