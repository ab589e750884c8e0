//! The configured kinds, and a table of built-in ones for when the server cannot be asked. A configured version and plural define
//! the resource. An unknown name is no error: its kind is followed when the server serves it.

use kube_core::discovery::ApiResource;
use kube_core::gvk::GroupVersionKind;

use super::describe::ShownPod;

/// Group, version, kind, plural, namespaced.
const BUILT_IN: &[(&str, &str, &str, &str, bool)] = &[
    ("", "v1", "Pod", "pods", true),
    ("", "v1", "Node", "nodes", false),
    ("", "v1", "Namespace", "namespaces", false),
    ("", "v1", "Service", "services", true),
    ("", "v1", "Endpoints", "endpoints", true),
    ("", "v1", "ConfigMap", "configmaps", true),
    ("", "v1", "Secret", "secrets", true),
    ("", "v1", "ServiceAccount", "serviceaccounts", true),
    ("", "v1", "Event", "events", true),
    ("", "v1", "PersistentVolume", "persistentvolumes", false),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true),
    ("apps", "v1", "Deployment", "deployments", true),
    ("apps", "v1", "ReplicaSet", "replicasets", true),
    ("apps", "v1", "StatefulSet", "statefulsets", true),
    ("apps", "v1", "DaemonSet", "daemonsets", true),
    ("batch", "v1", "Job", "jobs", true),
    ("batch", "v1", "CronJob", "cronjobs", true),
    ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true),
    ("coordination.k8s.io", "v1", "Lease", "leases", true),
    ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true),
    ("networking.k8s.io", "v1", "Ingress", "ingresses", true),
    ("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", true),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true),
    ("rbac.authorization.k8s.io", "v1", "Role", "roles", true),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", true),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", false),
    ("storage.k8s.io", "v1", "StorageClass", "storageclasses", false),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false),
];

/// A kind that is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedKind {
    /// As configured, with group and version if given: a name for discovery.
    asked: String,
    /// `None`: only the server knows.
    resource: Option<ApiResource>,
    /// `None`: not built in.
    namespaced: Option<bool>,
    is_given: bool,
    is_discovered: bool,
}

impl WatchedKind {
    /// Empty: the value of the server or of the table.
    pub(super) fn find(kind: &str, group: &str, version: &str, plural: &str) -> Self {
        let known = BUILT_IN.iter().find(|row| row.2 == kind && (group.is_empty() || row.0 == group));
        let given_or = |given: &str, table: &str| if given.is_empty() { table } else { given }.to_owned();
        let parts = match known {
            Some(row) => Some((given_or(group, row.0), given_or(version, row.1), given_or(plural, row.3))),
            None if version.is_empty() || plural.is_empty() => None,
            None => Some((group.to_owned(), version.to_owned(), plural.to_owned())),
        };
        let resource = parts.map(|(group, version, plural)| {
            ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(&group, &version, kind), &plural)
        });
        let asked = match (group, version) {
            ("", "") => kind.to_owned(),
            (group, "") => format!("{kind}.{group}"),
            (group, version) => format!("{kind}.{version}.{group}"),
        };
        let is_given = !plural.is_empty() && resource.is_some();
        Self { asked, resource, namespaced: known.map(|row| row.4), is_given, is_discovered: false }
    }

    pub(super) fn discovered(&self, resource: &ApiResource, is_namespaced: bool) -> Self {
        let (asked, resource) = (self.asked.clone(), Some(resource.clone()));
        Self { asked, resource, namespaced: Some(is_namespaced), is_given: true, is_discovered: true }
    }

    /// The name of the kind: `Pod`. As the configuration names it, if only the server knows what it is.
    pub fn name(&self) -> &str {
        self.resource.as_ref().map_or(&self.asked, |resource| &resource.kind)
    }

    /// Group, version, kind and plural; `None` if only the server knows them.
    pub fn resource(&self) -> Option<&ApiResource> {
        self.resource.as_ref()
    }

    /// `None`: everything is known.
    pub(super) fn asked(&self) -> Option<&str> {
        (!self.is_given).then_some(&*self.asked)
    }

    /// By this name the server may later find another version.
    pub(super) fn found_by(&self) -> Option<&str> {
        self.is_discovered.then_some(&*self.asked)
    }

    /// Or the name for discovery.
    pub(super) fn plural(&self) -> &str {
        self.resource.as_ref().map_or(&self.asked, |resource| &resource.plural)
    }

    pub(super) fn same_resource(&self, other: &Self) -> bool {
        match (&self.resource, &other.resource) {
            (Some(one), Some(other)) => one.group == other.group && one.plural == other.plural,
            (None, None) => self.asked == other.asked,
            _ => false,
        }
    }

    pub(super) fn is_cluster_scoped(&self) -> bool {
        self.namespaced == Some(false)
    }

    /// Of group, version, kind and plural.
    pub(super) fn has_type(&self) -> bool {
        self.resource == Some(ApiResource::erase::<ShownPod>(&()))
    }

    /// In any group.
    pub(super) fn holds_secrets(&self) -> bool {
        let kind = self.asked.split('.').next().unwrap_or_default();
        match &self.resource {
            Some(resource) => holds_secrets(resource),
            None => ["secret", "secrets"].iter().any(|name| kind.eq_ignore_ascii_case(name)),
        }
    }
}

pub(super) fn holds_secrets(resource: &ApiResource) -> bool {
    resource.kind == "Secret" || resource.plural == "secrets"
}
