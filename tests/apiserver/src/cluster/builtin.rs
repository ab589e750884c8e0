//! The table of kinds every server has from the start.
//!
//! Answers: which built-in kinds are there, and what is particular to each? Adding a kind is adding a row.
//! 1. One row per kind; what most kinds share stands once, in `NAMESPACED` and `CLUSTER`.
//! 2. `zero` is what a real server sends in a bookmark of that kind: the zero value of its Go type.
//!
//! Next: `kind.rs` says what each column means.
use super::kind::{GenerationRule, Kind, NameRule, ResourceId, Rules};

struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    categories: &'static [&'static str],
    namespaced: bool,
    status: bool,
    rules: Rules,
    fields: &'static [(&'static str, &'static str)],
    namespace_field: bool,
    zero: &'static str,
}

const RULES: Rules = Rules {
    name: NameRule::Subdomain,
    generation: GenerationRule::Absent,
    unconditional_update: true,
    delete_answers_object: false,
    put_creates: false,
    status_metadata: &["annotations", "finalizers", "ownerReferences"],
};
/// Kinds whose spec is counted.
const COUNTED: Rules = Rules { generation: GenerationRule::Spec, ..RULES };
const RBAC: Rules = Rules { name: NameRule::PathSegment, put_creates: true, ..RULES };

const NAMESPACED: Row = Row {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    short: &[],
    categories: &[],
    namespaced: true,
    status: false,
    rules: RULES,
    fields: &[],
    namespace_field: true,
    zero: "",
};
const CLUSTER: Row = Row { namespaced: false, ..NAMESPACED };
const APPS: Row = Row { group: "apps", status: true, categories: &["all"], rules: COUNTED, ..NAMESPACED };
const BATCH: Row = Row { group: "batch", ..APPS };

const POD_FIELDS: &[(&str, &str)] = &[
    ("spec.nodeName", "/spec/nodeName"),
    ("spec.restartPolicy", "/spec/restartPolicy"),
    ("spec.schedulerName", "/spec/schedulerName"),
    ("spec.serviceAccountName", "/spec/serviceAccountName"),
    ("spec.hostNetwork", "/spec/hostNetwork"),
    ("status.phase", "/status/phase"),
    ("status.podIP", "/status/podIP"),
    ("status.podIPs", "/status/podIPs"),
    ("status.nominatedNodeName", "/status/nominatedNodeName"),
];
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject.kind", "/involvedObject/kind"),
    ("involvedObject.namespace", "/involvedObject/namespace"),
    ("involvedObject.name", "/involvedObject/name"),
    ("involvedObject.uid", "/involvedObject/uid"),
    ("involvedObject.apiVersion", "/involvedObject/apiVersion"),
    ("involvedObject.resourceVersion", "/involvedObject/resourceVersion"),
    ("involvedObject.fieldPath", "/involvedObject/fieldPath"),
    ("reason", "/reason"),
    ("reportingComponent", "/reportingComponent"),
    ("source", "/source/component"),
    ("type", "/type"),
];
const STATUS_REPLICAS: &[(&str, &str)] = &[("status.replicas", "/status/replicas")];

const NODE_ZERO: &str = r#""spec":{},"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},"nodeInfo":{"machineID":"","systemUUID":"","bootID":"","kernelVersion":"","osImage":"","containerRuntimeVersion":"","kubeletVersion":"","kubeProxyVersion":"","operatingSystem":"","architecture":""}}"#;
const EVENT_ZERO: &str = r#""involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,"reportingComponent":"","reportingInstance":"""#;
const DEPLOYMENT_ZERO: &str = r#""spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}},"status":{}"#;
const REPLICA_SET_ZERO: &str = r#""spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}}},"status":{"replicas":0}"#;
const STATEFUL_SET_ZERO: &str = r#""spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"serviceName":"","updateStrategy":{}},"status":{"replicas":0,"availableReplicas":0}"#;
const DAEMON_SET_ZERO: &str = r#""spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"updateStrategy":{}},"status":{"currentNumberScheduled":0,"numberMisscheduled":0,"desiredNumberScheduled":0,"numberReady":0}"#;
const JOB_ZERO: &str = r#""spec":{"template":{"metadata":{},"spec":{"containers":null}}},"status":{}"#;
const CRON_JOB_ZERO: &str = r#""spec":{"schedule":"","jobTemplate":{"metadata":{},"spec":{"template":{"metadata":{},"spec":{"containers":null}}}}},"status":{}"#;
const CRD_ZERO: &str = r#""spec":{"group":"","names":{"plural":"","kind":""},"scope":"","versions":null},"status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":null}"#;
const ROLE_REF_ZERO: &str = r#""roleRef":{"apiGroup":"","kind":"","name":""}"#;

