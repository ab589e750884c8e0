//! Compares two runs field by field.
//!
//! Answers: where do they differ? Pure; whether a difference is known is asked in `known.rs`.
//! 1. A member that only one side has is one difference, not one for each of its fields.
//! 2. Versions that both sides show must have come in the same order.
use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::normal::Normal;

/// One place where the two servers do not say the same.
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
