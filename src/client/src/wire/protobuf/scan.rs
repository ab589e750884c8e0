//! The values at a path, without decoding the object: other fields are passed by their length. And how many bytes the fields of
//! an object have.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Fault;
use super::reader::{Reader, Wire};
use super::table::{Message, Shape, Slot, TABLE};
use crate::wire::PathStep;

pub(super) struct ValuesAt<'p, 'o> {
    pub(super) path: &'p [PathStep],
    pub(super) values: &'o mut Vec<String>,
}

impl ValuesAt<'_, '_> {
    fn found<E>(self, value: impl fmt::Display) -> Result<(), E> {
        if self.path.is_empty() {
            self.values.push(value.to_string());
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for ValuesAt<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValuesAt<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.found(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.found(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.found(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        // As JSON writes it.
        match serde_json::Number::from_f64(value) {
            Some(number) => self.found(number),
            None => Ok(()),
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.found(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        if let [PathStep::Elements, path @ ..] = self.path {
            while items.next_element_seed(ValuesAt { path, values: self.values })?.is_some() {}
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let [PathStep::Field(wanted), path @ ..] = self.path else { return Ok(()) };
        while let Some(is_wanted) = members.next_key_seed(IsName(wanted))? {
            match is_wanted {
                true => members.next_value_seed(ValuesAt { path, values: self.values })?,
                false => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Does not copy the key.
struct IsName<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for IsName<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for IsName<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

/// Their members are fields of their own.
const PARTED: [&str; 3] = ["metadata", "spec", "status"];

pub(super) fn field_bytes(message: usize, raw: &[u8]) -> Result<Vec<(String, u64)>, Fault> {
    let mut sums = BTreeMap::new();
    add(TABLE.message(message), raw, "", &mut sums)?;
    Ok(sums.into_iter().collect())
}

fn add(message: &Message, raw: &[u8], above: &str, sums: &mut BTreeMap<String, u64>) -> Result<(), Fault> {
    let mut reader = Reader::new(raw);
    loop {
        let before = reader.rest().len();
        let Some((number, wire)) = reader.field()? else { return Ok(()) };
        let bytes = (before - reader.rest().len()) as u64;
        match (message.slot(number), wire) {
            (Slot::Field(place), wire) => {
                let field = &message.fields[place];
                match (&field.shape, wire) {
                    (Shape::Message(inner), Wire::Bytes(raw))
                        if above.is_empty() && PARTED.contains(&field.name) =>
                    {
                        add(TABLE.message(*inner), raw, field.name, sums)?;
                    }
                    _ => {
                        let path = if above.is_empty() {
                            field.name.to_owned()
                        } else {
                            format!("{above}.{}", field.name)
                        };
                        *sums.entry(path).or_default() += bytes;
                    }
                }
            }
            (Slot::Inline { message, .. }, Wire::Bytes(raw)) => {
                add(TABLE.message(message), raw, above, sums)?
            }
            _ => {}
        }
    }
}
