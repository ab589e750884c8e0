//! The text of a `labelSelector`: its tokens, its grammar, and the errors of both.
//!
//! Answers: which requirements does this text contain, or what is wrong with it? `selector.rs` checks whether an
//! object meets them.
//! 1. A text is split into tokens first, then parsed from left to right; the first fault is reported, with the API
//!    machinery's text.
//! 2. `in` and `notin` are operators after a key and plain words anywhere else: `in in (in)` is valid.
//! 3. A missing value is the empty one: `a=`, `a in ()` and `a in (b,)` ask for it.
//!
//! Next: `names.rs` checks keys and values.
use std::collections::BTreeSet;

use super::names;

/// How a key relates to its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    In,
    NotIn,
    Exists,
    Missing,
    Above,
    Below,
}

/// One part of a label selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Requirement {
    pub(crate) key: String,
    pub(crate) operator: Operator,
    pub(crate) values: BTreeSet<String>,
}

/// Reads a label selector. The error is the sentence of a refusal.
pub(crate) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let mut words = Words { words: words(text), at: 0 };
    let mut requirements = Vec::new();
    loop {
        match words.peek() {
            Word::Plain(_) | Word::Not => {}
            Word::End => return Ok(requirements),
            other => {
                return Err(format!("found '{}', expected: !, identifier, or 'end of string'", other.text()));
            }
        }
        let requirement = words.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
        requirements.push(requirement);
        match words.next() {
            Word::End => return Ok(requirements),
            Word::Comma => match words.peek() {
                Word::Plain(_) | Word::Not => {}
                other => return Err(format!("found '{}', expected: identifier after ','", other.text())),
            },
            other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    /// A key, a value, `in` or `notin`.
    Plain(String),
    Not,
    /// `=`, `==`, `!=`, `<`, `>`.
    Compare(&'static str),
    Open,
    Close,
    Comma,
    End,
}

impl Word {
    fn text(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Compare(text) => text,
            Self::Not => "!",
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
            Self::End => "",
        }
    }

    fn of_signs(signs: &str) -> Option<Self> {
        Some(match signs {
            ")" => Self::Close,
            "(" => Self::Open,
            "," => Self::Comma,
            "!" => Self::Not,
            "==" => Self::Compare("=="),
            "=" => Self::Compare("="),
            "!=" => Self::Compare("!="),
            ">" => Self::Compare(">"),
            "<" => Self::Compare("<"),
            _ => return None,
        })
    }
}

fn is_sign(letter: char) -> bool {
    matches!(letter, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n')
}

/// Splits a text into tokens; the last one is `End`.
fn words(text: &str) -> Vec<Word> {
    let mut rest = text;
    let mut words = Vec::new();
    loop {
        rest = rest.trim_start_matches(is_blank);
        if rest.is_empty() {
            break;
        }
        // Each sign is a token of its own, except `==` and `!=`.
        let signs = [2, 1].into_iter().find_map(|end| Some((Word::of_signs(rest.get(..end)?)?, end)));
        let (word, length) = signs.unwrap_or_else(|| {
            let end = rest.find(|letter| is_sign(letter) || is_blank(letter)).unwrap_or(rest.len());
            (Word::Plain(rest[..end].to_owned()), end)
        });
        words.push(word);
        rest = &rest[length..];
    }
    words.push(Word::End);
    words
}

struct Words {
    words: Vec<Word>,
    at: usize,
}

impl Words {
    fn peek(&self) -> &Word {
        self.words.get(self.at).unwrap_or(&Word::End)
    }

    fn next(&mut self) -> Word {
        let word = self.peek().clone();
        self.at += 1;
        word
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut word = self.next();
        let missing = word == Word::Not;
        if missing {
            word = self.next();
        }
        let Word::Plain(key) = word else {
            return Err(format!("found '{}', expected: identifier", word.text()));
        };
        refuse("<nil>", &key, &names::label_key_faults(&key))?;
        let ends = matches!(self.peek(), Word::End | Word::Comma);
        let alone = |operator| Requirement { key: key.clone(), operator, values: BTreeSet::new() };
        if missing {
            return Ok(alone(Operator::Missing));
        }
        if ends {
            return Ok(alone(Operator::Exists));
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn if self.words[self.at - 1].text().ends_with("in") => {
                self.values()?
            }
            _ => self.exact_value()?,
        };
        Requirement { key, operator, values }.checked()
    }

    fn operator(&mut self) -> Result<Operator, String> {
        let word = self.next();
        Ok(match word.text() {
            "in" | "=" | "==" => Operator::In,
            "notin" | "!=" => Operator::NotIn,
            ">" => Operator::Above,
            "<" => Operator::Below,
            other => return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
        })
    }

    fn exact_value(&mut self) -> Result<BTreeSet<String>, String> {
        if matches!(self.peek(), Word::End | Word::Comma) {
            return Ok(BTreeSet::from([String::new()]));
        }
        match self.next() {
            Word::Plain(value) => Ok(BTreeSet::from([value])),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        let open = self.next();
        if open != Word::Open {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        let first = self.peek().clone();
        match first {
            Word::Plain(_) | Word::Comma => {
                let values = self.listed()?;
                match self.next() {
                    Word::Close => Ok(values),
                    _ => Err(format!("found '{}', expected: ')'", first.text())),
                }
            }
            Word::Close => {
                self.at += 1;
                Ok(BTreeSet::from([String::new()]))
            }
            other => Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
        }
    }

    /// Values and commas up to the closing parenthesis, which is left.
    fn listed(&mut self) -> Result<BTreeSet<String>, String> {
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                Word::Plain(value) => {
                    values.insert(value);
                    match self.peek() {
                        Word::Comma => {}
                        Word::Close => return Ok(values),
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
                    }
                }
                Word::Comma => {
                    let closes = *self.peek() == Word::Close;
                    if values.is_empty() || closes || *self.peek() == Word::Comma {
                        values.insert(String::new());
                    }
                    if closes {
                        return Ok(values);
                    }
                }
                other => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
            }
        }
    }
}

impl Requirement {
    /// Checks what depends on the whole requirement; all faults are reported at once.
    fn checked(self) -> Result<Self, String> {
        let mut faults = Vec::new();
        if matches!(self.operator, Operator::Above | Operator::Below) {
            for (at, value) in self.values.iter().enumerate() {
                if whole_number(value).is_none() {
                    let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                    faults.push(format!("values[{at}]: Invalid value: {}: {why}", quoted(value)));
                }
            }
        }
        for (at, value) in self.values.iter().enumerate() {
            let found = names::label_value_faults(value);
            if !found.is_empty() {
                let at = format!("values[{at}][{}]", self.key);
                faults.push(format!("{at}: Invalid value: {}: {}", quoted(value), found.join("; ")));
            }
        }
        match faults.as_slice() {
            [] => Ok(self),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }
}

/// A number for the comparison of labels: a whole number with an optional sign.
pub(crate) fn whole_number(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn refuse(at: &str, value: &str, faults: &[String]) -> Result<(), String> {
    match faults {
        [] => Ok(()),
        _ => Err(format!("{at}: Invalid value: {}: {}", quoted(value), faults.join("; "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_31_a_selector_is_read_word_by_word() {
        for (text, count) in [
            ("", 0),
            (" ", 0),
            ("a", 1),
            ("a=b,c!=d", 2),
            ("in in (in,notin)", 1),
            ("a in (,x,),!b", 2),
            ("a notin()", 1),
            ("a>1,a<9", 2),
            ("a==", 1),
        ] {
            assert_eq!(parse(text).map(|found| found.len()), Ok(count), "{text}");
        }
        let read = parse("a in (y,,x)").unwrap();
        assert_eq!(read[0].values.iter().collect::<Vec<_>>(), ["", "x", "y"]);
    }

    #[test]
    fn api_31_a_refused_selector_is_reported_at_its_first_wrong_word() {
        for (text, why) in [
            ("=x", "found '=', expected: !, identifier, or 'end of string'"),
            ("app=x y", "found 'y', expected: ',' or 'end of string'"),
            ("a,", "found '', expected: identifier after ','"),
            ("a,,b", "found ',', expected: identifier after ','"),
            ("a in", "unable to parse requirement: found '' expected: '('"),
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a=(", "unable to parse requirement: found '(', expected: identifier"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ] {
            assert_eq!(parse(text), Err(why.to_owned()), "{text}");
        }
    }
}
