//! What is known of a request besides its bytes: its kind, its options, what its path names, the Audit-ID of its answer.
//!
//! Verb and resource are named as in Kubernetes' authorization and audit. Every path is accepted; one without a resource has an
//! empty plural. Paths are `/api/v1/...` and `/apis/<group>/<version>/...`, then `[namespaces/<name>/]<plural>[/<name>[/<sub>]]`.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method};

const AUDIT_ID: &str = "audit-id";
/// The API server sends UUIDs of 36 characters, or the client's value cut at 64; other servers may send anything.
const MAX_AUDIT_ID_CHARS: usize = 128;

/// The kind of a request. The kinds share no connections and differ in deadlines and encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestKind {
    /// An answer that ends by itself, such as a list: gzip is accepted, each read has a limit.
    Unary,
    /// A watch, which may be silent for long: no gzip, and it ends after `total` at the latest. It may end
    /// cleanly before, when the client's certificate is renewed: then the caller opens a new watch.
    Watch {
        /// The longest time from the request to the last byte.
        total: Duration,
    },
    /// Any other answer that may be silent for long, such as a log that is followed: no gzip, and it ends
    /// after `total` at the latest. A clean end says that it is complete, so only the server ends it cleanly.
    Stream {
        /// The longest time from the request to the last byte.
        total: Duration,
    },
    /// A request that asks for another protocol: it is not sent twice when its connection breaks, because the
    /// server may have begun what it asks for. What follows the head has no deadline.
    Upgrade,
}

/// What differs for one request. Insert it into the extensions of the request.
///
/// ```
/// use std::time::Duration;
///
/// use actix_informer::client::RequestOptions;
/// use actix_informer::http::Request;
///
/// let mut request = Request::get("/version").body(Vec::<u8>::new())?;
/// request.extensions_mut().insert(RequestOptions::new().timeout(Duration::from_secs(2)).max_retries(0));
/// # Ok::<(), actix_informer::http::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestOptions {
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_retries: Option<u32>,
}

/// Attached to the answer of a refused request: the error must not repeat the header, even if the server does. Debug shows no
/// extensions.
#[derive(Clone)]
pub(crate) struct SentAuthorization(pub(crate) HeaderValue);

/// Attached to an answer 401.
#[derive(Clone)]
pub(crate) struct SentCredentials(pub(crate) Arc<str>);

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RequestTarget<'a> {
    /// Empty for the core group.
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) namespace: Option<&'a str>,
    /// Empty without a resource.
    pub(crate) plural: &'a str,
    /// `/log`, or empty.
    pub(crate) subresource: String,
    pub(crate) is_object: bool,
}

impl RequestKind {
    pub(crate) fn may_be_silent(self) -> bool {
        matches!(self, Self::Watch { .. } | Self::Stream { .. })
    }
}

impl RequestOptions {
    /// No differences.
    pub fn new() -> Self {
        Self::default()
    }

    /// The whole request takes at most this long, with the wait for its turn, retries and its body. For a
    /// watch the time counts only until it is open.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// It is sent again at most this many times; 0: never. See
    /// [`Config::max_retries`](super::Config::max_retries).
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.max_retries = Some(retries);
        self
    }
}

impl<'a> RequestTarget<'a> {
    pub(crate) fn of(path: &'a str) -> Self {
        let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let (group, version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => ("", "", &[][..]),
        };
        let (namespace, rest) = match rest {
            // `namespaces/<name>` is itself the resource if nothing follows, or a subresource.
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

    /// `pods`, `deployments.apps`, `pods/log`, or empty.
    pub(crate) fn resource(&self) -> String {
        let Self { plural, group, subresource, .. } = self;
        let dot = if group.is_empty() || plural.is_empty() { "" } else { "." };
        let group = if plural.is_empty() { "" } else { group };
        format!("{plural}{dot}{group}{subresource}")
    }

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

pub(crate) fn audit_id(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get(AUDIT_ID)?.to_str().ok()?;
    (!id.is_empty() && id.len() <= MAX_AUDIT_ID_CHARS).then_some(id)
}

#[cfg(test)]
mod tests {
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
            let named = RequestTarget::of(path);
            assert_eq!((named.verb(&method, kind), &*named.resource()), (verb, resource), "{method} {path}");
        }
    }

    #[test]
    fn watches_and_streams_may_be_silent_and_the_others_may_not() {
        let total = Duration::from_secs(300);
        for (kind, expected) in [
            (RequestKind::Unary, false),
            (RequestKind::Upgrade, false),
            (RequestKind::Watch { total }, true),
            (RequestKind::Stream { total }, true),
        ] {
            assert_eq!(kind.may_be_silent(), expected, "{kind:?}");
        }
    }
}
