//! Decodes a body by the schema of its kind: the value, the unknown fields, the duplicate fields, the wrong types.
//!
//! Answers: what does this text mean as an object of this kind, and what is wrong with the text? It walks text and
//! types together; a value that is in memory already is walked by the same code.
//! 1. Unknown fields are dropped, whatever the client asked for; their names are kept for a warning or a refusal. Below a value
//!    of a wrong type a custom kind knows no field.
//! 2. A built-in kind is typed, as Go's decoder is: the first wrong type refuses the body, a null field is an absent one.
//! 3. A custom kind is typed in its metadata only; nulls stay, its schema checks the rest later (`definition`).
//! 4. The sentences about a scalar (times, base64, quantities, sizes of integers) are those of the real server's decoder.
//!
//! Next: `fault.rs` has the sentences.

use std::cell::RefCell;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::fault::{Fault, Faults, GoType, Step};
use super::{Format, Object, Scalar, Schema, Shape, TypeId, quantity, time};

/// The optional fields that are written although they are empty.
const KEPT_EMPTY: [(&str, &str); 8] = [
    ("ClusterRole", "rules"),
    ("Role", "rules"),
    ("EndpointSlice", "endpoints"),
    ("EndpointSlice", "ports"),
    ("DeviceClaim", "requests"),
    ("HorizontalPodAutoscalerStatus", "currentMetrics"),
    ("CustomResourceDefinitionStatus", "conditions"),
    ("CustomResourceDefinitionStatus", "storedVersions"),
];

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// A body, decoded.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) value: Value,
    pub(crate) faults: Faults,
}

/// Walks a JSON text along a schema.
///
/// # Errors
/// The text is not JSON.
pub(crate) fn text(schema: &Schema, typed: bool, body: &[u8]) -> Result<Decoded, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let decoded = walk(schema, typed, &mut json)?;
    json.end()?;
    Ok(decoded)
}

/// The duplicate fields of a JSON text, as sentences; none for a text that is not JSON.
pub(crate) fn duplicates(body: &[u8]) -> Vec<String> {
    let faults = RefCell::new(Faults::default());
    let mut json = serde_json::Deserializer::from_slice(body);
    let root = Walk { schema: None, faults: &faults, id: None, typed: false, closed: false };
    let walked = root.deserialize(&mut json);
    let faults = faults.into_inner();
    walked.map_or_else(|_| Vec::new(), |_| faults.duplicates())
}

/// Walks a value along a schema.
pub(crate) fn value(schema: &Schema, typed: bool, body: Value) -> Decoded {
    walk(schema, typed, body).expect("a JSON value is JSON")
}

fn walk<'de, D: Deserializer<'de>>(schema: &Schema, typed: bool, json: D) -> Result<Decoded, D::Error> {
    let faults = RefCell::new(Faults::default());
    let root = Walk { schema: Some(schema), faults: &faults, id: Some(schema.root()), typed, closed: false };
    let value = root.deserialize(json)?;
    Ok(Decoded { value, faults: faults.into_inner() })
}

/// One place of the walk: which type is expected here.
#[derive(Clone, Copy)]
struct Walk<'a> {
    /// None if only the text is checked.
    schema: Option<&'a Schema>,
    faults: &'a RefCell<Faults>,
    /// None inside free-form values.
    id: Option<TypeId>,
    /// Whether a value of another type is an error.
    typed: bool,
    /// Whether this lies in a list where a custom kind has none: its fields are unknown.
    closed: bool,
}

