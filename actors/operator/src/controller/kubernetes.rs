//! What a controller of Kubernetes objects knows besides: who owns an object, and what the API server answered to a write.
//!
//! Answers "which key does this child belong to, and what must the cache show first?". Read next: `owners.rs`;
//! `own_writes.rs`.

pub use own_writes::OwnWrites;
pub use owners::{Owns, owner};

mod own_writes;
mod owners;
