//! Patches: a document applied to the stored object, then stored like an update.
//!
//! Answers: what does the object look like after this patch, in any of the three languages?
//! 1. A patch that carries no resourceVersion or uid cannot conflict; one that does must name the current ones.
//! 2. A patch cannot rename: name and namespace of the result must be those of the path.
//!
//! Next: `json_patch.rs` and `strategic.rs`; `server_side.rs` has the fourth language, which needs owners.
use serde_json::{Map, Value};

use super::call::{Call, PatchKind};
use super::metadata::set_type;
use super::schema::{decode, load};
use super::status::{ApiError, Cause, Named};
use super::store::Cluster;
use super::strategic::{self, StrategicError};
use super::write::Written;
use super::{field_validation, go_json, json_patch, warnings};
use crate::protobuf::SCHEME;

/// A real server does not say which operation failed.
const UNPROCESSABLE: &str = "the server rejected our request due to an error in our request";

impl Cluster {
    /// Applies a patch to an object, or to its status.
    ///
    /// # Errors
    /// 400 for a patch that cannot be read, 422 for one that cannot be applied, and those of an update.
    pub(crate) fn patch(
        &mut self,
        call: &Call<'_>,
        kind: PatchKind,
        patch: &[u8],
    ) -> Result<Written, ApiError> {
        let old = self.get(call.kind, call.namespace, call.name)?;
        let (mut document, mut warnings) = taken(call, kind, old.decode_as(call.kind), patch)?;
        if let Err(error) = self.check_patched(call, &old, &mut document) {
            return Err(error.with_warnings(&warnings));
        }
        warnings.extend(warnings::take_repeated_owners(&mut document, true));
        match self.store_update(call, &old, document, None) {
            Ok(written) => Ok(written.after(warnings)),
            Err(error) => Err(error.with_warnings(&warnings)),
        }
    }
}

/// A patch cannot change the kind of an object: the result is read as the kind that it names, which must be
/// the old one.
fn check_type(call: &Call<'_>, document: &Value) -> Result<(), ApiError> {
    let text = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
    let or_known =
        |given: &'_ str, known: &str| if given.is_empty() { known.to_owned() } else { given.to_owned() };
    let (own, own_version) = (&call.kind.kind, call.kind.api_version());
    let (kind, version) = (or_known(text("kind"), own), or_known(text("apiVersion"), &own_version));
    if call.kind.custom || (kind == *own && version == own_version) {
        return Ok(());
    }
    let (group, number) = version.rsplit_once('/').unwrap_or(("", &version));
    let why = match load::builtin(group, number, &kind) {
        None => format!("no kind {kind:?} is registered for version {version:?}{SCHEME}"),
        Some(schema) => decode::value(&schema, true, document.clone()).faults.refused().map_or_else(
            || {
                let package = call.kind.go_package();
                format!("converting ({number}.{kind}) to ({package}.{own}): unknown conversion")
            },
            str::to_owned,
        ),
    };
    let nothing = Named { group: "", kind: "", name: "" };
    Err(ApiError::invalid(nothing, &[Cause::invalid("patch", &document.to_string(), &why)]))
}

/// The result of a patch on a document of the call's kind, and its warnings.
///
/// # Errors 400 for a patch that cannot be read, 422 for one that cannot be applied or changes the type of
/// the document.
pub(super) fn taken(
    call: &Call<'_>,
    kind: PatchKind,
    document: Value,
    patch: &[u8],
) -> Result<field_validation::Taken, ApiError> {
    let document = patched(call, kind, document, patch)?;
    check_type(call, &document)?;
    field_validation::take_patched(call, kind, patch, document)
}

/// The document after a patch.
///
/// # Errors
/// 400 for a patch that cannot be read, 422 for one that cannot be applied.
pub(super) fn patched(
    call: &Call<'_>,
    kind: PatchKind,
    mut document: Value,
    patch: &[u8],
) -> Result<Value, ApiError> {
    match kind {
        PatchKind::Merge => merge(&mut document, patch)?,
        PatchKind::Json => apply_operations(&mut document, patch)?,
        PatchKind::Strategic => merge_strategically(call, &mut document, patch)?,
    }
    Ok(document)
}

fn merge(document: &mut Value, patch: &[u8]) -> Result<(), ApiError> {
    match read(patch).map_err(decoding)? {
        Value::Object(members) => {
            merge_members(document, members);
            Ok(())
        }
        Value::Null => Err(ApiError::bad_request("Invalid JSON Patch")),
        other => Err(decoding(mistyped(&other, "map[string]interface {}"))),
    }
}

/// RFC 7386: null deletes, maps merge, everything else replaces. As on a real server, no map in a list keeps a null.
fn merge_members(into: &mut Value, patch: Map<String, Value>) {
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    let Value::Object(into) = into else { return };
    for (name, value) in patch {
        match value {
            Value::Null => {
                into.remove(&name);
            }
            Value::Object(members) => merge_members(into.entry(name).or_insert(Value::Null), members),
            mut value => {
                drop_nulls(&mut value);
                into.insert(name, value);
            }
        }
    }
}

/// Drops the nulls of maps, and keeps those of lists.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        _ => {}
    }
}

fn merge_strategically(call: &Call<'_>, document: &mut Value, patch: &[u8]) -> Result<(), ApiError> {
    let patch = match read(patch).map_err(ApiError::bad_request)? {
        Value::Object(members) => members,
        Value::Null => Map::new(),
        other => return Err(ApiError::bad_request(mistyped(&other, "map[string]interface {}"))),
    };
    let Some(schema) = call.kind.schema() else { return Err(ApiError::unknown_patch()) };
    strategic::patch(&schema, document, patch).map_err(StrategicError::into_refusal)?;
    // The type of the patched object is known; a patch cannot change it here, and is not refused for trying.
    set_type(document, &call.kind.api_version(), &call.kind.kind);
    Ok(())
}

fn apply_operations(document: &mut Value, patch: &[u8]) -> Result<(), ApiError> {
    let operations = match read(patch).map_err(decoding)? {
        Value::Array(operations) => operations,
        Value::Null => Vec::new(),
        other => return Err(decoding(mistyped(&other, "[]handlers.jsonPatchOp"))),
    };
    if operations.len() > json_patch::MOST_OPERATIONS {
        let (most, given) = (json_patch::MOST_OPERATIONS, operations.len());
        let why = format!("The allowed maximum operations in a JSON patch is {most}, got {given}");
        return Err(ApiError::entity_too_large(&why));
    }
    let operations: Result<Vec<_>, ApiError> = operations
        .into_iter()
        .map(|operation| match operation {
            Value::Object(operation) => Ok(operation),
            other => Err(decoding(mistyped(&other, "handlers.jsonPatchOp"))),
        })
        .collect();
    json_patch::apply(document, &operations?).map_err(|_failed| ApiError::unprocessable(UNPROCESSABLE))
}

fn decoding(why: String) -> ApiError {
    ApiError::bad_request(format!("error decoding patch: {why}"))
}

/// Reads a patch; the error has the text of Go's parser.
fn read(patch: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(patch).map_err(|error| go_json::syntax(patch, &error))
}

fn mistyped(value: &Value, into: &str) -> String {
    let what = go_json::type_of(value);
    format!("json: cannot unmarshal {what} into Go value of type {into}")
}
