//! Field selectors, parsed before they are sent.
//!
//! Answers "is this a field selector, and which is its normal form?" by the grammar of apimachinery's
//! `fields.ParseSelector`. It selects nothing: only the server knows which fields of a kind can be selected.
//!
//! Read next: `scope.rs`, which sends it.

use std::collections::BTreeSet;

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