impl<'a> Walk<'a> {
    fn shape(&self) -> &'a Shape {
        if self.closed {
            return &Shape::Scalar(Scalar::Boolean);
        }
        self.schema.zip(self.id).map_or(&Shape::Any, |(schema, id)| &schema.get(id).shape)
    }

    fn wrong(&self, found: &str) {
        if let (true, Some((schema, id))) = (self.typed, self.schema.zip(self.id)) {
            self.faults.borrow_mut().wrong_type(found, GoType::of(schema, id));
        }
    }

    fn refuse(&self, why: Option<String>) {
        if let (true, Some(why)) = (self.typed, why) {
            self.faults.borrow_mut().refuse(why);
        }
    }

    fn number(&self, number: Number) -> Value {
        match self.shape() {
            Shape::Any | Shape::Scalar(Scalar::Quantity | Scalar::Number(_)) => {}
            Shape::Scalar(Scalar::Integer(format)) if fits(&number, *format) => {}
            Shape::Scalar(Scalar::IntegerOrText) if fits(&number, Format::Int32) => {}
            Shape::Scalar(Scalar::Integer(_) | Scalar::IntegerOrText) => {
                self.wrong(&format!("number {number}"))
            }
            _ => self.wrong("number"),
        }
        match self.shape() {
            Shape::Scalar(Scalar::Quantity) if self.typed => Value::String(number.to_string()),
            _ => Value::Number(number),
        }
    }

    fn string(&self, text: String) -> Value {
        match self.shape() {
            Shape::Any | Shape::Scalar(Scalar::IntegerOrText) => {}
            Shape::Scalar(Scalar::Text(format)) => self.refuse(refuse_text(&text, *format)),
            Shape::Scalar(Scalar::Quantity) => self.refuse(refuse_quantity(&text)),
            _ => self.wrong("string"),
        }
        Value::String(text)
    }

    /// The type expected behind a field, and none if the object has no such field and keeps no others.
    fn under(&self, name: &str) -> Option<Self> {
        let object = match self.shape() {
            Shape::Object(object) => object,
            Shape::Scalar(_) | Shape::List(_) if !self.typed => return None,
            _ => return Some(Self { id: None, ..*self }),
        };
        // A custom kind is typed from its `metadata` down.
        let metadata = !self.typed && name == "metadata" && self.is_whole(object);
        match object.field(name) {
            Some(slot) => Some(Self { id: Some(slot.id), typed: self.typed || metadata, ..*self }),
            None => object.open.then_some(Self { id: None, ..*self }),
        }
    }

    fn is_whole(&self, object: &Object) -> bool {
        self.id == self.schema.map(Schema::root) || object.embedded
    }

    /// What a null means here: nothing, or the zero value of an item or of a map's value.
    fn null_of(&self) -> Value {
        match self.shape() {
            Shape::Scalar(Scalar::Text(_)) => Value::String(String::new()),
            Shape::Scalar(Scalar::Integer(_)) => Value::from(0),
            Shape::Scalar(Scalar::Boolean) => Value::Bool(false),
            Shape::Object(_) => Value::Object(Map::new()),
            _ => Value::Null,
        }
    }

    /// Whether Go omits this field because its list or map is empty; a struct is written even without fields.
    fn is_left_out(&self, name: &str, value: &Value) -> bool {
        let (Shape::Object(object), Some((schema, id))) = (self.shape(), self.schema.zip(self.id)) else {
            return false;
        };
        let Some(slot) = object.fields.get(name).filter(|_| is_empty(value)) else { return false };
        let is_collection = match &schema.get(slot.id).shape {
            Shape::List(_) => true,
            Shape::Object(object) => object.fields.is_empty() && object.others.is_some(),
            Shape::Any | Shape::Scalar(_) => false,
        };
        let owner = schema.name(id).and_then(|owner| owner.rsplit('.').next());
        let kept = owner.is_some_and(|owner| KEPT_EMPTY.contains(&(owner, name)));
        is_collection && !kept && !object.required.iter().any(|required| **required == *name)
    }

    fn enter(&self, name: &str, object: &mut Map<String, Value>) -> Option<Self> {
        let mut faults = self.faults.borrow_mut();
        let Some(below) = self.under(name) else {
            faults.push_at(Fault::Unknown, name);
            return None;
        };
        if object.contains_key(name) {
            faults.push_at(Fault::Duplicate, name);
        }
        let named = match self.shape() {
            Shape::Object(object) => object.fields.contains_key(name),
            _ => false,
        };
        let owner = self.schema.zip(self.id).and_then(|(schema, id)| schema.name(id));
        faults.path.push(if named {
            Step::Field(name.to_owned(), owner.map(Into::into))
        } else {
            Step::Key(name.to_owned())
        });
        Some(below)
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        match self.shape() {
            Shape::Any | Shape::Scalar(Scalar::Boolean) => {}
            Shape::Scalar(Scalar::Quantity) => self.refuse(refuse_quantity("true")),
            _ => self.wrong("bool"),
        }
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(self.number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(self.number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, |number| self.number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(self.string(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(self.string(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let below = match self.shape() {
            Shape::List(list) => Self { id: Some(list.items.id), ..self },
            Shape::Any => self,
            Shape::Scalar(Scalar::Quantity) => {
                self.refuse(refuse_quantity("[]"));
                Self { id: None, ..self }
            }
            shape => {
                self.wrong("array");
                let open = matches!(shape, Shape::Object(object) if object.open);
                Self { id: None, closed: !self.typed && !open, ..self }
            }
        };
        let mut list = Vec::new();
        loop {
            self.faults.borrow_mut().path.push(Step::Item(list.len()));
            let item = items.next_element_seed(below)?;
            self.faults.borrow_mut().path.pop();
            match item {
                Some(Value::Null) if self.typed => list.push(below.null_of()),
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        match self.shape() {
            Shape::Any | Shape::Object(_) => {}
            Shape::Scalar(Scalar::Quantity) => self.refuse(refuse_quantity("{}")),
            _ => self.wrong("object"),
        }
        let mut object = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let Some(below) = self.enter(&name, &mut object) else {
                entries.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = entries.next_value_seed(below)?;
            let mut faults = self.faults.borrow_mut();
            let key = matches!(faults.path.pop(), Some(Step::Key(_)));
            let value = if key && value.is_null() && self.typed { below.null_of() } else { value };
            object.insert(name, value);
        }
        let free = matches!(self.shape(), Shape::Object(object) if object.open && object.fields.is_empty());
        if self.typed && !free && !matches!(self.shape(), Shape::Any) {
            object.retain(|name, value| !value.is_null() && !self.is_left_out(name, value));
        }
        Ok(Value::Object(object))
    }
}

/// Whether the number is an integer of this size. `1.0` is not an integer, as in Go.
pub(super) fn fits(number: &Number, format: Format) -> bool {
    match (number.as_i64(), format) {
        (Some(value), Format::Int32) => i32::try_from(value).is_ok(),
        (Some(_), _) => true,
        (None, _) => false,
    }
}

/// Why the text is not of this format, if it is not.
pub(super) fn refuse_text(text: &str, format: Format) -> Option<String> {
    match format {
        Format::DateTime => time::time(text).err(),
        Format::MicroTime => time::micro_time(text).err(),
        Format::Byte => STANDARD.decode(text).err().map(|error| {
            let at = match error {
                base64::DecodeError::InvalidByte(at, _) => at,
                base64::DecodeError::InvalidLastSymbol(at, _) => at,
                base64::DecodeError::InvalidLength(at) => at / 4 * 4,
                base64::DecodeError::InvalidPadding => text.trim_end_matches('=').len(),
            };
            format!("illegal base64 data at input byte {at}")
        }),
        _ => None,
    }
}

/// Why the text is not a quantity, if it is not.
pub(super) fn refuse_quantity(text: &str) -> Option<String> {
    quantity::canonical(text).err().map(|error| error.to_string())
}
