//! The name of an object within its kind, and the name of a cluster. A key's text parses to the same key, unless
//! namespace or name contain a `/` or are empty.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// The name of an object within its kind: namespace (none for cluster-scoped kinds) and name; and the
/// cluster, in an informer of several clusters.
///
/// Ordered by cluster (none first), then namespace, then name. Cloning copies two pointers.
///
/// ```
/// # use informer_core::face as actix_informer;
/// use actix_informer::object::ObjectKey;
/// let key: ObjectKey = "default/web-0".parse()?;
/// assert_eq!((key.namespace(), key.name()), (Some("default"), "web-0"));
/// assert_eq!(key.to_string(), "default/web-0");
/// let abroad = key.clone().in_cluster(&"eu-1".parse()?);
/// assert_eq!(abroad.to_string(), "eu-1|default/web-0");
/// assert!(abroad != key && abroad == "eu-1|default/web-0".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ObjectKey {
    scope: Scope,
    name: Arc<str>,
}

/// A key without a cluster needs no more memory than its namespace alone.
#[derive(Clone)]
enum Scope {
    Namespace(Arc<str>),
    /// With a cluster, or cluster-scoped without one (`None`).
    Other(Option<Arc<Clustered>>),
}

const _: () = assert!(size_of::<ObjectKey>() == 2 * size_of::<Arc<str>>(), "two texts and nothing else");

struct Clustered {
    cluster: ClusterName,
    namespace: Option<Arc<str>>,
}

impl ObjectKey {
    /// The key of a namespaced object.
    pub fn namespaced(namespace: impl KeyText, name: impl KeyText) -> Self {
        Self { scope: Scope::Namespace(namespace.into_shared()), name: name.into_shared() }
    }

    /// The key of a cluster-scoped object, one without a namespace. The cluster itself is named by
    /// [`Self::in_cluster`].
    pub fn cluster(name: impl KeyText) -> Self {
        Self { scope: Scope::Other(None), name: name.into_shared() }
    }

    /// The same key in this cluster. Sources of an informer of several clusters make such keys; each call
    /// allocates one small block, which [`Self::sibling`] saves.
    #[must_use]
    pub fn in_cluster(self, cluster: &ClusterName) -> Self {
        let namespace = self.shared_namespace().cloned();
        let scope = Scope::Other(Some(Arc::new(Clustered { cluster: cluster.clone(), namespace })));
        Self { scope, name: self.name }
    }

    /// The key of this name in the same cluster and namespace. Their texts are shared with this key and
    /// stored once.
    #[must_use]
    pub fn sibling(&self, name: impl KeyText) -> Self {
        Self { scope: self.scope.clone(), name: name.into_shared() }
    }

    /// The cluster; `None` in an informer of one cluster.
    pub fn cluster_name(&self) -> Option<&ClusterName> {
        match &self.scope {
            Scope::Other(Some(clustered)) => Some(&clustered.cluster),
            _ => None,
        }
    }

    /// The namespace, or `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        self.shared_namespace().map(|namespace| &**namespace)
    }

    /// The name within the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace's shared text, for maps keyed by namespace.
    pub fn shared_namespace(&self) -> Option<&Arc<str>> {
        match &self.scope {
            Scope::Namespace(namespace) => Some(namespace),
            Scope::Other(Some(clustered)) => clustered.namespace.as_ref(),
            Scope::Other(None) => None,
        }
    }

    /// The name's shared text, for maps keyed by name.
    pub fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// Cluster and namespace, by which keys are ordered before their names.
    #[doc(hidden)]
    pub fn scope(&self) -> (Option<&ClusterName>, Option<&str>) {
        self.scope.names()
    }
}

impl Scope {
    /// Objects of a namespace mostly share its text, which is then not compared.
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Namespace(one), Self::Namespace(other)) if Arc::ptr_eq(one, other) => Ordering::Equal,
            (Self::Namespace(one), Self::Namespace(other)) => one.cmp(other),
            _ => self.names().cmp(&other.names()),
        }
    }

    fn names(&self) -> (Option<&ClusterName>, Option<&str>) {
        match self {
            Self::Namespace(namespace) => (None, Some(namespace)),
            Self::Other(None) => (None, None),
            Self::Other(Some(clustered)) => (Some(&clustered.cluster), clustered.namespace.as_deref()),
        }
    }
}

impl PartialEq for ObjectKey {
    fn eq(&self, other: &Self) -> bool {
        let is_name = Arc::ptr_eq(&self.name, &other.name) || self.name == other.name;
        is_name && self.scope.compare(&other.scope).is_eq()
    }
}

impl Eq for ObjectKey {}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.scope.compare(&other.scope).then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for ObjectKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.scope().hash(state);
        self.name.hash(state);
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespace = self.namespace();
        match self.cluster_name() {
            Some(cluster) => write!(f, "{cluster}|")?,
            // Names of roles may contain a bar. A leading bar: no cluster.
            None if self.name.contains('|') || namespace.is_some_and(|text| text.contains('|')) => {
                f.write_str("|")?;
            }
            None => {}
        }
        match namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectKey({self})")
    }
}

