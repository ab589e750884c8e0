//! Autoscalers of autoscaling/v1, which are stored as v2: what v1 has no member for is shown in annotations.
//!
//! Answers: what does an autoscaler look like in v1, and what does one written in v1 look like in v2?
//! 1. Only the processor's share is a member of v1; other metrics, the state of all, conditions and behaviour are the
//!    JSON of v2 in annotations, so that nothing is lost by a client that writes back what it has read.
//! 2. The annotations are created when it is read and removed when it is written: none of them is ever stored.
//! 3. A text that cannot be read is dropped, as a real server drops it; one in v1's own form is refused.
use serde_json::{Map, Value, json};

use super::super::metadata::metadata_mut;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// The members of a v1 object that v2 does not have.
const TARGET: &str = "targetCPUUtilizationPercentage";
const SHARE: &str = "currentCPUUtilizationPercentage";

/// The target share of the processor if none is given.
const DEFAULT_SHARE: i64 = 80;

fn share_of_cpu(share: &Value, within: &str) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu", within: share}})
}

/// Takes the processor's share out of a list of metrics.
fn take_share(metrics: &mut Vec<Value>, within: &str) -> Option<Value> {
    let of_cpu = |metric: &Value| {
        let share = &metric["resource"][within]["averageUtilization"];
        metric["type"] == "Resource" && metric["resource"]["name"] == "cpu" && !share.is_null()
    };
    let at = metrics.iter().position(of_cpu)?;
    Some(metrics.remove(at)["resource"][within]["averageUtilization"].take())
}

fn array(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// v2 to v1.
pub(super) fn tell(value: &mut Value) {
    let mut notes: Vec<(&str, Value)> = Vec::new();
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        let mut metrics = array(spec.remove("metrics"));
        spec.extend(take_share(&mut metrics, "target").map(|share| (TARGET.to_owned(), share)));
        notes.push((METRICS, metrics.into()));
        notes.extend(spec.remove("behavior").map(|behavior| (BEHAVIOR, behavior)));
    }
    if let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) {
        let metrics = array(status.remove("currentMetrics"));
        let share = take_share(&mut metrics.clone(), "current");
        status.extend(share.map(|share| (SHARE.to_owned(), share)));
        notes.push((CURRENT, metrics.into()));
        notes.extend(status.remove("conditions").map(|conditions| (CONDITIONS, conditions)));
        // The one member that v1 shows even if it is empty.
        status.entry("currentReplicas").or_insert_with(|| json!(0));
    }
    notes.retain(|(_, note)| !note.is_null() && note.as_array().is_none_or(|items| !items.is_empty()));
    if notes.is_empty() {
        return;
    }
    let annotations = metadata_mut(value).entry("annotations").or_insert_with(|| json!({}));
    for (name, note) in notes {
        annotations[name] = note.to_string().into();
    }
}

/// The annotation that has v1's own form, if one has.
pub(super) fn in_old_form(value: &Value) -> Option<&'static str> {
    let notes = Notes(value.pointer("/metadata/annotations")?.as_object()?.clone());
    let is_old = |name: &&str| match *name {
        BEHAVIOR => notes
            .read(name)
            .is_some_and(|note| ["ScaleUp", "ScaleDown"].iter().any(|old| note.get(old).is_some())),
        _ => notes.metrics(name).len() < notes.list(name).len(),
    };
    [METRICS, CURRENT, BEHAVIOR].into_iter().find(is_old)
}

/// Gives a v1 object the form that it has after a conversion to v2 and back: with metrics, and without empty
/// annotations.
pub(super) fn renew(value: &mut Value) {
    store(value);
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        let share = json!({"type": "Utilization", "averageUtilization": DEFAULT_SHARE});
        spec.entry("metrics").or_insert_with(|| json!([share_of_cpu(&share, "target")]));
    }
    tell(value);
}

/// v1 to v2.
pub(super) fn store(value: &mut Value) {
    let notes = take_notes(value);
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        let mut metrics = notes.metrics(METRICS);
        if let Some(share) = spec.remove(TARGET).filter(|share| !share.is_null()) {
            metrics
                .push(share_of_cpu(&json!({"type": "Utilization", "averageUtilization": share}), "target"));
        }
        if !metrics.is_empty() {
            spec.insert("metrics".to_owned(), metrics.into());
        }
        if let Some(behavior) = notes.read(BEHAVIOR) {
            spec.insert("behavior".to_owned(), behavior);
        }
    }
    store_status(value, &notes);
}

fn store_status(value: &mut Value, notes: &Notes) {
    let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) else { return };
    let share = status.remove(SHARE).filter(|share| !share.is_null());
    let mut metrics = notes.metrics(CURRENT);
    if let Some(share) = share.filter(|_| metrics.is_empty()) {
        metrics.push(share_of_cpu(&json!({"averageUtilization": share}), "current"));
    }
    // v2 shows an empty member as null, and leaves out a number that is zero.
    if !metrics.is_empty() {
        status.insert("currentMetrics".to_owned(), metrics.into());
    }
    status.entry("currentMetrics").or_insert(Value::Null);
    if status.get("currentReplicas").is_some_and(|replicas| replicas == 0) {
        status.remove("currentReplicas");
    }
    let conditions = notes.list(CONDITIONS);
    if !conditions.is_empty() {
        status.insert("conditions".to_owned(), conditions.into());
    }
}

/// The annotations that were taken from an object.
struct Notes(Map<String, Value>);

impl Notes {
    fn read(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.0.get(name)?.as_str()?).ok()
    }

    fn list(&self, name: &str) -> Vec<Value> {
        array(self.read(name))
    }

    /// Metrics in the form of v2, which names the type of a target, or has one state.
    fn metrics(&self, name: &str) -> Vec<Value> {
        let is_of_v2 = |metric: &Value| {
            let source = metric.as_object().into_iter().flatten().find(|(_, member)| member.is_object());
            source.is_some_and(|(_, source)| {
                source["target"]["type"].is_string() || source["current"].is_object()
            })
        };
        self.list(name).into_iter().filter(is_of_v2).collect()
    }
}

fn take_notes(value: &mut Value) -> Notes {
    let mut taken = Map::new();
    let Some(annotations) = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return Notes(taken);
    };
    for name in [METRICS, CURRENT, CONDITIONS, BEHAVIOR] {
        taken.extend(annotations.remove_entry(name));
    }
    if annotations.is_empty() && !taken.is_empty() {
        metadata_mut(value).remove("annotations");
    }
    Notes(taken)
}

#[cfg(test)]
mod tests;
