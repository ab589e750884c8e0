//! Field ownership: which manager owns which field of an object, and server-side apply, which uses that.
//!
//! Answers: what are the fields of this object by its schema, what changed, who owned it, and what is the result of an
//! apply? Pure: objects are JSON values, the time is an argument.
//!
//! Reading order: `element` → `set` → `fields_v1` → `shape` → `extract`, `compare`, `merge`, `prune`, `check` → `managed` →
//! `ownership` → `last_applied`.
//!
//! 1. Only the schema divides an object; no kind is named here.
//! 2. Ownership is expressed in sets of paths (`FieldSet`), never in values.
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
