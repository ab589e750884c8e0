//! Defaults of custom objects: absent fields filled in, nulls dropped or replaced.
//!
//! Answers: what does the server store if the client set nothing? It refuses nothing.
//! 1. A null of a field that is not nullable becomes the field's default, or is dropped where there is none.
//! 2. Defaults are completed too: a default of `{}` gets the defaults below it.
//! 3. `metadata` has no defaults.
use serde_json::{Map, Value};

use crate::cluster::schema::Schema;
use crate::cluster::schema::model::{Object, Shape, Slot, TypeId};

/// Fills the defaults of a schema into a value.
pub(crate) fn fill(schema: &Schema, value: &mut Value) {
    fill_type(schema, schema.root(), value);
}

fn fill_type(schema: &Schema, id: TypeId, value: &mut Value) {
    match (&schema.get(id).shape, value) {
        (Shape::Object(object), Value::Object(members)) => fill_object(schema, object, members),
        (Shape::List(list), Value::Array(items)) => {
            for item in items {
                if item.is_null() && is_missing(schema, &list.items) {
                    item.clone_from(list.items.default.as_ref().unwrap_or(&Value::Null));
                }
                fill_type(schema, list.items.id, item);
            }
        }
        _ => {}
    }
}

/// Whether a null under this slot means that there is no value.
fn is_missing(schema: &Schema, slot: &Slot) -> bool {
    !schema.get(slot.id).nullable
}

fn fill_object(schema: &Schema, object: &Object, members: &mut Map<String, Value>) {
    members.retain(|name, value| {
        let null = value.is_null() && object.field(name).is_some_and(|slot| is_missing(schema, slot));
        !null
    });
    for (name, slot) in &object.fields {
        if let (Some(default), false) = (&slot.default, members.contains_key(&**name)) {
            members.insert(name.to_string(), default.clone());
        }
    }
    for (name, value) in members {
        // Types with names are those of `metadata`.
        let slot = object.field(name).filter(|slot| schema.name(slot.id).is_none());
        if let Some(slot) = slot {
            fill_type(schema, slot.id, value);
        }
    }
}