/// Why a text is not a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseKeyError {
    /// It is not `name` or `namespace/name`, with `cluster|` in front or without.
    #[error("unexpected key format: {0:?}")]
    Format(String),
    /// The text before the first `|` cannot be the name of a cluster.
    #[error("unexpected key format: {text:?}: {cause}")]
    Cluster {
        /// The whole text.
        text: String,
        /// Why the cluster's name is refused.
        #[source]
        cause: ParseClusterError,
    },
}

impl FromStr for ObjectKey {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, ParseKeyError> {
        let (cluster, key) = text.split_once('|').unwrap_or(("", text));
        let parts: Vec<&str> = key.split('/').collect();
        let key = match parts.as_slice() {
            [name] if !name.is_empty() => Self::cluster(*name),
            [namespace, name] if !namespace.is_empty() && !name.is_empty() => {
                Self::namespaced(*namespace, *name)
            }
            _ => return Err(ParseKeyError::Format(text.to_owned())),
        };
        if cluster.is_empty() {
            return Ok(key);
        }
        match cluster.parse() {
            Ok(cluster) => Ok(key.in_cluster(&cluster)),
            Err(cause) => Err(ParseKeyError::Cluster { text: text.to_owned(), cause }),
        }
    }
}

/// The name of a cluster, as keys of an informer of several clusters show it: letters `a` to `z`, digits, `.`
/// and `-`, at least one. Cloning copies a pointer.
///
/// ```
/// # use informer_core::face as actix_informer;
/// use actix_informer::object::ClusterName;
/// let name: ClusterName = "eu-1.example".parse()?;
/// assert_eq!(name.as_str(), "eu-1.example");
/// assert!("EU 1".parse::<ClusterName>().is_err() && "".parse::<ClusterName>().is_err());
/// # Ok::<(), actix_informer::object::ParseClusterError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterName(Arc<str>);

/// A text that cannot be the name of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name of a cluster must be one or more of a-z, 0-9, '.' and '-', and not {0:?}")]
pub struct ParseClusterError(String);

impl ClusterName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name's shared text, for maps keyed by cluster.
    pub fn shared(&self) -> &Arc<str> {
        &self.0
    }
}

impl FromStr for ClusterName {
    type Err = ParseClusterError;

    fn from_str(text: &str) -> Result<Self, ParseClusterError> {
        let is_allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'.' || byte == b'-';
        if text.is_empty() || !text.bytes().all(is_allowed) {
            return Err(ParseClusterError(text.to_owned()));
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterName({self})")
    }
}

// `Into<Arc<str>>` would refuse `&String`, and `AsRef<str>` would copy a shared text.

/// A namespace or a name for an [`ObjectKey`](super::ObjectKey): `&str`, `String`, `&String`, or a text that
/// is shared already (`Arc<str>`, `&Arc<str>`) and is then not copied.
///
/// ```
/// # use informer_core::face as actix_informer;
/// use actix_informer::object::ObjectKey;
///
/// let (namespace, name) = ("shop".to_owned(), "web".to_owned());
/// assert_eq!(ObjectKey::namespaced(&namespace, &name), ObjectKey::namespaced("shop", name));
/// ```
pub trait KeyText {
    /// The text, in the form that a key keeps.
    fn into_shared(self) -> Arc<str>;
}

impl KeyText for Arc<str> {
    fn into_shared(self) -> Self {
        self
    }
}

impl KeyText for &Arc<str> {
    fn into_shared(self) -> Arc<str> {
        Arc::clone(self)
    }
}

macro_rules! copied {
    ($($text:ty),*) => {$(
        impl KeyText for $text {
            fn into_shared(self) -> Arc<str> {
                let text: &str = &self;
                text.into()
            }
        }
    )*};
}

copied!(&str, &&str, String, &String, Box<str>, Cow<'_, str>);

#[cfg(test)]
mod tests;

#[cfg(test)]
mod key_text_tests {
    use super::KeyText;
    use crate::meta::ObjectKey;
    use std::borrow::Cow;
    use std::sync::Arc;

    #[test]
    fn newcomer_0_a_key_is_made_of_any_kind_of_text() {
        let (shop, owned) = ("shop".to_owned(), "web".to_owned());
        let key = ObjectKey::namespaced("shop", "web");
        assert_eq!(ObjectKey::namespaced(&shop, &owned), key);
        assert_eq!(ObjectKey::namespaced(shop.clone(), Cow::Borrowed("web")), key);
        assert_eq!(ObjectKey::namespaced("shop", owned.clone().into_boxed_str()), key);
        assert_eq!(ObjectKey::cluster(&owned), ObjectKey::cluster("web"));
        assert_eq!(key.sibling(&owned), key.sibling(owned));
        assert_eq!(ObjectKey::namespaced(&shop, "web"), key);
    }

    #[test]
    fn a_text_that_is_shared_already_is_not_copied() {
        let shared: Arc<str> = "web".into();
        for key in [ObjectKey::cluster(&shared), ObjectKey::cluster(Arc::clone(&shared))] {
            assert!(Arc::ptr_eq(key.shared_name(), &shared));
        }
        assert!(Arc::ptr_eq(&(&shared).into_shared(), &shared));
    }
}
