//! Objects that could not be read.
//!
//! Answers "which object is known by name and version alone, and why?"; who tries again is `repair.rs`. It stands apart
//! from `delta.rs`, so that snapshots, which hold them, know nothing of deltas.

use std::sync::Arc;

use crate::meta::{ObjectKey, ResourceVersion};

/// What a part without an object weighs, besides the texts that it holds.
pub const SET_ASIDE_BYTES: usize = 64;

/// An object whose metadata was read and whose body was not: kept apart, counted, never lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Which object.
    pub key: ObjectKey,
    /// The version that could not be decoded or transformed.
    pub version: ResourceVersion,
    /// Why.
    pub error: Arc<str>,
}

impl SetAside {
    /// What it weighs in a queue: [`SET_ASIDE_BYTES`] and the texts that it holds.
    pub fn bytes(&self) -> usize {
        let key = self.key.namespace().map_or(0, str::len) + self.key.name().len();
        SET_ASIDE_BYTES + key + self.error.len()
    }
}
