//! `scale`: the number of replicas of a workload, in one form for every scalable kind.
//!
//! Answers with `Scale` of autoscaling/v1, made from the object; a write changes one number in it.
//! 1. The paths of the numbers are data (`ScalePaths`): the same for all built-ins, from the definition for custom
//!    kinds.
//! 2. A write is an update of the object, so its generation rises and its watchers are notified.
use std::fmt::Display;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::call::{Call, PatchKind};
use super::super::definition::ScalePaths;
use super::super::kind::Kind;
use super::super::metadata::member;
use super::super::object::Object;
use super::super::status::{ApiError, Cause, Named};
use super::super::store::Cluster;
use super::super::write::{Written, misnamed};
use super::super::{ResourceId, apply, field_validation, patch, selector};
use super::{Expected, put_at};

const SCALE: Expected<'_> = Expected { kind: "Scale", api_version: "autoscaling/v1", package: "autoscaling" };

fn paths(kind: &Kind) -> Result<&ScalePaths, ApiError> {
    kind.scale.as_ref().ok_or_else(ApiError::no_such_resource)
}

impl Cluster {
    /// The scale of an object.
    ///
    /// # Errors
    /// 404; 500 where a custom object lacks the number.
    pub(crate) fn scale(&self, call: &Call<'_>) -> Result<Value, ApiError> {
        let object = self.get(call.kind, call.namespace, call.name)?;
        scale_of(call.kind, &object)
    }

    /// Writes a scale: the replicas of `body` become those of the object.
    ///
    /// # Errors
    /// 400 for another body, 404, 409, 422 for a negative number.
    pub(crate) fn update_scale(&mut self, call: &Call<'_>, body: &Value) -> Result<Value, ApiError> {
        SCALE.check(body)?;
        let (body, _) = field_validation::take_value(&form_of(call.kind), body.clone(), call.validation)?;
        self.write_scale(call, &body)
    }

    fn write_scale(&mut self, call: &Call<'_>, body: &Value) -> Result<Value, ApiError> {
        if member(body, "name") != call.name {
            return Err(misnamed(member(body, "name"), call.name));
        }
        let old = self.get(call.kind, call.namespace, call.name)?;
        let replicas = body.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
        if replicas < 0 && !call.kind.custom {
            return Err(negative(call, replicas));
        }
        let mut changed = old.decode_as(call.kind);
        put_at(&mut changed, &paths(call.kind)?.spec, json!(replicas));
        for name in ["resourceVersion", "uid"] {
            if !member(body, name).is_empty() {
                put_at(&mut changed, &format!("/metadata/{name}"), json!(member(body, name)));
            }
        }
        let Written { object, .. } = self.update(call, changed)?;
        scale_of(call.kind, &object)
    }

    /// Applies a scale: its manager owns the replicas of the object.
    ///
    /// # Errors
    /// 400 for another type, 404, and those of an apply.
    pub(crate) fn apply_scale(
        &mut self,
        call: &Call<'_>,
        config: &Value,
        force: bool,
    ) -> Result<Value, ApiError> {
        let paths = paths(call.kind)?;
        let old = self.get(call.kind, call.namespace, call.name)?;
        let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        if (version, kind) != ("autoscaling/v1", "Scale") {
            let slash = if version.contains('/') { "" } else { "/" };
            let message = format!("invalid object type: {slash}{version}, Kind={kind}");
            return Err(ApiError::bad_request(message));
        }
        let mut whole = json!({"apiVersion": call.kind.api_version(), "kind": call.kind.kind,
            "metadata": {"name": &*old.name}});
        for name in ["resourceVersion", "uid"] {
            if !member(config, name).is_empty() {
                put_at(&mut whole, &format!("/metadata/{name}"), json!(member(config, name)));
            }
        }
        if let Some(replicas) = config.pointer("/spec/replicas") {
            put_at(&mut whole, &paths.spec, replicas.clone());
        }
        let Written { object, .. } = self.apply(call, whole, force)?;
        scale_of(call.kind, &object)
    }

    /// Patches a scale as if it were an object.
    ///
    /// # Errors
    /// Those of a patch and of `update_scale`.
    pub(crate) fn patch_scale(
        &mut self,
        call: &Call<'_>,
        kind: PatchKind,
        patch: &[u8],
    ) -> Result<Value, ApiError> {
        let scale = self.scale(call).or_else(|error| {
            // A number that is not there yet can still be patched in.
            if error.code() == 500 { Ok(json!({"metadata": {"name": call.name}})) } else { Err(error) }
        })?;
        let form = Arc::new(form_of(call.kind));
        let (patched, _) = patch::taken(&Call { kind: &form, ..call.clone() }, kind, scale, patch)?;
        self.write_scale(call, &patched)
    }
}

