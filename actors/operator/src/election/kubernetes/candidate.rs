//! A LeaseCandidate as JSON, for a coordinated election: `v1beta1` where it is served, else `v1alpha2`; both
//! have the fields that are written here. A renewal changes only `renewTime`.

use std::time::Duration;

use crate::election::machine::CandidateRecord;
use serde_json::{Value, json};

use super::lease::{Names, time, time_of};

pub(super) const GROUP: &str = "/apis/coordination.k8s.io";

pub(super) fn version_of(group: &Value) -> Option<&'static str> {
    let served = group["versions"].as_array()?;
    let is_served = |version: &&str| served.iter().any(|entry| entry["version"] == **version);
    ["v1beta1", "v1alpha2"].into_iter().find(is_served)
}

pub(super) fn path(names: &Names, version: &str) -> String {
    format!("{GROUP}/{version}/namespaces/{}/leasecandidates", names.namespace)
}

pub(super) fn new(names: &Names, identity: &str, version: &str, renewed: Duration) -> Value {
    let of_program = names.version.as_deref().unwrap_or_default();
    json!({
        "apiVersion": format!("coordination.k8s.io/{version}"),
        "kind": "LeaseCandidate",
        "metadata": {"name": identity, "namespace": names.namespace},
        "spec": {
            "leaseName": names.name,
            "binaryVersion": of_program,
            "emulationVersion": of_program,
            "strategy": "OldestEmulationVersion",
            "renewTime": time(Some(renewed)),
        },
    })
}

pub(super) fn renew(candidate: &mut Value, renewed: Duration) {
    candidate["spec"]["renewTime"] = time(Some(renewed));
}

pub(super) fn record_of(candidate: &Value) -> CandidateRecord {
    let spec = &candidate["spec"];
    CandidateRecord { pinged: time_of(&spec["pingTime"]), renewed: time_of(&spec["renewTime"]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_that_is_served_is_used() {
        let group = |versions: &[&str]| {
            let versions: Vec<_> = versions.iter().map(|version| json!({"version": version})).collect();
            json!({"versions": versions})
        };
        assert_eq!(version_of(&group(&["v1", "v1alpha2", "v1beta1"])), Some("v1beta1"));
        assert_eq!(version_of(&group(&["v1", "v1alpha2"])), Some("v1alpha2"));
        assert_eq!(version_of(&group(&["v1"])), None);
        assert_eq!(version_of(&json!("a login page")), None);
    }
}
