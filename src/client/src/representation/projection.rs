//! Keeps a struct of the fields that a program reads, instead of a whole object.

use std::fmt;
use std::marker::PhantomData;

use kube_core::{Resource, TypeMeta};
use serde::de::DeserializeOwned;

use super::{DecodeError, Encoded, Prune, Representation};

/// Keeps each object of the kind `K` as a `T`, which names the fields that are read. The others are passed over
/// while it is decoded, and never built; so nothing needs to be cut. [`ResourceSource::project`] is shorter.
///
/// [`ResourceSource::project`]: crate::ResourceSource::project
///
/// ```
/// use actix_informer::representation::{Encoded, Projection, Prune, Representation};
/// use k8s_openapi::api::core::v1::Pod;
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Placed {
///     spec: Place,
/// }
/// #[derive(Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct Place {
///     node_name: Option<String>,
/// }
/// let sent = Encoded::json(r#"{"metadata":{"name":"a"},"spec":{"nodeName":"node-a","containers":[]}}"#);
/// let kept = Projection::<Pod, Placed>::new().keep(&sent, &Prune::default())?;
/// assert_eq!(kept.spec.node_name.as_deref(), Some("node-a"));
/// # Ok::<(), actix_informer::representation::DecodeError>(())
/// ```
pub struct Projection<K, T> {
    expected: TypeMeta,
    body: PhantomData<fn() -> (K, T)>,
}

impl<K: Resource<DynamicType = ()>, T> Projection<K, T> {
    /// Of objects of this kind.
    #[must_use]
    pub fn new() -> Self {
        Self { expected: TypeMeta::resource::<K>(), body: PhantomData }
    }
}

impl<K: Resource<DynamicType = ()>, T> Default for Projection<K, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, T> Representation for Projection<K, T>
where
    K: 'static,
    T: DeserializeOwned + Send + Sync + 'static,
{
    type Body = T;

    fn keep(&self, object: &Encoded<'_>, _prune: &Prune) -> Result<T, DecodeError> {
        Prune::nothing().decode(object.text()?)
    }

    fn expected(&self) -> Option<&TypeMeta> {
        Some(&self.expected)
    }

    fn identity(&self) -> Option<String> {
        Some(String::new())
    }
}

informer_core::clone_of!([K, T] Projection<K, T> { expected, body });

impl<K, T> fmt::Debug for Projection<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Projection({} {})", self.expected.api_version, self.expected.kind)
    }
}
