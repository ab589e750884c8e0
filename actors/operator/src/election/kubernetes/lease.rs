//! A Lease as JSON: only the fields of the record and the configured labels are changed. A typed object would
//! lose fields that its version does not know. A field that is absent, null or of another type counts as
//! empty and never fails an election.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::election::machine::LeaseRecord;
use jiff::Timestamp;
use serde_json::{Value, json};

use informer_client::Error;
use informer_client::inner::{encoded_name, segment};

#[derive(Debug)]
pub(super) struct Names {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    /// Only in a coordinated election.
    pub(super) version: Option<String>,
}

impl Names {
    /// For use in paths.
    pub(super) fn check(&self, identity: &str) -> Result<(), Error> {
        segment("namespace", &self.namespace)?;
        encoded_name(&self.name)?;
        if self.version.is_some() {
            let in_names =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
            if identity.is_empty() || !identity.bytes().all(in_names) {
                let (what, text) = ("name of a lease candidate", identity.to_owned());
                return Err(Error::Name { what, text });
            }
        }
        Ok(())
    }

    pub(super) fn leases(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    /// The name was checked.
    pub(super) fn lease(&self) -> String {
        format!("{}/{}", self.leases(), encoded_name(&self.name).unwrap_or_default())
    }

    pub(super) fn new_lease(&self) -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {},
        })
    }

    pub(super) fn write(&self, lease: &mut Value, record: &LeaseRecord) {
        let spec = object(lease, "spec");
        spec["holderIdentity"] = json!(&*record.holder);
        spec["leaseDurationSeconds"] = json!(record.duration_seconds);
        spec["leaseTransitions"] = json!(record.transitions.min(i32::MAX.unsigned_abs().into()));
        spec["acquireTime"] = time(record.acquired);
        spec["renewTime"] = time(record.renewed);
        if self.labels.is_empty() {
            return;
        }
        let labels = object(object(lease, "metadata"), "labels");
        for (key, value) in &self.labels {
            labels[key.as_str()] = json!(value);
        }
    }
}

/// Replaces what is not an object.
fn object<'a>(of: &'a mut Value, key: &str) -> &'a mut Value {
    if !of.is_object() {
        *of = json!({});
    }
    let inner = &mut of[key];
    if !inner.is_object() {
        *inner = json!({});
    }
    inner
}

pub(super) fn record_of(lease: &Value) -> LeaseRecord {
    let spec = &lease["spec"];
    let text = |key: &str| spec[key].as_str().unwrap_or_default().into();
    LeaseRecord {
        holder: text("holderIdentity"),
        duration_seconds: number(&spec["leaseDurationSeconds"]),
        acquired: time_of(&spec["acquireTime"]),
        renewed: time_of(&spec["renewTime"]),
        transitions: number(&spec["leaseTransitions"]),
        preferred_holder: text("preferredHolder"),
    }
}

fn number<T: TryFrom<u64> + Default>(value: &Value) -> T {
    value.as_u64().and_then(|number| T::try_from(number).ok()).unwrap_or_default()
}

/// As a MicroTime; null if there is none, or no calendar has it.
pub(super) fn time(since_1970: Option<Duration>) -> Value {
    let micros = since_1970.and_then(|time| i64::try_from(time.as_micros()).ok());
    let stamp = micros.and_then(|micros| Timestamp::from_microsecond(micros).ok());
    stamp.map_or(Value::Null, |stamp| json!(stamp.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()))
}

pub(super) fn time_of(value: &Value) -> Option<Duration> {
    let stamp: Timestamp = value.as_str()?.parse().ok()?;
    u64::try_from(stamp.as_microsecond()).ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(labels: &[(&str, &str)]) -> Names {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let labels = labels.iter().map(owned).collect();
        Names { namespace: "shop".to_owned(), name: "operator".to_owned(), labels, version: None }
    }

    fn record() -> LeaseRecord {
        LeaseRecord {
            holder: "me".into(),
            duration_seconds: 15,
            acquired: Some(Duration::from_micros(1_577_836_800_000_001)),
            renewed: Some(Duration::from_secs(1_577_836_802)),
            transitions: 3,
            preferred_holder: "".into(),
        }
    }

    #[test]
    fn le_12_labels_are_merged_and_neither_foreign_labels_nor_foreign_fields_are_lost() {
        let mut lease = json!({
            "metadata": {"labels": {"team": "web", "mine": "old"}, "annotations": {"a": "b"}, "resourceVersion": "7"},
            "spec": {"holderIdentity": "other", "strategy": "OldestEmulationVersion", "ofTheFuture": [1]},
        });
        names(&[("mine", "new"), ("app", "shop")]).write(&mut lease, &record());
        let metadata = json!({
            "labels": {"team": "web", "mine": "new", "app": "shop"}, "annotations": {"a": "b"}, "resourceVersion": "7",
        });
        assert_eq!(lease["metadata"], metadata);
        let spec = json!({
            "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 3,
            "acquireTime": "2020-01-01T00:00:00.000001Z", "renewTime": "2020-01-01T00:00:02.000000Z",
            "strategy": "OldestEmulationVersion", "ofTheFuture": [1],
        });
        assert_eq!(lease["spec"], spec);
        assert_eq!(record_of(&lease), record());
    }

    // LE-12: given lease labels configured or nil, when written, then merged without losing foreign labels
    // and without panic.
    // - a merged, and nothing of others is lost:
    //   `le_12_labels_are_merged_and_neither_foreign_labels_nor_foreign_fields_are_lost`
    // - b none, null, or of another type
    #[test]
    fn le_12_a_lease_without_labels_gets_them_and_without_configured_ones_keeps_what_it_has() {
        for labels in [json!(null), json!("of another type")] {
            let mut lease = json!({"metadata": {"labels": labels}});
            names(&[]).write(&mut lease, &record());
            assert_eq!(lease["metadata"]["labels"], labels);
            names(&[("app", "shop")]).write(&mut lease, &record());
            assert_eq!(lease["metadata"]["labels"], json!({"app": "shop"}));
        }
    }

    #[test]
    fn a_lease_with_strange_fields_reads_as_an_empty_one() {
        for spec in
            [json!(null), json!({"holderIdentity": null, "renewTime": "soon", "leaseTransitions": -1})]
        {
            assert_eq!(record_of(&json!({"spec": spec})), LeaseRecord::default());
        }
    }

    #[test]
    fn a_candidate_of_a_coordinated_election_needs_the_name_of_an_object() {
        let coordinated = Names { version: Some("1.2.3".to_owned()), ..names(&[]) };
        assert!(coordinated.check("web-0.a").is_ok());
        assert!(coordinated.check("Web_0").is_err());
        assert!(names(&[]).check("Web_0").is_ok());
        assert!(Names { namespace: "a/b".to_owned(), ..names(&[]) }.check("me").is_err());
    }
}
