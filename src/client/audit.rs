//! The Audit-ID of an answer: the name under which the server's audit log holds the request.
//!
//! Answers "what does a person search the audit log for?" Invariants:
//! 1. It is at most 128 visible characters: a server may send anything.

use http::HeaderMap;

const HEADER: &str = "audit-id";
/// The API server's are UUIDs of 36 characters, or what the client sent, cut at 64.
const MAX_CHARS: usize = 128;

/// The Audit-ID of the answer with these headers.
pub(crate) fn id_of(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get(HEADER)?.to_str().ok()?;
    (!id.is_empty() && id.len() <= MAX_CHARS).then_some(id)
}
