//! Cuts fields out of a message: the bytes around them are copied, and the lengths of the messages around them are written anew.
//! Nothing else is looked at.
//!
//! 1. What is left reads as the JSON of the object without these fields; `kind` and `apiVersion` stay. Go's JSON has some fields
//!    also without bytes (`"status":{}`), so cut ones are marked: [`CUT`] and [`EMPTIED`] hold their numbers. No message of
//!    Kubernetes has these two numbers.
//! 2. A path leads through lists, maps, schemas and into raw JSON, as it does in JSON. A repeated field is cut each time.

use super::reader::{MAX_NUMBER, Reader, Wire, last_bytes, put_bytes, put_message, put_varint};
use super::table::{Alternative, Message, Shape, Slot, TABLE};
use super::{Fault, json};
use crate::wire::{FieldTree, Step};

/// Packed numbers of fields that were cut.
pub(super) const CUT: u32 = MAX_NUMBER;
/// Packed numbers of maps whose entries were all cut.
pub(super) const EMPTIED: u32 = MAX_NUMBER - 1;

/// Messages within messages.
const DEPTH: usize = 100;

/// After an error `out` has a part of the message.
pub(super) fn cut(
    (message, raw): (usize, &[u8]),
    fields: &FieldTree,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    if depth > DEPTH {
        return Err(Fault::TooDeep);
    }
    let table = TABLE.message(message);
    let mut cutter = Cutter { raw, copied: 0, table, fields, depth, kept_entries: Vec::new(), out };
    let mut reader = Reader::new(raw);
    let mut seen = Vec::new();
    loop {
        let start = raw.len() - reader.rest().len();
        let Some((number, wire)) = reader.field()? else { break };
        let end = raw.len() - reader.rest().len();
        cutter.field((number, wire), (start, end))?;
        if table.slot(number) != Slot::Unknown && !seen.contains(&number) {
            seen.push(number);
        }
    }
    cutter.keep_until(raw.len());
    cutter.absent(&seen)?;
    cutter.marks();
    Ok(())
}

struct Cutter<'a, 'o> {
    raw: &'a [u8],
    /// Earlier bytes are in `out` or left out.
    copied: usize,
    table: &'static Message,
    fields: &'a FieldTree,
    depth: usize,
    /// Maps with a cut entry, and whether one was kept.
    kept_entries: Vec<(u32, bool)>,
    out: &'o mut Vec<u8>,
}

impl Cutter<'_, '_> {
    fn keep_until(&mut self, end: usize) {
        self.out.extend_from_slice(&self.raw[self.copied..end]);
        self.copied = end;
    }

