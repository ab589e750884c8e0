//! Label selectors: parsed or built, sent in normal form, or matched as a server does (apimachinery's
//! `labels.Requirement.Matches`).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use super::{Token, is_label, label_key, label_value, tokens};

/// Which labels an object must have: requirements that must all hold. The empty selector selects everything.
///
/// Parsed from what `kubectl -l` takes, or built. A built requirement that no server would accept is refused.
///
/// ```
/// use actix_informer::object::LabelSelector;
/// use std::collections::BTreeMap;
///
/// let parsed: LabelSelector = "app in (cart, pay), !legacy".parse()?;
/// let built = LabelSelector::everything().is_in("app", ["pay", "cart"])?.lacks("legacy")?;
/// assert_eq!(parsed, built);
/// assert_eq!(built.to_string(), "!legacy,app in (cart,pay)");
///
/// let labels = BTreeMap::from([("app".to_owned(), "cart".to_owned())]);
/// assert!(built.matches(&labels));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelSelector {
    requirements: BTreeMap<String, Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Requirement {
    key: String,
    is: Operation,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Operation {
    Present,
    Absent,
    Equal(String),
    NotEqual(String),
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Above(i64),
    Below(i64),
}

impl LabelSelector {
    /// The selector without requirements.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Also requires that the label has this value.
    ///
    /// # Errors
    /// Why a server would not accept it.
    pub fn equals(self, key: &str, value: &str) -> Result<Self, SelectorError> {
        let value = checked(label_value(value.to_owned()))?;
        self.with(key, Operation::Equal(value))
    }

    /// Also requires that the label has another value, or is absent.
    ///
    /// # Errors
    /// As [`Self::equals`].
    pub fn differs(self, key: &str, value: &str) -> Result<Self, SelectorError> {
        let value = checked(label_value(value.to_owned()))?;
        self.with(key, Operation::NotEqual(value))
    }

    /// Also requires that the label has one of these values.
    ///
    /// # Errors
    /// As [`Self::equals`]; and when there are no values.
    pub fn is_in<'v>(
        self,
        key: &str,
        values: impl IntoIterator<Item = &'v str>,
    ) -> Result<Self, SelectorError> {
        let values = some_of(key, values)?;
        self.with(key, Operation::In(values))
    }

    /// Also requires that the label has none of these values, or is absent.
    ///
    /// # Errors
    /// As [`Self::is_in`].
    pub fn is_not_in<'v>(
        self,
        key: &str,
        values: impl IntoIterator<Item = &'v str>,
    ) -> Result<Self, SelectorError> {
        let values = some_of(key, values)?;
        self.with(key, Operation::NotIn(values))
    }

    /// Also requires that the label is there, with any value.
    ///
    /// # Errors
    /// As [`Self::equals`].
    pub fn has(self, key: &str) -> Result<Self, SelectorError> {
        self.with(key, Operation::Present)
    }

    /// Also requires that the label is absent.
    ///
    /// # Errors
    /// As [`Self::equals`].
    pub fn lacks(self, key: &str) -> Result<Self, SelectorError> {
        self.with(key, Operation::Absent)
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with these labels is selected. Allocates nothing.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selects(|key| labels.get(key).map(|value| Cow::Borrowed(&**value)))
    }

    /// Whether an object is selected whose labels are read one by one.
    #[doc(hidden)]
    pub fn selects<'a>(&self, label: impl Fn(&str) -> Option<Cow<'a, str>>) -> bool {
        self.requirements.values().all(|requirement| requirement.holds(label(&requirement.key).as_deref()))
    }

    /// The values of each label that allows only some.
    pub(crate) fn possible(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.requirements.values().filter_map(|Requirement { key, is }| match is {
            Operation::Equal(value) => Some((&**key, vec![&**value])),
            Operation::In(values) => Some((&**key, values.iter().map(String::as_str).collect())),
            _ => None,
        })
    }

    fn with(self, key: &str, is: Operation) -> Result<Self, SelectorError> {
        let key = checked(label_key(key.to_owned()))?;
        Ok(self.and(Requirement { key, is }))
    }

    fn and(mut self, requirement: Requirement) -> Self {
        self.requirements.insert(requirement.to_string(), requirement);
        self
    }
}

/// Why a text is not a selector, or a requirement is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);

impl SelectorError {
    pub(crate) const fn new(reason: String) -> Self {
        Self(reason)
    }
}

fn checked<T>(result: Result<T, String>) -> Result<T, SelectorError> {
    result.map_err(SelectorError)
}

fn some_of<'v>(
    key: &str,
    values: impl IntoIterator<Item = &'v str>,
) -> Result<BTreeSet<String>, SelectorError> {
    let values = values.into_iter().map(|value| label_value(value.to_owned()));
    let values: BTreeSet<String> = checked(values.collect())?;
    if values.is_empty() { Err(SelectorError(format!("no value is named for {key:?}"))) } else { Ok(values) }
}

