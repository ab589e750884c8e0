//! Makes the paths and queries of a source's requests.
//!
//! Answers "which path and query does this request have?" for lists, watches and single objects. It sends nothing.
//! Invariants:
//! 1. The selectors of the source are in every list and every watch, on every page and after every reconnect.
//! 2. A page after the first has a continue token and no version.
//! 3. Every path is made of parts that were checked. Names of objects are those that Kubernetes allows in a path:
//!    anything but `.`, `..`, and names with `/` or `%`. Those are refused; escaping them could make the path of another
//!    resource.
//!
//! Read next: `list_watch.rs`, which sends them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use informer_actors::list_watch::{Coverage, SelectorInput};
use informer_core::meta::ObjectKey;
use informer_core::request::{AskedVersion, ListRequest, WatchRequest};
use informer_core::words::shortened;
use kube_core::discovery::ApiResource;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

use super::cluster_scoped::is_cluster_scoped;
use super::error::Error;
use super::selector::{self, FieldTerms, LabelSelector};

/// What a query value may contain unescaped: RFC 3986's unreserved characters.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The longest watch that is requested, in seconds (68 years). Servers count nanoseconds in 64 bits: more would overflow.
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
/// At most this many characters of a refused name are shown in the error.
const MAX_NAME_CHARS: usize = 100;

/// A resource, optionally limited to one namespace and to what selectors select.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) resource: ApiResource,
    pub(crate) namespace: Option<String>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
    /// Whether it is cluster-scoped: known of Kubernetes' own kinds, or by discovery.
    pub(crate) is_cluster_scoped: bool,
}

impl Scope {
    /// Which objects of its cluster it covers, for the comparison with other sources of the same informer.
    pub(crate) fn coverage(&self) -> Coverage {
        let coverage_of_selectors = self.selectors();
        let coverage = Coverage::everything().selectors(coverage_of_selectors);
        let coverage = if self.is_selective() {
            coverage.selecting(self.selects()).reading(self.reads())
        } else {
            coverage
        };
        self.namespace.iter().fold(coverage, |coverage, namespace| coverage.namespace(namespace.as_str()))
    }

    /// What of an object the selectors read.
    fn reads(&self) -> SelectorInput {
        let fields = FieldTerms::parse(self.fields.as_deref().unwrap_or_default());
        if !fields.is_ok_and(|fields| fields.are_of_keys()) {
            SelectorInput::Fields
        } else if self.labels.is_some() {
            SelectorInput::Labels
        } else {
            SelectorInput::Key
        }
    }

