//! Types of expressions.
//!
//! Answers: which types may an expression have, and what are their names? `assign.rs` decides which fit which.
//! 1. A parameter (`T`) stands in signatures only; an unknown of one expression is a `Var`.
use std::fmt;
use std::sync::Arc;

use super::declared::Declared;

/// What an expression may give.
#[derive(Debug, Clone, Default)]
pub(crate) enum Type {
    #[default]
    Dyn,
    /// Its error has been reported already.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Timestamp,
    Duration,
    List(Arc<Self>),
    Map(Arc<Self>, Arc<Self>),
    Optional(Arc<Self>),
    /// An object with the fields of a schema.
    Object(Arc<Declared>),
    /// A type of Kubernetes' libraries, by its name.
    Library(&'static str),
    /// The type of types.
    Meta(Arc<Self>),
    Param(char),
    Var(u32),
}

pub(crate) const QUANTITY: &str = "kubernetes.Quantity";
pub(crate) const SEMVER: &str = "kubernetes.Semver";
pub(crate) const URL: &str = "kubernetes.URL";
pub(crate) const FORMAT: &str = "kubernetes.NamedFormat";
pub(crate) const IP: &str = "net.IP";
pub(crate) const CIDR: &str = "net.CIDR";

impl Type {
    pub(crate) fn list(of: Self) -> Self {
        Self::List(Arc::new(of))
    }

    pub(crate) fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    pub(crate) fn optional(of: Self) -> Self {
        Self::Optional(Arc::new(of))
    }

    /// The type with this name in a signature; a single capital letter is a parameter.
    pub(super) fn read(text: &str) -> Self {
        let text = text.trim();
        if let Some((outer, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            let inner: Vec<Self> = split(inner).into_iter().map(Self::read).collect();
            return match (outer, inner.as_slice()) {
                ("list", [of]) => Self::list(of.clone()),
                ("map", [key, value]) => Self::map(key.clone(), value.clone()),
                ("optional", [of]) => Self::optional(of.clone()),
                ("type", [of]) => Self::Meta(Arc::new(of.clone())),
                _ => Self::Error,
            };
        }
        match text {
            "quantity" => Self::Library(QUANTITY),
            "semver" => Self::Library(SEMVER),
            "url" => Self::Library(URL),
            "format" => Self::Library(FORMAT),
            "ip" => Self::Library(IP),
            "cidr" => Self::Library(CIDR),
            "timestamp" => Self::Timestamp,
            "duration" => Self::Duration,
            _ => Self::named(text).unwrap_or_else(|| Self::Param(text.chars().next().unwrap_or('T'))),
        }
    }

    /// The type with this name in an expression.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "bool" => Self::Bool,
            "bytes" => Self::Bytes,
            "double" => Self::Double,
            "dyn" => Self::Dyn,
            "int" => Self::Int,
            "null_type" => Self::Null,
            "string" => Self::Text,
            "uint" => Self::Uint,
            "list" => Self::list(Self::Dyn),
            "map" => Self::map(Self::Dyn, Self::Dyn),
            "type" => Self::Meta(Arc::new(Self::Dyn)),
            "optional_type" => Self::optional(Self::Dyn),
            "google.protobuf.Timestamp" => Self::Timestamp,
            "google.protobuf.Duration" => Self::Duration,
            _ => {
                Self::Library([QUANTITY, SEMVER, URL, FORMAT, IP, CIDR].into_iter().find(|own| *own == name)?)
            }
        })
    }

    /// The name that `type(x)` returns.
    pub(super) fn runtime_name(&self) -> String {
        match self {
            Self::Null => "null_type".to_owned(),
            Self::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Self::Duration => "google.protobuf.Duration".to_owned(),
            Self::List(_) => "list".to_owned(),
            Self::Map(..) => "map".to_owned(),
            Self::Optional(_) => "optional_type".to_owned(),
            Self::Meta(_) => "type".to_owned(),
            other => other.to_string(),
        }
    }

    pub(super) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn)
    }

    pub(super) fn is_free(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// Whether a value of it has always the same size.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool | Self::Double | Self::Duration | Self::Int | Self::Timestamp | Self::Uint => true,
            Self::Optional(of) => of.is_scalar(),
            _ => false,
        }
    }
}

/// Splits at the commas that stand in no parentheses.
pub(super) fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_u32, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        parts.push(&text[start..]);
    }
    parts
}

impl PartialEq for Type {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a == b,
            (Self::Meta(a), Self::Meta(b)) => a == b,
            (Self::Map(a, b), Self::Map(c, d)) => a == c && b == d,
            (Self::Object(a), Self::Object(b)) => a.name == b.name,
            (Self::Library(a), Self::Library(b)) => a == b,
            (Self::Param(a), Self::Param(b)) => a == b,
            (Self::Var(a), Self::Var(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Error => f.write_str("!error!"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::Text => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(of) => write!(f, "optional_type({of})"),
            Self::Object(declared) => f.write_str(&declared.name),
            Self::Library(name) => f.write_str(name),
            Self::Meta(of) => write!(f, "type({of})"),
            Self::Param(letter) => write!(f, "{letter}"),
            Self::Var(number) => write!(f, "_var{number}"),
        }
    }
}
