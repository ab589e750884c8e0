//! Which of Kubernetes' own kinds are cluster-scoped.
//!
//! Answers "can this kind be narrowed to a namespace?" for kinds that are known only at run time; of typed ones the
//! compiler knows. Invariants:
//! 1. Every kind here is cluster-scoped in every version of Kubernetes that serves it.
//! 2. Of a kind that is not here nothing is said: it may be a custom one.
//!
//! Read next: `scope.rs`, which refuses them.

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
pub(crate) fn is_cluster_scoped(group: &str, plural: &str) -> bool {
    CLUSTER_SCOPED.iter().any(|(of, plurals)| *of == group && plurals.contains(&plural))
}
