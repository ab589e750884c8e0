//! Describes pods: phase, readiness, node, restarts, images, labels.
//!
//! It keeps what `kubectl get pods` shows: the cache is smaller, and the decoder of whole pods would be a third of informerd's
//! compilation. A digest reports other changes: `spec changed`, `status changed`.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};

use k8s_openapi::NamespaceResourceScope;
use kube_core::{ObjectMeta, Resource};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{Describe, Values, arrow, metadata_changes};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ShownPod {
    metadata: ObjectMeta,
    spec: Digested<Spec>,
    status: Digested<Status>,
}

/// The digest is of all fields.
#[derive(Debug, Clone, Default)]
struct Digested<T> {
    shown: T,
    digest: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
    containers: Option<Vec<Container>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Container {
    name: Option<String>,
    image: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    phase: Option<String>,
    reason: Option<String>,
    container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerStatus {
    ready: Option<bool>,
    restart_count: Option<i64>,
    state: Option<State>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct State {
    waiting: Option<Reason>,
    terminated: Option<Reason>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Reason {
    reason: Option<String>,
}

impl<'de, T: DeserializeOwned + Default> Deserialize<'de> for Digested<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let mut digest = DefaultHasher::new();
        digest.write(raw.get().as_bytes());
        let shown: Option<T> = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        Ok(Self { shown: shown.unwrap_or_default(), digest: digest.finish() })
    }
}

impl Resource for ShownPod {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(&(): &()) -> Cow<'_, str> {
        "Pod".into()
    }

    fn group(&(): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version(&(): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural(&(): &()) -> Cow<'_, str> {
        "pods".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Describe for ShownPod {
    fn outline(&self) -> String {
        let node = self.node().map(|node| format!(" on {node}")).unwrap_or_default();
        format!("{}, {} ready{node}", self.phase().unwrap_or("no phase"), self.ready())
    }

    fn changes(&self, old: &Self, values: Values) -> Vec<String> {
        let mut changes: Vec<String> = [
            arrow("phase", old.phase(), self.phase()),
            arrow("ready", Some(&old.ready()), Some(&self.ready())),
            arrow("node", old.node(), self.node()),
            arrow("restarts", Some(&old.restarts().to_string()), Some(&self.restarts().to_string())),
        ]
        .into_iter()
        .flatten()
        .collect();
        if let Some(reason) = self.reason().filter(|now| old.reason() != Some(*now)) {
            changes.push(reason.to_owned());
        }
        let images = old.containers().iter().zip(self.containers());
        changes.extend(images.filter_map(|(old, new)| {
            arrow(
                &format!("image of {}", new.name.as_deref().unwrap_or_default()),
                old.image.as_deref(),
                new.image.as_deref(),
            )
        }));
        changes.extend(metadata_changes(&old.metadata, &self.metadata, values));
        let parts = [
            (old.spec.digest != self.spec.digest, "spec changed"),
            (old.status.digest != self.status.digest, "status changed"),
            (true, "only the resource version changed"),
        ];
        if changes.is_empty() {
            changes.extend(parts.into_iter().find(|(is, _)| *is).map(|(_, what)| what.to_owned()));
        }
        changes
    }
}

impl ShownPod {
    fn phase(&self) -> Option<&str> {
        self.status.shown.phase.as_deref()
    }

    fn node(&self) -> Option<&str> {
        self.spec.shown.node_name.as_deref()
    }

    fn containers(&self) -> &[Container] {
        self.spec.shown.containers.as_deref().unwrap_or_default()
    }

    fn statuses(&self) -> &[ContainerStatus] {
        self.status.shown.container_statuses.as_deref().unwrap_or_default()
    }

    fn ready(&self) -> String {
        let ready = self.statuses().iter().filter(|container| container.ready == Some(true));
        format!("{}/{}", ready.count(), self.containers().len())
    }

    fn restarts(&self) -> i64 {
        self.statuses().iter().filter_map(|container| container.restart_count).sum()
    }

    /// Of the first container that waits or has ended; else of the pod.
    fn reason(&self) -> Option<&str> {
        let first = self.statuses().iter().find_map(ContainerStatus::reason);
        first.or(self.status.shown.reason.as_deref())
    }
}

impl ContainerStatus {
    fn reason(&self) -> Option<&str> {
        let State { waiting, terminated } = self.state.as_ref()?;
        let waiting = waiting.as_ref().and_then(|state| state.reason.as_deref());
        waiting.or_else(|| terminated.as_ref()?.reason.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(phase: &str, ready: bool, tier: &str, image: &str) -> ShownPod {
        serde_json::from_str(
            &json!({
                "metadata": {"name": "a", "labels": {"tier": tier}},
                "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": image}]},
                "status": {"phase": phase, "containerStatuses": [{
                    "name": "main", "ready": ready, "restartCount": 0, "image": image, "imageID": ""}]},
            })
            .to_string(),
        )
        .unwrap()
    }

    #[test]
    fn the_start_of_a_pod_is_described_by_phase_and_readiness() {
        let (old, new) = (pod("Pending", false, "web", "x:1"), pod("Running", true, "web", "x:1"));
        assert_eq!(new.changes(&old, Values::Shown), ["phase Pending -> Running", "ready 0/1 -> 1/1"]);
        assert_eq!(new.outline(), "Running, 1/1 ready on node-1");
    }

    #[test]
    fn changes_of_labels_and_images_are_shown_with_the_old_and_the_new_value() {
        let (old, new) = (pod("Running", true, "web", "x:1"), pod("Running", true, "api", "x:2"));
        assert_eq!(new.changes(&old, Values::Shown), ["image of main x:1 -> x:2", "label tier: web -> api"]);
    }

    #[test]
    fn a_pod_with_nulls_is_described_as_one_without_these_fields() {
        let nulls = r#"{"metadata": {}, "spec": null, "status": {"containerStatuses": null, "phase": null}}"#;
        assert_eq!(serde_json::from_str::<ShownPod>(nulls).unwrap().outline(), "no phase, 0/0 ready");
    }

    #[test]
    fn a_change_without_a_description_of_its_own_is_still_reported() {
        let (old, new) = (pod("Running", true, "web", "x:1"), pod("Running", true, "web", "x:1"));
        assert_eq!(new.changes(&old, Values::Shown), ["only the resource version changed"]);
        for (part, line) in [("spec", "spec changed"), ("status", "status changed")] {
            let mut other =
                json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}});
            let old: ShownPod = serde_json::from_str(&other.to_string()).unwrap();
            other[part]["hostIP"] = json!("10.0.0.1");
            let new: ShownPod = serde_json::from_str(&other.to_string()).unwrap();
            assert_eq!(new.changes(&old, Values::Shown), [line]);
        }
    }
}
