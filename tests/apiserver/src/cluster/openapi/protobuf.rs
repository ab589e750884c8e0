//! OpenAPI documents as protobuf: the messages of gnostic, which Go's clients read documents with.
//!
//! Answers: which bytes encode this document of version 2 or 3? The documents themselves are made elsewhere.
//! 1. `v2.txt` and `v3.txt` hold the messages (generated from Go's descriptors); the code knows how keys become fields.
//! 2. Maps of a document (by paths, codes, names of schemas) become lists of named values, in its order.
//! 3. Members without a field are extensions, whose value is YAML. Empty texts and zeros are left out.
use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::cluster::encoding::write_yaml;
use crate::protobuf::wire::{put_bytes, put_double, put_message, put_number};

static V2: LazyLock<Messages> = LazyLock::new(|| Messages::read(include_str!("protobuf/v2.txt")));
static V3: LazyLock<Messages> = LazyLock::new(|| Messages::read(include_str!("protobuf/v3.txt")));

/// A document of version 2.
pub(crate) fn v2(document: &Value) -> Vec<u8> {
    V2.document(document)
}

/// A document of version 3.
pub(crate) fn v3(document: &Value) -> Vec<u8> {
    V3.document(document)
}

/// The messages of one version, by name.
#[derive(Debug)]
struct Messages(HashMap<&'static str, Message>);

#[derive(Debug)]
struct Message {
    /// Whether it holds one of its fields, chosen by what the value looks like.
    choice: bool,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    number: u32,
    name: &'static str,
    repeated: bool,
    shape: Shape,
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Text,
    Bool,
    Double,
    Integer,
    Message(&'static str),
}

impl Messages {
    fn read(text: &'static str) -> Self {
        let (mut messages, mut last) = (HashMap::new(), "");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                [letter, name] => {
                    last = name;
                    messages.insert(*name, Message { choice: *letter == "o", fields: Vec::new() });
                }
                [number, name, shape] => {
                    let message = messages.get_mut(last).expect("a message line comes first");
                    message.fields.push(field(number, name, shape));
                }
                _ => unreachable!("the table has no other lines: {line}"),
            }
        }
        messages.values_mut().for_each(|message| message.fields.sort_by_key(|field| field.number));
        Self(messages)
    }

    fn document(&self, document: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        self.message("Document", document, &mut out);
        out
    }

    /// The inside of a message.
    fn message(&self, name: &str, value: &Value, out: &mut Vec<u8>) {
        let message = &self.0[name];
        let none = Map::new();
        let members = value.as_object().unwrap_or(&none);
        match name {
            "Any" => put_bytes(out, 2, yaml_of(value).as_bytes()),
            // A list of one where the document has just that one, a list of texts where it has a list.
            "ItemsItem" | "TypeItem" | "StringArray" => {
                let field = &message.fields[0];
                let one = std::slice::from_ref(value);
                for item in value.as_array().map_or(one, Vec::as_slice) {
                    self.one(field, item, out);
                }
            }
            _ if message.choice => {
                if let Some(at) = chosen(name, value) {
                    self.one(&message.fields[at], value, out);
                }
            }
            _ => message.fields.iter().for_each(|field| self.field(field, members, out)),
        }
    }

    fn field(&self, field: &Field, members: &Map<String, Value>, out: &mut Vec<u8>) {
        if let (true, Shape::Message(named)) = (field.repeated, field.shape)
            && named.starts_with("Named")
        {
            for (key, value) in members.iter().filter(|(key, _)| belongs(field.name, key)) {
                put_message(out, field.number, |out| {
                    put_bytes(out, 1, key.as_bytes());
                    self.one(&self.0[named].fields[1], value, out);
                });
            }
            return;
        }
        match members.get(field.name) {
            Some(Value::Array(items)) if field.repeated => {
                items.iter().for_each(|item| self.one(field, item, out));
            }
            Some(value) if !is_zero(field.shape, value) => self.one(field, value, out),
            _ => {}
        }
    }

    fn one(&self, field: &Field, value: &Value, out: &mut Vec<u8>) {
        match field.shape {
            Shape::Text => put_bytes(out, field.number, value.as_str().unwrap_or_default().as_bytes()),
            Shape::Bool => put_number(out, field.number, u64::from(value.as_bool() == Some(true))),
            Shape::Double => put_double(out, field.number, value.as_f64().unwrap_or_default()),
            Shape::Integer => {
                put_number(out, field.number, value.as_i64().unwrap_or_default().cast_unsigned());
            }
            Shape::Message(name) => put_message(out, field.number, |out| self.message(name, value, out)),
        }
    }
}

