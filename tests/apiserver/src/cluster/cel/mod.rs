//! The Common Expression Language as a kube-apiserver has it: types, Kubernetes' libraries, and costs.
//!
//! Answers: does this expression compile, what may it cost at most, and what is its result for these values? The
//! grammar is the `cel` crate's; types, values and costs are our own, because its interpreter has neither types before
//! a run nor costs, and a real server refuses definitions because of both.
//! 1. An expression is compiled once, and never changes.
//! 2. A run ends early only if it costs more than its limit.
//! 3. Error texts are those of a real server.
//!
//! Next: `check.rs` types an expression, `estimate.rs` computes its cost, `eval.rs` runs it; `library/` has the
//! functions.
mod assign;
mod check;
mod cost;
mod declared;
mod estimate;
mod estimate_calls;
mod eval;
mod issues;
mod library;
mod literals;
mod macros;
mod quantity;
mod semver;
mod size;
mod time;
mod types;
mod url;
mod value;

#[cfg(test)]
mod tests;

use cel::IdedExpr;
use serde_json::Value as Json;

pub(crate) use check::Checked;
pub(crate) use declared::{Declared, escape};
pub(crate) use eval::Failure;
pub(crate) use time::{date, date_time, duration};
pub(crate) use types::Type;
pub(crate) use value::{Key, List, Merge, Value};

/// An expression that has compiled.
#[derive(Debug)]
pub(crate) struct Expression {
    tree: IdedExpr,
    checked: Checked,
}

/// The result of an expression, and its cost.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) result: Result<Value, Failure>,
    pub(crate) cost: u64,
}

impl Expression {
    /// Compiles an expression that may use these variables.
    ///
    /// # Errors What is wrong with it, with the places, in the form of a real server.
    pub(crate) fn compile(text: &str, variables: &[(&str, Type)]) -> Result<Self, String> {
        let (tree, source) = macros::parse(text)?;
        let checked = check::check(&tree, &source, variables)?;
        literals::check(&tree, &source, &checked)?;
        Ok(Self { tree, checked })
    }

    /// The type of its result.
    pub(crate) fn result(&self) -> &Type {
        self.checked.type_of(self.tree.id)
    }

    /// Whether it uses a variable.
    pub(crate) fn mentions(&self, variable: &str) -> bool {
        self.checked.variables.contains(variable)
    }

    /// What it may cost at most, where `root` describes `self`.
    pub(crate) fn estimate(&self, root: &Declared) -> u64 {
        estimate::most(&self.tree, &self.checked, root)
    }

    /// Runs it; the run ends when it costs more than `limit`.
    pub(crate) fn run(&self, variables: &[(&str, Value)], limit: u64) -> Outcome {
        eval::run(&self.tree, &self.checked, variables, limit)
    }
}

/// A value without a schema.
pub(crate) fn from_json(value: &Json) -> Value {
    value::from_json(value)
}
