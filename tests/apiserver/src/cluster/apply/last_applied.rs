//! The annotation of client-side apply, for the case that kubectl uses server-side apply afterwards.
//!
//! Answers: which conflicts are ignored because kubectl itself applied those fields before from the client? And what
//! is in the annotation after an apply?
//! 1. Only the manager `kubectl` is treated in this way; a client that does not want it uses another name.
//! 2. A field is allowed if the annotation names it with the value it still has.
//! 3. An existing annotation is kept up to date; none is created.
use serde_json::Value;

use super::compare::{self, compare};
use super::managed::Managed;
use super::set::FieldSet;
use super::shape::Place;
use super::{Applied, Refused, Writer};

const KUBECTL: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The largest annotations an object may have together, in bytes.
const MOST_ANNOTATED: usize = 256 * 1024;

impl Writer<'_> {
    /// Merges `config` into the second of `live`, the first being the zero value, as `apply` does; kubectl
    /// does not conflict with what it applied from the client.
    ///
    /// # Errors
    /// Those of `apply`.
    pub(crate) fn apply_after_client(
        &self,
        live: (&Value, &Value),
        config: &Value,
        managed: &Managed,
        force: bool,
    ) -> Result<Applied, Refused> {
        let conflicts = match self.apply(live, config, managed.clone(), force) {
            Err(Refused::Conflicts(conflicts)) if self.manager == KUBECTL => conflicts,
            found => return found,
        };
        let Some(allowed) = allowed(self.place(), live.1, self.version) else {
            return Err(Refused::Conflicts(conflicts));
        };
        let others: Vec<_> =
            conflicts.into_iter().filter(|conflict| !allowed.contains(&conflict.path)).collect();
        if others.is_empty() {
            return self.apply(live, config, managed.clone(), true);
        }
        Err(Refused::Conflicts(others))
    }

    /// Brings the annotation of an applied object up to date.
    pub(crate) fn renew_annotation(&self, object: &mut Value, config: &Value) {
        let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
        else {
            return;
        };
        if self.manager != KUBECTL
            || annotations.get(ANNOTATION).and_then(Value::as_str).is_none_or(str::is_empty)
        {
            return;
        }
        let mut config = config.clone();
        if let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut)
            && let Some(given) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
        {
            given.remove(ANNOTATION);
            if given.is_empty() {
                metadata.remove("annotations");
            }
        }
        annotations.insert(ANNOTATION.to_owned(), Value::String(format!("{config}\n")));
        let size: usize =
            annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
        if size > MOST_ANNOTATED {
            annotations.remove(ANNOTATION);
        }
    }
}

/// The fields that were applied from the client and have not changed since.
fn allowed(place: Place<'_>, live: &Value, version: &str) -> Option<FieldSet> {
    let text = live.pointer("/metadata/annotations")?.get(ANNOTATION)?.as_str()?;
    let last: Value = serde_json::from_str(text).ok()?;
    if last.get("apiVersion")?.as_str()? != version {
        return None;
    }
    let changed = compare(place, &last, live);
    let fields = compare::fields(place, &last);
    Some(fields.difference(&changed.modified).difference(&changed.added).difference(&changed.removed))
}