/// A value as YAML. The type of an operation has the order of Go's struct, all else is sorted by name.
fn yaml_of(value: &Value) -> String {
    let names = ["group", "version", "kind"];
    match value {
        Value::Object(members)
            if members.len() == 3 && names.iter().all(|name| members.contains_key(*name)) =>
        {
            names.map(|name| write_yaml(&json!({ name: members[name] }), true)).concat()
        }
        other => write_yaml(other, true),
    }
}

fn field(number: &str, name: &'static str, shape: &'static str) -> Field {
    let (repeated, shape) = shape.strip_prefix('[').map_or((false, shape), |shape| (true, shape));
    let shape = match shape {
        "s" => Shape::Text,
        "B" => Shape::Bool,
        "d" => Shape::Double,
        "i" => Shape::Integer,
        _ => Shape::Message(&shape[1..]),
    };
    let number = number.parse().expect("a field line begins with a number");
    Field { number, name, repeated, shape }
}

/// Whether a member belongs to this list of named values.
fn belongs(list: &str, key: &str) -> bool {
    match list {
        "vendorExtension" | "specificationExtension" => key.starts_with("x-"),
        "path" => key.starts_with('/'),
        "responseCode" | "responseOrReference" => {
            (list == "responseCode" && key == "default")
                || (key.len() == 3 && key.bytes().all(|byte| byte.is_ascii_digit() || byte == b'X'))
        }
        _ => true,
    }
}

/// Which of its fields a message of choice holds for this value; none if no field fits.
fn chosen(name: &str, value: &Value) -> Option<usize> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let place = |names: &[&str], given: &str| names.iter().position(|name| *name == given);
    match name {
        "DefaultType" | "SpecificationExtension" => match value {
            Value::Number(_) => Some(0),
            Value::Bool(_) => Some(1),
            Value::String(_) => Some(2),
            _ => None,
        },
        "AdditionalPropertiesItem" => Some(usize::from(value.is_boolean())),
        "Parameter" => Some(usize::from(text("in") != "body")),
        "NonBodyParameter" => place(&["header", "formData", "query", "path"], text("in")),
        "SecurityDefinitionsItem" => match (text("type"), text("flow")) {
            ("basic", _) => Some(0),
            ("apiKey", _) => Some(1),
            (_, flow) => place(&["implicit", "password", "application", "accessCode"], flow).map(|at| at + 2),
        },
        "SchemaItem" => Some(usize::from(text("type") == "file")),
        _ => Some(usize::from(value.get("$ref").is_some())),
    }
}

fn is_zero(shape: Shape, value: &Value) -> bool {
    match shape {
        Shape::Text => value.as_str() == Some(""),
        Shape::Bool => value.as_bool() != Some(true),
        Shape::Double | Shape::Integer => value.as_f64() == Some(0.0),
        Shape::Message(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_that_a_field_names_exists() {
        for messages in [&V2, &V3] {
            for field in messages.0.values().flat_map(|message| &message.fields) {
                if let Shape::Message(name) = field.shape {
                    assert!(messages.0.contains_key(name), "{name}");
                }
            }
        }
    }

    #[test]
    fn api_40_a_document_is_written_as_its_messages() {
        let schema = json!({"type": "object", "x-list": ["a", "no"], "properties": {"a": {"$ref": "#/b", "default": {}}}});
        let document = json!({"openapi": "3.0.0", "paths": {}, "components": {"schemas": {"S": schema}}});
        let components = b"\x0a\x3b\x0a\x39\x0a\x01S\x12\x34\x0a\x32\xca\x01\x06object\xfa\x01\x0e\x0a\x0c\x0a\x01a\x12\x07\x12\x05\
            \x0a\x03#/b\xa2\x02\x15\x0a\x06x-list\x12\x0b\x12\x09- a\x0a- no\x0a";
        let expected = [b"\x0a\x053.0.0\x22\x00\x2a\x3d".as_slice(), components].concat();
        assert_eq!(v3(&document).escape_ascii().to_string(), expected.escape_ascii().to_string());
    }

    #[test]
    fn api_40_parameters_of_the_older_form_are_written_by_their_place() {
        let parameters = json!([{"in": "query", "name": "q"}, {"in": "body", "name": "b"}, {"$ref": "#/p"}]);
        let operation = json!({"parameters": parameters, "responses": {"default": {"$ref": "#/r"}}});
        let told = v2(&json!({"swagger": "2.0", "paths": {"/a": {"get": operation}}}));
        for part in [
            b"\x0a\x0e\x12\x0c\x1a\x0a\x12\x05query\x22\x01q".as_slice(),
            b"\x0a\x0b\x0a\x09\x12\x01b\x1a\x04body",
            b"\x12\x05\x0a\x03#/p",
            b"\x0a\x07default\x12\x07\x12\x05\x0a\x03#/r",
        ] {
            assert!(told.windows(part.len()).any(|window| window == part), "{}", told.escape_ascii());
        }
    }
}
