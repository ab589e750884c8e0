//! Strategic merge patch: a merge patch that uses the schema to merge lists by key.
//!
//! Answers: what does a built-in object look like after this patch? Custom kinds have no patch strategies: 415.
//! 1. Maps merge, null deletes, lists are replaced unless their schema says `merge`; then items merge by key.
//! 2. `$patch` (delete, replace), `$retainKeys`, `$deleteFromPrimitiveList/x` and `$setElementOrder/x` direct that;
//!    none of them is ever stored.
//! 3. A patch in an unknown form is refused with the texts and codes of the real server.
//!
//! Next: `strategic/lists.rs` merges and orders lists.
mod lists;

use serde_json::{Map, Value};

use super::apply::{go, go_type};
use super::schema::{Schema, Shape, Slot, TypeId};
use super::status::ApiError;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

/// Why a patch is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum StrategicError {
    #[error("invalid patch format of {0}")]
    Format(&'static str),
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// An internal failure of the real server's own code.
    #[error("{0}")]
    Failed(String),
}

impl StrategicError {
    /// The answer of the real server.
    pub(crate) fn into_refusal(self) -> ApiError {
        let message = self.to_string();
        match self {
            Self::Format(_) => ApiError::bad_request(message),
            Self::ListOfLists => ApiError::unprocessable(message),
            Self::Failed(_) => ApiError::untyped(message),
        }
    }
}

/// The type of a map that is patched; none if the schema has no type.
#[derive(Clone, Copy)]
struct Place<'s> {
    schema: &'s Schema,
    id: Option<TypeId>,
}

impl<'s> Place<'s> {
    fn slot(self, name: &str) -> Option<&'s Slot> {
        self.schema.field(self.id?, name)
    }

    fn below(self, name: &str) -> Self {
        Self { id: self.slot(name).map(|slot| slot.id), ..self }
    }

    /// The type of the items of the list under this name.
    fn items(self, name: &str) -> Self {
        let id = match self.slot(name).map(|slot| &self.schema.get(slot.id).shape) {
            Some(Shape::List(list)) => Some(list.items.id),
            _ => None,
        };
        Self { id, ..self }
    }

    fn has_fields(self) -> bool {
        let object = self.id.and_then(|id| self.schema.get(id).object());
        object.is_some_and(|object| !object.fields.is_empty())
    }
}

/// Applies a patch.
///
/// # Errors If the patch does not have a form that can be applied.
pub(crate) fn patch(
    schema: &Schema,
    object: &mut Value,
    patch: Map<String, Value>,
) -> Result<(), StrategicError> {
    let place = Place { schema, id: Some(schema.root()) };
    let original = object.as_object_mut().map(std::mem::take).unwrap_or_default();
    *object = Value::Object(merge_map(place, original, patch)?);
    Ok(())
}

fn merge_map(
    place: Place<'_>,
    mut original: Map<String, Value>,
    mut patch: Map<String, Value>,
) -> Result<Map<String, Value>, StrategicError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(unknown_directive(&Value::Object(patch))),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    order_elements(place, &mut original, &mut patch)?;
    for (name, value) in patch {
        match name.split_once('/') {
            Some((DELETE_FROM, list)) => delete_from(&mut original, list, &value),
            _ if name.starts_with(DELETE_FROM) => return Err(StrategicError::Format("primitive list")),
            _ => merge_member(place, &mut original, name, value)?,
        }
    }
    Ok(original)
}

fn unknown_directive(patch: &Value) -> StrategicError {
    let directive = patch.get(DIRECTIVE).map(|directive| match directive {
        Value::String(text) => text.clone(),
        other => format!("%!s({})", go(other)),
    });
    let (directive, patch) = (directive.unwrap_or_default(), go(patch));
    StrategicError::Failed(format!("unknown patch type: {directive} in map: {patch}"))
}

fn merge_member(
    place: Place<'_>,
    original: &mut Map<String, Value>,
    name: String,
    value: Value,
) -> Result<(), StrategicError> {
    if value.is_null() {
        original.remove(&name);
        return Ok(());
    }
    let merged = match (original.remove(&name), value) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            Some(Value::Object(merge_map(place.below(&name), old, new)?))
        }
        (Some(Value::Array(old)), Value::Array(new)) => {
            Some(Value::Array(lists::merge(place, &name, old, new)?))
        }
        (_, value) => as_new(value),
    };
    original.extend(merged.map(|merged| (name, merged)));
    Ok(())
}

/// A value of a patch for a missing member: without its nulls and directives. None if it is a directive
/// itself.
fn as_new(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(DIRECTIVE) => None,
        Value::Object(members) => {
            let members = members.into_iter().filter(|(_, value)| !value.is_null());
            Some(Value::Object(members.filter_map(|(name, value)| Some((name, as_new(value)?))).collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(as_new).collect())),
        plain => Some(plain),
    }
}

/// `$retainKeys`: only these members of the original stay, and the patch may not name others.
fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), StrategicError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(keys) = keys else { return Err(StrategicError::Format("retainKeys")) };
    let kept = |name: &str| keys.iter().any(|key| key.as_str() == Some(name));
    let directs = |name: &str| name.starts_with(DELETE_FROM) || name.starts_with(ELEMENT_ORDER);
    if patch.iter().any(|(name, value)| !value.is_null() && !directs(name) && !kept(name)) {
        return Err(StrategicError::Format("retainKeys"));
    }
    original.retain(|name, _| kept(name));
    Ok(())
}

/// `$deleteFromPrimitiveList/x`: removes these items from the list.
fn delete_from(original: &mut Map<String, Value>, list: &str, items: &Value) {
    match (original.get_mut(list), items) {
        (Some(_), Value::Null) => {
            original.remove(list);
        }
        (Some(Value::Array(list)), Value::Array(items)) => list.retain(|item| !items.contains(item)),
        _ => {}
    }
}

/// `$setElementOrder/x`: merges these lists now, in the given order.
fn order_elements(
    place: Place<'_>,
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), StrategicError> {
    let directives: Vec<String> =
        patch.keys().filter(|name| name.starts_with(ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => return Err(lists::not_a_list(&other.unwrap_or_default())),
        };
        let Some((ELEMENT_ORDER, name)) = directive.split_once('/') else {
            return Err(StrategicError::Format("setElementOrder list"));
        };
        if let Some(merged) = lists::ordered(place, name, (original.get(name), patch.remove(name)), &order)? {
            original.insert(name.to_owned(), Value::Array(merged));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
