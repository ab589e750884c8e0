//! The decisions of reconcilers.
//!
//! Answers "may this child be written or deleted?" ([`children`]) and "what follows for a finalizer from the state of its
//! object?" ([`finalizer`]).

pub mod children;
pub mod finalizer;
