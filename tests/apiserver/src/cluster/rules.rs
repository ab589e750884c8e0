//! The rules of a built-in kind that cannot be recorded from a running server: names, generations, updates, selector
//! fields.
//!
//! Answers: which rules apply to writes of this kind, and which fields may a selector name? `kinds.json` has the rest.
//! 1. A kind that is not named here follows `RULES`, the rules that most kinds share.
//! 2. Rules belong to a resource, not to one of its versions.
//!
//! Next: `prepare.rs` and `write.rs` follow these rules.
use super::ResourceId;
use super::kind::{GenerationRule, Kind, Rules};
use super::names::NameRule;

const RULES: Rules = Rules {
    name: NameRule::Subdomain,
    generation: GenerationRule::Absent,
    unconditional_update: true,
    delete_answers_object: false,
    put_creates: false,
    status_metadata: &["annotations", "finalizers", "ownerReferences"],
    status_on_create: false,
    namespace_field: true,
};
const ALL_METADATA: &[&str] = &["labels", "annotations", "finalizers", "ownerReferences"];
/// Kinds whose generation counts changes of the spec.
const COUNTED: Rules = Rules { generation: GenerationRule::Spec, ..RULES };
const COUNTED_WITH_METADATA: Rules = Rules { status_metadata: ALL_METADATA, ..COUNTED };
/// Kinds whose generation counts changes of all content.
const COUNTED_WHOLE: Rules = Rules { generation: GenerationRule::AllButMetadata, ..RULES };
/// Kinds whose updates must name the resourceVersion.
const CONDITIONAL: Rules = Rules { unconditional_update: false, ..RULES };
const CONDITIONAL_COUNTED: Rules = Rules { unconditional_update: false, ..COUNTED };
const RBAC: Rules = Rules { name: NameRule::PathSegment, put_creates: true, ..RULES };
/// Kinds whose DELETE returns the deleted object.
const ANSWERED: Rules = Rules { delete_answers_object: true, ..RULES };
const ANSWERED_COUNTED: Rules = Rules { delete_answers_object: true, ..COUNTED };
const WITH_METADATA: Rules = Rules { status_metadata: ALL_METADATA, ..RULES };
const ANSWERED_WITH_METADATA: Rules = Rules { delete_answers_object: true, ..WITH_METADATA };
const PUT_CREATES: Rules = Rules { put_creates: true, ..RULES };
const FLOW: Rules = Rules { status_metadata: &[], ..COUNTED };

/// The rules of a built-in resource.
pub(super) fn rules(resource: &ResourceId) -> Rules {
    match &*resource.group {
        "" => core(&resource.plural),
        "apps" | "batch" => workload(&resource.plural),
        "rbac.authorization.k8s.io" => RBAC,
        "flowcontrol.apiserver.k8s.io" => FLOW,
        "admissionregistration.k8s.io" => Rules { unconditional_update: false, ..COUNTED_WHOLE },
        "events.k8s.io" => core("events"),
        _ => other(&resource.plural),
    }
}

fn core(plural: &str) -> Rules {
    match plural {
        "pods" => Rules { status_metadata: &["labels", "annotations", "finalizers"], ..ANSWERED_COUNTED },
        "nodes" => Rules { status_on_create: true, namespace_field: false, ..WITH_METADATA },
        "namespaces" => Rules { name: NameRule::Label, namespace_field: false, ..ANSWERED_WITH_METADATA },
        "services" => Rules { name: NameRule::Label, put_creates: true, ..ANSWERED_WITH_METADATA },
        "persistentvolumes" | "persistentvolumeclaims" | "resourcequotas" => ANSWERED_WITH_METADATA,
        "serviceaccounts" => ANSWERED,
        "podtemplates" => Rules { generation: GenerationRule::AllButMetadata, ..ANSWERED },
        "replicationcontrollers" => COUNTED_WITH_METADATA,
        "limitranges" | "events" | "endpoints" => PUT_CREATES,
        _ => RULES,
    }
}

