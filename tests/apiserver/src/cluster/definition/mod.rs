//! The schema of one version of a custom kind, and the checks of definitions.
//!
//! Answers: what is wrong with a definition or with an object of its kind, and what does the schema change in the object?
//! It knows neither kinds nor the store.
//!
//! Next: `check.rs`, `versions.rs` and `schema_checks.rs` check definitions, `version.rs` is one version.
mod causes;
pub(super) mod check;
mod field_path;
mod keywords;
mod lists;
#[cfg(feature = "cel")]
mod rule_checks;
#[cfg(feature = "cel")]
mod rules;
mod schema_checks;
mod structural;
mod validate;
#[cfg(feature = "cel")]
mod values;
mod version;
mod versions;
#[cfg(not(feature = "cel"))]
mod without_cel;

use serde_json::Value;

#[cfg(all(test, feature = "cel"))]
pub(crate) use values::seen;
pub(crate) use version::Definition;
#[cfg(not(feature = "cel"))]
use without_cel as rules;

pub(super) fn text<'a>(definition: &'a Value, at: &str) -> &'a str {
    definition.pointer(at).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn texts(definition: &Value, at: &str) -> Vec<String> {
    let list = definition.pointer(at).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
