//! The part of the API that a source sees, as paths and queries.
//!
//! Answers "which path and query is this request?" for lists, watches and single objects. It sends nothing.
//! Invariants:
//! 1. The selectors of the source stand in every list and every watch, on every page and every reconnect.
//! 2. A page after the first carries a token and no version.
//! 3. Every path is made of parts that were checked. Names of objects are those that Kubernetes allows in a path:
//!    anything but `.`, `..`, and names with `/` or `%`, which are refused, never escaped into something that might
//!    lead elsewhere.
//!
//! Read next: `list_watch.rs`, which sends them.

use std::fmt::Write as _;

use informer_actors::wiring::Coverage;
use informer_core::request::{AskedVersion, ListRequest, WatchRequest};
use kube_core::discovery::ApiResource;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

use super::error::Error;
use crate::representation::Asked;
use crate::text::shortened;

/// What a query value may contain unescaped: RFC 3986's unreserved characters.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The longest watch that is asked for, in seconds: servers count nanoseconds in 64 bits, and more would overflow
/// there. 68 years.
const LONGEST_WATCH: u64 = i32::MAX as u64;

/// What a path segment may contain unescaped: RFC 3986's `pchar`.
const SEGMENT: &AsciiSet = &QUERY
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');
/// At most this much of a name that is refused is told.
const NAME: usize = 100;

/// A resource, perhaps one namespace of it, perhaps only what selectors select.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) resource: ApiResource,
    pub(crate) namespace: Option<String>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
}

impl Scope {
    /// What of its cluster it covers, to be compared with other sources of one informer.
    pub(crate) fn coverage(&self) -> Coverage {
        let selectors = match (&self.labels, &self.fields) {
            (None, None) => String::new(),
            (labels, fields) => format!("{labels:?} {fields:?}"),
        };
        let coverage = Coverage::everything().selectors(selectors);
        self.namespace.iter().fold(coverage, |coverage, namespace| coverage.namespace(namespace.as_str()))
    }

    pub(crate) fn new(resource: ApiResource) -> Self {
        Self { resource, namespace: None, labels: None, fields: None }
    }

    /// `pods`, or `deployments.apps`.
    pub(crate) fn name(&self) -> String {
        let ApiResource { plural, group, .. } = &self.resource;
        if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") }
    }

    pub(crate) fn is_selective(&self) -> bool {
        self.labels.is_some() || self.fields.is_some()
    }

