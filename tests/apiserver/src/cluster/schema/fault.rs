//! What is wrong with a body as text, with the texts of the API: unknown and duplicate fields, wrong types.
//!
//! Answers: how is this fault reported? The walk in `decode.rs` finds it and its place.
//! 1. Unknown and duplicate fields are in the order of the text.
//! 2. Of the wrong types only the first one is reported, as by Go's decoder.
use super::{Format, List, Scalar, Schema, Shape, TypeId};

/// One step of the way from the root of an object to a place in it.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A field, with the name of the type it belongs to where that has one.
    Field(String, Option<Box<str>>),
    /// A key of a map.
    Key(String),
    Item(usize),
}

/// A field that should not be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Unknown,
    Duplicate,
}

/// Everything found on one walk.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(super) path: Vec<Step>,
    fields: Vec<(Fault, String)>,
    refused: Option<String>,
}

/// Types that Go keeps inside another by embedding, which its error texts name: type, embedded type, its fields.
const EMBEDDED: &[(&str, &str, &[&str])] =
    &[("Probe", "ProbeHandler", &["exec", "grpc", "httpGet", "tcpSocket"])];

/// The same where all fields but one are embedded: type, embedded type, the field that is not.
const EMBEDDED_BUT: &[(&str, &str, &[&str])] = &[
    ("Volume", "VolumeSource", &["name"]),
    ("EphemeralContainer", "EphemeralContainerCommon", &["targetContainerName"]),
];

impl Faults {
    /// The unknown and duplicate fields as sentences; `custom` kinds report duplicates first, then their
    /// metadata.
    pub(crate) fn fields(&self, custom: bool) -> Vec<String> {
        let mut fields: Vec<&(Fault, String)> = self.fields.iter().collect();
        if custom {
            fields.sort_by_key(|(fault, path)| match fault {
                Fault::Duplicate => (0, ""),
                Fault::Unknown if path.starts_with("metadata.") => (1, path.as_str()),
                Fault::Unknown => (2, path.as_str()),
            });
        }
        let sentence = |(fault, path): &&(Fault, String)| match fault {
            Fault::Unknown => format!("unknown field {path:?}"),
            Fault::Duplicate => format!("duplicate field {path:?}"),
        };
        fields.iter().map(sentence).collect()
    }

    /// Only the duplicates: a patch is checked for them before it is applied.
    pub(crate) fn duplicates(&self) -> Vec<String> {
        let duplicates = self.fields.iter().filter(|(fault, _)| *fault == Fault::Duplicate);
        duplicates.map(|(_, path)| format!("duplicate field {path:?}")).collect()
    }

    /// The first wrong type.
    pub(crate) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    pub(super) fn push_at(&mut self, fault: Fault, name: &str) {
        let mut path = self.place();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
        self.fields.push((fault, path));
    }

    pub(super) fn wrong_type(&mut self, found: &str, wanted: GoType) {
        if self.refused.is_some() {
            return;
        }
        let place = match self.struct_field() {
            Some(field) => format!("Go struct field {field}"),
            None => "Go value".to_owned(),
        };
        self.refused = Some(format!("json: cannot unmarshal {found} into {place} of type {}", wanted.0));
    }

    pub(super) fn refuse(&mut self, why: String) {
        self.refused.get_or_insert(why);
    }

    /// `spec.containers[0].name`.
    fn place(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            match step {
                Step::Field(name, _) | Step::Key(name) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(name);
                }
                Step::Item(index) => text.push_str(&format!("[{index}]")),
            }
        }
        text
    }

    /// `Container.spec.containers.name`: the innermost struct, then the fields on the way.
    fn struct_field(&self) -> Option<String> {
        let mut owner = "";
        let mut names = Vec::new();
        for step in &self.path {
            let Step::Field(name, of) = step else { continue };
            // A custom kind's own fields do not belong to a Go struct.
            let Some(of) = of else { continue };
            owner = short(of);
            names.extend(embedded(owner, name));
            names.push(name);
        }
        (!names.is_empty()).then(|| format!("{owner}.{}", names.join(".")))
    }
}

fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn embedded(owner: &str, field: &str) -> Option<&'static str> {
    let named = EMBEDDED.iter().find(|(of, _, fields)| *of == owner && fields.contains(&field));
    let but = EMBEDDED_BUT.iter().find(|(of, _, fields)| *of == owner && !fields.contains(&field));
    named.or(but).map(|(_, name, _)| *name)
}

/// A type as Go writes it.
#[derive(Debug)]
pub(super) struct GoType(String);

impl GoType {
    pub(super) fn of(schema: &Schema, id: TypeId) -> Self {
        Self(go_type(schema, id))
    }
}

fn go_type(schema: &Schema, id: TypeId) -> String {
    let shape = &schema.get(id).shape;
    if let (Some(name), Shape::Object(_)) = (schema.name(id), shape) {
        let mut parts = name.rsplit('.');
        let (name, package) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        return format!("{package}.{name}");
    }
    match shape {
        Shape::Any => "interface {}".to_owned(),
        Shape::Scalar(Scalar::Text(Format::Byte)) => "[]uint8".to_owned(),
        Shape::Scalar(Scalar::Text(_)) => "string".to_owned(),
        Shape::Scalar(Scalar::Integer(Format::Int64)) => "int64".to_owned(),
        Shape::Scalar(Scalar::Integer(_) | Scalar::IntegerOrText) => "int32".to_owned(),
        Shape::Scalar(Scalar::Number(_)) => "float64".to_owned(),
        Shape::Scalar(Scalar::Boolean) => "bool".to_owned(),
        Shape::Scalar(Scalar::Quantity) => "resource.Quantity".to_owned(),
        Shape::List(List { items, .. }) => format!("[]{}", go_type(schema, items.id)),
        Shape::Object(object) => match &object.others {
            Some(slot) => match go_type(schema, slot.id).as_str() {
                "resource.Quantity" => "v1.ResourceList".to_owned(),
                value => format!("map[string]{value}"),
            },
            None => "map[string]interface {}".to_owned(),
        },
    }
}
