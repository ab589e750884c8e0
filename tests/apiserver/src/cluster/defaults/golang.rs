//! Objects as a Go server reads and writes them: zero values, times and amounts of its types.
//!
//! Answers: which members of this object are dropped because they are zero, which are written although they are zero,
//! and how is a value written? The table of types is that of the protobuf messages, which has the JSON of every field
//! too.
//! 1. `read` drops zero values, and creates every part that is always there; defaults are written after it, into
//!    missing members.
//! 2. `write` adds members that are written although they are zero. Writing an object that was read and written
//!    changes nothing.
//! 3. Times are written in UTC, without (Time) or with six (MicroTime) digits; amounts as in `schema/quantity.rs`.
//!
//! Next: `mod.rs` calls both.
use serde_json::{Map, Value};

use crate::cluster::kind::Kind;
use crate::cluster::schema::{quantity, time};
use crate::protobuf::{Field, Shape, TABLE};

type Object = Map<String, Value>;

/// The Go type of a kind; none for a custom kind.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct GoType {
    place: usize,
    /// Whether its maps of amounts are resources, which are counted in thousandths.
    resources: bool,
}

impl GoType {
    pub(in super::super) fn of(kind: &Kind) -> Option<Self> {
        let place = TABLE.kind(&kind.api_version(), &kind.kind)?;
        Some(Self { place, resources: *kind.resource.group != *"resource.k8s.io" })
    }

    /// Drops zero values, creates the parts that are always there, and writes values as the API does.
    pub(in super::super) fn read(self, value: &mut Value) {
        if let Value::Object(object) = value {
            read_fields(self.place, object, self.resources);
        }
    }

    /// Adds members that are written although they are zero. Then an empty list or map stays.
    pub(in super::super) fn write(self, value: &mut Value) {
        if let Value::Object(object) = value {
            write_fields(self.place, object, false);
        }
    }

    /// Does the same as `write`, and makes empty lists and maps null: stored objects do not distinguish the
    /// two.
    pub(in super::super) fn store(self, value: &mut Value) {
        if let Value::Object(object) = value {
            write_fields(self.place, object, true);
        }
    }

    /// The zero value of the type, as it is written.
    pub(in super::super) fn zero(self) -> Value {
        let mut zero = Value::Object(Map::new());
        self.write(&mut zero);
        zero
    }
}

/// `resources` says whether maps of amounts are lists of resources.
fn read_fields(place: usize, object: &mut Object, resources: bool) {
    for field in TABLE.message(place) {
        if let (true, Some(place)) = (field.inline, message(&field.shape)) {
            read_fields(place, object, resources);
            continue;
        }
        let always = matches!(field.shape, Shape::Message(_)) && !field.omit_zero;
        let value = match object.get_mut(field.name) {
            Some(value) => value,
            None if always => object.entry(field.name).or_insert(Value::Null),
            None => continue,
        };
        if always && value.is_null() {
            *value = Value::Object(Map::new());
        }
        read_value(&field.shape, value, resources);
        if is_zero(field, value) {
            object.remove(field.name);
        }
    }
}

fn read_value(shape: &Shape, value: &mut Value, resources: bool) {
    match (shape, value) {
        (Shape::Pointer(inner), value) => read_value(inner, value, resources),
        (Shape::List(inner) | Shape::Wrapped(inner), Value::Array(items)) => {
            items.iter_mut().for_each(|item| read_value(inner, item, resources));
        }
        (Shape::Map(inner), Value::Object(members)) if **inner == Shape::Quantity => {
            members.values_mut().for_each(|amount| respell(amount, |text| spell_resource(text, resources)));
        }
        (Shape::Map(inner), Value::Object(members)) => {
            members.values_mut().for_each(|member| read_value(inner, member, resources));
        }
        (Shape::Message(place), Value::Object(object)) => read_fields(*place, object, resources),
        (Shape::SchemaOr(_), Value::Object(object)) => read_fields(TABLE.schema(), object, resources),
        (Shape::Time, value) => respell(value, |text| Some(time::time(text).ok()?.told(false).into())),
        (Shape::MicroTime, value) => {
            respell(value, |text| Some(time::micro_time(text).ok()?.told(true).into()))
        }
        (Shape::Quantity, value) => respell(value, |text| spell_resource(text, false)),
        _ => {}
    }
}

fn respell(value: &mut Value, spell: impl Fn(&str) -> Option<Value>) {
    if let Some(told) = value.as_str().and_then(spell) {
        *value = told;
    }
}

fn spell_resource(text: &str, milli: bool) -> Option<Value> {
    let spelled = if milli { quantity::canonical_milli(text) } else { quantity::canonical(text) };
    Some(Value::String(spelled.ok()?.into_owned()))
}

