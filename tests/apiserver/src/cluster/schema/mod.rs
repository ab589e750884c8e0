//! Schemas: the structure of a kind's objects, built-in or custom.
//!
//! Answers: which fields does this kind have, of which types, with which list keys, defaults and checks? It checks no
//! object; the checks walk the types from `Schema::root` along with a value.
//! 1. Types are in an arena and refer to each other by id, so that recursion (JSONSchemaProps) is a cycle of ids.
//! 2. A `Schema` is a pair of an arena and the id of its root: cloning it is cheap, and it never changes.
//! 3. Built-in types are unpacked once per process, at the first question, not when a server starts.
//!
//! Next: `model.rs` is the arena, `source.rs` reads JSON schema text, `load.rs` makes types from it, `builtin.rs` has
//! the built-in ones.
pub(crate) mod builtin;
pub(crate) mod decode;
pub(crate) mod fault;
pub(crate) mod format;
pub(crate) mod load;
pub(crate) mod model;
pub(crate) mod patterns;
pub(crate) mod quantity;
mod scalar;
pub(crate) mod source;
pub(crate) mod time;

#[cfg(test)]
mod tests;

pub(crate) use builtin::custom;
pub(crate) use model::Schema;
