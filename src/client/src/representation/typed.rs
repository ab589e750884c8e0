//! Keeps objects as Rust types ([`Typed`]), as a struct of the fields that are read ([`Projection`]), as kube-core's
//! `DynamicObject` ([`Dynamic`]), or only their metadata ([`MetadataOnly`]). A transform runs after a complete decode.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use kube_core::discovery::ApiResource;
use kube_core::metadata::PartialObjectMeta;
use kube_core::{DynamicObject, Resource, TypeMeta};
use serde::de::DeserializeOwned;

use super::{BoxError, DecodeError, Encoded, Prune, Representation, RequestedContent};

type Transform<K> = Arc<dyn Fn(K) -> Result<K, BoxError> + Send + Sync>;

/// Keeps each object as a `K`.
///
/// ```
/// use actix_informer::representation::{Encoded, Prune, Representation, Typed};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// let without_data = Typed::<ConfigMap>::new().transform(|mut map| {
///     map.data = None;
///     Ok(map)
/// });
/// let sent = Encoded::json(r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#);
/// let kept = without_data.keep(&sent, &Prune::default())?;
/// assert_eq!((kept.metadata.name.as_deref(), kept.data), (Some("a"), None));
/// # Ok::<(), actix_informer::representation::DecodeError>(())
/// ```
///
/// An `Object<K>` of a cache reads like a `K`:
///
/// ```
/// use actix_informer::object::{Meta, Object, ObjectKey, ResourceVersion, SourceId, Uid};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_core::{Resource as _, ResourceExt as _};
///
/// let mut map = ConfigMap::default();
/// (map.metadata.name, map.metadata.uid) = (Some("a".to_owned()), Some("u-1".to_owned()));
/// let version = ResourceVersion::from_number(7).expect("not zero");
/// let (key, uid) = (ObjectKey::namespaced("web", "a"), Uid::new("u-1"));
/// let object = Object::new(Meta::new(key, version, SourceId::default()).uid(uid), map);
///
/// assert_eq!(object.name_any(), "a");                                    // the body's, by ResourceExt
/// assert_eq!(object.uid().as_deref(), Some("u-1"));                      // the body's, by ResourceExt
/// assert_eq!(object.meta().name.as_deref(), Some("a"));                  // the body's, by Resource
/// assert_eq!(object.object_uid(), Uid::new("u-1").as_ref());         // Object's own
/// ```
pub struct Typed<K> {
    expected: TypeMeta,
    transform: Option<Transform<K>>,
    body: PhantomData<fn() -> K>,
}

impl<K: Resource<DynamicType = ()>> Typed<K> {
    /// Keeps the object as it is.
    #[must_use]
    pub fn new() -> Self {
        Self { expected: TypeMeta::resource::<K>(), transform: None, body: PhantomData }
    }

    /// Changes each object once, when it is decoded; replaces an earlier transform.
    ///
    /// After an error or a panic that object counts as undecodable. The cache uses the name, namespace, uid
    /// and version that the server sent, even if the transform changes them.
    #[must_use]
    pub fn transform(self, transform: impl Fn(K) -> Result<K, BoxError> + Send + Sync + 'static) -> Self {
        Self { transform: Some(Arc::new(transform)), ..self }
    }
}

impl<K: Resource<DynamicType = ()>> Default for Typed<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> Representation for Typed<K>
where
    K: DeserializeOwned + Send + Sync + 'static,
{
    type Body = K;

    fn keep(&self, object: &Encoded<'_>, prune: &Prune) -> Result<K, DecodeError> {
        let object = object.decode(prune)?;
        match &self.transform {
            None => Ok(object),
            Some(transform) => transform(object).map_err(DecodeError::Transform),
        }
    }

    fn expected(&self) -> Option<&TypeMeta> {
        Some(&self.expected)
    }

    fn identity(&self) -> Option<String> {
        self.transform.is_none().then(String::new)
    }

    #[cfg(feature = "protobuf")]
    fn reads_protobuf(&self) -> bool {
        true
    }
}

informer_core::clone_of!([K] Typed<K> { expected, transform, body });

informer_core::debug_as!([K] Typed<K>, self,
    kind = self.expected.kind,
    transform = self.transform.is_some()
);

