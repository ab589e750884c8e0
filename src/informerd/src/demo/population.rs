//! The pods of the demo and their next changes. Equal seeds give equal changes. Each change is allowed in the pod's stage, if no
//! other client changes the pod. The number of pods stays near the configured one.

use fastrand::Rng;
use serde_json::{Value, json};

use super::{APPS, App, NODES, TRACKS};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Change {
    /// With a status if the pod exists from the start.
    Create {
        object: Value,
        status: Option<Value>,
    },
    /// A pod or its status.
    Patch {
        resource: &'static str,
        namespace: &'static str,
        name: String,
        patch: Value,
    },
    Delete {
        namespace: &'static str,
        name: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Unscheduled,
    Scheduled,
    Starting,
    Ready,
    Crashed,
    Ended,
}

#[derive(Debug)]
struct DemoPod {
    app: &'static App,
    name: String,
    node: &'static str,
    tag: &'static str,
    restarts: u32,
    stage: Stage,
}

#[derive(Debug)]
pub(super) struct Population {
    pods: Vec<DemoPod>,
    wanted: usize,
    rng: Rng,
}

impl Population {
    pub(super) fn new(wanted: usize, seed: u64) -> Self {
        Self { pods: Vec::with_capacity(wanted), wanted, rng: Rng::with_seed(seed) }
    }

    /// Most of the pods are ready.
    pub(super) fn initial_changes(&mut self) -> Vec<Change> {
        (0..self.wanted)
            .map(|number| {
                let mut pod = self.new_pod(&APPS[number % APPS.len()]);
                pod.stage = if self.rng.u8(..10) < 9 { Stage::Ready } else { Stage::Starting };
                let mut object = manifest(&pod, self.pick(&TRACKS));
                object["spec"]["nodeName"] = json!(pod.node);
                let status = Some(json!({"status": status(&pod, "Running")}));
                self.pods.push(pod);
                Change::Create { object, status }
            })
            .collect()
    }

    pub(super) fn next(&mut self) -> Change {
        if self.pods.len() < self.wanted {
            let app = &APPS[self.rng.usize(..APPS.len())];
            let pod = self.new_pod(app);
            let object = manifest(&pod, self.pick(&TRACKS));
            self.pods.push(pod);
            return Change::Create { object, status: None };
        }
        let at = self.choose_pod();
        match self.pods[at].stage {
            Stage::Unscheduled => self.schedule(at),
            Stage::Scheduled => self.set_stage(at, Stage::Starting, "Running"),
            Stage::Starting => self.set_stage(at, Stage::Ready, "Running"),
            Stage::Crashed => self.restart(at),
            Stage::Ended => self.delete(at),
            Stage::Ready => self.change_ready_pod(at),
        }
    }

    /// Prefers pods that are not ready: in a real cluster they change soon.
    fn choose_pod(&mut self) -> usize {
        let not_ready: Vec<usize> = self
            .pods
            .iter()
            .enumerate()
            .filter(|(_, pod)| pod.stage != Stage::Ready)
            .map(|(at, _)| at)
            .collect();
        if not_ready.is_empty() || self.rng.u8(..10) < 4 {
            return self.rng.usize(..self.pods.len());
        }
        not_ready[self.rng.usize(..not_ready.len())]
    }

    fn change_ready_pod(&mut self, at: usize) -> Change {
        let job = self.pods[at].app.job;
        match self.rng.u8(..100) {
            0..35 if job => self.set_stage(at, Stage::Ended, "Succeeded"),
            35..42 if job => self.set_stage(at, Stage::Ended, "Failed"),
            42..55 => self.set_stage(at, Stage::Crashed, "Running"),
            55..75 => {
                let track = self.pick(&TRACKS);
                self.patch(at, "pods", json!({"metadata": {"labels": {"track": track}}}))
            }
            75..85 => self.roll_out(at),
            _ if job => self.set_stage(at, Stage::Ended, "Succeeded"),
            _ => self.delete(at),
        }
    }

    fn schedule(&mut self, at: usize) -> Change {
        self.pods[at].stage = Stage::Scheduled;
        let node = self.pods[at].node;
        self.patch(at, "pods", json!({"spec": {"nodeName": node}}))
    }

    fn restart(&mut self, at: usize) -> Change {
        self.pods[at].restarts += 1;
        self.set_stage(at, Stage::Starting, "Running")
    }

    fn roll_out(&mut self, at: usize) -> Change {
        let pod = &mut self.pods[at];
        let [old, new] = pod.app.tags;
        pod.tag = if pod.tag == old { new } else { old };
        let containers = containers(pod);
        self.patch(at, "pods", json!({"spec": {"containers": containers}}))
    }

    fn delete(&mut self, at: usize) -> Change {
        let pod = self.pods.swap_remove(at);
        Change::Delete { namespace: pod.app.namespace, name: pod.name }
    }

    fn set_stage(&mut self, at: usize, stage: Stage, phase: &str) -> Change {
        self.pods[at].stage = stage;
        let status = status(&self.pods[at], phase);
        self.patch(at, "pods/status", json!({ "status": status }))
    }

    fn patch(&self, at: usize, resource: &'static str, patch: Value) -> Change {
        let pod = &self.pods[at];
        Change::Patch { resource, namespace: pod.app.namespace, name: pod.name.clone(), patch }
    }

    fn new_pod(&mut self, app: &'static App) -> DemoPod {
        let tag = self.pick(&app.tags);
        // As a ReplicaSet or a CronJob names pods.
        let owner =
            if app.job { self.rng.u32(29_000_000..29_900_000).to_string() } else { hash_of(app, tag) };
        let name = format!("{}-{owner}-{}", app.name, self.suffix());
        DemoPod { app, name, node: self.pick(&NODES), tag, restarts: 0, stage: Stage::Unscheduled }
    }

    fn suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5).map(|_| char::from(LETTERS[self.rng.usize(..LETTERS.len())])).collect()
    }

    fn pick<'a>(&mut self, among: &[&'a str]) -> &'a str {
        among[self.rng.usize(..among.len())]
    }
}

