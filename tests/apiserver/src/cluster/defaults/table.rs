//! The table of defaults that are always the same.
//!
//! Answers: which paths of which kind get which default? A row is a path (see `path.rs`) and a JSON text.
//! 1. Rows of a kind are applied in their order, so a row may depend on one before it.
//! 2. Rows of a pod's spec are relative to it, and apply to pods and to every template of them.
type Rows = &'static [(&'static str, &'static str)];

pub(super) const POD_SPEC: Rows = &[
    ("/restartPolicy", "\"Always\""),
    ("/terminationGracePeriodSeconds", "30"),
    ("/dnsPolicy", "\"ClusterFirst\""),
    ("/securityContext", "{}"),
    ("/schedulerName", "\"default-scheduler\""),
    ("/volumes/*/configMap/defaultMode", "420"),
    ("/volumes/*/secret/defaultMode", "420"),
    ("/volumes/*/downwardAPI/defaultMode", "420"),
    ("/volumes/*/downwardAPI/items/*/fieldRef/apiVersion", "\"v1\""),
    ("/volumes/*/projected/defaultMode", "420"),
    ("/volumes/*/projected/sources/*/serviceAccountToken/expirationSeconds", "3600"),
    ("/volumes/*/projected/sources/*/downwardAPI/items/*/fieldRef/apiVersion", "\"v1\""),
    ("/volumes/*/ephemeral/volumeClaimTemplate/spec/volumeMode", "\"Filesystem\""),
];
/// Relative to the source of a volume, in a pod and in a persistent volume alike.
pub(super) const VOLUME_SOURCE: Rows = &[
    ("/hostPath/type", "\"\""),
    ("/iscsi/iscsiInterface", "\"default\""),
    ("/azureDisk/cachingMode", "\"ReadWrite\""),
    ("/azureDisk/kind", "\"Shared\""),
    ("/azureDisk/fsType", "\"ext4\""),
    ("/azureDisk/readOnly", "false"),
    ("/scaleIO/storageMode", "\"ThinProvisioned\""),
    ("/scaleIO/fsType", "\"xfs\""),
    ("/rbd/pool", "\"rbd\""),
    ("/rbd/user", "\"admin\""),
    ("/rbd/keyring", "\"/etc/ceph/keyring\""),
];
/// Relative to one container.
pub(super) const CONTAINER: Rows = &[
    ("/resources", "{}"),
    ("/terminationMessagePath", "\"/dev/termination-log\""),
    ("/terminationMessagePolicy", "\"File\""),
    ("/ports/*/protocol", "\"TCP\""),
    ("/env/*/valueFrom/fieldRef/apiVersion", "\"v1\""),
    ("/lifecycle/*/httpGet/path", "\"/\""),
    ("/lifecycle/*/httpGet/scheme", "\"HTTP\""),
];
/// Relative to one probe.
pub(super) const PROBE: Rows = &[
    ("/httpGet/path", "\"/\""),
    ("/httpGet/scheme", "\"HTTP\""),
    ("/grpc/service", "\"\""),
    ("/timeoutSeconds", "1"),
    ("/periodSeconds", "10"),
    ("/successThreshold", "1"),
    ("/failureThreshold", "3"),
];

