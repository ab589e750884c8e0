//! For those who come from client-go or kube-rs: their types and functions, and what takes their place here.
//!
//! Answers "what is X called here, and what does it do differently?" Each row of the tables links to an example that is
//! compiled with the tests of this crate. Nothing is defined here.

#[doc = include_str!("guide/from_client_go.md")]
pub mod from_client_go {}

#[doc = include_str!("guide/from_kube_rs.md")]
pub mod from_kube_rs {}
