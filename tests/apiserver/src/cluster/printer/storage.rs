//! The rows of volumes, claims, their classes and drivers, and of config maps and secrets.
//!
//! Answers: how large is it, how may it be used, and to what does it belong?
//! 1. For other kinds it returns none.
use serde_json::{Value, json};

use super::network::default_name;
use super::view::View;

const CLASS_ANNOTATION: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
const DEFAULT_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
const MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];

pub(super) fn cells(group: &str, plural: &str, view: &View<'_>) -> Option<Vec<Value>> {
    let mut cells = vec![view.name()];
    let text = |at: &str| json!(view.text(at));
    match (group, plural) {
        ("", "persistentvolumes") => cells.extend(volume(view)),
        ("", "persistentvolumeclaims") => cells.extend(claim(view)),
        ("", "configmaps") => cells.extend([json!(view.len("/data") + view.len("/binaryData")), view.age()]),
        ("", "secrets") => cells.extend([text("/type"), json!(view.len("/data")), view.age()]),
        ("storage.k8s.io", "storageclasses") => {
            cells = vec![default_name(view, &DEFAULT_CLASS), text("/provisioner")];
            cells.extend([view.or("/reclaimPolicy", "Delete"), view.or("/volumeBindingMode", "Immediate")]);
            cells.extend([json!(view.flag("/allowVolumeExpansion", false)), view.age()]);
        }
        ("storage.k8s.io", "volumeattributesclasses") => cells.extend([text("/driverName"), view.age()]),
        ("storage.k8s.io", "volumeattachments") => {
            cells.extend([
                text("/spec/attacher"),
                text("/spec/source/persistentVolumeName"),
                text("/spec/nodeName"),
            ]);
            cells.extend([json!(view.flag("/status/attached", false)), view.age()]);
        }
        ("storage.k8s.io", "csinodes") => cells.extend([json!(view.len("/spec/drivers")), view.age()]),
        ("storage.k8s.io", "csidrivers") => cells.extend(driver(view)),
        ("resource.k8s.io", "deviceclasses" | "resourceclaimtemplates") => cells.push(view.age()),
        ("resource.k8s.io", "resourceclaims") => cells.extend([json!(claim_state(view)), view.age()]),
        ("resource.k8s.io", "resourceslices") => {
            cells.extend([text("/spec/nodeName"), text("/spec/driver"), text("/spec/pool/name"), view.age()]);
        }
        _ => return None,
    }
    Some(cells)
}

fn phase(view: &View<'_>) -> Value {
    json!(if view.is_going() { "Terminating" } else { view.text("/status/phase") })
}

fn class(view: &View<'_>) -> Value {
    match view.text(CLASS_ANNOTATION) {
        "" => json!(view.text("/spec/storageClassName")),
        class => json!(class),
    }
}

/// The access modes by their short names, in a fixed order.
fn modes(view: &View<'_>, at: &str) -> Value {
    let has = |mode: &str| view.list(at).iter().any(|known| known == mode);
    let short: Vec<&str> = MODES.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect();
    json!(short.join(","))
}

fn volume(view: &View<'_>) -> Vec<Value> {
    let claim = match view.map("/spec/claimRef") {
        Some(_) => format!("{}/{}", view.text("/spec/claimRef/namespace"), view.text("/spec/claimRef/name")),
        None => String::new(),
    };
    vec![
        view.or("/spec/capacity/storage", "0"),
        modes(view, "/spec/accessModes"),
        json!(view.text("/spec/persistentVolumeReclaimPolicy")),
        phase(view),
        json!(claim),
        class(view),
        view.or("/spec/volumeAttributesClassName", "<unset>"),
        json!(view.text("/status/reason")),
        view.age(),
        view.or("/spec/volumeMode", "<unset>"),
    ]
}

fn claim(view: &View<'_>) -> Vec<Value> {
    let volume = view.text("/spec/volumeName");
    let (capacity, modes) = if volume.is_empty() {
        (json!(""), json!(""))
    } else {
        (view.or("/status/capacity/storage", "0"), modes(view, "/status/accessModes"))
    };
    vec![
        phase(view),
        json!(volume),
        capacity,
        modes,
        class(view),
        view.or("/spec/volumeAttributesClassName", "<unset>"),
        view.age(),
        view.or("/spec/volumeMode", "<unset>"),
    ]
}

fn driver(view: &View<'_>) -> Vec<Value> {
    let tokens = match view.at("/spec/tokenRequests") {
        Some(_) => view.joined("/spec/tokenRequests", "audience", ","),
        None => "<unset>".to_owned(),
    };
    let modes = view.texts("/spec/volumeLifecycleModes");
    vec![
        json!(view.flag("/spec/attachRequired", true)),
        json!(view.flag("/spec/podInfoOnMount", false)),
        json!(view.flag("/spec/storageCapacity", false)),
        json!(tokens),
        json!(view.flag("/spec/requiresRepublish", false)),
        json!(if modes.is_empty() { "<none>" } else { modes.as_str() }),
        view.age(),
    ]
}

fn claim_state(view: &View<'_>) -> String {
    let allocated = view.at("/status/allocation").is_some();
    let reserved = allocated && view.len("/status/reservedFor") > 0;
    let words = [
        (view.is_going(), "deleted"),
        (!allocated && !view.is_going(), "pending"),
        (allocated, "allocated"),
        (reserved, "reserved"),
    ];
    words.iter().filter(|(holds, _)| *holds).map(|(_, word)| *word).collect::<Vec<_>>().join(",")
}