fn workload(plural: &str) -> Rules {
    match plural {
        "deployments" => Rules { generation: GenerationRule::SpecAndAnnotations, ..COUNTED },
        "statefulsets" => Rules { name: NameRule::Label, ..COUNTED_WITH_METADATA },
        "controllerrevisions" => RULES,
        _ => COUNTED_WITH_METADATA,
    }
}

fn other(plural: &str) -> Rules {
    match plural {
        "leases" => Rules { put_creates: true, ..CONDITIONAL },
        "runtimeclasses" => Rules { put_creates: true, ..CONDITIONAL },
        "endpointslices" | "priorityclasses" => COUNTED_WHOLE,
        "poddisruptionbudgets" => Rules { status_metadata: ALL_METADATA, ..CONDITIONAL_COUNTED },
        "ingresses" => COUNTED_WITH_METADATA,
        "ingressclasses" | "networkpolicies" => COUNTED,
        "horizontalpodautoscalers" => WITH_METADATA,
        "servicecidrs" => Rules { status_metadata: &[], ..RULES },
        "ipaddresses" => Rules { name: NameRule::PathSegment, ..RULES },
        "customresourcedefinitions" => CONDITIONAL_COUNTED,
        "apiservices" => Rules { name: NameRule::PathSegment, ..CONDITIONAL },
        "csistoragecapacities" => CONDITIONAL,
        "csidrivers" => Rules {
            delete_answers_object: true,
            status_metadata: &[],
            generation: GenerationRule::SpecOnceChanged,
            ..CONDITIONAL
        },
        "csinodes" | "volumeattachments" => {
            Rules { delete_answers_object: true, status_metadata: &[], ..CONDITIONAL }
        }
        "storageclasses" | "volumeattributesclasses" | "resourceclaimtemplates" => ANSWERED,
        "resourceclaims" => Rules { status_metadata: &[], ..ANSWERED },
        "resourceslices" | "deviceclasses" => ANSWERED_COUNTED,
        _ => RULES,
    }
}

/// A resource in each line, and its fields: a label, and where it is not the label's own place, the path of its value.
const FIELDS: &str = include_str!("rules/fields.txt");

/// The field labels a selector may use beside name and namespace, with the paths of their values in the
/// stored object.
pub(super) fn fields(resource: &ResourceId) -> Vec<(String, String)> {
    let of = |line: &'static str| line.strip_prefix(&resource.to_string())?.strip_prefix(": ");
    let fields = FIELDS.lines().find_map(of).unwrap_or_default().split_whitespace();
    let field = |field: &str| match field.split_once('=') {
        Some((label, path)) => (label.to_owned(), path.to_owned()),
        None => (field.to_owned(), format!("/{}", field.replace('.', "/"))),
    };
    fields.map(field).collect()
}

/// What a selector compares if an object does not have the field: the zero value of its type.
pub(super) fn unset(kind: &Kind, at: &str) -> &'static str {
    match at {
        _ if kind.custom => "",
        "/spec/hostNetwork" | "/spec/unschedulable" => "false",
        "/status/replicas" | "/status/succeeded" => "0",
        _ => "",
    }
}

/// The version in which the objects of a resource are stored, if it is not the requested one.
pub(super) fn stored_version<'a>(resource: &ResourceId, version: &'a str) -> &'a str {
    match &*resource.plural {
        "customresourcedefinitions" | "mutatingadmissionpolicies" | "mutatingadmissionpolicybindings" => {
            "v1beta1"
        }
        "horizontalpodautoscalers" => "v2",
        _ => version,
    }
}

/// The warning for every client of a resource.
pub(super) fn deprecation(resource: &ResourceId) -> Option<&'static str> {
    match (&*resource.group, &*resource.plural) {
        ("", "endpoints") => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
        }
        ("", "componentstatuses") => Some("v1 ComponentStatus is deprecated in v1.19+"),
        _ => None,
    }
}

/// Where the objects of a resource are stored: both event groups are one storage, everything else has its
/// own.
pub(super) fn storage(resource: &ResourceId) -> ResourceId {
    match (&*resource.group, &*resource.plural) {
        ("events.k8s.io", "events") => ResourceId::new("", "events"),
        _ => resource.clone(),
    }
}
