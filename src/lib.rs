//! Kubernetes informers as supervised actix actors.
//!
//! placeholder

#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "client")]
pub mod representation;
