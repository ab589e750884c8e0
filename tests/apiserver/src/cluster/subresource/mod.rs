//! The endpoints below an object that do more than write its status.
//!
//! Answers: what does a scale, a binding, an eviction or a change of one part do to its object?
//! 1. Each ends in the ordinary commit of the object itself; a subresource stores nothing of its own.
//! 2. Preconditions (resourceVersion, uid) in a body count as for an update of the object.
//!
//! Next: `scale.rs`, `binding.rs`, `eviction.rs`, `part.rs`; `http/subresource.rs` maps paths to them.
mod binding;
mod eviction;
mod part;
mod scale;

use serde_json::{Map, Value};

pub(crate) use part::Part;

use super::status::ApiError;

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