/// The scale of a kind as a kind itself: what its bodies and patches are read as.
fn form_of(kind: &Kind) -> Kind {
    let resource = ResourceId::new("autoscaling", "scales");
    let (version, name) = ("v1".to_owned(), SCALE.kind.to_owned());
    Kind { resource, version, kind: name, custom: false, definition: None, ..kind.clone() }
}

fn negative(call: &Call<'_>, replicas: i64) -> ApiError {
    let about = Named { group: "autoscaling", kind: "Scale", name: call.name };
    ApiError::invalid(about, &[invalid("spec/replicas", replicas, "must be greater than or equal to 0")])
}

fn invalid(pointer: &str, shown: impl Display, why: &str) -> Cause {
    let message = format!("Invalid value: {shown}: {why}");
    Cause { reason: "FieldValueInvalid", message, field: pointer.replace('/', ".") }
}

impl ScalePaths {
    /// What a scale of a custom object could not show: of its status alone, or of all.
    pub(in crate::cluster) fn judge(&self, object: &Value, status: bool) -> Vec<Cause> {
        let numbers = [&self.spec, &self.status].into_iter().skip(usize::from(status));
        let mut causes: Vec<Cause> = numbers.filter_map(|at| wrong_number(object, at)).collect();
        if let Some((at, Err(why))) = self.selector.as_ref().map(|at| (at, nested(object, at, "string"))) {
            causes.push(invalid(at, "\"\"", &why));
        }
        causes
    }
}

fn wrong_number(object: &Value, pointer: &str) -> Option<Cause> {
    let number = match nested(object, pointer, "int64") {
        Err(why) => return Some(invalid(pointer, 0, &why)),
        Ok(number) => number.and_then(Value::as_i64)?,
    };
    let why = match number {
        ..0 => "should be a non-negative integer",
        _ if number > i64::from(i32::MAX) => "should be less than or equal to 2147483647",
        _ => return None,
    };
    Some(invalid(pointer, number, why))
}

/// The value under a path, if there is one of this type.
///
/// # Errors
/// Go's words for a value of another type, there or above.
fn nested<'v>(object: &'v Value, pointer: &str, wanted: &str) -> Result<Option<&'v Value>, String> {
    let (mut value, mut path) = (object, String::new());
    let told = |path: &str, value: &Value, wanted: &str| {
        let (shown, found) = (apply::go(value), apply::go_type(value));
        Err(format!("{path} accessor error: {shown} is of the type {found}, expected {wanted}"))
    };
    for name in pointer.split('/').skip(1) {
        path = format!("{path}.{name}");
        value = match (value, value.get(name)) {
            (Value::Object(_), Some(member)) => member,
            (Value::Object(_) | Value::Null, _) => return Ok(None),
            _ => return told(&path, value, "map[string]interface{}"),
        };
    }
    if apply::go_type(value) == wanted { Ok(Some(value)) } else { told(&path, value, wanted) }
}

fn scale_of(kind: &Kind, object: &Object) -> Result<Value, ApiError> {
    let (value, paths) = (object.decode(), paths(kind)?);
    let number = |at: &str| value.pointer(at).and_then(Value::as_i64);
    let asked = number(&paths.spec);
    if kind.custom && asked.is_none() {
        let path = paths.spec.replace('/', ".");
        return Err(ApiError::internal(format!("the spec replicas field {path:?} does not exist")));
    }
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {}, "spec": {},
        "status": {"replicas": number(&paths.status).unwrap_or(0)},
    });
    let place = if kind.namespaced { "namespace" } else { "name" };
    for name in ["name", place, "uid", "resourceVersion", "creationTimestamp"] {
        scale["metadata"][name] = json!(member(&value, name));
    }
    if let Some(asked) = asked.filter(|asked| *asked != 0) {
        scale["spec"]["replicas"] = json!(asked);
    }
    let selector = selector_of(&value, paths);
    if !selector.is_empty() {
        scale["status"]["selector"] = json!(selector);
    }
    Ok(scale)
}

fn selector_of(value: &Value, paths: &ScalePaths) -> String {
    if let Some(at) = &paths.selector {
        return value.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    }
    match value.pointer("/spec/selector") {
        Some(selector)
            if ["matchLabels", "matchExpressions"].iter().any(|name| selector.get(name).is_some()) =>
        {
            selector::label_text(selector)
        }
        // Replication controllers select by a plain map.
        Some(Value::Object(labels)) => selector::map_text(labels),
        _ => String::new(),
    }
}
