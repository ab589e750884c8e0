//! Makes an object of the cache from a plain body, such as the answer to a write. Key, uid and version come
//! from the body's metadata.

use informer_core::meta::{Meta, Object, ObjectKey, ParseVersionError, SourceId, Uid};
use kube_core::Resource;

/// Why a body is no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// It has no name.
    #[error("the {kind} has no metadata.name")]
    Name {
        /// Its kind, as far as the type says it.
        kind: &'static str,
    },
    /// It has no version: no server has stored it.
    #[error("{key} has no metadata.resourceVersion")]
    NoVersion {
        /// Its key.
        key: ObjectKey,
    },
    /// Its version is not one that servers give.
    #[error("{key}: {source}")]
    Version {
        /// Its key.
        key: ObjectKey,
        /// What is wrong with it.
        source: ParseVersionError,
    },
}

/// The key, uid and version of a body, as of the source `default` of an informer of one cluster. Allocates
/// the texts.
///
/// ```
/// use actix_informer::object::meta_of;
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// let mut map = ConfigMap::default();
/// map.metadata.name = Some("prices".to_owned());
/// assert_eq!(meta_of(&map).unwrap_err().to_string(), "prices has no metadata.resourceVersion");
/// map.metadata.resource_version = Some("7".to_owned());
/// assert_eq!(meta_of(&map)?.version.to_string(), "7");
/// # Ok::<(), actix_informer::object::BodyError>(())
/// ```
///
/// # Errors
/// [`BodyError`] when the name or the version is missing or not one.
pub fn meta_of<K: Resource>(body: &K) -> Result<Meta, BodyError> {
    let key = key_of(body)?;
    let meta = body.meta();
    let text = meta.resource_version.as_deref().filter(|text| !text.is_empty());
    let Some(text) = text else { return Err(BodyError::NoVersion { key }) };
    let version = match text.parse() {
        Ok(version) => version,
        Err(source) => return Err(BodyError::Version { key, source }),
    };
    let uid = Uid::new(meta.uid.as_deref().unwrap_or_default());
    Ok(Meta::new(key, version, SourceId::default()).uid(uid))
}

/// The key of a body.
#[doc(hidden)]
pub fn key_of<K: Resource>(body: &K) -> Result<ObjectKey, BodyError> {
    let meta = body.meta();
    let some = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let name = some(&meta.name).ok_or_else(|| BodyError::Name { kind: short_name::<K>() })?;
    Ok(match some(&meta.namespace) {
        Some(namespace) => ObjectKey::namespaced(namespace, name),
        None => ObjectKey::cluster(name),
    })
}

/// The object that this body is: it reads like the body, and has its key, uid and version.
///
/// ```
/// use actix_informer::object::from_body;
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// let mut answer = ConfigMap::default();
/// answer.metadata.name = Some("prices".to_owned());
/// answer.metadata.namespace = Some("shop".to_owned());
/// answer.metadata.resource_version = Some("7".to_owned());
/// let object = from_body(answer)?;
/// assert_eq!((object.key().to_string(), object.version().to_string()), ("shop/prices".into(), "7".into()));
/// # Ok::<(), actix_informer::object::BodyError>(())
/// ```
///
/// # Errors
/// As [`meta_of`].
pub fn from_body<K: Resource>(body: K) -> Result<Object<K>, BodyError> {
    Ok(Object::new(meta_of(&body)?, body))
}

/// Without path and parameters.
fn short_name<K>() -> &'static str {
    let name = std::any::type_name::<K>();
    let name = name.split('<').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;

    #[test]
    fn what_a_body_lacks_is_named() {
        let mut pod = Pod::default();
        assert_eq!(meta_of(&pod).unwrap_err().to_string(), "the Pod has no metadata.name");
        pod.metadata.name = Some("web".to_owned());
        pod.metadata.resource_version = Some("007".to_owned());
        let error = from_body(pod).unwrap_err();
        assert!(matches!(error, BodyError::Version { .. }), "{error}");
        assert!(error.to_string().starts_with("web: "), "{error}");
    }
}
