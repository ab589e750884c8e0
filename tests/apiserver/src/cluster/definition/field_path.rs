//! Paths of fields in rules and selectable fields: `.spec.a['b']`.
//!
//! Answers: which field of this schema does a path mean, and if none, why? It reads paths as a real server does, with
//! the same error texts.
use crate::cluster::schema::source::{Others, Source};

/// The field's path as causes show it, and its schema.
///
/// # Errors
/// Why the path means no field.
pub(super) fn read<'a>(
    path: &str,
    source: &'a Source,
    brackets: bool,
) -> Result<(String, &'a Source), String> {
    let mut tokens = tokens(path).into_iter();
    let mut found = String::new();
    let mut at = source;
    let end = || "unexpected end of JSON path".to_owned();
    while let Some(token) = tokens.next() {
        let name = match token {
            "[" if !brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let quoted = tokens.next().ok_or_else(end)?;
                let bare = quoted.strip_prefix('\'').and_then(|bare| bare.strip_suffix('\''));
                let bare = bare.filter(|_| quoted.len() > 1);
                bare.map(unescaped)
                    .ok_or_else(|| format!("expected single quoted string but got {quoted}"))?
            }
            "." => tokens.next().ok_or_else(end)?.to_owned(),
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        at = step(at, &name, &mut found)?;
        if token == "[" {
            match tokens.next() {
                Some("]") => {}
                Some(other) => return Err(format!("expected ] but got {other}")),
                None => return Err(end()),
            }
        }
    }
    Ok((found, at))
}

fn step<'a>(at: &'a Source, name: &str, found: &mut String) -> Result<&'a Source, String> {
    let no = || "does not refer to a valid field".to_owned();
    match &at.additional_properties {
        _ if !at.properties.is_empty() => {
            let field = at.properties.get(name).ok_or_else(no)?;
            *found = super::validate::below(found, name);
            Ok(field)
        }
        Some(Others::Typed(of)) => {
            found.push_str(&format!("[{name}]"));
            Ok(of)
        }
        _ => Err(no()),
    }
}

fn unescaped(text: &str) -> String {
    text.replace("\\'", "'").replace("\\\\", "\\")
}

fn tokens(path: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let length = if let Some(quoted) = rest.strip_prefix('\'') {
            let bytes = quoted.as_bytes();
            let close =
                (0..bytes.len()).find(|at| bytes[*at] == b'\'' && (*at == 0 || bytes[at - 1] != b'\\'));
            close.map_or(rest.len(), |close| close + 2)
        } else if rest.starts_with(['.', '[', ']']) {
            1
        } else {
            rest.find(['.', '[', ']']).unwrap_or(rest.len())
        };
        tokens.push(&rest[..length]);
        rest = &rest[length..];
    }
    tokens
}
