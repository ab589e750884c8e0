//! Only the metadata of objects, cut by the server: name, labels, annotations, owners.
//!
//! Answers "what is kept?" with kube-core's `PartialObjectMeta`, negotiated by the Accept header, so that the rest
//! never crosses the network. Invariants:
//! 1. A server that sends whole objects instead is refused object by object: nobody pays silently for what was not
//!    asked.
//!
//! Read next: `mod.rs`.

use std::fmt;
use std::marker::PhantomData;

use kube_core::TypeMeta;
use kube_core::metadata::PartialObjectMeta;

use super::{Asked, DecodeError, Prune, Representation};

/// Keeps the metadata of each object; `K` only says of which kind they are.
///
/// ```
/// use actix_informer::representation::{MetadataOnly, Prune, Representation};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let kept = MetadataOnly::<Pod>::new().keep(
///     r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}"#,
///     &Prune::default(),
/// )?;
/// assert_eq!(kept.metadata.name.as_deref(), Some("a"));
/// # Ok::<(), actix_informer::representation::DecodeError>(())
/// ```
pub struct MetadataOnly<K> {
    expected: TypeMeta,
    body: PhantomData<fn() -> K>,
}

impl<K> MetadataOnly<K> {
    /// The metadata, minus what [`Prune`] cuts.
    #[must_use]
    pub fn new() -> Self {
        let expected =
            TypeMeta { api_version: "meta.k8s.io/v1".to_owned(), kind: "PartialObjectMetadata".to_owned() };
        Self { expected, body: PhantomData }
    }
}

impl<K> Default for MetadataOnly<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Send + Sync + 'static> Representation for MetadataOnly<K> {
    type Body = PartialObjectMeta<K>;

    fn keep(&self, json: &str, prune: &Prune) -> Result<Self::Body, DecodeError> {
        prune.decode(json)
    }

    fn asks_for(&self) -> Asked {
        Asked::Metadata
    }

    fn expected(&self) -> Option<&TypeMeta> {
        Some(&self.expected)
    }
}

impl<K> Clone for MetadataOnly<K> {
    fn clone(&self) -> Self {
        Self { expected: self.expected.clone(), body: PhantomData }
    }
}

impl<K> fmt::Debug for MetadataOnly<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MetadataOnly")
    }
}