/// As a pod template hash: one for each version of an application.
fn hash_of(app: &App, tag: &str) -> String {
    let text = [app.name.as_bytes(), tag.as_bytes()].concat();
    let sum = text.iter().fold(5_381_u32, |sum, byte| sum.wrapping_mul(33) ^ u32::from(*byte));
    format!("{sum:08x}")
}

fn manifest(pod: &DemoPod, track: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "namespace": pod.app.namespace,
            "labels": {"app": pod.app.name, "track": track, "managed-by": "demo"},
            "annotations": {"example.com/team": pod.app.namespace},
        },
        "spec": {
            "restartPolicy": if pod.app.job { "Never" } else { "Always" },
            "serviceAccountName": pod.app.name,
            "containers": containers(pod),
        },
        "status": {"phase": "Pending"},
    })
}

fn containers(pod: &DemoPod) -> Value {
    let main = json!({
        "name": pod.app.name,
        "image": format!("{}:{}", pod.app.image, pod.tag),
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": "GREETING", "value": "hello"}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
    });
    let proxy = json!({"name": "proxy", "image": "registry.example/mesh/proxy:1.9"});
    if pod.app.sidecar { json!([main, proxy]) } else { json!([main]) }
}

fn status(pod: &DemoPod, phase: &str) -> Value {
    let names: &[&str] = if pod.app.sidecar { &[pod.app.name, "proxy"] } else { &[pod.app.name] };
    let ready = pod.stage == Stage::Ready;
    let state = match (pod.stage, phase) {
        (Stage::Ready, _) => json!({"running": {}, "waiting": null, "terminated": null}),
        (Stage::Crashed, _) => json!({"waiting": {"reason": "CrashLoopBackOff"}}),
        (_, "Succeeded") => json!({"terminated": {"exitCode": 0, "reason": "Completed"}}),
        (_, "Failed") => json!({"terminated": {"exitCode": 1, "reason": "Error"}}),
        _ => json!({"waiting": {"reason": "ContainerCreating"}}),
    };
    let containers: Vec<Value> = names
        .iter()
        .map(|name| {
            json!({"name": name, "ready": ready, "restartCount": pod.restarts, "state": state,
                "image": format!("{}:{}", pod.app.image, pod.tag), "imageID": ""})
        })
        .collect();
    json!({
        "phase": phase,
        "containerStatuses": containers,
        "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn equal_seeds_give_equal_sequences_of_changes() {
        let sequence = |seed| {
            let mut population = Population::new(50, seed);
            let mut changes = population.initial_changes();
            changes.extend((0..500).map(|_| population.next()));
            changes
        };
        assert_eq!(sequence(1), sequence(1));
        assert_ne!(sequence(1), sequence(2));
    }

    #[test]
    fn pods_are_created_changed_and_deleted_and_their_number_does_not_change() {
        let mut population = Population::new(50, 7);
        let mut existing = BTreeSet::new();
        let mut changes = population.initial_changes();
        changes.extend((0..2_000).map(|_| population.next()));
        let (mut changed, mut deleted) = (0, 0);
        for change in changes {
            match change {
                Change::Create { object, .. } => {
                    assert!(existing.insert(object["metadata"]["name"].as_str().unwrap().to_owned()));
                }
                Change::Patch { name, .. } => {
                    assert!(existing.contains(&name));
                    changed += 1;
                }
                Change::Delete { name, .. } => {
                    assert!(existing.remove(&name));
                    deleted += 1;
                }
            }
        }
        assert!((49..=50).contains(&existing.len()) && changed > 500 && deleted > 100, "{changed} {deleted}");
    }
}
