//! Label and field selectors, parsed before they are sent, by the grammars of apimachinery (`labels.Parse`,
//! `fields.ParseSelector`).
//!
//! Only what a server refuses as malformed is refused here: only the server knows the fields of a kind. Equal selectors have one
//! normal form: `b==2, a` and `a,b=2`.

mod fields;
mod labels;

pub(crate) use fields::{FieldTerms, Term, fields};
pub use labels::{LabelSelector, SelectorError};

/// Of a label's value, and of the name in its key.
const LONGEST: usize = 63;
/// In a label's key.
const LONGEST_PREFIX: usize = 253;

pub(crate) fn normal_labels(text: &str) -> Result<String, String> {
    let selector = text.parse::<LabelSelector>();
    selector.map(|selector| selector.to_string()).map_err(|error| error.to_string())
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Symbol(&'static str),
    Comma,
    Open,
    Close,
    End,
}

impl Token {
    fn quoted(&self) -> String {
        match self {
            Self::Word(word) => format!("{word:?}"),
            Self::Symbol(symbol) => format!("{symbol:?}"),
            Self::Comma => "a comma".to_owned(),
            Self::Open => "\"(\"".to_owned(),
            Self::Close => "\")\"".to_owned(),
            Self::End => "the end".to_owned(),
        }
    }
}

fn tokens(text: &str) -> Vec<Token> {
    const SYMBOLS: [&str; 6] = ["!=", "==", "=", "!", "<", ">"];
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let (mut tokens, mut rest) = (Vec::new(), text.trim_start_matches(is_space));
    while let Some(first) = rest.chars().next() {
        let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
        let (token, length) = match (first, symbol) {
            (_, Some(symbol)) => (Token::Symbol(symbol), symbol.len()),
            (',', _) => (Token::Comma, 1),
            ('(', _) => (Token::Open, 1),
            (')', _) => (Token::Close, 1),
            _ => {
                let ends = |c: char| is_space(c) || "=!(),<>".contains(c);
                let length = rest.find(ends).unwrap_or(rest.len());
                (Token::Word(rest[..length].to_owned()), length)
            }
        };
        tokens.push(token);
        rest = rest[length..].trim_start_matches(is_space);
    }
    tokens
}

/// `name` or `prefix/name`.
fn label_key(key: String) -> Result<String, String> {
    let (prefix, name) = key.split_once('/').map_or((None, &*key), |(prefix, name)| (Some(prefix), name));
    let is_sound = !name.is_empty() && is_label(name) && prefix.is_none_or(is_subdomain);
    if is_sound { Ok(key) } else { Err(format!("{key:?} is not the key of a label")) }
}

fn label_value(value: String) -> Result<String, String> {
    if is_label(&value) { Ok(value) } else { Err(format!("{value:?} is not the value of a label")) }
}

/// Empty, or at most 63 letters, digits, `-`, `_` and `.`; the first and the last is a letter or digit.
fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let bytes = text.as_bytes();
    bytes.len() <= LONGEST
        && bytes.iter().copied().all(is_inner)
        && [bytes.first(), bytes.last()].into_iter().flatten().all(u8::is_ascii_alphanumeric)
}

fn is_subdomain(prefix: &str) -> bool {
    let is_part = |part: &str| {
        let is_lower = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = part.as_bytes();
        !bytes.is_empty()
            && bytes.iter().all(|byte| is_lower(byte) || *byte == b'-')
            && [bytes.first(), bytes.last()].into_iter().flatten().all(is_lower)
    };
    prefix.len() <= LONGEST_PREFIX && prefix.split('.').all(is_part)
}
