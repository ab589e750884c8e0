//! Unknown and duplicate fields: they are ignored, reported in a warning, or refused, as the client asks.
//!
//! Answers: with this `fieldValidation`, what is stored from this body, and which warnings does the client get? Wrong
//! types are always refused.
//! 1. Unset means Warn, as on a real server.
//! 2. A body of another kind than the path's is left as it is: `prepare` refuses it with another text.
//! 3. A refused body is 400, a refused patch 422 with a cause on `patch`.
//!
//! Next: `schema/decode.rs` finds the fields.
use serde_json::Value;

use super::apply::go;
use super::call::{Call, PatchKind, Validation};
use super::kind::Kind;
use super::schema::decode::{self, Decoded};
use super::status::{ApiError, Cause, Named};

/// A body that may be stored, and its warnings.
pub(crate) type Taken = (Value, Vec<String>);

/// Reads a body that is JSON text; the inner error says why it is not JSON.
///
/// # Errors
/// 400 for a wrong type and, if asked for, for unknown and duplicate fields.
pub(crate) fn take_text(
    kind: &Kind,
    body: &[u8],
    validation: Validation,
) -> Result<Result<Taken, ApiError>, serde_json::Error> {
    let raw = || serde_json::from_slice(body).map(|value| Ok((value, Vec::new())));
    let Some(schema) = kind.schema() else { return raw() };
    let decoded = decode::text(&schema, !kind.custom, body)?;
    if is_of(kind, &decoded.value) { Ok(taken(kind, decoded, validation)) } else { raw() }
}

/// Checks a body that is a value already.
///
/// # Errors
/// Those of `take_text`.
pub(crate) fn take_value(kind: &Kind, body: Value, validation: Validation) -> Result<Taken, ApiError> {
    match kind.schema() {
        Some(schema) if is_of(kind, &body) => {
            taken(kind, decode::value(&schema, !kind.custom, body), validation)
        }
        _ => Ok((body, Vec::new())),
    }
}

/// Checks the result of a patch.
///
/// # Errors
/// 422 with a cause on `patch`.
pub(crate) fn take_patched(
    call: &Call<'_>,
    language: PatchKind,
    patch: &[u8],
    document: Value,
) -> Result<Taken, ApiError> {
    let kind = call.kind;
    let Some(schema) = kind.schema().filter(|_| is_of(kind, &document)) else {
        return Ok((document, Vec::new()));
    };
    let mut found = in_patch(language, patch);
    let shown = match (language, serde_json::from_slice::<Value>(patch)) {
        (PatchKind::Strategic, Ok(patch)) => go(&patch),
        _ => document.to_string(),
    };
    let Decoded { value, faults } = decode::value(&schema, !kind.custom, document);
    found.extend(faults.fields(kind.custom));
    let refused = faults.refused().map(str::to_owned);
    let judged = refused.map_or_else(|| call.validation.judge(found), Err);
    judged.map(|warnings| (value, warnings)).map_err(|why| {
        let nothing = Named { group: "", kind: "", name: "" };
        ApiError::invalid(nothing, &[Cause::invalid("patch", &shown, &why)])
    })
}

fn is_of(kind: &Kind, body: &Value) -> bool {
    let says = |name: &str, wanted: &str| match body.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty() || text == wanted,
        Some(_) => false,
    };
    body.is_object() && says("kind", &kind.kind) && says("apiVersion", &kind.api_version())
}

fn taken(kind: &Kind, decoded: Decoded, validation: Validation) -> Result<Taken, ApiError> {
    let Decoded { value, faults } = decoded;
    let refused = faults.refused().map(str::to_owned);
    let judged = refused.map_or_else(|| validation.judge(faults.fields(kind.custom)), Err);
    judged.map(|warnings| (value, warnings)).map_err(|why| {
        ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {why}",
            kind.kind, kind.version, kind.kind
        ))
    })
}

/// What is wrong with the patch itself.
fn in_patch(language: PatchKind, patch: &[u8]) -> Vec<String> {
    let duplicates = decode::duplicates(patch);
    if language != PatchKind::Json {
        return duplicates;
    }
    let mut found: Vec<String> = duplicates.into_iter().map(|text| format!("json patch {text}")).collect();
    let operations: Vec<Value> = serde_json::from_slice(patch).unwrap_or_default();
    for (index, operation) in operations.iter().enumerate() {
        let names = operation.as_object().into_iter().flat_map(|operation| operation.keys());
        for name in names.filter(|name| !matches!(name.as_str(), "op" | "path" | "from" | "value")) {
            found.push(format!("json patch unknown field \"[{index}].{name}\""));
        }
    }
    found
}
