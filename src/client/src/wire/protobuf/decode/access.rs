//! What serde asks of a message one by one: members, items, entries.
//!
//! All messages of an object share one stack of gathered fields, so a message allocates nothing. Each takes its own from the
//! stack when it is dropped.

use serde::de::{DeserializeSeed, MapAccess, SeqAccess};

use super::super::cut::{CUT, EMPTIED};
use super::super::reader::{Reader, Wire};
use super::super::table::{Alternative, Field, Shape, Slot, TABLE};
use super::super::{Fault, ProtobufError, Step};
use super::{Content, Context, Gathered, Types, VALUES, Value, name, owned_name};

type Result<T> = std::result::Result<T, ProtobufError>;

static SCHEMA: std::sync::LazyLock<Shape> = std::sync::LazyLock::new(|| Shape::Message(TABLE.schema));

pub(super) struct Members<'c, 'de> {
    context: &'c Context<'de>,
    fields: &'static [Field],
    /// They come first.
    types: Option<Types<'de>>,
    /// The first of its fields in the stack.
    base: usize,
    /// The next field, and its place in the stack.
    next: (usize, usize),
    value: Option<Next<'c, 'de>>,
    depth: usize,
}

enum Next<'c, 'de> {
    Type(&'de str),
    Field(&'static str, Value<'c, 'de>),
}

impl<'c, 'de> Members<'c, 'de> {
    pub(super) fn new(
        context: &'c Context<'de>,
        (message, raw): (usize, &'de [u8]),
        types: Option<Types<'de>>,
        depth: usize,
    ) -> Result<Self> {
        let base = context.gathered.borrow().len();
        let fields = &*TABLE.message(message).fields;
        let members = Self { context, fields, types, base, next: (0, base), value: None, depth };
        gather(context, (message, raw), 0)?;
        let mut gathered = context.gathered.borrow_mut();
        context.count(gathered.len() - base)?;
        // Servers write fields in the order of their numbers, which is nearly that of the struct.
        if !gathered[base..].is_sorted_by_key(|one| one.field) {
            gathered[base..].sort_by_key(|one| one.field);
        }
        drop(gathered);
        Ok(members)
    }

    /// `None` if Go's JSON leaves the next field out.
    fn field(&mut self) -> Result<Option<(&'static Field, Value<'c, 'de>)>> {
        let (at, first) = self.next;
        let field = &self.fields[at];
        let (count, was_cut, last) = {
            let gathered = self.context.gathered.borrow();
            let of_field = gathered[first..].iter().take_while(|one| usize::from(one.field) == at);
            let found = of_field.clone().filter_map(|one| one.wire);
            (
                of_field.count(),
                gathered.get(first).is_some_and(|one| usize::from(one.field) == at && one.wire.is_none()),
                found.last(),
            )
        };
        self.next = (at + 1, first + count);
        let content = match (&field.shape, last) {
            (_, None) => Content::Zero,
            (Shape::List(_) | Shape::Map(_), Some(_)) => Content::Many { first, count },
            (_, Some(wire)) => Content::One(wire),
        };
        let mut value = Value { context: self.context, shape: &field.shape, content, depth: self.depth };
        if last.is_none() {
            if was_cut || field.omits_absent() {
                return Ok(None);
            }
            self.context.count(1)?;
        } else if value.is_empty()? {
            if field.omits_empty() {
                return Ok(None);
            }
            if matches!(content, Content::Many { .. }) {
                value.content = Content::Zero;
            }
        }
        Ok(Some((field, value)))
    }

    /// The value of the name comes next.
    fn next_name(&mut self) -> Result<Option<&'static str>> {
        if let Some((kind, api_version)) = self.types.take() {
            let is_kind = !kind.is_empty();
            self.value = Some(Next::Type(if is_kind { kind } else { api_version }));
            self.types = is_kind.then_some(("", api_version));
            return Ok(Some(if is_kind { "kind" } else { "apiVersion" }));
        }
        while self.next.0 < self.fields.len() {
            if let Some((field, value)) = self.field()? {
                self.value = Some(Next::Field(field.name, value));
                return Ok(Some(field.name));
            }
        }
        Ok(None)
    }
}

impl Drop for Members<'_, '_> {
    fn drop(&mut self) {
        self.context.gathered.borrow_mut().truncate(self.base);
    }
}

/// Puts the fields of a message and of its inline messages into the stack. They begin at `first`.
fn gather<'de>(context: &Context<'de>, (message, raw): (usize, &'de [u8]), first: usize) -> Result<()> {
    let of_field = |place: usize| u16::try_from(first + place).map_err(|_| Fault::TooMany);
    let (table, mut reader) = (TABLE.message(message), Reader::new(raw));
    // Of a repeated one the last counts.
    let mut inside: Vec<(u32, usize, usize, &'de [u8])> = Vec::new();
    while let Some((number, wire)) = reader.field()? {
        match (table.slot(number), wire) {
            (Slot::Field(_), Wire::Fixed32) => return Err(Fault::Mismatch.into()),
            (Slot::Field(place), wire) => {
                let one = Gathered { field: of_field(place)?, wire: Some(wire) };
                context.gathered.borrow_mut().push(one);
            }
            (Slot::Inline { message, first: inner }, Wire::Bytes(raw)) => {
                inside.retain(|(known, ..)| *known != number);
                inside.push((number, message, first + inner, raw));
            }
            (Slot::Unknown, Wire::Bytes(marked)) if matches!(number, CUT | EMPTIED) => {
                let wire = (number == EMPTIED).then_some(Wire::Fixed32);
                let mut numbers = Reader::new(marked);
                while let Some(number) = numbers.packed()? {
                    let slot = u32::try_from(number).map_or(Slot::Unknown, |number| table.slot(number));
                    if let Slot::Field(place) = slot {
                        context.gathered.borrow_mut().push(Gathered { field: of_field(place)?, wire });
                    }
                }
            }
            (Slot::Inline { .. }, _) => return Err(Fault::Mismatch.into()),
            (Slot::Unknown, _) => {}
        }
        if context.gathered.borrow().len() > VALUES {
            return Err(Fault::TooMany.into());
        }
    }
    inside.into_iter().try_for_each(|(_, message, first, raw)| gather(context, (message, raw), first))
}

impl<'de> MapAccess<'de> for Members<'_, 'de> {
    type Error = ProtobufError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        self.next_name()?.map(|text| seed.deserialize(name(text))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        match self.value.take() {
            Some(Next::Type(text)) => seed.deserialize(name(text)),
            Some(Next::Field(name, value)) => {
                seed.deserialize(value).map_err(|error| error.within(&Step::Member(name)))
            }
            None => Err(Fault::NoEvent.into()),
        }
    }
}

pub(super) struct Items<'c, 'de> {
    list: Value<'c, 'de>,
    item: &'static Shape,
    rest: Rest<'de>,
    given: usize,
}

enum Rest<'de> {
    /// In the stack: the next one, how many are left, and the rest of a packed one.
    Gathered { next: usize, count: usize, packed: Reader<'de> },
    /// All with this number.
    Message { reader: Reader<'de>, number: u32 },
}

impl<'c, 'de> Items<'c, 'de> {
    pub(super) fn new(list: Value<'c, 'de>) -> Self {
        let item = match list.shape {
            Shape::List(item) | Shape::Wrapped(item) => item,
            Shape::SchemaOr(Alternative::Names) => &Shape::Text,
            _ => &*SCHEMA,
        };
        let rest = match list.content {
            Content::Many { first, count } => Rest::Gathered { next: first, count, packed: Reader::new(&[]) },
            Content::Alternatives(bytes) => Rest::Message { reader: Reader::new(bytes), number: 2 },
            Content::One(Wire::Bytes(bytes)) => Rest::Message { reader: Reader::new(bytes), number: 1 },
            _ => Rest::Message { reader: Reader::new(&[]), number: 1 },
        };
        Self { list, item, rest, given: 0 }
    }

    /// A packed list may have no number.
    pub(super) fn has_none(mut self) -> Result<bool> {
        Ok(self.next()?.is_none())
    }

    fn next(&mut self) -> Result<Option<Wire<'de>>> {
        match &mut self.rest {
            Rest::Gathered { next, count, packed } => loop {
                if let Some(number) = packed.packed()? {
                    return Ok(Some(Wire::Varint(number)));
                }
                if *count == 0 {
                    return Ok(None);
                }
                let wire = self.list.context.gathered.borrow().get(*next).and_then(|one| one.wire);
                (*next, *count) = (*next + 1, *count - 1);
                match (wire, self.item) {
                    (Some(Wire::Bytes(bytes)), Shape::Integer | Shape::Bool) => *packed = Reader::new(bytes),
                    (Some(wire), _) => return Ok(Some(wire)),
                    (None, _) => {}
                }
            },
            Rest::Message { reader, number } => loop {
                match reader.field()? {
                    None => return Ok(None),
                    Some((found, wire)) if found == *number => return Ok(Some(wire)),
                    Some(_) => {}
                }
            },
        }
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = ProtobufError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let Some(wire) = self.next()? else { return Ok(None) };
        self.list.context.count(1)?;
        let at = self.given;
        self.given += 1;
        seed.deserialize(Value { shape: self.item, content: Content::One(wire), ..self.list })
            .map(Some)
            .map_err(|error| error.within(&Step::Item(at)))
    }

    fn size_hint(&self) -> Option<usize> {
        match &self.rest {
            Rest::Gathered { count, .. } if !matches!(self.item, Shape::Integer | Shape::Bool) => {
                Some(*count)
            }
            _ => None,
        }
    }
}

pub(super) struct Entries<'c, 'de> {
    map: Value<'c, 'de>,
    next: usize,
    count: usize,
    /// Of the last entry.
    key: &'de [u8],
    value: Option<Value<'c, 'de>>,
}

impl<'c, 'de> Entries<'c, 'de> {
    pub(super) fn new(map: Value<'c, 'de>) -> Self {
        let (next, count) =
            if let Content::Many { first, count } = map.content { (first, count) } else { (0, 0) };
        Self { map, next, count, key: &[], value: None }
    }

    /// The value of the key comes next.
    fn next_key(&mut self) -> Result<Option<&'de [u8]>> {
        let entry = loop {
            if self.count == 0 {
                return Ok(None);
            }
            let wire = self.map.context.gathered.borrow().get(self.next).and_then(|one| one.wire);
            (self.next, self.count) = (self.next + 1, self.count - 1);
            match wire {
                Some(Wire::Bytes(entry)) => break entry,
                // Marks an emptied map.
                Some(Wire::Fixed32) | None => {}
                Some(_) => return Err(Fault::Mismatch.into()),
            }
        };
        self.map.context.count(1)?;
        let (mut reader, mut key, mut content): (_, &[u8], _) = (Reader::new(entry), &[], Content::Zero);
        while let Some((number, wire)) = reader.field()? {
            match (number, wire) {
                (1, Wire::Bytes(bytes)) => key = bytes,
                (2, wire) => content = Content::One(wire),
                _ => {}
            }
        }
        let Shape::Map(shape) = self.map.shape else { return Err(Fault::Mismatch.into()) };
        if let (Content::Zero, Shape::Bytes) = (content, &**shape) {
            // An empty value of a Secret has no bytes on the wire, but is a value.
            content = Content::One(Wire::Bytes(&[]));
        }
        (self.key, self.value) = (key, Some(Value { shape, content, ..self.map }));
        Ok(Some(key))
    }
}

impl<'de> MapAccess<'de> for Entries<'_, 'de> {
    type Error = ProtobufError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        let Some(key) = self.next_key()? else { return Ok(None) };
        match std::str::from_utf8(key) {
            Ok(text) => seed.deserialize(name(text)),
            Err(_) => seed.deserialize(owned_name(key)),
        }
        .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let key = self.key;
        seed.deserialize(self.value.take().ok_or(Fault::NoEvent)?)
            .map_err(|error| error.within(&Step::Entry(key)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.count)
    }
}
