//! Label selectors and field selectors, parsed before they are sent.
//!
//! Answers "is this selector one, and do two of them select the same?" It selects nothing: the server does. The
//! grammars are those of apimachinery (`labels.Parse`, `fields.ParseSelector`), with which servers parse them.
//! Invariants:
//! 1. What a server would refuse as malformed is refused here, and nothing else is. Which fields a kind can be selected
//!    by is known to its server alone.
//! 2. Equal selectors have one normal form, however they are written: `b==2, a` and `a,b=2`.
//!
//! Read next: `scope.rs`, which sends them.

use std::collections::BTreeSet;

/// The longest value of a label, and the longest name in its key.
const LONGEST: usize = 63;
/// The longest prefix of a label's key.
const LONGEST_PREFIX: usize = 253;

/// The normal form of a label selector.
///
/// # Errors
/// Why it is not one.
pub(crate) fn labels(text: &str) -> Result<String, String> {
    let mut parser = Parser { tokens: tokens(text), at: 0 };
    let mut requirements = BTreeSet::new();
    while parser.peek() != &Token::End {
        requirements.insert(parser.requirement()?);
        match parser.next() {
            Token::End => break,
            Token::Comma if parser.peek() != &Token::End => {}
            Token::Comma => return Err("nothing stands behind the last comma".to_owned()),
            other => return Err(format!("{} stands where a comma or the end should be", other.quoted())),
        }
    }
    Ok(requirements.into_iter().collect::<Vec<_>>().join(","))
}

/// The normal form of a field selector.
///
/// # Errors
/// Why it is not one.
pub(crate) fn fields(text: &str) -> Result<String, String> {
    let mut terms = BTreeSet::new();
    for term in split_terms(text) {
        if !term.is_empty() {
            terms.insert(field_term(term)?);
        }
    }
    Ok(terms.into_iter().collect::<Vec<_>>().join(","))
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

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    /// One requirement in its normal form.
    fn requirement(&mut self) -> Result<String, String> {
        let absent = self.peek() == &Token::Symbol("!");
        if absent {
            self.next();
        }
        let key = match self.next() {
            Token::Word(word) => label_key(word)?,
            other => return Err(format!("{} stands where a label's key should be", other.quoted())),
        };
        if absent {
            return Ok(format!("!{key}"));
        }
        match self.peek().clone() {
            Token::End | Token::Comma => Ok(key),
            Token::Symbol("=" | "==") => self.compared(&key, "="),
            Token::Symbol("!=") => self.compared(&key, "!="),
            Token::Symbol(than @ ("<" | ">")) => self.ordered(&key, than),
            Token::Word(word) if word == "in" || word == "notin" => self.one_of(&key, &word),
            other => Err(format!("{} stands behind {key:?} where an operator should be", other.quoted())),
        }
    }

    fn compared(&mut self, key: &str, operator: &str) -> Result<String, String> {
        self.next();
        let value = match self.peek().clone() {
            Token::End | Token::Comma => String::new(),
            Token::Word(word) => {
                self.next();
                label_value(word)?
            }
            other => return Err(format!("{} stands where the value of {key:?} should be", other.quoted())),
        };
        Ok(format!("{key}{operator}{value}"))
    }

    fn ordered(&mut self, key: &str, than: &str) -> Result<String, String> {
        self.next();
        match self.next() {
            Token::Word(word) if word.parse::<i64>().is_ok() && is_label(&word) => {
                Ok(format!("{key}{than}{word}"))
            }
            other => Err(format!("{} stands where the integer of {key:?} should be", other.quoted())),
        }
    }

    fn one_of(&mut self, key: &str, operator: &str) -> Result<String, String> {
        self.next();
        if self.next() != Token::Open {
            return Err(format!("\"(\" is missing behind \"{key} {operator}\""));
        }
        // As in apimachinery, "()" holds one value, the empty one.
        let (mut values, mut value) = (BTreeSet::new(), None);
        loop {
            match self.next() {
                Token::Word(word) if value.is_none() => value = Some(label_value(word)?),
                Token::Comma => {
                    values.insert(value.take().unwrap_or_default());
                }
                Token::Close => {
                    values.insert(value.unwrap_or_default());
                    break;
                }
                other => return Err(format!("{} stands among the values of {key:?}", other.quoted())),
            }
        }
        let values = values.into_iter().collect::<Vec<_>>().join(",");
        Ok(format!("{key} {operator} ({values})"))
    }
}

