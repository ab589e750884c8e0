//! The JSON text of a message, as Go writes it: the same members in the same order.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::Fault;
use crate::wire::FieldTree;
use crate::wire::json::{Cut, LeftOut, cut};

pub(super) struct Writer<'o>(pub(super) &'o mut Vec<u8>);

fn write<E: Error>(out: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) -> Result<(), E> {
    serde_json::to_writer(out, value).map_err(|_| E::custom("not to be written as JSON"))
}

impl<'de> DeserializeSeed<'de> for Writer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Writer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.0.extend_from_slice(b"null");
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        write(self.0, &value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        write(self.0, &value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        write(self.0, &value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        write(self.0, &value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        write(self.0, value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut before = b'[';
        loop {
            let length = self.0.len();
            self.0.push(before);
            if items.next_element_seed(Writer(self.0))?.is_none() {
                self.0.truncate(length + usize::from(before == b'['));
                self.0.push(b']');
                return Ok(());
            }
            before = b',';
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut before = b'{';
        loop {
            let length = self.0.len();
            self.0.push(before);
            if members.next_key_seed(Writer(self.0))?.is_none() {
                self.0.truncate(length + usize::from(before == b'{'));
                self.0.push(b'}');
                return Ok(());
            }
            self.0.push(b':');
            members.next_value_seed(Writer(self.0))?;
            before = b',';
        }
    }
}

pub(super) fn cut_raw(text: &[u8], fields: &FieldTree, out: &mut Vec<u8>) -> Result<(), Fault> {
    match cut(text, fields, LeftOut::Gone, out) {
        Cut::Done => Ok(()),
        Cut::Unsure => Err(Fault::NotJson),
    }
}
