//! Makes the paths and queries of a source's requests.
//!
//! Answers "which path and query does this request have, and is it refused?" for lists, watches and single objects. It sends
//! nothing. Invariants:
//! 1. The selectors of the source are in every list and every watch, on every page and after every reconnect.
//! 2. A page after the first has a continue token and no version.
//! 3. Every path is made of parts that were checked. Names of objects are those that Kubernetes allows in a path:
//!    anything but `.`, `..`, and names with `/` or `%`. Those are refused; escaping them could make the path of another
//!    resource.
//! 4. Of kinds that are known only at run time, those that are cluster-scoped in every version of Kubernetes that serves
//!    them cannot be narrowed to a namespace. Of another kind nothing is said: it may be a custom one. Of typed kinds the
//!    compiler knows.
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
            self.labels.iter().map(|text| format!("labels={}", normal(text, selector::normal_labels(text))));
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
        selector::normal_labels(text).map_err(|reason| refused("label selector", text, reason))?;
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

/// Group and plural, in the order of the groups: those of Kubernetes 1.36, and what older versions had besides.
const CLUSTER_SCOPED: [(&str, &[&str]); 16] = [
    ("", &["componentstatuses", "namespaces", "nodes", "persistentvolumes"]),
    (
        "admissionregistration.k8s.io",
        &[
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        ],
    ),
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    ("apiregistration.k8s.io", &["apiservices"]),
    ("authentication.k8s.io", &["selfsubjectreviews", "tokenreviews"]),
    (
        "authorization.k8s.io",
        &["selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews"],
    ),
    ("certificates.k8s.io", &["certificatesigningrequests", "clustertrustbundles"]),
    ("flowcontrol.apiserver.k8s.io", &["flowschemas", "prioritylevelconfigurations"]),
    ("internal.apiserver.k8s.io", &["storageversions"]),
    ("networking.k8s.io", &["ingressclasses", "ipaddresses", "servicecidrs"]),
    ("node.k8s.io", &["runtimeclasses"]),
    ("rbac.authorization.k8s.io", &["clusterrolebindings", "clusterroles"]),
    (
        "resource.k8s.io",
        &["deviceclasses", "devicetaintrules", "resourcepoolstatusrequests", "resourceslices"],
    ),
    ("scheduling.k8s.io", &["priorityclasses"]),
    (
        "storage.k8s.io",
        &["csidrivers", "csinodes", "storageclasses", "volumeattachments", "volumeattributesclasses"],
    ),
    ("storagemigration.k8s.io", &["storageversionmigrations"]),
];

/// Whether this kind is known to be cluster-scoped.
fn is_cluster_scoped(group: &str, plural: &str) -> bool {
    CLUSTER_SCOPED.iter().any(|(of, plurals)| *of == group && plurals.contains(&plural))
}

#[cfg(test)]
mod tests;
