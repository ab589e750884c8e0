//! The built-in kinds, and the description of any other kind.
//!
//! Answers "which resource does this kind name?" from a small table. It does not use discovery, so a kind can be watched
//! before it exists on the server. Invariant:
//! 1. A value in the configuration takes precedence over the table.

use k8s_openapi::api::core::v1::Pod;
use kube_core::discovery::ApiResource;
use kube_core::gvk::GroupVersionKind;

/// Group, version, kind, plural, whether in a namespace.
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
    resource: ApiResource,
    /// `None` for kinds that are not built in.
    namespaced: Option<bool>,
}

impl WatchedKind {
    /// The kind of this name; an empty text means the value of the table. The error names what is missing.
    pub(super) fn find(kind: &str, group: &str, version: &str, plural: &str) -> Result<Self, String> {
        let known = BUILT_IN.iter().find(|row| row.2 == kind && (group.is_empty() || row.0 == group));
        let of_other_groups = || BUILT_IN.iter().filter(|row| row.2 == kind).map(|row| row.0).next();
        let given_or =
            |given: &str, table: &str| if given.is_empty() { table.to_owned() } else { given.to_owned() };
        let (group, version, plural, namespaced) = match known {
            Some(row) => {
                (given_or(group, row.0), given_or(version, row.1), given_or(plural, row.3), Some(row.4))
            }
            None if version.is_empty() || plural.is_empty() => {
                let missing = match (version.is_empty(), plural.is_empty()) {
                    (true, true) => "version and plural are missing",
                    (true, false) => "version is missing",
                    _ => "plural is missing",
                };
                return Err(match of_other_groups() {
                    Some(known) => format!(
                        "{kind} is built in for group {known:?}, not for {group:?}; for group {group:?}, {missing}"
                    ),
                    None => format!(
                        "{kind} is not built in, and {missing}; allowed: a built-in kind, or one with \
                         version, plural and group"
                    ),
                });
            }
            None => (group.to_owned(), version.to_owned(), plural.to_owned(), None),
        };
        let gvk = GroupVersionKind::gvk(&group, &version, kind);
        Ok(Self { resource: ApiResource::from_gvk_with_plural(&gvk, &plural), namespaced })
    }

    /// The name of the kind: `Pod`.
    pub fn name(&self) -> &str {
        &self.resource.kind
    }

    /// Group, version, kind and plural.
    pub fn resource(&self) -> &ApiResource {
        &self.resource
    }

    pub(super) fn same_resource(&self, other: &Self) -> bool {
        self.resource.group == other.resource.group && self.resource.plural == other.resource.plural
    }

    pub(super) fn is_cluster_scoped(&self) -> bool {
        self.namespaced == Some(false)
    }

    /// Whether informerd has a Rust type for it: group, version, kind and plural must be those of the type.
    pub(super) fn has_type(&self) -> bool {
        self.resource == ApiResource::erase::<Pod>(&())
    }

    /// Whether its objects hold secret values: Secrets, in any group.
    pub(super) fn holds_secrets(&self) -> bool {
        self.resource.kind == "Secret" || self.resource.plural == "secrets"
    }
}

/// The kinds of the table.
pub(super) fn built_in_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|row| row.2)
}
