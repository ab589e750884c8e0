//! The versions of a definition: schemas, subresources, columns and selectable fields.
//!
//! Answers: which of them are wrong? What all versions have in common is checked once, as by a real server.
//! 1. Common parts are reported under `spec.validation`, `spec.subresources` and so on, others under their version.
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Found, field_path, given, list, refuse_label, schema_checks, text};
use crate::cluster::schema::source::Source;
use crate::cluster::status::Cause;

const MOST_SELECTABLE: usize = 8;
const COLUMN_TYPES: &str = "must be one of boolean,date,integer,number,string";
const COLUMN_FORMATS: &str = "must be one of byte,date,date-time,double,float,int32,int64,password";

/// The parts that versions may have in common.
#[derive(Debug, Clone, Copy)]
struct Common {
    schema: bool,
    subresources: bool,
    columns: bool,
    selectable: bool,
}

impl Common {
    fn of(versions: &[Value]) -> Self {
        let same = |name: &str| {
            let first = versions.first().and_then(|version| given(version, name));
            versions.iter().all(|version| given(version, name) == first)
        };
        Self {
            schema: same("schema"),
            subresources: same("subresources"),
            columns: same("additionalPrinterColumns"),
            selectable: same("selectableFields"),
        }
    }
}

fn schema_of(version: &Value) -> Option<&Value> {
    version.pointer("/schema/openAPIV3Schema").filter(|schema| schema.is_object())
}

fn has_status(version: &Value) -> bool {
    version.pointer("/subresources/status").is_some_and(|status| !status.is_null())
}

/// What is wrong with each version on its own.
pub(super) fn each(versions: &[Value]) -> Vec<Cause> {
    let common = Common::of(versions);
    let mut found = Found::default();
    for (index, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        if let Some(why) = refuse_label(text(version, "name")) {
            found.invalid(format!("{path}.name"), &json!(text(version, "name")), &why);
        }
        deprecation(&mut found, version, &path);
        if let (Some(schema), false) = (schema_of(version), common.schema) {
            let path = format!("{path}.schema.openAPIV3Schema");
            found.0.extend(schema_checks::causes(schema, &path, has_status(version)));
        }
        if !common.subresources {
            subresources(&mut found, version, &format!("{path}.subresources"));
        }
        if !common.columns {
            columns(&mut found, version, &format!("{path}.additionalPrinterColumns"));
        }
        if !common.selectable {
            selectable(&mut found, version, &format!("{path}.selectableFields"));
        }
    }
    found.0
}

/// What is wrong with the parts that all versions have in common.
pub(super) fn shared(versions: &[Value]) -> Vec<Cause> {
    let common = Common::of(versions);
    let mut found = Found::default();
    let Some(first) = versions.first() else { return found.0 };
    if let (Some(schema), true) = (schema_of(first), common.schema) {
        let status = versions.iter().any(has_status);
        found.0.extend(schema_checks::causes(schema, "spec.validation.openAPIV3Schema", status));
    }
    if common.subresources {
        subresources(&mut found, first, "spec.subresources");
    }
    if common.columns {
        columns(&mut found, first, "spec.additionalPrinterColumns");
    }
    if common.selectable {
        selectable(&mut found, first, "spec.selectableFields");
    }
    found.0
}

fn deprecation(found: &mut Found, version: &Value, path: &str) {
    let Some(warning) = given(version, "deprecationWarning") else { return };
    let field = format!("{path}.deprecationWarning");
    let words = warning.as_str().unwrap_or_default();
    if version["deprecated"] != json!(true) {
        return found.invalid(field, warning, "can only be set for deprecated versions");
    }
    if words.len() > 256 {
        found.invalid(field.clone(), warning, "must be <= 256 characters long");
    }
    if words.is_empty() {
        found.invalid(field.clone(), warning, "must not be an empty string");
    }
    if let Some((at, _)) = words.char_indices().find(|(_, letter)| letter.is_control()) {
        let why = format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        );
        found.invalid(field, warning, &why);
    }
}

fn subresources(found: &mut Found, version: &Value, path: &str) {
    let Some(scale) = version.pointer("/subresources/scale").filter(|scale| scale.is_object()) else {
        return;
    };
    for (name, wanted, words) in [
        ("specReplicasPath", &[".spec."][..], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."], "should be a json path under .status"),
        ("labelSelectorPath", &[".spec.", ".status."], "should be a json path under either .spec or .status"),
    ] {
        let field = format!("{path}.scale.{name}");
        let given = text(scale, name);
        match given {
            "" if name == "labelSelectorPath" => {}
            "" => found.required(field, ""),
            given if !given.starts_with('.') => {
                found.invalid(field, &json!(given), "must be a simple json path starting with .");
            }
            given if !wanted.iter().any(|wanted| given.starts_with(wanted)) => {
                found.invalid(field, &json!(given), words);
            }
            _ => {}
        }
    }
}

fn columns(found: &mut Found, version: &Value, path: &str) {
    for (index, column) in list(version, "additionalPrinterColumns").iter().enumerate() {
        let field = |name: &str| format!("{path}[{index}].{name}");
        if text(column, "name").is_empty() {
            found.required(field("name"), "");
        }
        match text(column, "type") {
            "" => found.required(field("type"), COLUMN_TYPES),
            "integer" | "number" | "string" | "boolean" | "date" => {}
            other => found.invalid(field("type"), &json!(other), COLUMN_TYPES),
        }
        match text(column, "format") {
            "" | "int32" | "int64" | "float" | "double" | "byte" | "date" | "date-time" | "password" => {}
            other => found.invalid(field("format"), &json!(other), COLUMN_FORMATS),
        }
        match text(column, "jsonPath") {
            "" => found.required(field("JSONPath"), ""),
            path if !path.starts_with('.') => {
                let why = "must be a simple json path starting with .";
                found.invalid(field("JSONPath"), &json!(path), why);
            }
            _ => {}
        }
    }
}

fn selectable(found: &mut Found, version: &Value, path: &str) {
    let fields = list(version, "selectableFields");
    let source = schema_of(version).and_then(|schema| Source::deserialize(schema).ok());
    let Some(source) = source.filter(|_| !fields.is_empty()) else { return };
    let mut seen: Vec<String> = Vec::new();
    for (index, given) in fields.iter().enumerate() {
        let field = format!("{path}[{index}].jsonPath");
        let written = json!(text(given, "jsonPath"));
        if text(given, "jsonPath").is_empty() {
            found.required(field, "");
            continue;
        }
        let (name, of) = match field_path::read(text(given, "jsonPath"), &source, false) {
            Ok(read) => read,
            Err(why) => {
                found.invalid(field, &written, &format!("is an invalid path: {why}"));
                continue;
            }
        };
        if name == "metadata" || name.starts_with("metadata.") {
            found.invalid(field.clone(), &written, "must not point to fields in metadata");
        }
        if !matches!(of.kind.as_str(), "string" | "boolean" | "integer") {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            found.invalid(field.clone(), &written, why);
        }
        if seen.contains(&name) {
            found.duplicate(field, &written);
        } else {
            seen.push(name);
        }
    }
    if seen.len() > MOST_SELECTABLE {
        let message = format!("Too many: {}: must have at most {MOST_SELECTABLE} items", seen.len());
        found.0.push(Cause { reason: "FieldValueTooMany", message, field: path.to_owned() });
    }
}
