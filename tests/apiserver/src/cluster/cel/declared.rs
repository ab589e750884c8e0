//! What expressions know about a value from its schema: its type, and how large it may be.
//!
//! Answers: which fields does `self` have, how many items at most, and in how few bytes could it be written? The
//! estimate of costs uses these sizes.
//! 1. Expressions do not see values whose schema has no type (open objects, lists of them).
//! 2. Names that the language cannot read are escaped, or left out.
use std::collections::BTreeMap;
use std::sync::Arc;

use super::types::Type;
use crate::cluster::schema::source::{Others, Source};

/// The most bytes a request may have.
const REQUEST: u64 = 3 * 1024 * 1024;

/// One value as a schema declares it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Declared {
    /// The path that messages use as the name of an object's type.
    pub(crate) name: String,
    pub(crate) of: Type,
    /// The most characters, items or members.
    pub(crate) most: u64,
    /// The fewest bytes the value takes in a request.
    pub(crate) least_bytes: u64,
    /// What a list or a map holds.
    pub(crate) element: Option<Arc<Self>>,
    pub(crate) key: Option<Arc<Self>>,
    pub(crate) fields: BTreeMap<String, Arc<Self>>,
}

impl Declared {
    /// What a schema declares under a name; none if it is not seen by expressions.
    pub(crate) fn read(source: &Source, whole: bool, name: &str) -> Option<Self> {
        if source.int_or_string {
            let most = source.max_length.map_or(REQUEST - 2, |most| most * 4);
            return Some(Self::scalar(Type::Dyn, most, 1));
        }
        match source.kind.as_str() {
            "array" => Self::list(source, name),
            "object" => match &source.additional_properties {
                Some(Others::Typed(of)) if !whole => Self::map(source, of, name),
                _ => Some(Self::object(source, whole, name)),
            },
            "string" => Some(Self::text(source)),
            "boolean" => Some(Self::scalar(Type::Bool, 0, 4)),
            "number" => Some(Self::scalar(Type::Double, 0, 1)),
            "integer" => Some(Self::scalar(Type::Int, 0, 1)),
            _ => None,
        }
    }

    fn scalar(of: Type, most: u64, least_bytes: u64) -> Self {
        Self { of, most, least_bytes, ..Self::default() }
    }

    fn list(source: &Source, name: &str) -> Option<Self> {
        let items = source.items.as_deref()?;
        let element = Self::read(items, items.embedded, &format!("{name}.@idx"))?;
        let fits = (REQUEST - 2) / (element.least_bytes + 1);
        Some(Self {
            of: Type::list(element.of.clone()),
            most: source.max_items.unwrap_or(fits),
            least_bytes: 2,
            element: Some(Arc::new(element)),
            ..Self::default()
        })
    }

    fn map(source: &Source, of: &Source, name: &str) -> Option<Self> {
        let element = Self::read(of, of.embedded, &format!("{name}.@elem"))?;
        let fits = (REQUEST - 2) / (element.least_bytes + 6);
        Some(Self {
            of: Type::map(Type::Text, element.of.clone()),
            most: source.max_properties.unwrap_or(fits),
            least_bytes: 2,
            element: Some(Arc::new(element)),
            key: Some(Arc::new(Self::scalar(Type::Text, 0, 2))),
            ..Self::default()
        })
    }

    fn text(source: &Source) -> Self {
        match source.format.as_str() {
            "byte" => Self::scalar(Type::Bytes, source.max_length.unwrap_or(REQUEST - 2), 2),
            "duration" => Self::scalar(Type::Duration, 32, 3),
            "date" => Self::scalar(Type::Timestamp, 12, 12),
            "date-time" => Self::scalar(Type::Timestamp, 32, 21),
            _ => {
                let longest = source.values.iter().filter_map(|value| value.as_str()).map(str::len).max();
                let most = match (source.max_length, source.values.is_empty()) {
                    (Some(most), _) => most * 4,
                    (None, false) => longest.unwrap_or_default() as u64,
                    (None, true) => REQUEST - 2,
                };
                Self::scalar(Type::Text, most, 2)
            }
        }
    }

    fn object(source: &Source, whole: bool, name: &str) -> Self {
        let mut fields = BTreeMap::new();
        let mut least_bytes = 2;
        for (field, of) in &source.properties {
            let escaped = escape(field);
            let path = format!("{name}.{}", escaped.as_deref().unwrap_or(field));
            let Some(declared) = Self::read(of, of.embedded, &path) else { continue };
            if source.required.contains(field) && of.default.is_none() {
                least_bytes += field.len() as u64 + declared.least_bytes + 4;
            }
            if let Some(escaped) = escaped {
                fields.insert(escaped, Arc::new(declared));
            }
        }
        if whole {
            add_type_and_metadata(&mut fields, name);
        }
        let declared = Self { name: name.to_owned(), least_bytes, fields, ..Self::default() };
        Self { of: Type::Object(Arc::new(declared.clone())), ..declared }
    }

    /// How often a value of this size fits into one request.
    pub(crate) fn most_in_a_request(&self) -> u64 {
        REQUEST / (self.least_bytes + 1)
    }
}

/// Whole objects have a type and a name, whatever their schema says.
fn add_type_and_metadata(fields: &mut BTreeMap<String, Arc<Declared>>, name: &str) {
    let text = || Arc::new(Declared::scalar(Type::Text, REQUEST - 2, 2));
    let known = fields.get("metadata").is_some_and(|metadata| {
        metadata.fields.contains_key("name") && metadata.fields.contains_key("generateName")
    });
    for field in ["apiVersion", "kind"] {
        fields.entry(field.to_owned()).or_insert_with(text);
    }
    if !known {
        let inner: BTreeMap<String, Arc<Declared>> =
            ["name", "generateName"].map(|field| (field.to_owned(), text())).into();
        let name = format!("{name}.metadata");
        let metadata = Declared { name, least_bytes: 2, fields: inner, ..Declared::default() };
        let metadata = Declared { of: Type::Object(Arc::new(metadata.clone())), ..metadata };
        fields.insert("metadata".to_owned(), Arc::new(metadata));
    }
}

/// Reserved words of the language, which cannot be names.
const WORDS: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The name with which an expression accesses a field; none if it cannot.
pub(crate) fn escape(name: &str) -> Option<String> {
    let first = name.chars().next()?;
    let readable = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-' | '/');
    if first.is_ascii_digit() || !name.chars().all(readable) {
        return None;
    }
    if WORDS.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let parts = name.replace("__", "__underscores__");
    Some(parts.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__"))
}
