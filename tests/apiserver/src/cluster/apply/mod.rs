//! Field ownership: which manager owns which field of an object, and server-side apply, which goes by that.
//!
//! Answers: what are the fields of this object by its schema, what changed, who owned it, and what does an apply
//! make of it? Pure: objects are JSON values, the time is an argument.
//!
//! Reading order: `element` → `set` → `fields_v1` → `shape` → `extract`, `compare`, `merge`, `prune`, `check` → `managed` →
//! `ownership` → `last_applied`.
//!
//! 1. The schema alone divides an object; no kind is known here by name.
//! 2. What is owned is told in sets of paths (`FieldSet`), never in values.
mod check;
mod compare;
mod element;
mod extract;
mod fields_v1;
mod last_applied;
mod managed;
mod merge;
mod ownership;
mod prune;
mod set;
mod shape;

pub(crate) use check::go;
pub(crate) use managed::Managed;
pub(crate) use ownership::{Applied, Conflict, Refused, Writer};
pub(crate) use set::{FieldSet, Path};
pub(crate) use shape::{Place, same};

#[cfg(test)]
mod tests;
