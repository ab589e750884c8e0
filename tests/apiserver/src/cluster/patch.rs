//! Patches: a document applied to the stored object, then stored like an update.
//!
//! Answers: what does the object look like after this patch? JSON patch (RFC 6902) and merge patch (RFC 7386).
//! 1. A patch that carries no resourceVersion or uid cannot conflict; one that does must name the current ones.
//! 2. A patch cannot rename: name and namespace of the result must be those of the path.
//!
//! Not here: strategic merge and server-side apply, which are answered 415.
use serde_json::{Map, Value};

use super::field_validation;
use super::status::ApiError;
use super::store::{Call, Cluster};
use super::strategic::{self, StrategicError};
use super::write::Written;

const MOST_OPERATIONS: usize = 10_000;
/// A real server does not say which operation failed.
const UNPROCESSABLE: &str = "the server rejected our request due to an error in our request";

/// Which language a patch is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
}

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
        let document = patched(call, kind, old.decode_as(call.kind), patch)?;
        let (mut document, warnings) = field_validation::take_patched(call, kind, patch, document)?;
        self.check_patched(call, &old, &mut document)?;
        Ok(Written { warnings, ..self.store_update(call, &old, document, None)? })
    }
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
    let patch: Value = serde_json::from_slice(patch)
        .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
    if !patch.is_object() {
        return Err(ApiError::bad_request("error decoding patch: a merge patch must be a JSON object"));
    }
    json_patch::merge(document, &patch);
    Ok(())
}

fn merge_strategically(call: &Call<'_>, document: &mut Value, patch: &[u8]) -> Result<(), ApiError> {
    let patch: Map<String, Value> =
        serde_json::from_slice(patch).map_err(|error| ApiError::bad_request(error.to_string()))?;
    let Some(schema) = call.kind.schema() else { return Err(ApiError::unknown_patch()) };
    strategic::patch(&schema, document, patch).map_err(StrategicError::into_refusal)
}

fn apply_operations(document: &mut Value, patch: &[u8]) -> Result<(), ApiError> {
    let patch: json_patch::Patch = serde_json::from_slice(patch)
        .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
    if patch.0.len() > MOST_OPERATIONS {
        return Err(ApiError::too_large());
    }
    for operation in patch.0 {
        let operation = lenient(document, operation);
        json_patch::patch(document, &[operation]).map_err(|_| ApiError::unprocessable(UNPROCESSABLE))?;
    }
    Ok(())
}

/// A `replace` of a member that is not there acts as `add`, as the API server's library has it.
fn lenient(document: &Value, operation: json_patch::PatchOperation) -> json_patch::PatchOperation {
    match operation {
        json_patch::PatchOperation::Replace(replace) if document.pointer(replace.path.as_str()).is_none() => {
            json_patch::PatchOperation::Add(json_patch::AddOperation {
                path: replace.path,
                value: replace.value,
            })
        }
        other => other,
    }
}