/// Whether a field means the same as its absence.
fn is_zero(field: &Field, value: &Value) -> bool {
    match (&field.shape, value) {
        (_, Value::Null) => true,
        (Shape::Pointer(_), _) => false,
        (Shape::Message(_), Value::Object(object)) => field.omit_zero && object.is_empty(),
        (Shape::List(_) | Shape::Wrapped(_), Value::Array(items)) => field.omit_empty && items.is_empty(),
        (Shape::Map(_), Value::Object(members)) => field.omit_empty && members.is_empty(),
        (Shape::Text | Shape::Bytes, Value::String(text)) => text.is_empty(),
        (Shape::Bool, value) => *value == Value::Bool(false),
        (Shape::Integer | Shape::Double | Shape::IntOrString, Value::Number(number)) => {
            number.as_f64() == Some(0.0)
        }
        _ => false,
    }
}

/// `stored` says whether empty lists and maps become null.
fn write_fields(place: usize, object: &mut Object, stored: bool) {
    for field in TABLE.message(place) {
        if let (true, Some(place)) = (field.inline, message(&field.shape)) {
            write_fields(place, object, stored);
            continue;
        }
        match object.get_mut(field.name) {
            Some(value) => write_value(&field.shape, value, stored),
            None if is_told(field) => {
                object.insert(field.name.to_owned(), zero(&field.shape));
            }
            None => {}
        }
    }
}

fn write_value(shape: &Shape, value: &mut Value, stored: bool) {
    match (shape, &mut *value) {
        (Shape::Pointer(inner), value) => write_value(inner, value, stored),
        (Shape::List(_) | Shape::Wrapped(_), Value::Array(items)) if stored && items.is_empty() => {
            *value = Value::Null;
        }
        (Shape::Map(_), Value::Object(members)) if stored && members.is_empty() => *value = Value::Null,
        (Shape::List(inner) | Shape::Wrapped(inner), Value::Array(items)) => {
            items.iter_mut().for_each(|item| write_value(inner, item, stored));
        }
        (Shape::Map(inner), Value::Object(members)) => {
            members.values_mut().for_each(|member| write_value(inner, member, stored));
        }
        (Shape::Message(place), Value::Object(object)) => write_fields(*place, object, stored),
        _ => {}
    }
}

/// Whether a field is written although it was not set.
fn is_told(field: &Field) -> bool {
    !(field.omit_zero || field.omit_empty && field.shape.may_be_empty())
}

fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::Text => "".into(),
        Shape::Bool => false.into(),
        Shape::Integer | Shape::Double | Shape::IntOrString => 0.into(),
        Shape::Quantity => "0".into(),
        Shape::Message(place) => {
            let mut object = Map::new();
            write_fields(*place, &mut object, false);
            object.into()
        }
        _ => Value::Null,
    }
}

fn message(shape: &Shape) -> Option<usize> {
    match shape {
        Shape::Message(place) => Some(*place),
        Shape::Pointer(inner) => message(inner),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::builtin;

    fn round_trip(group: &str, plural: &str, mut value: Value) -> Value {
        let kind = builtin::kinds().find(|kind| kind.resource.is(group, plural)).unwrap();
        let go = GoType::of(&kind).unwrap();
        go.read(&mut value);
        go.write(&mut value);
        value
    }

    #[test]
    fn api_22_an_optional_false_is_dropped_and_one_behind_a_pointer_stays() {
        let spec = json!({"hostNetwork": false, "automountServiceAccountToken": false, "nodeName": "", "containers": []});
        let pod = round_trip("", "pods", json!({"spec": spec}));
        assert_eq!(pod["spec"], json!({"automountServiceAccountToken": false, "containers": []}));
    }

    #[test]
    fn api_22_parts_that_are_structs_are_always_written_and_times_as_null() {
        let node = round_trip("", "nodes", json!({"status": {"conditions": [{"type": "Ready"}]}}));
        assert_eq!(
            node["status"]["conditions"][0],
            json!({"type": "Ready", "status": "", "lastHeartbeatTime": null, "lastTransitionTime": null})
        );
        assert_eq!(node["status"]["daemonEndpoints"], json!({"kubeletEndpoint": {"Port": 0}}));
    }

    #[test]
    fn api_44_times_are_written_in_utc_with_the_digits_of_their_type() {
        let event = json!({"firstTimestamp": "2020-01-02T03:04:05.999+02:00", "lastTimestamp": "0001-01-01T00:00:00Z",
            "eventTime": "2020-01-02T03:04:05.123456+02:00"});
        let event = round_trip("", "events", event);
        assert_eq!(event["firstTimestamp"], "2020-01-02T01:04:05Z");
        assert_eq!(event["lastTimestamp"], Value::Null);
        assert_eq!(event["eventTime"], "2020-01-02T01:04:05.123456Z");
    }

    #[test]
    fn api_22_a_written_value_is_written_again_unchanged() {
        for kind in builtin::kinds() {
            let Some(go) = GoType::of(&kind) else { continue };
            let mut value = go.zero();
            go.read(&mut value);
            go.write(&mut value);
            assert_eq!(value, go.zero(), "{}", kind.resource);
        }
    }
}