const REPLICAS: (&str, &str) = ("/spec/replicas", "1");
const DEPLOYMENT: Rows = &[
    REPLICAS,
    ("/spec/strategy", r#"{"type":"RollingUpdate"}"#),
    ("/spec/strategy/type", "\"RollingUpdate\""),
    ("/spec/revisionHistoryLimit", "10"),
    ("/spec/progressDeadlineSeconds", "600"),
];
const STATEFUL_SET: Rows = &[
    REPLICAS,
    ("/spec/podManagementPolicy", "\"OrderedReady\""),
    ("/spec/updateStrategy", "{}"),
    ("/spec/updateStrategy/type", "\"RollingUpdate\""),
    ("/spec/revisionHistoryLimit", "10"),
    ("/spec/persistentVolumeClaimRetentionPolicy", "{}"),
    ("/spec/persistentVolumeClaimRetentionPolicy/whenDeleted", "\"Retain\""),
    ("/spec/persistentVolumeClaimRetentionPolicy/whenScaled", "\"Retain\""),
    ("/spec/volumeClaimTemplates/*/kind", "\"PersistentVolumeClaim\""),
    ("/spec/volumeClaimTemplates/*/apiVersion", "\"v1\""),
    ("/spec/volumeClaimTemplates/*/spec/volumeMode", "\"Filesystem\""),
    ("/spec/volumeClaimTemplates/*/status/phase", "\"Pending\""),
];
const DAEMON_SET: Rows = &[
    ("/spec/updateStrategy", "{}"),
    ("/spec/updateStrategy/type", "\"RollingUpdate\""),
    ("/spec/revisionHistoryLimit", "10"),
];
const JOB: Rows = &[
    ("/spec/?backoffLimitPerIndex/backoffLimit", "2147483647"),
    ("/spec/backoffLimit", "6"),
    ("/spec/manualSelector", "false"),
    ("/spec/completionMode", "\"NonIndexed\""),
    ("/spec/suspend", "false"),
    ("/spec/podFailurePolicy/rules/*/onPodConditions/*/status", "\"True\""),
    ("/spec/?podFailurePolicy/podReplacementPolicy", "\"Failed\""),
    ("/spec/podReplacementPolicy", "\"TerminatingOrFailed\""),
];
const CRON_JOB: Rows = &[
    ("/spec/concurrencyPolicy", "\"Allow\""),
    ("/spec/suspend", "false"),
    ("/spec/jobTemplate/metadata", "{}"),
    ("/spec/jobTemplate/spec/template/metadata", "{}"),
    ("/spec/jobTemplate/spec/podFailurePolicy/rules/*/onPodConditions/*/status", "\"True\""),
    ("/spec/successfulJobsHistoryLimit", "3"),
    ("/spec/failedJobsHistoryLimit", "1"),
];
const AUTOSCALER: Rows = &[
    ("/spec/minReplicas", "1"),
    (
        "/spec/metrics",
        r#"[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}}]"#,
    ),
    ("/spec/behavior/scaleUp", "{}"),
    ("/spec/behavior/scaleUp/stabilizationWindowSeconds", "0"),
    ("/spec/behavior/scaleUp/selectPolicy", "\"Max\""),
    (
        "/spec/behavior/scaleUp/policies",
        r#"[{"type":"Pods","value":4,"periodSeconds":15},{"type":"Percent","value":100,"periodSeconds":15}]"#,
    ),
    ("/spec/behavior/scaleDown", "{}"),
    ("/spec/behavior/scaleDown/selectPolicy", "\"Max\""),
    ("/spec/behavior/scaleDown/policies", r#"[{"type":"Percent","value":100,"periodSeconds":15}]"#),
];
const CSI_DRIVER: Rows = &[
    ("/spec", "{}"),
    ("/spec/attachRequired", "true"),
    ("/spec/podInfoOnMount", "false"),
    ("/spec/volumeLifecycleModes", r#"["Persistent"]"#),
    ("/spec/storageCapacity", "false"),
    ("/spec/fsGroupPolicy", "\"ReadWriteOnceWithFSType\""),
    ("/spec/requiresRepublish", "false"),
    ("/spec/seLinuxMount", "false"),
];
const WEBHOOKS: Rows = &[
    ("/webhooks/*/rules/*/scope", "\"*\""),
    ("/webhooks/*/clientConfig/service/port", "443"),
    ("/webhooks/*/failurePolicy", "\"Fail\""),
    ("/webhooks/*/matchPolicy", "\"Equivalent\""),
    ("/webhooks/*/namespaceSelector", "{}"),
    ("/webhooks/*/objectSelector", "{}"),
    ("/webhooks/*/timeoutSeconds", "10"),
];
const MUTATING_WEBHOOKS: Rows = &[
    ("/webhooks/*/rules/*/scope", "\"*\""),
    ("/webhooks/*/clientConfig/service/port", "443"),
    ("/webhooks/*/failurePolicy", "\"Fail\""),
    ("/webhooks/*/matchPolicy", "\"Equivalent\""),
    ("/webhooks/*/namespaceSelector", "{}"),
    ("/webhooks/*/objectSelector", "{}"),
    ("/webhooks/*/timeoutSeconds", "10"),
    ("/webhooks/*/reinvocationPolicy", "\"Never\""),
];
const POLICY: Rows = &[
    ("/spec/failurePolicy", "\"Fail\""),
    ("/spec/matchConstraints/matchPolicy", "\"Equivalent\""),
    ("/spec/matchConstraints/namespaceSelector", "{}"),
    ("/spec/matchConstraints/objectSelector", "{}"),
    ("/spec/matchConstraints/resourceRules/*/scope", "\"*\""),
    ("/spec/matchConstraints/excludeResourceRules/*/scope", "\"*\""),
];
const POLICY_BINDING: Rows = &[
    ("/spec/matchResources/matchPolicy", "\"Equivalent\""),
    ("/spec/matchResources/namespaceSelector", "{}"),
    ("/spec/matchResources/objectSelector", "{}"),
    ("/spec/matchResources/resourceRules/*/scope", "\"*\""),
    ("/spec/matchResources/excludeResourceRules/*/scope", "\"*\""),
];
const PRIORITY_LEVEL: Rows = &[
    ("/spec/exempt/nominalConcurrencyShares", "0"),
    ("/spec/exempt/lendablePercent", "0"),
    ("/spec/limited/nominalConcurrencyShares", "30"),
    ("/spec/limited/lendablePercent", "0"),
    ("/spec/limited/limitResponse/queuing/queues", "64"),
    ("/spec/limited/limitResponse/queuing/handSize", "8"),
    ("/spec/limited/limitResponse/queuing/queueLengthLimit", "50"),
];
/// Relative to one exact request for devices.
pub(super) const DEVICE_REQUEST: Rows =
    &[("/allocationMode", "\"ExactCount\""), ("/tolerations/*/operator", "\"Equal\"")];
const NETWORK_POLICY: Rows =
    &[("/spec/ingress/*/ports/*/protocol", "\"TCP\""), ("/spec/egress/*/ports/*/protocol", "\"TCP\"")];
const VOLUME: Rows =
    &[("/spec/persistentVolumeReclaimPolicy", "\"Retain\""), ("/spec/volumeMode", "\"Filesystem\"")];
const SLICE: Rows =
    &[("/endpoints/*/conditions", "{}"), ("/ports/*/name", "\"\""), ("/ports/*/protocol", "\"TCP\"")];
const STORAGE_CLASS: Rows = &[("/reclaimPolicy", "\"Delete\""), ("/volumeBindingMode", "\"Immediate\"")];

/// The rows of a kind, except those of pods inside it.
pub(super) fn rows(group: &str, plural: &str) -> Rows {
    match (group, plural) {
        ("apps", "deployments") => DEPLOYMENT,
        ("apps", "replicasets") | ("", "replicationcontrollers") => &[REPLICAS],
        ("apps", "statefulsets") => STATEFUL_SET,
        ("apps", "daemonsets") => DAEMON_SET,
        ("batch", "jobs") => JOB,
        ("batch", "cronjobs") => CRON_JOB,
        ("autoscaling", "horizontalpodautoscalers") => AUTOSCALER,
        ("", "secrets") => &[("/type", "\"Opaque\"")],
        ("", "endpoints") => &[("/subsets/*/ports/*/protocol", "\"TCP\"")],
        ("", "persistentvolumes") => VOLUME,
        ("", "persistentvolumeclaims") => &[("/spec/volumeMode", "\"Filesystem\"")],
        ("storage.k8s.io", "storageclasses") => STORAGE_CLASS,
        ("apiregistration.k8s.io", "apiservices") => &[("/spec/service/port", "443")],
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => &[("/spec/matchingPrecedence", "1000")],
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => PRIORITY_LEVEL,
        ("resource.k8s.io", "resourceslices") => {
            &[("/spec/devices/*/nodeAllocatableResourceMappings/*/allocationMultiplier", "\"1\"")]
        }
        ("storage.k8s.io", "csidrivers") => CSI_DRIVER,
        ("scheduling.k8s.io", "priorityclasses") => &[("/preemptionPolicy", "\"PreemptLowerPriority\"")],
        ("networking.k8s.io", "networkpolicies") => NETWORK_POLICY,
        ("networking.k8s.io", "ingressclasses") => &[("/spec/parameters/scope", "\"Cluster\"")],
        ("discovery.k8s.io", "endpointslices") => SLICE,
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations") => WEBHOOKS,
        ("admissionregistration.k8s.io", "validatingadmissionpolicies" | "mutatingadmissionpolicies") => {
            POLICY
        }
        (
            "admissionregistration.k8s.io",
            "validatingadmissionpolicybindings" | "mutatingadmissionpolicybindings",
        ) => POLICY_BINDING,
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations") => MUTATING_WEBHOOKS,
        _ => &[],
    }
}

/// The path of a kind's pod spec.
pub(super) fn pod_spec(group: &str, plural: &str) -> Option<&'static str> {
    match (group, plural) {
        ("", "pods") => Some("/spec"),
        ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets")
        | ("", "replicationcontrollers")
        | ("batch", "jobs") => Some("/spec/template/spec"),
        ("batch", "cronjobs") => Some("/spec/jobTemplate/spec/template/spec"),
        ("", "podtemplates") => Some("/template/spec"),
        _ => None,
    }
}
