//! Undecodable objects: objects whose metadata was read and whose body could not be decoded.
//!
//! Answers "which object is known by key and version alone, and why?". `repair.rs` schedules the GETs that try again.
//! The type is not part of `delta.rs`, because snapshots hold such objects and do not depend on deltas.

use std::sync::Arc;

use crate::meta::{ObjectKey, ResourceVersion};

/// The bytes counted for a part without an object, besides the texts that it holds.
pub const UNDECODABLE_BYTES: usize = 64;

/// An object whose metadata was read and whose body could not be decoded or transformed. It is counted and visible in
/// the state; the last version that decoded stays in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecodable {
    /// Which object.
    pub key: ObjectKey,
    /// The version that could not be decoded or transformed.
    pub version: ResourceVersion,
    /// Why.
    pub error: Arc<str>,
}

impl Undecodable {
    /// The bytes counted for it in a queue: [`UNDECODABLE_BYTES`] and the texts that it holds.
    pub fn bytes(&self) -> usize {
        let key = self.key.namespace().map_or(0, str::len) + self.key.name().len();
        UNDECODABLE_BYTES + key + self.error.len()
    }
}
