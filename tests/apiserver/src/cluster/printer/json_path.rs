//! The part of JSONPath that columns of definitions use.
//!
//! Answers: which values does this path find? Members, indices, `[*]`, and filters that compare with a constant.
//! 1. A path that cannot be read, or that leads nowhere, finds nothing.
//! 2. Values are found in the order of the document.
use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Member(String),
    Index(i64),
    All,
    /// Elements whose value at a path equals (or differs from) a constant.
    Filter(Vec<Self>, bool, Value),
}

/// The values at `path`, which begins with a dot.
pub(super) fn find<'a>(value: &'a Value, path: &str) -> Vec<&'a Value> {
    let text = path.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
    parse(text).map_or_else(Vec::new, |steps| follow(value, &steps))
}

fn follow<'a>(value: &'a Value, steps: &[Step]) -> Vec<&'a Value> {
    let mut found = vec![value];
    for step in steps {
        found = found.into_iter().flat_map(|value| take(value, step)).collect();
    }
    found
}

fn take<'a>(value: &'a Value, step: &Step) -> Vec<&'a Value> {
    let elements = || value.as_array().map_or(&[][..], Vec::as_slice);
    match step {
        Step::Member(name) => value.get(name).into_iter().collect(),
        Step::Index(at) => {
            let len = i64::try_from(elements().len()).unwrap_or(i64::MAX);
            let at = if *at < 0 { len + at } else { *at };
            usize::try_from(at).ok().and_then(|at| elements().get(at)).into_iter().collect()
        }
        Step::All => match value {
            Value::Object(map) => map.values().collect(),
            _ => elements().iter().collect(),
        },
        Step::Filter(path, equal, constant) => {
            let holds = |element: &&Value| (follow(element, path).first() == Some(&constant)) == *equal;
            elements().iter().filter(holds).collect()
        }
    }
}

fn parse(mut text: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    while !text.is_empty() {
        if let Some(rest) = text.strip_prefix('.') {
            let (name, rest) = member(rest)?;
            if name == "*" {
                steps.push(Step::All);
            } else if !name.is_empty() {
                steps.push(Step::Member(name));
            }
            text = rest;
        } else {
            let inner = text.strip_prefix('[')?;
            let end = closing(inner)?;
            steps.extend(bracket(inner[..end].trim())?);
            text = &inner[end + 1..];
        }
    }
    Some(steps)
}

/// A member's name up to the next dot or bracket; a backslash before a dot keeps it in the name.
fn member(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '.' | '[' => return Some((name, &text[at..])),
            '\\' => name.push(letters.next()?.1),
            _ => name.push(letter),
        }
    }
    Some((name, ""))
}

/// Where the open bracket ends, skipping brackets inside it and inside quotes.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Option<Vec<Step>> {
    if inner == "*" {
        return Some(vec![Step::All]);
    }
    if let Some(quoted) = inner.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        // Quotes protect brackets, but not dots: dots still need a backslash.
        return parse(&format!(".{quoted}"));
    }
    if let Some(filter) = inner.strip_prefix("?(").and_then(|filter| filter.strip_suffix(')')) {
        let (path, equal, value) = match filter.split_once("==") {
            Some((path, value)) => (path, true, value),
            None => filter.split_once("!=").map(|(path, value)| (path, false, value))?,
        };
        let path = parse(path.trim().strip_prefix('@')?)?;
        return Some(vec![Step::Filter(path, equal, constant(value.trim())?)]);
    }
    inner.parse().ok().map(|at| vec![Step::Index(at)])
}

fn constant(text: &str) -> Option<Value> {
    let quoted = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    match quoted {
        Some(inner) => Some(Value::String(inner.to_owned())),
        None => serde_json::from_str(text).ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn api_37_a_path_finds_members_elements_and_what_a_filter_chooses() {
        let object = json!({"spec": {"a.b": 1, "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}]},
            "metadata": {"annotations": {"example.com/x": "here"}}});
        for (path, found) in [
            (".spec.list[0].n", json!(["x"])),
            (".spec.list[-1].n", json!(["y"])),
            (".spec.list[*].v", json!([1, 2])),
            (".spec.list[?(@.n==\"y\")].v", json!([2])),
            (".spec.list[?(@.n=='x')].v", json!([1])),
            (".spec.list[?(@.v!=1)].n", json!(["y"])),
            (".spec['a.b']", json!([])),
            (".spec['a\\.b']", json!([1])),
            (".spec.a\\.b", json!([1])),
            (".metadata.annotations['example\\.com/x']", json!(["here"])),
            (".metadata.annotations.example\\.com/x", json!(["here"])),
            (".nope.deeper", json!([])),
            (".spec[", json!([])),
        ] {
            assert_eq!(json!(find(&object, path)), found, "{path}");
        }
    }
}