    /// Whether the selectors let an object of this key and these labels through, as far as these say it. What cannot be
    /// parsed lets all through: it is refused elsewhere.
    fn selects(&self) -> impl Fn(&ObjectKey, &BTreeMap<String, String>) -> bool + Send + Sync + 'static {
        let labels = self.labels.as_deref().unwrap_or_default().parse::<LabelSelector>().unwrap_or_default();
        let fields = FieldTerms::parse(self.fields.as_deref().unwrap_or_default()).unwrap_or_default();
        move |key, found| labels.matches(found) && !fields.exclude(key)
    }

    pub(crate) fn new(resource: ApiResource) -> Self {
        let is_cluster_scoped = is_cluster_scoped(&resource.group, &resource.plural);
        Self { resource, namespace: None, labels: None, fields: None, is_cluster_scoped }
    }

    /// `pods`, or `deployments.apps`.
    pub(crate) fn name(&self) -> String {
        let ApiResource { plural, group, .. } = &self.resource;
        if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") }
    }

    /// Its selectors in their normal form, equal for equal ones: `labels=app=shop,fields=spec.nodeName=a`.
    pub(crate) fn selectors(&self) -> String {
        let normal = |text: &String, form: Result<String, String>| form.unwrap_or_else(|_| text.clone());
        let labels =
            self.labels.iter().map(|text| format!("labels={}", normal(text, selector::labels(text))));
        let fields =
            self.fields.iter().map(|text| format!("fields={}", normal(text, selector::fields(text))));
        labels.chain(fields).collect::<Vec<_>>().join(",")
    }

    /// Its selectors as they were set, for people: `labels=app == shop, fields=spec.nodeName=a`.
    pub(crate) fn written_selectors(&self) -> String {
        let labels = self.labels.iter().map(|text| format!("labels={text}"));
        let fields = self.fields.iter().map(|text| format!("fields={text}"));
        let all: Vec<_> = labels.chain(fields).map(|text| shortened(&text, MAX_NAME_CHARS)).collect();
        all.join(", ")
    }

    pub(crate) fn is_selective(&self) -> bool {
        self.labels.is_some() || self.fields.is_some()
    }

    /// Refuses a description from which no path can be made, a namespace of objects that are in none, and selectors that
    /// no server understands.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let ApiResource { plural, group, version, api_version, .. } = &self.resource;
        segment("resource", plural)?;
        segment("version", version)?;
        if !group.is_empty() {
            segment("group", group)?;
        }
        // Paths do not use it, but objects are compared with it: a wrong one would make every object undecodable.
        if *api_version != self.api_version() {
            return Err(Error::Name {
                what: "api version of this group and version",
                text: api_version.clone(),
            });
        }
        self.namespace.as_deref().map_or(Ok(()), |namespace| segment("namespace", namespace))?;
        if let Some(namespace) = self.namespace.as_ref().filter(|_| self.is_cluster_scoped) {
            let namespace = shortened(namespace, MAX_NAME_CHARS);
            return Err(Error::ClusterScoped { resource: self.name(), namespace });
        }
        check_selectors(self.labels.as_deref(), self.fields.as_deref())
    }

    /// `v1`, or `apps/v1`.
    fn api_version(&self) -> String {
        let ApiResource { group, version, .. } = &self.resource;
        if group.is_empty() { version.clone() } else { format!("{group}/{version}") }
    }

    /// The path of the objects in this namespace, or in all.
    pub(crate) fn collection(&self, namespace: Option<&str>) -> String {
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
        // With a limit and without this, a server may answer at exactly this version, without later changes.
        if request.token.is_none() && request.limit.is_some() && request.version.version().is_some() {
            query.add("resourceVersionMatch", "NotOlderThan");
        }
        query.0
    }

    /// A list that holds the object of this key if the selectors select it, and nothing else.
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

/// Refuses selectors that no server understands.
pub(crate) fn check_selectors(labels: Option<&str>, fields: Option<&str>) -> Result<(), Error> {
    let refused = |what, text: &str, reason: String| Error::Selector {
        what,
        text: shortened(text, MAX_NAME_CHARS),
        reason: shortened(&reason, 2 * MAX_NAME_CHARS),
    };
    if let Some(text) = labels {
        selector::labels(text).map_err(|reason| refused("label selector", text, reason))?;
    }
    if let Some(text) = fields {
        selector::fields(text).map_err(|reason| refused("field selector", text, reason))?;
    }
    Ok(())
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

/// Checks a part of a path other than an object's name: a text that needs escapes is refused.
pub fn segment(what: &'static str, text: &str) -> Result<(), Error> {
    let needs_no_escape = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:@!$&'()*+,;=".contains(&byte);
    if text.is_empty() || text == "." || text == ".." || !text.bytes().all(needs_no_escape) {
        return Err(Error::Name { what, text: shortened(text, MAX_NAME_CHARS) });
    }
    Ok(())
}

/// `object_name` as a text.
pub fn encoded_name(name: &str) -> Result<String, Error> {
    object_name(name).map(|name| name.to_string())
}

/// An object's name as a part of a path. Names of RBAC objects may hold spaces, letters of any language and more.
fn object_name(name: &str) -> Result<PercentEncode<'_>, Error> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '%']) {
        return Err(Error::Name { what: "name", text: shortened(name, MAX_NAME_CHARS) });
    }
    Ok(utf8_percent_encode(name, SEGMENT))
}

/// Escapes a value for a field selector, where `,`, `=` and `\` have a meaning.
pub(crate) fn selector_value(value: &str) -> String {
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
    fn inf_55_the_longest_requested_watch_is_one_that_servers_can_count() {
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
    fn rest_14_a_name_that_would_change_the_path_is_refused() {
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