    /// Refuses a description from which no path can be made.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let ApiResource { plural, group, version, api_version, .. } = &self.resource;
        segment("resource", plural)?;
        segment("version", version)?;
        if !group.is_empty() {
            segment("group", group)?;
        }
        // Paths do not use it, but objects are known by it: with another one, every object would be set aside.
        if *api_version != self.api_version() {
            return Err(Error::Name {
                what: "api version of this group and version",
                text: api_version.clone(),
            });
        }
        self.namespace.as_deref().map_or(Ok(()), |namespace| segment("namespace", namespace))
    }

    /// `v1`, or `apps/v1`.
    fn api_version(&self) -> String {
        let ApiResource { group, version, .. } = &self.resource;
        if group.is_empty() { version.clone() } else { format!("{group}/{version}") }
    }

    fn collection(&self, namespace: Option<&str>) -> String {
        let (plural, group, api_version) = (&self.resource.plural, &self.resource.group, self.api_version());
        let root = if group.is_empty() { "api" } else { "apis" };
        match namespace {
            Some(namespace) => format!("/{root}/{api_version}/namespaces/{namespace}/{plural}"),
            None => format!("/{root}/{api_version}/{plural}"),
        }
    }

    /// The path of one object; the namespace is the object's own.
    pub(crate) fn object(&self, namespace: Option<&str>, name: &str) -> Result<String, Error> {
        namespace.map_or(Ok(()), |namespace| segment("namespace", namespace))?;
        let name = object_name(name)?;
        Ok(format!("{}/{name}", self.collection(namespace)))
    }

    pub(crate) fn list(&self, request: &ListRequest) -> String {
        let mut query = Query::new(self.collection(self.namespace.as_deref()));
        self.select(&mut query, request.name.as_deref());
        if let Some(limit) = request.limit {
            query.add("limit", &limit.to_string());
        }
        match &request.token {
            Some(token) => query.add("continue", token),
            None => query.add_version(&request.version),
        }
        // A limit alone makes a server answer at exactly this version, from before whatever was missed.
        if request.token.is_none() && request.limit.is_some() && request.version.version().is_some() {
            query.add("resourceVersionMatch", "NotOlderThan");
        }
        query.0
    }

    /// A list that can only hold the object of this key, if the selectors select it.
    pub(crate) fn list_one(&self, namespace: Option<&str>, name: &str) -> Result<String, Error> {
        namespace.map_or(Ok(()), |namespace| segment("namespace", namespace))?;
        object_name(name)?;
        let mut query = Query::new(self.collection(namespace));
        self.select(&mut query, Some(name));
        Ok(query.0)
    }

    pub(crate) fn watch(&self, request: &WatchRequest) -> String {
        let mut query = Query::new(self.collection(self.namespace.as_deref()));
        query.add("watch", "true");
        query.add("allowWatchBookmarks", "true");
        query.add("timeoutSeconds", &request.timeout.as_secs().clamp(1, LONGEST_WATCH).to_string());
        self.select(&mut query, None);
        query.add_version(&request.version);
        if request.initial_events {
            query.add("sendInitialEvents", "true");
            query.add("resourceVersionMatch", "NotOlderThan");
        }
        query.0
    }

    fn select(&self, query: &mut Query, name: Option<&str>) {
        if let Some(labels) = &self.labels {
            query.add("labelSelector", labels);
        }
        let by_name = name.map(|name| format!("metadata.name={}", selector_value(name)));
        match (&self.fields, by_name) {
            (Some(fields), Some(by_name)) => query.add("fieldSelector", &format!("{fields},{by_name}")),
            (Some(fields), None) => query.add("fieldSelector", fields),
            (None, Some(by_name)) => query.add("fieldSelector", &by_name),
            (None, None) => {}
        }
    }
}

/// The kind of answer that an Accept header asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    List,
    /// A single object, or watch events of them.
    Object,
}

pub(crate) fn accept(asked: Asked, form: Form) -> &'static str {
    match (asked, form) {
        (Asked::Objects, _) => "application/json",
        (Asked::Metadata, Form::List) => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        (Asked::Metadata, Form::Object) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    }
}

/// A path with its query so far.
struct Query(String);

impl Query {
    fn new(path: String) -> Self {
        Self(path)
    }

    fn add(&mut self, key: &str, value: &str) {
        let joint = if self.0.contains('?') { '&' } else { '?' };
        let value = utf8_percent_encode(value, QUERY);
        write!(self.0, "{joint}{key}={value}").expect("a String takes every text");
    }

    fn add_version(&mut self, version: &AskedVersion) {
        let text = version.to_string();
        if !text.is_empty() {
            self.add("resourceVersion", &text);
        }
    }
}

/// A part of a path other than an object's name: what needs an escape is none.
fn segment(what: &'static str, text: &str) -> Result<(), Error> {
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:@!$&'()*+,;=".contains(&byte);
    if text.is_empty() || text == "." || text == ".." || !text.bytes().all(harmless) {
        return Err(Error::Name { what, text: shortened(text, NAME) });
    }
    Ok(())
}

/// An object's name as a part of a path. Names of RBAC objects may hold spaces, letters of any language and more.
fn object_name(name: &str) -> Result<PercentEncode<'_>, Error> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '%']) {
        return Err(Error::Name { what: "name", text: shortened(name, NAME) });
    }
    Ok(utf8_percent_encode(name, SEGMENT))
}

/// A value in a field selector, where `,`, `=` and `\` mean something.
fn selector_value(value: &str) -> String {
    value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=")
}

#[cfg(test)]
mod tests {
    use super::*;
    use informer_core::meta::ResourceVersion;
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::Pod;
    use std::time::Duration;

    fn pods() -> Scope {
        Scope::new(ApiResource::erase::<Pod>(&()))
    }

    fn list(version: AskedVersion) -> ListRequest {
        ListRequest { version, limit: None, token: None, name: None }
    }

    fn at(number: u64) -> AskedVersion {
        AskedVersion::From(ResourceVersion::from_number(number).unwrap())
    }

