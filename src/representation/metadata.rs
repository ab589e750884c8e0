//! Keeps only the metadata of objects: name, labels, annotations, owners. The server leaves out the rest.
//!
//! Answers "what is kept?": kube-core's `PartialObjectMeta`. The Accept header requests it, so the rest of an object
//! is not sent over the network. Invariants:
//! 1. If a server sends whole objects instead, each of them counts as undecodable: the higher cost does not stay
//!    unnoticed.
//!
//! Read next: `mod.rs`.

use std::fmt;
use std::marker::PhantomData;

use kube_core::TypeMeta;
use kube_core::metadata::PartialObjectMeta;

use super::{DecodeError, Encoded, Prune, Representation, RequestedContent};

/// Keeps the metadata of each object; `K` is only the kind of the objects.
///
/// ```
/// use actix_informer::representation::{Encoded, MetadataOnly, Prune, Representation};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let sent = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}"#;
/// let kept = MetadataOnly::<Pod>::new().keep(&Encoded::json(sent), &Prune::default())?;
/// assert_eq!(kept.metadata.name.as_deref(), Some("a"));
/// # Ok::<(), actix_informer::representation::DecodeError>(())
/// ```
pub struct MetadataOnly<K> {
    expected: TypeMeta,
    body: PhantomData<fn() -> K>,
}

impl<K> MetadataOnly<K> {
    /// Keeps the metadata without the fields that [`Prune`] cuts.
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

    fn keep(&self, object: &Encoded<'_>, prune: &Prune) -> Result<Self::Body, DecodeError> {
        prune.decode(object.text()?)
    }

    fn requested_content(&self) -> RequestedContent {
        RequestedContent::Metadata
    }

    fn expected(&self) -> Option<&TypeMeta> {
        Some(&self.expected)
    }

    fn identity(&self) -> Option<String> {
        Some(String::new())
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