/// A name, perhaps behind a prefix and a slash.
fn label_key(key: String) -> Result<String, String> {
    let (prefix, name) = key.split_once('/').map_or((None, &*key), |(prefix, name)| (Some(prefix), name));
    let is_sound = !name.is_empty() && is_label(name) && prefix.is_none_or(is_subdomain);
    if is_sound { Ok(key) } else { Err(format!("{key:?} is not the key of a label")) }
}

fn label_value(value: String) -> Result<String, String> {
    if is_label(&value) { Ok(value) } else { Err(format!("{value:?} is not the value of a label")) }
}

/// At most 63 letters, digits, `-`, `_` and `.`, the first and the last a letter or digit; or nothing.
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

/// The parts between commas that are not escaped.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn field_term(term: &str) -> Result<String, String> {
    let at = term.find('=').ok_or_else(|| format!("{term:?} has no \"=\" and no \"!=\""))?;
    let (field, operator, value) = match term[..at].strip_suffix('!') {
        Some(field) => (field, "!=", &term[at + 1..]),
        None => (&term[..at], "=", term[at + 1..].strip_prefix('=').unwrap_or_else(|| &term[at + 1..])),
    };
    // A term without a field is one for servers, too.
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        let is_escape = c == '\\' && matches!(rest.next(), Some('\\' | ',' | '='));
        if matches!(c, '\\' | '=') && !is_escape {
            return Err(format!("{term:?} has a value in which \"\\\" or \"=\" is not escaped"));
        }
    }
    Ok(format!("{field}{operator}{value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_label_selectors_have_one_normal_form() {
        for (text, normal) in [
            ("", ""),
            ("app", "app"),
            ("!app", "!app"),
            ("! app", "!app"),
            (" b == 2 , a ", "a,b=2"),
            ("a=", "a="),
            ("a=,b", "a=,b"),
            ("in in (in, notin)", "in in (in,notin)"),
            ("env in (b,a,b)", "env in (a,b)"),
            ("env notin (a,)", "env notin (,a)"),
            ("env in ()", "env in ()"),
            ("env in ( , )", "env in ()"),
            ("tier!=web", "tier!=web"),
            ("example.org/n>5, x<3", "example.org/n>5,x<3"),
            ("a=in", "a=in"),
        ] {
            assert_eq!(labels(text).as_deref(), Ok(normal), "{text:?}");
        }
    }

    #[test]
    fn a_label_selector_that_is_malformed_is_refused_with_what_is_wrong() {
        for (text, why) in [
            ("app shop", "\"shop\" stands behind \"app\" where an operator should be"),
            ("app=shop web", "\"web\" stands where a comma or the end should be"),
            ("app=shop,", "nothing stands behind the last comma"),
            (",app", "a comma stands where a label's key should be"),
            ("=shop", "\"=\" stands where a label's key should be"),
            ("app in shop", "\"(\" is missing behind \"app in\""),
            ("app in (a b)", "\"b\" stands among the values of \"app\""),
            ("app in (a", "the end stands among the values of \"app\""),
            ("!app=1", "\"=\" stands where a comma or the end should be"),
            ("n>five", "\"five\" stands where the integer of \"n\" should be"),
            ("app=-x", "\"-x\" is not the value of a label"),
            ("Up.Org/x=1", "\"Up.Org/x\" is not the key of a label"),
            ("a/b/c", "\"a/b/c\" is not the key of a label"),
            ("app=sh*p", "\"sh*p\" is not the value of a label"),
        ] {
            assert_eq!(labels(text), Err(why.to_owned()), "{text:?}");
        }
        assert!(labels(&"a".repeat(64)).is_err() && labels(&"a".repeat(63)).is_ok());
    }

    #[test]
    fn field_selectors_are_compared_and_refused_as_the_server_does() {
        for (text, normal) in [
            ("", ""),
            ("spec.nodeName=b,metadata.name==a", "metadata.name=a,spec.nodeName=b"),
            ("status.phase!=Running", "status.phase!=Running"),
            (r"metadata.name=a\,b\=c\\", r"metadata.name=a\,b\=c\\"),
            ("spec.nodeName=", "spec.nodeName="),
            ("==x", "=x"),
            ("!=x", "!=x"),
        ] {
            assert_eq!(fields(text).as_deref(), Ok(normal), "{text:?}");
        }
        for text in ["spec.nodeName", "a=b=c", r"a=\n", r"a=b\"] {
            assert!(fields(text).is_err(), "{text:?}");
        }
    }
}
