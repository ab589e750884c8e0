//! What is known of a request beside its bytes: its kind, its options, what its path names, and what its answer says of it.
//!
//! Answers "how is this request sent, which resource is it about, and what does it do to it?" as data, for transports, layers,
//! spans and advice. Verb and resource are named as by Kubernetes' authorization and audit. Invariants:
//! 1. Every path is accepted; one that is of no resource has an empty plural. Paths are `/api/v1/...` and
//!    `/apis/<group>/<version>/...`, and then `[namespaces/<name>/]<plural>[/<name>[/<sub>]]`.
//! 2. What is not set in the options is as the client's [`Config`](super::Config) says.
//! 3. An Audit-ID has at most 128 visible characters: a server may send anything.
//!
//! Read next: `transport.rs`, which sends it; `layers.rs`, which reads the options; `error/advice.rs`.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method};

const AUDIT_ID: &str = "audit-id";
/// The API server's are UUIDs of 36 characters, or what the client sent, cut at 64.
const MAX_AUDIT_ID_CHARS: usize = 128;

/// The kind of a request. The kinds share no connections and differ in deadlines and encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestKind {
    /// An answer that ends by itself, such as a list: gzip is accepted, each read has a limit.
    Unary,
    /// A watch, which may be silent for long: no gzip, and it ends after `total` at the latest. It may end cleanly before,
    /// when the client's certificate is renewed: whoever watches goes on with a new one.
    Watch {
        /// The longest time from the request to the last byte.
        total: Duration,
    },
    /// Any other answer that may be silent for long, such as a log that is followed: no gzip, and it ends after `total` at
    /// the latest. Its end says that it is complete, so nothing ends it cleanly but the server.
    Stream {
        /// The longest time from the request to the last byte.
        total: Duration,
    },
    /// A request that asks for another protocol: it is not sent twice when its connection breaks, because the server may
    /// have begun what it asks for. What follows the head has no deadline.
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

/// The Authorization header of a refused request, attached to the answer. The server may have repeated the header in
/// its answer, and our error must not. It is kept in the extensions of the answer, which Debug does not show.
#[derive(Clone)]
pub(crate) struct SentAuthorization(pub(crate) HeaderValue);

/// With which kind of credentials a request was sent that was answered with 401, attached to the answer.
#[derive(Clone)]
pub(crate) struct SentCredentials(pub(crate) Arc<str>);

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RequestTarget<'a> {
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

impl RequestKind {
    /// Whether the body may bring nothing for long.
    pub(crate) fn may_be_silent(self) -> bool {
        matches!(self, Self::Watch { .. } | Self::Stream { .. })
    }
}

impl RequestOptions {
    /// Nothing differs.
    pub fn new() -> Self {
        Self::default()
    }

    /// The whole request takes at most this long: with waiting for its turn, retries and its body. Of a watch only
    /// until it is open.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// It is sent again at most so often; 0: never. See [`Config::max_retries`](super::Config::max_retries).
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

/// The Audit-ID of the answer with these headers: what a person searches the server's audit log for.
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
