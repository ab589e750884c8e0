//! What the path of a request names, and the verb of the request, as Kubernetes' authorization and audit name them.
//!
//! Answers "which resource is this request about, and what does it do to it?" for spans and for advice. Invariants:
//! 1. Every path is accepted; one that is of no resource has an empty plural.
//!
//! Paths are `/api/v1/...` and `/apis/<group>/<version>/...`, and then `[namespaces/<name>/]<plural>[/<name>[/<sub>]]`.
//! Read next: `layers/measure.rs`, which names spans by it; `advice.rs`.

use http::Method;

use super::transport::RequestKind;

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named<'a> {
    /// Empty for the core group.
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) namespace: Option<&'a str>,
    /// Empty if the path is of no resource.
    pub(crate) plural: &'a str,
    /// `/log`; empty if it is the object itself.
    pub(crate) subresource: String,
    /// Whether it names one object.
    pub(crate) is_object: bool,
}

impl<'a> Named<'a> {
    pub(crate) fn of(path: &'a str) -> Self {
        let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let (group, version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => ("", "", &[][..]),
        };
        let (namespace, rest) = match rest {
            // What follows a namespace is of a resource in it, unless it is a subresource of the namespace itself.
            ["namespaces", name, rest @ ..]
                if !rest.is_empty() && !matches!(rest, ["status" | "finalize"]) =>
            {
                (Some(*name), rest)
            }
            rest => (None, rest),
        };
        let (plural, rest) = rest.split_first().map_or(("", rest), |(plural, rest)| (*plural, rest));
        let subresource =
            rest.get(1..).filter(|sub| !sub.is_empty()).map(|sub| format!("/{}", sub.join("/")));
        let (subresource, is_object) = (subresource.unwrap_or_default(), !rest.is_empty());
        Self { group, version, namespace, plural, subresource, is_object }
    }

    /// `pods`, `deployments.apps`, `pods/log`; empty if it is no resource.
    pub(crate) fn resource(&self) -> String {
        let Self { plural, group, subresource, .. } = self;
        let dot = if group.is_empty() || plural.is_empty() { "" } else { "." };
        let group = if plural.is_empty() { "" } else { group };
        format!("{plural}{dot}{group}{subresource}")
    }

    /// The verb of a request for it.
    pub(crate) fn verb(&self, method: &Method, kind: RequestKind) -> &'static str {
        match (method.as_str(), kind, self.is_object) {
            ("GET", RequestKind::Watch { .. }, _) => "watch",
            ("GET", ..) if self.plural.is_empty() => "get",
            ("GET", _, false) => "list",
            ("GET", _, true) => "get",
            ("POST", ..) => "create",
            ("PUT", ..) => "update",
            ("PATCH", ..) => "patch",
            ("DELETE", _, true) => "delete",
            ("DELETE", _, false) => "deletecollection",
            _ => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_request_is_named_by_its_verb_and_resource() {
        let unary = RequestKind::Unary;
        let total = Duration::from_secs(1);
        let (watch, stream) = (RequestKind::Watch { total }, RequestKind::Stream { total });
        for (method, path, kind, verb, resource) in [
            (Method::GET, "/api/v1/pods", unary, "list", "pods"),
            (Method::GET, "/api/v1/pods", watch, "watch", "pods"),
            (Method::GET, "/api/v1/namespaces/a/pods/b", unary, "get", "pods"),
            (Method::GET, "/api/v1/namespaces/a/pods/b/log", unary, "get", "pods/log"),
            (Method::GET, "/api/v1/namespaces/a/pods/b/log", stream, "get", "pods/log"),
            (Method::POST, "/api/v1/namespaces/a/pods/b/eviction", unary, "create", "pods/eviction"),
            (Method::PUT, "/apis/apps/v1/namespaces/a/deployments/b", unary, "update", "deployments.apps"),
            (Method::PATCH, "/apis/apps/v1/namespaces/a/deployments/b", unary, "patch", "deployments.apps"),
            (Method::DELETE, "/api/v1/namespaces/a/pods", unary, "deletecollection", "pods"),
            (Method::DELETE, "/api/v1/nodes/a", unary, "delete", "nodes"),
            (Method::GET, "/api/v1/namespaces", unary, "list", "namespaces"),
            (Method::GET, "/api/v1/namespaces/a", unary, "get", "namespaces"),
            (Method::PUT, "/api/v1/namespaces/a/finalize", unary, "update", "namespaces/finalize"),
            (Method::GET, "/version", unary, "get", ""),
            (Method::GET, "/apis/apps/v1", unary, "get", ""),
        ] {
            let named = Named::of(path);
            assert_eq!((named.verb(&method, kind), &*named.resource()), (verb, resource), "{method} {path}");
        }
    }
}
