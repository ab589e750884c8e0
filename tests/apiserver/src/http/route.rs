//! What a request is about, read from its method, path and query.
//!
//! Answers: which endpoint, which verb, which object? It does not know which kinds exist.
//! 1. A trailing slash changes nothing.
//! 2. `/api/v1/namespaces/x` is the object; `/api/v1/namespaces/x/pods` is the pods in it.
//!
//! Next: `mod.rs` acts on it.
use crate::cluster::options::{self, Query};

/// What the path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Health,
    Version,
    /// What follows `/openapi/v3`, empty for the index.
    OpenApi(String),
    OpenApiV2,
    CoreVersions,
    Groups,
    Group(String),
    /// The resource list of a group and version.
    Resources {
        group: String,
        version: String,
    },
    Resource(Target),
    Unknown,
}

/// A collection, an object, or a subresource of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
    pub(crate) sub: Option<String>,
    /// The old form of a watch: `/api/v1/watch/pods`.
    pub(crate) watch_path: bool,
}

impl Route {
    /// Reads a percent-decoded path.
    pub(crate) fn parse(path: &str) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        match parts.as_slice() {
            ["healthz" | "livez" | "readyz", ..] => Self::Health,
            ["version"] => Self::Version,
            ["openapi", "v3", name @ ..] => Self::OpenApi(name.join("/")),
            ["openapi", "v2"] => Self::OpenApiV2,
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group((*group).to_owned()),
            ["api", version] => Self::Resources { group: String::new(), version: (*version).to_owned() },
            ["apis", group, version] => {
                Self::Resources { group: (*group).to_owned(), version: (*version).to_owned() }
            }
            ["api", version, rest @ ..] => Self::resource("", version, rest),
            ["apis", group, version, rest @ ..] => Self::resource(group, version, rest),
            _ => Self::Unknown,
        }
    }

    fn resource(group: &str, version: &str, rest: &[&str]) -> Self {
        let (watch_path, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            _ => (false, rest),
        };
        let owned = |text: &str| Some(text.to_owned());
        let (namespace, plural, name, sub) = match rest {
            ["namespaces"] => (None, "namespaces", None, None),
            ["namespaces", name] => (None, "namespaces", owned(name), None),
            ["namespaces", name, sub @ ("status" | "finalize")] => {
                (None, "namespaces", owned(name), owned(sub))
            }
            ["namespaces", namespace, plural] => (owned(namespace), *plural, None, None),
            ["namespaces", namespace, plural, name] => (owned(namespace), *plural, owned(name), None),
            ["namespaces", namespace, plural, name, sub] => {
                (owned(namespace), *plural, owned(name), owned(sub))
            }
            [plural] => (None, *plural, None, None),
            [plural, name] => (None, *plural, owned(name), None),
            [plural, name, sub] => (None, *plural, owned(name), owned(sub)),
            _ => return Self::Unknown,
        };
        let (group, version, plural) = (group.to_owned(), version.to_owned(), plural.to_owned());
        Self::Resource(Target { group, version, namespace, plural, name, sub, watch_path })
    }
}

impl Target {
    /// The verb of the API, as authorization and the request log name it; empty for a method the API does not have.
    pub(crate) fn verb(&self, method: &str, query: &Query) -> &'static str {
        let watch = self.watch_path || options::flag(query, "watch");
        match (method, &self.name) {
            ("GET", None) if watch => "watch",
            ("GET", Some(_)) if self.watch_path => "watch",
            ("GET", None) => "list",
            ("GET", Some(_)) => "get",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", None) => "deletecollection",
            ("DELETE", Some(_)) => "delete",
            _ => "",
        }
    }

    /// The resource in kubectl's form: `pods`, `deployments.apps`.
    pub(crate) fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> Target {
        match Route::parse(path) {
            Route::Resource(target) => target,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn a_path_names_a_collection_an_object_or_a_subresource() {
        let pods = target("/api/v1/pods/");
        assert_eq!((pods.plural.as_str(), pods.namespace, pods.name), ("pods", None, None));
        let pod = target("/api/v1/namespaces/a/pods/b/status");
        assert_eq!(
            (pod.namespace.as_deref(), pod.name.as_deref(), pod.sub.as_deref()),
            (Some("a"), Some("b"), Some("status"))
        );
        let namespace = target("/api/v1/namespaces/a");
        assert_eq!(
            (namespace.plural.as_str(), namespace.namespace, namespace.name.as_deref()),
            ("namespaces", None, Some("a"))
        );
        let custom = target("/apis/example.com/v1/widgets/w");
        assert_eq!(
            (custom.group.as_str(), custom.resource().as_str()),
            ("example.com", "widgets.example.com")
        );
        assert!(target("/api/v1/watch/namespaces/a/pods").watch_path);
        assert_eq!(Route::parse("/nope"), Route::Unknown);
    }
}
