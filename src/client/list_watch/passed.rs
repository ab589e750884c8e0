//! Objects of namespaces that are not kept.
//!
//! Answers "may this object be dropped before its body is decoded?", by the namespace that a scan of its metadata finds:
//! of a cluster-wide list or watch that follows some namespaces, most objects are of others. Invariants:
//! 1. Only bytes that are one document are dropped: others may hold a second object.
//! 2. A dropped event gives its version, so that a later watch goes on from there.
//!
//! Read next: `decode.rs`, which asks this first.

use informer_core::meta::ResourceVersion;

use super::decode::Decoding;
use crate::representation::{Encoded, Representation};

impl<R: Representation> Decoding<'_, R> {
    /// The version of an object that is dropped; `None` if it is kept.
    pub(super) fn passed(&self, object: &Encoded<'_>) -> Option<ResourceVersion> {
        let scan = object.meta();
        if self.known.follows(scan.namespace.as_deref()) {
            return None;
        }
        let (_, version) = (scan.name().ok()?, scan.version().ok()?);
        self.wire.is_document(object.bytes()).then_some(version)
    }
}