    fn field(&mut self, (number, wire): (u32, Wire<'_>), (start, end): (usize, usize)) -> Result<(), Fault> {
        let (fields, depth) = (self.fields, self.depth);
        match self.table.slot(number) {
            Slot::Unknown => return Ok(()),
            Slot::Inline { message, .. } => {
                let Wire::Bytes(bytes) = wire else { return Err(Fault::Mismatch) };
                self.keep_until(start);
                put_message(self.out, number, |out| cut((message, bytes), fields, depth + 1, out))?;
            }
            Slot::Field(place) => {
                let field = &self.table.fields[place];
                match (fields.step(field.name.as_bytes()), wire, &field.shape) {
                    (Step::Keep, ..) => return Ok(()),
                    (Step::Cut, ..) => self.keep_until(start),
                    (Step::Descend(below), Wire::Bytes(entry), Shape::Map(inner)) => {
                        self.keep_until(start);
                        self.entry(number, (entry, inner), below)?;
                    }
                    (Step::Descend(below), Wire::Bytes(bytes), shape) => {
                        self.keep_until(start);
                        put_message(self.out, number, |out| inside(shape, bytes, below, depth, out))?;
                    }
                    // A number has no fields.
                    (Step::Descend(_), ..) => return Ok(()),
                }
            }
        }
        self.copied = end;
        Ok(())
    }

    fn entry(
        &mut self,
        number: u32,
        (entry, inner): (&[u8], &Shape),
        below: &FieldTree,
    ) -> Result<(), Fault> {
        let key = last_bytes(entry, 1).unwrap_or_default();
        let step = below.step(key);
        let is_kept = !matches!(step, Step::Cut);
        match self.kept_entries.iter_mut().find(|(map, _)| *map == number) {
            Some((_, has_kept)) => *has_kept |= is_kept,
            None => self.kept_entries.push((number, is_kept)),
        }
        match (step, last_bytes(entry, 2)) {
            (Step::Cut, _) => Ok(()),
            (Step::Descend(below), Some(value)) => put_message(self.out, number, |out| {
                put_bytes(out, 1, key);
                put_message(out, 2, |out| inside(inner, value, below, self.depth, out))
            }),
            _ => {
                put_bytes(self.out, number, entry);
                Ok(())
            }
        }
    }

    /// Structs that JSON has without bytes: something in them may be cut.
    fn absent(&mut self, seen: &[u32]) -> Result<(), Fault> {
        for (number, slot) in self.table.numbers().filter(|(number, _)| !seen.contains(number)) {
            let (message, fields) = match slot {
                Slot::Inline { message, .. } => (message, self.fields),
                Slot::Field(place) => {
                    let field = &self.table.fields[place];
                    match (&field.shape, self.fields.step(field.name.as_bytes())) {
                        (Shape::Message(message), Step::Descend(below)) => (*message, below),
                        _ => continue,
                    }
                }
                Slot::Unknown => continue,
            };
            let mut marks = Vec::new();
            cut((message, &[]), fields, self.depth + 1, &mut marks)?;
            if !marks.is_empty() {
                put_bytes(self.out, number, &marks);
            }
        }
        Ok(())
    }

    fn marks(&mut self) {
        let is_shown_absent = |slot: Slot| match slot {
            Slot::Field(place) => {
                let field = &self.table.fields[place];
                matches!(self.fields.step(field.name.as_bytes()), Step::Cut) && !field.omits_absent()
            }
            _ => false,
        };
        let cut = self.table.numbers().filter(|(_, slot)| is_shown_absent(*slot)).map(|(number, _)| number);
        let cut = packed(cut);
        let emptied = packed(self.kept_entries.iter().filter(|(_, has_kept)| !has_kept).map(|(map, _)| *map));
        for (number, marked) in [(CUT, cut), (EMPTIED, emptied)] {
            if !marked.is_empty() {
                put_bytes(self.out, number, &marked);
            }
        }
    }
}

fn packed(numbers: impl Iterator<Item = u32>) -> Vec<u8> {
    let mut out = Vec::new();
    numbers.for_each(|number| put_varint(&mut out, number.into()));
    out
}

fn inside(
    shape: &Shape,
    bytes: &[u8],
    fields: &FieldTree,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    match shape {
        Shape::Pointer(inner) | Shape::List(inner) => inside(inner, bytes, fields, depth, out),
        Shape::Message(message) => cut((*message, bytes), fields, depth + 1, out),
        Shape::Raw => match last_bytes(bytes, 1).filter(|text| !text.is_empty()) {
            Some(text) => put_message(out, 1, |out| json::cut_raw(text, fields, out)),
            None => Ok(()),
        },
        Shape::SchemaOr(alternative) => {
            let mut reader = Reader::new(bytes);
            loop {
                let rest = reader.rest();
                let Some((number, wire)) = reader.field()? else { return Ok(()) };
                let is_schema =
                    !matches!((alternative, number), (Alternative::Names, 2) | (Alternative::Bool, 1));
                match wire {
                    Wire::Bytes(schema) if is_schema => {
                        put_message(out, number, |out| cut((TABLE.schema, schema), fields, depth + 1, out))?;
                    }
                    _ => out.extend_from_slice(&rest[..rest.len() - reader.rest().len()]),
                }
            }
        }
        _ => {
            out.extend_from_slice(bytes);
            Ok(())
        }
    }
}
