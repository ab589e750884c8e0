//! Describes pods: phase, readiness, node, restarts, images, labels.
//!
//! Answers "what happened to this pod?" with the values that `kubectl get pods` shows. Invariant:
//! 1. A change of any other field is also reported: `spec changed`, `status changed`.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::{Describe, Values, arrow, metadata_changes};

impl Describe for Pod {
    fn outline(&self) -> String {
        let node = node(self).map(|node| format!(" on {node}")).unwrap_or_default();
        format!("{}, {} ready{node}", phase(self).unwrap_or("no phase"), ready(self))
    }

    fn changes(&self, old: &Self, values: Values) -> Vec<String> {
        let mut changes: Vec<String> = [
            arrow("phase", phase(old), phase(self)),
            arrow("ready", Some(&ready(old)), Some(&ready(self))),
            arrow("node", node(old), node(self)),
            arrow("restarts", Some(&restarts(old).to_string()), Some(&restarts(self).to_string())),
        ]
        .into_iter()
        .flatten()
        .collect();
        if let Some(reason) = reason(self).filter(|now| reason(old) != Some(*now)) {
            changes.push(reason.to_owned());
        }
        changes.extend(image_changes(old, self));
        changes.extend(metadata_changes(&old.metadata, &self.metadata, values));
        if changes.is_empty() && old.spec != self.spec {
            changes.push("spec changed".to_owned());
        }
        if changes.is_empty() && old.status != self.status {
            changes.push("status changed".to_owned());
        }
        if changes.is_empty() {
            changes.push("only the resource version changed".to_owned());
        }
        changes
    }
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

fn node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

fn containers(pod: &Pod) -> &[ContainerStatus] {
    pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default()
}

fn ready(pod: &Pod) -> String {
    let wanted = pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
    format!("{}/{wanted}", containers(pod).iter().filter(|container| container.ready).count())
}

fn restarts(pod: &Pod) -> i32 {
    containers(pod).iter().map(|container| container.restart_count).sum()
}

/// The first reason why a container waits or has ended; else the reason of the pod itself.
fn reason(pod: &Pod) -> Option<&str> {
    let first = containers(pod).iter().find_map(container_reason);
    first.or_else(|| pod.status.as_ref()?.reason.as_deref())
}

fn container_reason(container: &ContainerStatus) -> Option<&str> {
    let state = container.state.as_ref()?;
    let waiting = state.waiting.as_ref().and_then(|waiting| waiting.reason.as_deref());
    waiting.or_else(|| state.terminated.as_ref()?.reason.as_deref())
}

fn image_changes(old: &Pod, new: &Pod) -> Vec<String> {
    let (Some(old), Some(new)) = (&old.spec, &new.spec) else { return Vec::new() };
    let pairs = old.containers.iter().zip(&new.containers);
    pairs
        .filter_map(|(old, new)| {
            arrow(&format!("image of {}", new.name), old.image.as_deref(), new.image.as_deref())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(phase: &str, ready: bool, tier: &str, image: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "a", "labels": {"tier": tier}},
            "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": image}]},
            "status": {"phase": phase, "containerStatuses": [{
                "name": "main", "ready": ready, "restartCount": 0, "image": image, "imageID": ""}]},
        }))
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
    fn a_change_without_a_description_of_its_own_is_still_reported() {
        let (old, mut new) = (pod("Running", true, "web", "x:1"), pod("Running", true, "web", "x:1"));
        assert_eq!(new.changes(&old, Values::Shown), ["only the resource version changed"]);
        new.spec.as_mut().unwrap().hostname = Some("h".to_owned());
        assert_eq!(new.changes(&old, Values::Shown), ["spec changed"]);
    }
}