    #[test]
    fn lists_ask_for_the_version_or_continue_a_page() {
        assert_eq!(pods().list(&list(AskedVersion::Latest)), "/api/v1/pods");
        assert_eq!(pods().list(&list(AskedVersion::Any)), "/api/v1/pods?resourceVersion=0");
        let first = ListRequest { limit: Some(500), ..list(at(10)) };
        let not_older = "resourceVersion=10&resourceVersionMatch=NotOlderThan";
        assert_eq!(pods().list(&first), format!("/api/v1/pods?limit=500&{not_older}"));
        let second = ListRequest { token: Some("a b/=".to_owned()), ..first };
        assert_eq!(pods().list(&second), "/api/v1/pods?limit=500&continue=a%20b%2F%3D");
    }

    #[test]
    fn wl_17_selectors_stand_in_every_request_and_a_name_joins_the_fields() {
        let mut scope = Scope::new(ApiResource::erase::<Deployment>(&()));
        scope.namespace = Some("web".to_owned());
        scope.labels = Some("app in (a,b)".to_owned());
        scope.fields = Some("metadata.name!=x".to_owned());
        let selected = "labelSelector=app%20in%20%28a%2Cb%29&fieldSelector=metadata.name%21%3Dx";
        let page = ListRequest { token: Some("t".to_owned()), ..list(AskedVersion::Any) };
        let path = "/apis/apps/v1/namespaces/web/deployments";
        assert_eq!(scope.list(&page), format!("{path}?{selected}&continue=t"));
        let named = ListRequest { name: Some("y".to_owned()), ..list(AskedVersion::Latest) };
        assert_eq!(scope.list(&named), format!("{path}?{selected}%2Cmetadata.name%3Dy"));
        let watch = WatchRequest { version: at(7), initial_events: false, timeout: Duration::from_secs(300) };
        assert_eq!(
            scope.watch(&watch),
            format!(
                "{path}?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&{selected}&resourceVersion=7"
            )
        );
        assert_eq!((scope.name().as_str(), pods().name().as_str()), ("deployments.apps", "pods"));
    }

    #[test]
    fn inf_55_the_longest_watch_that_is_asked_for_is_one_that_servers_can_count() {
        let watch = |timeout| WatchRequest { version: at(7), initial_events: false, timeout };
        for (timeout, seconds) in [
            (Duration::ZERO, "1"),
            (Duration::MAX, "2147483647"),
            (Duration::from_secs(u64::MAX), "2147483647"),
        ] {
            let asked = pods().watch(&watch(timeout));
            assert!(asked.contains(&format!("&timeoutSeconds={seconds}&")), "{timeout:?}: {asked}");
        }
    }

    #[test]
    fn wl_01_a_watch_list_asks_for_initial_events_not_older_than_its_version() {
        let first = WatchRequest {
            version: AskedVersion::Latest,
            initial_events: true,
            timeout: Duration::from_secs(9),
        };
        let plain = "/api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=9";
        let initial = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        assert_eq!(pods().watch(&first), format!("{plain}{initial}"));
        let later = WatchRequest { version: at(10), ..first };
        assert_eq!(pods().watch(&later), format!("{plain}&resourceVersion=10{initial}"));
    }

    #[test]
    fn rest_14_a_name_that_leads_elsewhere_is_refused() {
        for name in ["", ".", "..", "a/b", "a%b", "a%2Fb"] {
            let refused = [pods().object(Some("a"), name), pods().list_one(Some("a"), name)];
            assert!(refused.iter().all(|one| matches!(one, Err(Error::Name { what: "name", .. }))), "{name}");
        }
        for name in ["", ".", "..", "a/b", "a%b", "a?b", "a#b", "a b", "é"] {
            assert!(
                matches!(pods().object(Some(name), "a"), Err(Error::Name { what: "namespace", .. })),
                "{name}"
            );
        }
        let path = |name| pods().object(None, name).unwrap();
        assert_eq!(path("system:node-role"), "/api/v1/pods/system:node-role");
        assert_eq!(path("a b?é#\n"), "/api/v1/pods/a%20b%3F%C3%A9%23%0A");
        let one = pods().list_one(None, r"a,b=c\d").unwrap();
        assert_eq!(one, "/api/v1/pods?fieldSelector=metadata.name%3Da%5C%2Cb%5C%3Dc%5C%5Cd");
    }
}
