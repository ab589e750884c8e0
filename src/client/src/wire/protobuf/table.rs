//! The table of messages, read once from `messages.txt`, whose head explains the format of a line.
//!
//! 1. The fields of a message stand in the order of the Go struct, in which Go writes JSON.
//! 2. The fields of an inline message stand among those of the outer one, where Go's JSON has them.
//! 3. The table is a part of the program: an absent name fails every test, never in use.

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(include_str!("messages.txt")));

#[derive(Debug)]
pub(super) struct Table {
    messages: Vec<Message>,
    kinds: Vec<Kind>,
    places: HashMap<(&'static str, &'static str), u16>,
    pub(super) object_meta: usize,
    /// In the alternatives of a schema.
    pub(super) schema: usize,
}

#[derive(Debug)]
struct Kind {
    api_version: &'static str,
    kind: &'static str,
    message: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) fields: Vec<Field>,
    /// By field number.
    slots: Vec<Slot>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Unknown,
    Field(usize),
    /// The message's fields stand in this one, from `first` on.
    Inline {
        message: usize,
        first: usize,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) name: &'static str,
    /// `omitempty`.
    omit_empty: bool,
    /// `omitzero`.
    omit_zero: bool,
    pub(super) shape: Shape,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shape {
    Pointer(Box<Self>),
    List(Box<Self>),
    Map(Box<Self>),
    /// A list in its own message, as Go's named slices are.
    Wrapped(Box<Self>),
    Text,
    Bytes,
    Bool,
    Integer,
    Double,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// A JSON text.
    Raw,
    /// A JSON schema or a list of them, a bool, a list of names.
    SchemaOr(Alternative),
    Message(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alternative {
    Schemas,
    Bool,
    Names,
}

/// A built-in kind, which has a protobuf message.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProtobufKind(u16);

impl ProtobufKind {
    /// `None` for a kind that only its own server knows.
    pub(crate) fn of(api_version: &str, kind: &str) -> Option<Self> {
        TABLE.places.get(&(api_version, kind)).copied().map(Self).filter(|kind| !kind.is_part())
    }

    /// For an envelope: options and statuses belong to every version.
    pub(super) fn of_types(api_version: &str, kind: &str) -> Option<Self> {
        Self::of(api_version, kind).or_else(|| TABLE.places.get(&("*", kind)).copied().map(Self))
    }

    pub(crate) fn metadata() -> Option<Self> {
        Self::of("meta.k8s.io/v1", "PartialObjectMetadata")
    }

    fn is_part(self) -> bool {
        self.api_version() == "-"
    }

    /// Its group and version.
    pub fn api_version(self) -> &'static str {
        TABLE.kinds[usize::from(self.0)].api_version
    }

    /// Its name, such as `Pod`.
    pub fn kind(self) -> &'static str {
        TABLE.kinds[usize::from(self.0)].kind
    }

    pub(super) fn message(self) -> usize {
        TABLE.kinds[usize::from(self.0)].message
    }
}

impl fmt::Debug for ProtobufKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version(), self.kind())
    }
}

struct Line {
    field: Field,
    is_inline: bool,
}

impl Table {
    fn read(text: &'static str) -> Self {
        let names = text.lines().filter_map(|line| line.strip_prefix("m "));
        let by_name: HashMap<&str, usize> = names.enumerate().map(|(place, name)| (name, place)).collect();
        let (mut lines, mut kinds): (Vec<Vec<Line>>, _) = (Vec::new(), Vec::new());
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["m", _] => lines.push(Vec::new()),
                ["k", api_version, kind, name] => {
                    kinds.push(Kind { api_version, kind, message: by_name[name] });
                }
                [number, name, rest] => {
                    lines
                        .last_mut()
                        .expect("a message line comes first")
                        .push(field(number, name, rest, &by_name));
                }
                _ => unreachable!("the table has no other lines: {line}"),
            }
        }
        let numbered = kinds.iter().zip(0..);
        let places: HashMap<_, u16> =
            numbered.map(|(kind, at)| ((kind.api_version, kind.kind), at)).collect();
        let part = |name| kinds[usize::from(places[&("-", name)])].message;
        let (object_meta, schema) = (part("ObjectMeta"), part("JSONSchemaProps"));
        let messages = (0..lines.len()).map(|place| message(&lines, place)).collect();
        Self { messages, kinds, places, object_meta, schema }
    }

    pub(super) fn message(&self, place: usize) -> &Message {
        &self.messages[place]
    }

    #[cfg(test)]
    pub(super) fn kinds(&self) -> impl Iterator<Item = ProtobufKind> {
        (0..self.kinds.len()).map(|at| ProtobufKind(u16::try_from(at).expect("few kinds")))
    }
}

