//! The table of messages, read once from `messages.txt`, whose head explains the format of a line.
//!
//! Answers: which fields has this message, under which numbers and JSON names, and which message belongs to a kind?
//! 1. Names are resolved to places in the table when it is read; a name that is not there fails every test.
//! 2. The table is a part of the program, so reading it cannot fail in use.
//! 3. The fields of a message stand in the order of their numbers, in which Go writes them.
use std::collections::HashMap;
use std::sync::LazyLock;

pub(crate) static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(include_str!("messages.txt")));

/// All messages, and which of them are kinds.
#[derive(Debug)]
pub(crate) struct Table {
    messages: Vec<Vec<Field>>,
    kinds: HashMap<(&'static str, &'static str), usize>,
}

/// One field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    pub(super) number: u32,
    pub(crate) name: &'static str,
    /// Left out of the JSON when empty (`omitempty`).
    pub(crate) omit_empty: bool,
    /// Left out of the JSON when zero (`omitzero`).
    pub(crate) omit_zero: bool,
    /// Its own fields are members of the outer object.
    pub(crate) inline: bool,
    pub(crate) shape: Shape,
}

/// What a field holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Pointer(Box<Self>),
    List(Box<Self>),
    Map(Box<Self>),
    /// A list in a message of its own, as Go's named slices are.
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
    /// Bytes that hold a JSON text.
    Raw,
    /// A JSON schema or a list of them, a bool, a list of names.
    SchemaOr(Alternative),
    Message(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alternative {
    Schemas,
    Bool,
    Names,
}

impl Table {
    fn read(text: &'static str) -> Self {
        let names = text.lines().filter_map(|line| line.strip_prefix("m "));
        let places: HashMap<&str, usize> = names.enumerate().map(|(place, name)| (name, place)).collect();
        let (mut messages, mut kinds) = (Vec::new(), HashMap::new());
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["m", _] => messages.push(Vec::new()),
                ["k", api_version, kind, name] => {
                    kinds.insert((*api_version, *kind), places[name]);
                }
                [number, name, rest] => {
                    let message: &mut Vec<Field> = messages.last_mut().expect("a message line comes first");
                    message.push(field(number, name, rest, &places));
                }
                _ => unreachable!("the table has no other lines: {line}"),
            }
        }
        messages.iter_mut().for_each(|message: &mut Vec<Field>| message.sort_by_key(|field| field.number));
        Self { messages, kinds }
    }

    pub(crate) fn message(&self, place: usize) -> &[Field] {
        &self.messages[place]
    }

    /// The message of a kind; options and statuses belong to every version.
    pub(crate) fn kind(&self, api_version: &str, kind: &str) -> Option<usize> {
        self.kinds.get(&(api_version, kind)).or_else(|| self.kinds.get(&("*", kind))).copied()
    }

    /// The place of the metadata of objects, and of that of lists.
    pub(super) fn metadata(&self, of_list: bool) -> usize {
        self.kinds[&("-", if of_list { "ListMeta" } else { "ObjectMeta" })]
    }

    /// The place of the message that the schema alternatives hold.
    pub(crate) fn schema(&self) -> usize {
        let found = self.kinds.get(&("-", "JSONSchemaProps"));
        *found.expect("the table names the message of JSON schemas")
    }

    #[cfg(test)]
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.kinds.keys().copied()
    }
}

fn field(number: &str, name: &'static str, mut rest: &str, places: &HashMap<&str, usize>) -> Field {
    let mut flag = |letter: char| {
        let found = rest.strip_prefix(letter);
        rest = found.unwrap_or(rest);
        found.is_some()
    };
    let (omit_empty, omit_zero, inline) = (flag('?'), flag('~'), flag('^'));
    let number = number.parse().expect("a field line begins with a number");
    Field { number, name, omit_empty, omit_zero, inline, shape: shape(rest, places) }
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
