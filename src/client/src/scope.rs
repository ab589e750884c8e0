//! Makes the paths and queries of a source's requests.
//!
//! 1. The selectors of the source are in every list and every watch, on every page.
//! 2. A page after the first has a continue token and no version.
//! 3. A path consists of checked parts. Kubernetes allows any object name except `.`, `..`, and names with `/` or `%`. Those are
//!    refused: escaping them could make the path of another resource.
//! 4. A namespace for a kind known only at run time is refused only if every version of Kubernetes that serves the kind has it
//!    cluster-scoped. Other kinds may be custom ones.

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

/// Not escaped in a query value: RFC 3986's unreserved characters.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// In seconds (68 years). Servers count nanoseconds in 64 bits, which a longer watch could overflow.
const LONGEST_WATCH: u64 = i32::MAX as u64;

/// Not escaped in a path segment: RFC 3986's `pchar`.
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
const QUOTED_TEXT_CHARS: usize = 100;

#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) resource: ApiResource,
    pub(crate) namespace: Option<String>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
    pub(crate) is_cluster_scoped: bool,
}

impl Scope {
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

    /// Judges key and labels. What cannot be parsed selects all: it is refused elsewhere.
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

    /// The normal form: `labels=app=shop,fields=spec.nodeName=a`.
    pub(crate) fn selectors(&self) -> String {
        let normal = |text: &String, form: Result<String, String>| form.unwrap_or_else(|_| text.clone());
        let labels =
            self.labels.iter().map(|text| format!("labels={}", normal(text, selector::normal_labels(text))));
        let fields =
            self.fields.iter().map(|text| format!("fields={}", normal(text, selector::fields(text))));
        labels.chain(fields).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn written_selectors(&self) -> String {
        let labels = self.labels.iter().map(|text| format!("labels={text}"));
        let fields = self.fields.iter().map(|text| format!("fields={text}"));
        let all: Vec<_> = labels.chain(fields).map(|text| shortened(&text, QUOTED_TEXT_CHARS)).collect();
        all.join(", ")
    }

    pub(crate) fn is_selective(&self) -> bool {
        self.labels.is_some() || self.fields.is_some()
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let ApiResource { plural, group, version, api_version, .. } = &self.resource;
        segment("resource", plural)?;
        segment("version", version)?;
        if !group.is_empty() {
            segment("group", group)?;
        }
        // Objects are compared with it: a wrong one would make each undecodable.
        if *api_version != self.api_version() {
            return Err(Error::Name {
                what: "api version of this group and version",
                text: api_version.clone(),
            });
        }
        self.namespace.as_deref().map_or(Ok(()), |namespace| segment("namespace", namespace))?;
        if let Some(namespace) = self.namespace.as_ref().filter(|_| self.is_cluster_scoped) {
            let namespace = shortened(namespace, QUOTED_TEXT_CHARS);
            return Err(Error::ClusterScoped { resource: self.name(), namespace });
        }
        check_selectors(self.labels.as_deref(), self.fields.as_deref())
    }

    /// `v1`, or `apps/v1`.
    fn api_version(&self) -> String {
        let ApiResource { group, version, .. } = &self.resource;
        if group.is_empty() { version.clone() } else { format!("{group}/{version}") }
    }

    pub(crate) fn collection(&self, namespace: Option<&str>) -> String {
        let (plural, group, api_version) = (&self.resource.plural, &self.resource.group, self.api_version());
        let root = if group.is_empty() { "api" } else { "apis" };
        match namespace {
            Some(namespace) => format!("/{root}/{api_version}/namespaces/{namespace}/{plural}"),
            None => format!("/{root}/{api_version}/{plural}"),
        }
    }

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
        // Without this, a server may answer a limited list at exactly this version, without later changes.
        if request.token.is_none() && request.limit.is_some() && request.version.version().is_some() {
            query.add("resourceVersionMatch", "NotOlderThan");
        }
        query.0
    }

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

pub(crate) fn check_selectors(labels: Option<&str>, fields: Option<&str>) -> Result<(), Error> {
    let refused = |what, text: &str, reason: String| Error::Selector {
        what,
        text: shortened(text, QUOTED_TEXT_CHARS),
        reason: shortened(&reason, 2 * QUOTED_TEXT_CHARS),
    };
    if let Some(text) = labels {
        selector::normal_labels(text).map_err(|reason| refused("label selector", text, reason))?;
    }
    if let Some(text) = fields {
        selector::fields(text).map_err(|reason| refused("field selector", text, reason))?;
    }
    Ok(())
}

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
        return Err(Error::Name { what, text: shortened(text, QUOTED_TEXT_CHARS) });
    }
    Ok(())
}

/// `object_name` as a text.
pub fn encoded_name(name: &str) -> Result<String, Error> {
    object_name(name).map(|name| name.to_string())
}

/// Names of RBAC objects may hold spaces, letters of any language and more.
fn object_name(name: &str) -> Result<PercentEncode<'_>, Error> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '%']) {
        return Err(Error::Name { what: "name", text: shortened(name, QUOTED_TEXT_CHARS) });
    }
    Ok(utf8_percent_encode(name, SEGMENT))
}

pub(crate) fn selector_value(value: &str) -> String {
    value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=")
}

/// Groups and plurals of Kubernetes 1.36 and older versions.
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

fn is_cluster_scoped(group: &str, plural: &str) -> bool {
    CLUSTER_SCOPED.iter().any(|(of, plurals)| *of == group && plurals.contains(&plural))
}

#[cfg(test)]
mod tests;