const ROWS: &[Row] = &[
    Row {
        kind: "Pod",
        plural: "pods",
        short: &["po"],
        categories: &["all"],
        status: true,
        fields: POD_FIELDS,
        zero: r#""spec":{"containers":null},"status":{}"#,
        rules: Rules {
            delete_answers_object: true,
            status_metadata: &["labels", "annotations", "finalizers"],
            ..COUNTED
        },
        ..NAMESPACED
    },
    Row {
        kind: "Node",
        plural: "nodes",
        short: &["no"],
        status: true,
        zero: NODE_ZERO,
        fields: &[("spec.unschedulable", "/spec/unschedulable")],
        namespace_field: false,
        ..CLUSTER
    },
    Row {
        kind: "Namespace",
        plural: "namespaces",
        short: &["ns"],
        status: true,
        zero: r#""spec":{},"status":{}"#,
        fields: &[("status.phase", "/status/phase")],
        namespace_field: false,
        rules: Rules { name: NameRule::Label, delete_answers_object: true, ..RULES },
        ..CLUSTER
    },
    Row {
        kind: "Service",
        plural: "services",
        short: &["svc"],
        categories: &["all"],
        status: true,
        zero: r#""spec":{},"status":{"loadBalancer":{}}"#,
        fields: &[("spec.clusterIP", "/spec/clusterIP"), ("spec.type", "/spec/type")],
        rules: Rules {
            name: NameRule::Label,
            delete_answers_object: true,
            status_metadata: &["labels", "annotations", "finalizers", "ownerReferences"],
            ..RULES
        },
        ..NAMESPACED
    },
    Row { kind: "Endpoints", plural: "endpoints", short: &["ep"], ..NAMESPACED },
    Row { kind: "ConfigMap", plural: "configmaps", short: &["cm"], ..NAMESPACED },
    Row { kind: "Secret", plural: "secrets", fields: &[("type", "/type")], ..NAMESPACED },
    Row {
        kind: "ServiceAccount",
        plural: "serviceaccounts",
        short: &["sa"],
        rules: Rules { delete_answers_object: true, ..RULES },
        ..NAMESPACED
    },
    Row {
        kind: "Event",
        plural: "events",
        short: &["ev"],
        fields: EVENT_FIELDS,
        zero: EVENT_ZERO,
        ..NAMESPACED
    },
    Row {
        kind: "PersistentVolume",
        plural: "persistentvolumes",
        short: &["pv"],
        status: true,
        zero: r#""spec":{},"status":{}"#,
        rules: Rules { delete_answers_object: true, ..RULES },
        ..CLUSTER
    },
    Row {
        kind: "PersistentVolumeClaim",
        plural: "persistentvolumeclaims",
        short: &["pvc"],
        status: true,
        zero: r#""spec":{"resources":{}},"status":{}"#,
        rules: Rules {
            delete_answers_object: true,
            status_metadata: &["labels", "annotations", "finalizers", "ownerReferences"],
            ..RULES
        },
        ..NAMESPACED
    },
    Row { kind: "Deployment", plural: "deployments", short: &["deploy"], zero: DEPLOYMENT_ZERO, ..APPS },
    Row {
        kind: "ReplicaSet",
        plural: "replicasets",
        short: &["rs"],
        zero: REPLICA_SET_ZERO,
        fields: STATUS_REPLICAS,
        ..APPS
    },
    Row { kind: "StatefulSet", plural: "statefulsets", short: &["sts"], zero: STATEFUL_SET_ZERO, ..APPS },
    Row { kind: "DaemonSet", plural: "daemonsets", short: &["ds"], zero: DAEMON_SET_ZERO, ..APPS },
    Row {
        kind: "Job",
        plural: "jobs",
        zero: JOB_ZERO,
        fields: &[("status.successful", "/status/succeeded")],
        ..BATCH
    },
    Row { kind: "CronJob", plural: "cronjobs", short: &["cj"], zero: CRON_JOB_ZERO, ..BATCH },
    Row {
        group: "coordination.k8s.io",
        kind: "Lease",
        plural: "leases",
        zero: r#""spec":{}"#,
        rules: Rules { unconditional_update: false, put_creates: true, ..RULES },
        ..NAMESPACED
    },
    Row {
        group: "discovery.k8s.io",
        kind: "EndpointSlice",
        plural: "endpointslices",
        zero: r#""addressType":"","endpoints":null,"ports":null"#,
        rules: COUNTED,
        ..NAMESPACED
    },
    Row {
        group: "networking.k8s.io",
        kind: "Ingress",
        plural: "ingresses",
        short: &["ing"],
        status: true,
        zero: r#""spec":{},"status":{"loadBalancer":{}}"#,
        rules: COUNTED,
        ..NAMESPACED
    },
    Row {
        group: "rbac.authorization.k8s.io",
        kind: "Role",
        plural: "roles",
        zero: r#""rules":null"#,
        rules: RBAC,
        ..NAMESPACED
    },
    Row {
        group: "rbac.authorization.k8s.io",
        kind: "RoleBinding",
        plural: "rolebindings",
        zero: ROLE_REF_ZERO,
        rules: RBAC,
        ..NAMESPACED
    },
    Row {
        group: "rbac.authorization.k8s.io",
        kind: "ClusterRole",
        plural: "clusterroles",
        zero: r#""rules":null"#,
        rules: RBAC,
        ..CLUSTER
    },
    Row {
        group: "rbac.authorization.k8s.io",
        kind: "ClusterRoleBinding",
        plural: "clusterrolebindings",
        zero: ROLE_REF_ZERO,
        rules: RBAC,
        ..CLUSTER
    },
    Row {
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
        short: &["crd", "crds"],
        categories: &["api-extensions"],
        status: true,
        zero: CRD_ZERO,
        rules: Rules { unconditional_update: false, ..COUNTED },
        ..CLUSTER
    },
];

impl Row {
    fn to_kind(&self) -> Kind {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Kind {
            resource: ResourceId::new(self.group, self.plural),
            version: self.version.to_owned(),
            kind: self.kind.to_owned(),
            list_kind: format!("{}List", self.kind),
            singular: self.kind.to_lowercase(),
            short_names: owned(self.short),
            categories: owned(self.categories),
            namespaced: self.namespaced,
            status: self.status,
            custom: false,
            rules: self.rules,
            fields: self.fields.iter().map(|(label, at)| ((*label).to_owned(), (*at).to_owned())).collect(),
            namespace_field: self.namespace_field,
            zero: self.zero.to_owned(),
        }
    }
}

/// All built-in kinds, in the order discovery tells them.
pub(crate) fn kinds() -> impl Iterator<Item = Kind> {
    ROWS.iter().map(Row::to_kind)
}
