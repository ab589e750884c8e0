//! Guides, and what replaces the types and functions of client-go and kube-rs. Each row of the tables of [`from_client_go`] and
//! [`from_kube_rs`] links to an example that the tests compile.

#[doc = include_str!("guide/start.md")]
pub mod start {}

#[doc = include_str!("guide/examples.md")]
pub mod examples {}

#[doc = include_str!("guide/comparison.md")]
pub mod comparison {}

#[doc = include_str!("guide/from_client_go.md")]
pub mod from_client_go {}

#[doc = include_str!("guide/from_kube_rs.md")]
pub mod from_kube_rs {}

#[doc = include_str!("guide/operator.md")]
pub mod operator {}

#[cfg(all(feature = "metrics", feature = "page"))]
#[doc = include_str!("guide/seeing.md")]
pub mod seeing {}

#[cfg(feature = "test-kit")]
#[doc = include_str!("guide/testing.md")]
pub mod testing {}
