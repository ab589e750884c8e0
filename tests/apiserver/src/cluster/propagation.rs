//! The propagation policy of a DELETE, as finalizers of the object for the garbage collector.
//!
//! Answers: which finalizers does an object get by this deletion? Nothing is deleted here.
//! 1. Of the two finalizers an object has at most one, by the latest DELETE that named a policy.
//! 2. Background is neither: the object is removed at once, and later its dependants are found without an owner.
//!
//! Next: `garbage.rs` acts on what is written here; without it, as without a controller manager, the object stays.
use serde_json::{Value, json};

use super::metadata::metadata_mut;
use super::options::{Query, value};
use super::status::{ApiError, Cause, Named};

/// Keeps an owner until no object refers to it.
pub(super) const ORPHAN: &str = "orphan";
/// Keeps an owner until the dependants that block it are gone.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// What happens to the dependants of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They stay, and their reference is removed.
    Orphan,
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
}

impl Propagation {
    /// Reads the policy out of a `DeleteOptions` body and the query.
    ///
    /// # Errors 422 for a policy that does not exist, and for one given in both of its forms.
    pub(crate) fn read(body: &Value, query: &Query) -> Result<Option<Self>, ApiError> {
        let text = |name: &str| match body.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Bool(on)) => on.to_string(),
            _ => value(query, name).to_owned(),
        };
        let (policy, orphans) = (text("propagationPolicy"), text("orphanDependents"));
        if !policy.is_empty() && !orphans.is_empty() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            return Err(refused(Cause::invalid("propagationPolicy", &policy, why)));
        }
        match (policy.as_str(), orphans.as_str()) {
            ("", "") => Ok(None),
            ("Orphan", _) | ("", "true") => Ok(Some(Self::Orphan)),
            ("Background", _) | ("", _) => Ok(Some(Self::Background)),
            ("Foreground", _) => Ok(Some(Self::Foreground)),
            _ => {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                Err(refused(Cause::unsupported("propagationPolicy", format!("{policy:?}"), &known)))
            }
        }
    }

    /// Writes the finalizer of this policy, and removes that of another.
    pub(super) fn write(self, object: &mut Value) {
        let metadata = metadata_mut(object);
        let mut held = metadata.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
        let wanted = match self {
            Self::Orphan => Some(ORPHAN),
            Self::Foreground => Some(FOREGROUND),
            Self::Background => None,
        };
        held.retain(|name| {
            wanted.is_some_and(|wanted| name == wanted) || (name != ORPHAN && name != FOREGROUND)
        });
        if let Some(wanted) = wanted.filter(|wanted| !held.iter().any(|name| name == wanted)) {
            held.push(json!(wanted));
        }
        match held.is_empty() {
            true => metadata.remove("finalizers"),
            false => metadata.insert("finalizers".into(), Value::Array(held)),
        };
    }
}

fn refused(cause: Cause) -> ApiError {
    ApiError::invalid(Named { group: "meta.k8s.io", kind: "DeleteOptions", name: "" }, &[cause])
}
