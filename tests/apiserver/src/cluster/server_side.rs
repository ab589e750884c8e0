//! Server-side apply: merges the fields that a manager applies into the stored object.
//!
//! Answers: what is stored after this apply, and with which managers does it conflict? `apply` decides who owns what.
//! 1. An object that does not exist is created by being applied; its status is not.
//! 2. An apply that changes neither the object nor its owners changes nothing, not even a time.
//! 3. The result goes through the same checks as an update.
//!
//! Next: `apply/mod.rs`.
use std::sync::Arc;

use serde_json::{Value, json};

use super::apply::{Applied, Conflict, Managed, Path, Refused, Writer};
use super::call::{Call, Validation};
use super::metadata::{member, set_type};
use super::object::Object;
use super::owners::{self, Owners, carries_entries, take_entries};
use super::status::{ApiError, Cause};
use super::store::Cluster;
use super::write::{Written, misnamed};
use super::{field_validation, prepare};

impl Cluster {
    /// Applies a part of an object, or of its status, for the call's manager.
    ///
    /// # Errors 400 for an object of another type, 404 for the status of a missing object, 409 for conflicts,
    /// 500 for a field that the schema does not have, and those of a create or an update.
    pub(crate) fn apply(&mut self, call: &Call<'_>, config: Value, force: bool) -> Result<Written, ApiError> {
        let kind = call.kind;
        let old = self.find(&kind.storage, &kind.key(call.namespace, call.name)).cloned();
        if old.is_none() && call.status {
            return Err(ApiError::not_found(kind.named(call.name)));
        }
        check_type(call, &config)?;
        let applied = self.lay_over(call, old.as_deref(), &config, force)?;
        let Some(old) = old else {
            let (object, _) = field_validation::take_value(kind, config, Validation::Ignore)?;
            return self.create_applied(call, object, applied.managed);
        };
        let mut object = applied.object.unwrap_or_else(|| old.decode_in(kind));
        set_type(&mut object, &kind.api_version(), &kind.kind);
        let (mut object, _) = field_validation::take_value(kind, object, Validation::Ignore)?;
        self.check_patched(call, &old, &mut object)?;
        self.store_update(call, &old, object, Some(applied.managed))
    }

    fn lay_over(
        &self,
        call: &Call<'_>,
        old: Option<&Object>,
        config: &Value,
        force: bool,
    ) -> Result<Applied, ApiError> {
        let zero = owners::zero(call.kind);
        let mut live = old.map_or_else(|| zero.clone(), |old| old.decode_as(call.kind));
        let entries = take_entries(&mut live);
        let managed = Managed::decode(entries.as_ref())
            .map_err(|error| ApiError::untyped(format!("failed to decode managed fields: {error}")))?;
        let force = force || !self.keeps_owners();
        let apply = |writer: Writer<'_>| {
            let mut applied = writer.apply_after_client((&zero, &live), config, &managed, force)?;
            let mut object = applied.object.take().unwrap_or_else(|| live.clone());
            writer.renew_annotation(&mut object, config);
            Ok(Applied { object: Some(object), ..applied })
        };
        self.as_writer(call, &managed, apply).map_err(|refused| match refused {
            Refused::Conflicts(conflicts) => refuse_conflicts(&conflicts),
            Refused::Untyped(why) => {
                let (namespace, name) = (member(config, "namespace"), member(config, "name"));
                let subject = format!("{namespace}/{name}; {}", type_of(config));
                ApiError::untyped(format!("failed to create typed patch object ({subject}): {why}"))
            }
        })
    }

    fn create_applied(
        &mut self,
        call: &Call<'_>,
        mut object: Value,
        managed: Managed,
    ) -> Result<Written, ApiError> {
        let kind = call.kind;
        let uid = member(&object, "uid");
        if !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(ApiError::conflict(kind.named(call.name), &why));
        }
        prepare::check_shape(kind, &mut object)?;
        prepare::check_namespace(call, &mut object)?;
        if member(&object, "name") != call.name {
            return Err(misnamed(member(&object, "name"), call.name));
        }
        self.create_owned(call, object, Some(Owners::of_new(managed)))
    }

    /// Applies the checks of an update's body to the result of a patch.
    pub(super) fn check_patched(
        &self,
        call: &Call<'_>,
        old: &Arc<Object>,
        object: &mut Value,
    ) -> Result<(), ApiError> {
        prepare::check_shape(call.kind, object)?;
        prepare::check_namespace(call, object)?;
        if member(object, "name") != call.name {
            return Err(misnamed(member(object, "name"), call.name));
        }
        if member(object, "uid") != &*old.uid {
            let cause = Cause::invalid("metadata.uid", member(object, "uid"), "field is immutable");
            return Err(prepare::immutable(call, vec![cause]));
        }
        super::write::check_precedence(call, old, object)
    }
}

/// The type that a body names, as the real server prints it.
fn type_of(config: &Value) -> String {
    let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={kind}")
}

fn check_type(call: &Call<'_>, config: &Value) -> Result<(), ApiError> {
    let kind = call.kind;
    let named = |name: &str, expected: &str| config.get(name).and_then(Value::as_str) == Some(expected);
    if !named("apiVersion", &kind.api_version()) || !named("kind", &kind.kind) {
        return Err(ApiError::bad_request(format!("invalid object type: {}", type_of(config))));
    }
    if carries_entries(config) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}

fn told(conflict: &Conflict) -> String {
    let owner = &conflict.owner;
    let mut text = format!("{:?}", owner.manager);
    if !owner.subresource.is_empty() {
        text += &format!(" with subresource {:?}", owner.subresource);
    }
    if !owner.applied {
        text += &format!(" using {}", owner.version);
    }
    text
}

fn refuse_conflicts(conflicts: &[Conflict]) -> ApiError {
    let cause = |conflict: &Conflict| {
        json!({"reason": "FieldManagerConflict", "message": format!("conflict with {}", told(conflict)),
            "field": Path(&conflict.path).to_string()})
    };
    let causes: Vec<Value> = conflicts.iter().map(cause).collect();
    let message = match conflicts {
        [only] => format!("1 conflict: conflict with {}: {}", told(only), Path(&only.path)),
        many => {
            let mut lines: Vec<String> = Vec::new();
            let mut owners: Vec<String> = many.iter().map(told).collect();
            owners.sort();
            owners.dedup();
            for owner in owners {
                lines.push(format!("conflicts with {owner}:"));
                let his = many.iter().filter(|conflict| told(conflict) == owner);
                lines.extend(his.map(|conflict| format!("- {}", Path(&conflict.path))));
            }
            format!("{} conflicts: {}", many.len(), lines.join("\n"))
        }
    };
    ApiError::apply_conflict(format!("Apply failed with {message}"), causes)
}