/// With the fields of its inline messages.
fn message(lines: &[Vec<Line>], place: usize) -> Message {
    let mut found = Message { fields: Vec::new(), slots: Vec::new() };
    for Line { field, is_inline } in &lines[place] {
        let (number, first) = (field.number as usize, found.fields.len());
        found.slots.resize(found.slots.len().max(number + 1), Slot::Unknown);
        found.slots[number] = match (is_inline, &field.shape) {
            (true, Shape::Message(inner)) => {
                found.fields.extend(message(lines, *inner).fields);
                Slot::Inline { message: *inner, first }
            }
            _ => {
                found.fields.push(field.clone());
                Slot::Field(first)
            }
        };
    }
    found
}

impl Message {
    pub(super) fn slot(&self, number: u32) -> Slot {
        self.slots.get(number as usize).copied().unwrap_or(Slot::Unknown)
    }

    /// An inline message has its own number.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (u32, Slot)> {
        (0..).zip(self.slots.iter().copied()).filter(|(_, slot)| *slot != Slot::Unknown)
    }
}

impl Field {
    /// Whether Go's JSON leaves it out if it is empty, or a zero time.
    pub(super) fn omits_empty(&self) -> bool {
        let omits_empty = self.omit_empty && self.shape.may_be_empty();
        (omits_empty || self.omit_zero) && !self.is_pointer()
    }

    /// Whether Go's JSON leaves it out if it is absent.
    pub(super) fn omits_absent(&self) -> bool {
        self.omits_empty() || self.omit_empty && self.is_pointer()
    }

    pub(super) fn is_pointer(&self) -> bool {
        matches!(self.shape, Shape::Pointer(_))
    }
}

impl Shape {
    /// Go's `omitempty` never applies to a struct.
    fn may_be_empty(&self) -> bool {
        matches!(
            self,
            Self::Pointer(_)
                | Self::List(_)
                | Self::Map(_)
                | Self::Wrapped(_)
                | Self::Text
                | Self::Bytes
                | Self::Bool
                | Self::Integer
                | Self::Double
        )
    }
}

fn field(number: &str, name: &'static str, mut rest: &str, places: &HashMap<&str, usize>) -> Line {
    let mut flag = |letter: char| {
        let found = rest.strip_prefix(letter);
        rest = found.unwrap_or(rest);
        found.is_some()
    };
    let (omit_empty, omit_zero, is_inline) = (flag('?'), flag('~'), flag('^'));
    let number = number.parse().expect("a field line begins with a number");
    Line { field: Field { number, name, omit_empty, omit_zero, shape: shape(rest, places) }, is_inline }
}

fn shape(text: &str, places: &HashMap<&str, usize>) -> Shape {
    let (letter, rest) = text.split_at(1);
    let inner = || Box::new(shape(rest, places));
    match letter {
        "*" => Shape::Pointer(inner()),
        "[" => Shape::List(inner()),
        "{" => Shape::Map(inner()),
        "<" => Shape::Wrapped(inner()),
        "s" => Shape::Text,
        "b" => Shape::Bytes,
        "B" => Shape::Bool,
        "i" => Shape::Integer,
        "d" => Shape::Double,
        "T" => Shape::Time,
        "U" => Shape::MicroTime,
        "Q" => Shape::Quantity,
        "I" => Shape::IntOrString,
        "R" => Shape::Raw,
        "A" => Shape::SchemaOr(Alternative::Schemas),
        "L" => Shape::SchemaOr(Alternative::Bool),
        "S" => Shape::SchemaOr(Alternative::Names),
        "M" => Shape::Message(places[rest]),
        _ => unreachable!("the table has no other types: {text}"),
    }
}
