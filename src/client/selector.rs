//! Label selectors and field selectors, parsed before they are sent.
//!
//! Answers "is this selector one, and do two of them select the same?" The grammars are those of apimachinery
//! (`labels.Parse`, `fields.ParseSelector`), with which servers parse them. Invariants:
//! 1. What a server would refuse as malformed is refused here, and nothing else is. Which fields a kind can be selected
//!    by is known to its server alone.
//! 2. Equal selectors have one normal form, however they are written: `b==2, a` and `a,b=2`.
//!
//! Read next: `selector/labels.rs`; `scope.rs`, which sends them.

mod fields;
mod labels;
mod tokens;

pub(crate) use fields::{FieldTerms, Term, fields};
pub use labels::{LabelSelector, SelectorError};

/// The normal form of a label selector.
///
/// # Errors
/// Why it is not one.
pub(crate) fn labels(text: &str) -> Result<String, String> {
    let selector = text.parse::<LabelSelector>();
    selector.map(|selector| selector.to_string()).map_err(|error| error.to_string())
}
