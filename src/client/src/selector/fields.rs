//! Field selectors, by the grammar of apimachinery's `fields.ParseSelector`. Only the server knows the fields of a kind;
//! `metadata.name` and `metadata.namespace` are known here.

use std::collections::BTreeSet;
use std::fmt;

use informer_core::meta::ObjectKey;

const NAME: &str = "metadata.name";
const NAMESPACE: &str = "metadata.namespace";

/// All must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldTerms(BTreeSet<Term>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Term {
    pub(crate) field: String,
    pub(crate) is_equal: bool,
    pub(crate) value: String,
}

impl FieldTerms {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let terms = split_terms(text).into_iter().filter(|term| !term.is_empty());
        Ok(Self(terms.map(Term::parse).collect::<Result<_, _>>()?))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Term> {
        self.0.iter()
    }

    /// Whether only name and namespace are read.
    pub(crate) fn are_of_keys(&self) -> bool {
        self.0.iter().all(|term| matches!(&*term.field, NAME | NAMESPACE))
    }

    /// Judges only name and namespace.
    pub(crate) fn exclude(&self, key: &ObjectKey) -> bool {
        self.0.iter().any(|term| term.known(key).is_some_and(|value| !term.holds(value)))
    }
}

impl Term {
    fn parse(term: &str) -> Result<Self, String> {
        let at = term.find('=').ok_or_else(|| format!("{term:?} has no \"=\" and no \"!=\""))?;
        let (field, is_equal, value) = match term[..at].strip_suffix('!') {
            Some(field) => (field, false, &term[at + 1..]),
            None => (&term[..at], true, term[at + 1..].strip_prefix('=').unwrap_or_else(|| &term[at + 1..])),
        };
        // Servers accept a term without a field, too.
        let (mut rest, mut plain) = (value.chars(), String::with_capacity(value.len()));
        while let Some(c) = rest.next() {
            plain.push(
                match c {
                    '\\' => rest.next().filter(|c| matches!(c, '\\' | ',' | '=')),
                    '=' => None,
                    c => Some(c),
                }
                .ok_or_else(|| format!("{term:?} has a value in which \"\\\" or \"=\" is not escaped"))?,
            );
        }
        Ok(Self { field: field.to_owned(), is_equal, value: plain })
    }

    /// A field that is not set has the empty value.
    pub(crate) fn holds(&self, value: &str) -> bool {
        (self.value == value) == self.is_equal
    }

    /// `None` if the key does not tell.
    pub(crate) fn known<'a>(&self, key: &'a ObjectKey) -> Option<&'a str> {
        match &*self.field {
            NAME => Some(key.name()),
            NAMESPACE => Some(key.namespace().unwrap_or_default()),
            _ => None,
        }
    }
}

impl fmt::Display for FieldTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Term { field, is_equal, value }) in self.0.iter().enumerate() {
            let (comma, operator) = (if at == 0 { "" } else { "," }, if *is_equal { "=" } else { "!=" });
            write!(f, "{comma}{field}{operator}")?;
            for c in value.chars() {
                let escape = if matches!(c, '\\' | ',' | '=') { "\\" } else { "" };
                write!(f, "{escape}{c}")?;
            }
        }
        Ok(())
    }
}

pub(crate) fn fields(text: &str) -> Result<String, String> {
    FieldTerms::parse(text).map(|terms| terms.to_string())
}

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

#[cfg(test)]
mod tests {
    use super::*;

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
