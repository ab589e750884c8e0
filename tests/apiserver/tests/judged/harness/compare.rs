//! Compares two runs field by field.
//!
//! Answers: where do they differ? Pure; `known.rs` decides whether a difference is known.
//! 1. A member that only one side has is one difference, not one for each of its fields.
//! 2. Texts are compared by lines: one more on one side is one difference.
//! 3. Versions that both sides show must have come in the same order.
use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::normal::Normal;

/// One place where the answers of the two servers differ.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    pub(crate) step: String,
    /// A JSON pointer into the step: `/code`, `/headers/warning`, `/body/metadata/labels`, `/events/0/type`.
    pub(crate) at: String,
    pub(crate) ours: Option<Value>,
    pub(crate) real: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |side: &Option<Value>| {
            side.as_ref().map_or_else(|| "(absent)".to_owned(), |side| short(side, 600))
        };
        let (ours, real) = (told(&self.ours), told(&self.real));
        write!(f, "{} at {}\n      ours: {ours}\n      real: {real}", self.step, self.at)
    }
}

/// The value as text of at most about this many characters.
pub(crate) fn short(value: &Value, limit: usize) -> String {
    let text = value.to_string();
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}

/// All differences, in the order of the script.
pub(crate) fn compare(ours: &Normal, real: &Normal) -> Vec<Difference> {
    let mut found = Vec::new();
    for index in 0..ours.steps.len().max(real.steps.len()) {
        let side = |run: &Normal| run.steps.get(index).map(|(label, _)| label.clone());
        let label = side(real).or_else(|| side(ours)).unwrap_or_default();
        if side(ours) != side(real) {
            let told = |run: &Normal| side(run).map(Value::from);
            found.push(Difference {
                step: label,
                at: "/step".to_owned(),
                ours: told(ours),
                real: told(real),
            });
            return found;
        }
        descend(&label, "", &ours.steps[index].1, &real.steps[index].1, &mut found);
    }
    found.extend(order(ours, real));
    found
}

fn descend(step: &str, at: &str, ours: &Value, real: &Value, found: &mut Vec<Difference>) {
    match (ours, real) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                either(step, &at, left.get(key), right.get(key), found);
            }
        }
        (Value::Array(left), Value::Array(right)) if is_text(left) && is_text(right) => {
            lines(step, at, left, right, found);
        }
        (Value::Array(left), Value::Array(right)) => {
            for index in 0..left.len().max(right.len()) {
                either(step, &format!("{at}/{index}"), left.get(index), right.get(index), found);
            }
        }
        _ if ours == real => {}
        _ => found.push(Difference {
            step: step.to_owned(),
            at: at.to_owned(),
            ours: Some(ours.clone()),
            real: Some(real.clone()),
        }),
    }
}

fn is_text(lines: &[Value]) -> bool {
    !lines.is_empty() && lines.iter().all(Value::is_string)
}

/// Differences of two texts: lines that only one side has, so that one more does not shift the rest.
fn lines(step: &str, at: &str, ours: &[Value], real: &[Value], found: &mut Vec<Difference>) {
    let (rows, columns) = (ours.len(), real.len());
    // How long the longest common run of lines is from here on.
    let mut common = vec![vec![0_usize; columns + 1]; rows + 1];
    for (i, j) in (0..rows).rev().flat_map(|i| (0..columns).rev().map(move |j| (i, j))) {
        common[i][j] = match ours[i] == real[j] {
            true => common[i + 1][j + 1] + 1,
            false => common[i + 1][j].max(common[i][j + 1]),
        };
    }
    let (mut i, mut j) = (0, 0);
    while i < rows || j < columns {
        if i < rows && j < columns && ours[i] == real[j] {
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let extra = j == columns || (i < rows && common[i + 1][j] >= common[i][j + 1]);
        let (ours, real) = if extra { (ours.get(i), None) } else { (None, real.get(j)) };
        either(step, &format!("{at}/{j}"), ours, real, found);
        (i, j) = if extra { (i + 1, j) } else { (i, j + 1) };
    }
}

fn either(step: &str, at: &str, ours: Option<&Value>, real: Option<&Value>, found: &mut Vec<Difference>) {
    if let (Some(ours), Some(real)) = (ours, real) {
        return descend(step, at, ours, real, found);
    }
    let (ours, real) = (ours.cloned(), real.cloned());
    found.push(Difference { step: step.to_owned(), at: at.to_owned(), ours, real });
}

/// Whether versions that both show came in the same order.
fn order(ours: &Normal, real: &Normal) -> Option<Difference> {
    let common = |run: &Normal, other: &Normal| -> Vec<String> {
        run.order.iter().filter(|place| other.order.contains(place)).cloned().collect()
    };
    let (left, right) = (common(ours, real), common(real, ours));
    (left != right).then(|| Difference {
        step: "order of versions".to_owned(),
        at: "/order".to_owned(),
        ours: Some(left.into()),
        real: Some(right.into()),
    })
}

#[test]
fn a_line_more_is_one_difference() {
    let run = |lines: &[&str]| {
        let content = serde_json::json!({"stdout": lines});
        Normal { steps: vec![("1 kubectl".to_owned(), content)], order: Vec::new() }
    };
    let found = compare(&run(&["a", "c", "x"]), &run(&["a", "b", "c"]));
    let found: Vec<_> =
        found.iter().map(|difference| (difference.at.as_str(), difference.ours.is_some())).collect();
    assert_eq!(found, [("/stdout/1", false), ("/stdout/3", true)]);
}