impl FromStr for LabelSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        parsed(text).map_err(SelectorError)
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.keys().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.is {
            Operation::Present => value.is_some(),
            Operation::Absent => value.is_none(),
            Operation::Equal(one) => value == Some(one),
            Operation::NotEqual(one) => value != Some(one),
            Operation::In(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
            Operation::NotIn(values) => value.is_none_or(|value| values.iter().all(|one| one != value)),
            Operation::Above(bound) => number().is_some_and(|number| number > *bound),
            Operation::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined =
            |values: &BTreeSet<String>| values.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        let key = &self.key;
        match &self.is {
            Operation::Present => write!(f, "{key}"),
            Operation::Absent => write!(f, "!{key}"),
            Operation::Equal(value) => write!(f, "{key}={value}"),
            Operation::NotEqual(value) => write!(f, "{key}!={value}"),
            Operation::In(values) => write!(f, "{key} in ({})", joined(values)),
            Operation::NotIn(values) => write!(f, "{key} notin ({})", joined(values)),
            Operation::Above(bound) => write!(f, "{key}>{bound}"),
            Operation::Below(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

fn parsed(text: &str) -> Result<LabelSelector, String> {
    let mut parser = Parser { tokens: tokens(text), at: 0 };
    let mut selector = LabelSelector::default();
    while parser.peek() != &Token::End {
        selector = selector.and(parser.requirement()?);
        match parser.next() {
            Token::End => break,
            Token::Comma if parser.peek() != &Token::End => {}
            Token::Comma => return Err("nothing stands behind the last comma".to_owned()),
            other => return Err(format!("{} stands where a comma or the end should be", other.quoted())),
        }
    }
    Ok(selector)
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

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.peek() == &Token::Symbol("!");
        if absent {
            self.next();
        }
        let key = match self.next() {
            Token::Word(word) => label_key(word)?,
            other => return Err(format!("{} stands where a label's key should be", other.quoted())),
        };
        if absent {
            return Ok(Requirement { key, is: Operation::Absent });
        }
        let is = match self.peek().clone() {
            Token::End | Token::Comma => Operation::Present,
            Token::Symbol("=" | "==") => Operation::Equal(self.compared(&key)?),
            Token::Symbol("!=") => Operation::NotEqual(self.compared(&key)?),
            Token::Symbol(">") => Operation::Above(self.bound(&key)?),
            Token::Symbol("<") => Operation::Below(self.bound(&key)?),
            Token::Word(word) if word == "in" => Operation::In(self.one_of(&key, &word)?),
            Token::Word(word) if word == "notin" => Operation::NotIn(self.one_of(&key, &word)?),
            other => {
                return Err(format!("{} stands behind {key:?} where an operator should be", other.quoted()));
            }
        };
        Ok(Requirement { key, is })
    }

    fn compared(&mut self, key: &str) -> Result<String, String> {
        self.next();
        match self.peek().clone() {
            Token::End | Token::Comma => Ok(String::new()),
            Token::Word(word) => {
                self.next();
                label_value(word)
            }
            other => Err(format!("{} stands where the value of {key:?} should be", other.quoted())),
        }
    }

    fn bound(&mut self, key: &str) -> Result<i64, String> {
        self.next();
        match self.next() {
            Token::Word(word) if word.parse::<i64>().is_ok() && is_label(&word) => {
                word.parse().map_err(|_| format!("{word:?} is not an integer"))
            }
            other => Err(format!("{} stands where the integer of {key:?} should be", other.quoted())),
        }
    }

    fn one_of(&mut self, key: &str, operator: &str) -> Result<BTreeSet<String>, String> {
        self.next();
        if self.next() != Token::Open {
            return Err(format!("\"(\" is missing behind \"{key} {operator}\""));
        }
        let mut values = BTreeSet::new();
        // As in apimachinery: "()" holds one empty value, and so does the place before, between or after commas. A comma directly
        // after a comma is consumed with it; then a value or a comma must follow.
        loop {
            match self.next() {
                Token::Word(word) if matches!(self.peek(), Token::Comma | Token::Close) => {
                    values.insert(label_value(word)?);
                }
                Token::Word(_) => return Err(among(key, self.peek())),
                Token::Comma => {
                    if values.is_empty() || matches!(self.peek(), Token::Comma | Token::Close) {
                        values.insert(String::new());
                    }
                    if self.peek() == &Token::Comma {
                        self.next();
                        continue;
                    }
                }
                Token::Close if values.is_empty() => return Ok([String::new()].into()),
                other => return Err(among(key, &other)),
            }
            if self.peek() == &Token::Close {
                self.next();
                return Ok(values);
            }
        }
    }
}

fn among(key: &str, token: &Token) -> String {
    format!("{} stands among the values of {key:?}", token.quoted())
}

#[cfg(test)]
mod tests;