/// Keeps each object as a `DynamicObject`: the metadata as a type and the rest as a JSON tree.
///
/// It takes several times the memory and time of [`Typed`]; it is for kinds that have no Rust type. Every
/// kept object has its `apiVersion` and `kind`, even if the list left them out.
///
/// ```
/// use actix_informer::representation::{Dynamic, Encoded, Prune, Representation};
/// use kube_core::discovery::ApiResource;
/// use kube_core::gvk::GroupVersionKind;
///
/// let kind = GroupVersionKind::gvk("example.com", "v1", "Widget");
/// let widgets = Dynamic::new(&ApiResource::from_gvk_with_plural(&kind, "widgets"));
/// let sent = Encoded::json(r#"{"metadata":{"name":"a"},"spec":{"size":3}}"#);
/// let kept = widgets.keep(&sent, &Prune::default())?;
/// assert_eq!(kept.data["spec"]["size"], 3);
/// assert_eq!(kept.types.as_ref().map(|types| types.kind.as_str()), Some("Widget"));
/// # Ok::<(), actix_informer::representation::DecodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Dynamic {
    expected: TypeMeta,
}

impl Dynamic {
    /// Objects of this kind.
    #[must_use]
    pub fn new(resource: &ApiResource) -> Self {
        let expected = TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() };
        Self { expected }
    }
}

impl Representation for Dynamic {
    type Body = DynamicObject;

    fn keep(&self, object: &Encoded<'_>, prune: &Prune) -> Result<DynamicObject, DecodeError> {
        let mut object: DynamicObject = object.decode(prune)?;
        object.types.get_or_insert_with(|| self.expected.clone());
        Ok(object)
    }

    fn expected(&self) -> Option<&TypeMeta> {
        Some(&self.expected)
    }

    fn identity(&self) -> Option<String> {
        Some(String::new())
    }

    #[cfg(feature = "protobuf")]
    fn reads_protobuf(&self) -> bool {
        true
    }
}

/// Keeps the metadata of each object; `K` is only the kind of the objects.
///
/// The rest of an object is not sent over the network. If a server sends whole objects instead, each of them
/// counts as undecodable, so that the higher cost is noticed.
///
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
        object.decode(prune)
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

    #[cfg(feature = "protobuf")]
    fn reads_protobuf(&self) -> bool {
        true
    }
}

informer_core::clone_of!([K] MetadataOnly<K> { expected, body });

impl<K> fmt::Debug for MetadataOnly<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MetadataOnly")
    }
}

/// Keeps each object of the kind `K` as a `T`, which names the fields that are read. The others are passed over
/// while it is decoded, and never built. [`ResourceSource::project`] is shorter. Selectors, predicates by metadata
/// and `owns` need a body with metadata; a controller does not wait for its own writes in such a cache.
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

    fn keep(&self, object: &Encoded<'_>, prune: &Prune) -> Result<T, DecodeError> {
        object.decode(prune)
    }

    fn expected(&self) -> Option<&TypeMeta> {
        Some(&self.expected)
    }

    fn identity(&self) -> Option<String> {
        Some(String::new())
    }

    #[cfg(feature = "protobuf")]
    fn reads_protobuf(&self) -> bool {
        true
    }
}

informer_core::clone_of!([K, T] Projection<K, T> { expected, body });

impl<K, T> fmt::Debug for Projection<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Projection({} {})", self.expected.api_version, self.expected.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;

    const POD: &str =
        r#"{"metadata":{"name":"a","managedFields":[{"manager":"m"}]},"spec":{"containers":[]}}"#;

    #[test]
    fn managed_fields_are_cut_by_default_and_kept_on_request() {
        let typed = Typed::<Pod>::new();
        assert_eq!(typed.keep(&Encoded::json(POD), &Prune::default()).unwrap().metadata.managed_fields, None);
        assert!(
            typed.keep(&Encoded::json(POD), &Prune::nothing()).unwrap().metadata.managed_fields.is_some()
        );
    }

    #[test]
    fn the_error_of_a_failing_transform_has_the_text_of_the_users_error() {
        let typed = Typed::<Pod>::new().transform(|_| Err("too old".into()));
        let error = typed.keep(&Encoded::json(POD), &Prune::default()).unwrap_err();
        assert_eq!(error.to_string(), "transform failed: too old");
    }

    #[test]
    fn text_behind_the_object_is_refused_before_the_transform_runs() {
        let typed = Typed::<Pod>::new().transform(|_| unreachable!("must not run"));
        assert!(matches!(
            typed.keep(&Encoded::json(&format!("{POD},1")), &Prune::default()),
            Err(DecodeError::Json(_))
        ));
    }
}
