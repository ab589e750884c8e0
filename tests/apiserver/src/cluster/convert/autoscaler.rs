//! Autoscalers of autoscaling/v1, which are stored as v2: what v1 has no member for is shown in annotations.
//!
//! Answers: what does an autoscaler look like in v1, and what does one written in v1 look like in v2?
//! 1. Only the processor's share is a member of v1; other metrics, the state of all, conditions and behaviour are JSON
//!    texts in annotations, in Go's order of members. A client may write them there.
//! 2. The annotations are created when it is read and removed when it is written: none of them is ever stored.
//! 3. A text that cannot be read is dropped, as a real server drops it.
use serde_json::{Map, Value, json};

use super::super::object::metadata_mut;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// The members of a v1 object that v2 does not have.
const TARGET: &str = "targetCPUUtilizationPercentage";
const SHARE: &str = "currentCPUUtilizationPercentage";

/// The target share of the processor if none is given.
const DEFAULT_SHARE: i64 = 80;

/// A JSON object whose members keep their order, for an annotation.
#[derive(Default)]
struct Ordered(Vec<String>);

impl Ordered {
    fn put(&mut self, name: &str, value: &Value) -> &mut Self {
        self.text(name, &value.to_string())
    }

    /// Only where there is one.
    fn some(&mut self, name: &str, value: &Value) -> &mut Self {
        if value.is_null() { self } else { self.put(name, value) }
    }

    fn text(&mut self, name: &str, text: &str) -> &mut Self {
        self.0.push(format!("{}:{text}", json!(name)));
        self
    }

    fn end(&self) -> String {
        format!("{{{}}}", self.0.join(","))
    }
}

/// What metrics of this type are called in both versions, and the members of its v1 form.
fn member_of(metric_type: &str) -> Option<&'static str> {
    Some(match metric_type {
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "External" => "external",
        _ => return None,
    })
}

fn is_share_of_cpu(metric: &Value, at: &str) -> bool {
    metric["type"] == "Resource" && metric["resource"]["name"] == "cpu" && metric.pointer(at).is_some()
}

/// v2 to v1.
pub(super) fn tell(value: &mut Value) {
    let mut notes: Vec<(&str, String)> = Vec::new();
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        tell_spec(spec, &mut notes);
    }
    if let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) {
        tell_status(status, &mut notes);
    }
    if notes.is_empty() {
        return;
    }
    let annotations = metadata_mut(value).entry("annotations").or_insert_with(|| json!({}));
    for (name, text) in notes {
        annotations[name] = text.into();
    }
}

fn array(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn list(texts: &[String]) -> String {
    format!("[{}]", texts.join(","))
}

fn tell_spec(spec: &mut Map<String, Value>, notes: &mut Vec<(&str, String)>) {
    let metrics = array(spec.remove("metrics"));
    let of_cpu = |metric: &&Value| metric["type"] == "Resource" && metric["resource"]["name"] == "cpu";
    let share = metrics.iter().find(of_cpu).map(|metric| &metric["resource"]["target"]["averageUtilization"]);
    if let Some(share) = share.filter(|share| !share.is_null()) {
        spec.insert(TARGET.to_owned(), share.clone());
    }
    let others: Vec<String> = metrics
        .iter()
        .filter(|metric| !is_share_of_cpu(metric, "/resource/target/averageUtilization"))
        .map(wanted)
        .collect();
    if !others.is_empty() {
        notes.push((METRICS, list(&others)));
    }
    if let Some(behavior) = spec.remove("behavior").filter(|behavior| !behavior.is_null()) {
        notes.push((BEHAVIOR, behaviour(&behavior)));
    }
}

/// A quantity that v1 shows even if there is none.
fn amount(value: &Value) -> Value {
    if value.is_null() { json!("0") } else { value.clone() }
}

fn wanted(metric: &Value) -> String {
    let kind = metric["type"].as_str().unwrap_or_default();
    let mut told = Ordered::default();
    told.put("type", &metric["type"]);
    let Some(member) = member_of(kind) else { return told.end() };
    let source = &metric[member];
    let (target, named) = (&source["target"], &source["metric"]);
    let mut inner = Ordered::default();
    match member {
        "object" => inner
            .text("target", &reference(&source["describedObject"]))
            .put("metricName", &named["name"])
            .put("targetValue", &amount(&target["value"]))
            .some("selector", &named["selector"])
            .some("averageValue", &target["averageValue"]),
        "pods" => inner
            .put("metricName", &named["name"])
            .put("targetAverageValue", &amount(&target["averageValue"]))
            .some("selector", &named["selector"]),
        "external" => inner
            .put("metricName", &named["name"])
            .some("metricSelector", &named["selector"])
            .some("targetValue", &target["value"])
            .some("targetAverageValue", &target["averageValue"]),
        _ => inner
            .put("name", &source["name"])
            .some("targetAverageUtilization", &target["averageUtilization"])
            .some("targetAverageValue", &target["averageValue"])
            .some("container", &source["container"]),
    };
    told.text(member, &inner.end()).end()
}

fn reference(of: &Value) -> String {
    Ordered::default()
        .put("kind", &of["kind"])
        .put("name", &of["name"])
        .some("apiVersion", &of["apiVersion"])
        .end()
}

fn seen(metric: &Value) -> String {
    let kind = metric["type"].as_str().unwrap_or_default();
    let mut told = Ordered::default();
    told.put("type", &metric["type"]);
    let Some(member) = member_of(kind) else { return told.end() };
    let source = &metric[member];
    let (current, named) = (&source["current"], &source["metric"]);
    let mut inner = Ordered::default();
    match member {
        "object" => inner
            .text("target", &reference(&source["describedObject"]))
            .put("metricName", &named["name"])
            .put("currentValue", &amount(&current["value"]))
            .some("selector", &named["selector"])
            .some("averageValue", &current["averageValue"]),
        "pods" => inner
            .put("metricName", &named["name"])
            .put("currentAverageValue", &amount(&current["averageValue"]))
            .some("selector", &named["selector"]),
        "external" => inner
            .put("metricName", &named["name"])
            .some("metricSelector", &named["selector"])
            .put("currentValue", &amount(&current["value"]))
            .some("currentAverageValue", &current["averageValue"]),
        _ => inner
            .put("name", &source["name"])
            .some("currentAverageUtilization", &current["averageUtilization"])
            .put("currentAverageValue", &amount(&current["averageValue"]))
            .some("container", &source["container"]),
    };
    told.text(member, &inner.end()).end()
}

/// A real server shows the members of its internal type here, in capitals.
fn behaviour(behavior: &Value) -> String {
    let rules = |rules: &Value| {
        if rules.is_null() {
            return "null".to_owned();
        }
        let policies: Vec<String> = array(rules.get("policies").cloned())
            .iter()
            .map(|policy| {
                let mut told = Ordered::default();
                told.put("Type", &policy["type"]).put("Value", &policy["value"]);
                told.put("PeriodSeconds", &policy["periodSeconds"]).end()
            })
            .collect();
        let policies = if rules["policies"].is_null() { "null".to_owned() } else { list(&policies) };
        let mut told = Ordered::default();
        told.put("StabilizationWindowSeconds", &rules["stabilizationWindowSeconds"]);
        told.put("SelectPolicy", &rules["selectPolicy"]).text("Policies", &policies);
        told.put("Tolerance", &rules["tolerance"]).end()
    };
    let mut told = Ordered::default();
    told.text("ScaleUp", &rules(&behavior["scaleUp"])).text("ScaleDown", &rules(&behavior["scaleDown"])).end()
}

fn tell_status(status: &mut Map<String, Value>, notes: &mut Vec<(&str, String)>) {
    let metrics = array(status.remove("currentMetrics"));
    let of_cpu = |metric: &&Value| metric["type"] == "Resource" && metric["resource"]["name"] == "cpu";
    let share =
        metrics.iter().find(of_cpu).map(|metric| &metric["resource"]["current"]["averageUtilization"]);
    if let Some(share) = share.filter(|share| !share.is_null()) {
        status.insert(SHARE.to_owned(), share.clone());
    }
    if !metrics.is_empty() {
        notes.push((CURRENT, list(&metrics.iter().map(seen).collect::<Vec<_>>())));
    }
    let conditions = array(status.remove("conditions"));
    let told = |condition: &Value| {
        let mut told = Ordered::default();
        told.put("type", &condition["type"]).put("status", &condition["status"]);
        told.put("lastTransitionTime", &condition["lastTransitionTime"]);
        told.some("reason", &condition["reason"]).some("message", &condition["message"]).end()
    };
    if !conditions.is_empty() {
        notes.push((CONDITIONS, list(&conditions.iter().map(told).collect::<Vec<_>>())));
    }
    // The one member that v1 shows even if it is empty.
    status.entry("currentReplicas").or_insert_with(|| json!(0));
}

/// Gives a v1 object the form that it has after a conversion to v2 and back: with metrics, and without empty
/// annotations.
pub(super) fn renew(value: &mut Value) {
    store(value);
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        spec.entry("metrics").or_insert_with(|| {
            let target = json!({"type": "Utilization", "averageUtilization": DEFAULT_SHARE});
            json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}])
        });
    }
    tell(value);
}

/// v1 to v2.
pub(super) fn store(value: &mut Value) {
    let notes = take_notes(value);
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        let mut metrics: Vec<Value> = notes.list(METRICS).iter().filter_map(wish).collect();
        if let Some(share) = spec.remove(TARGET).filter(|share| !share.is_null()) {
            let target = json!({"type": "Utilization", "averageUtilization": share});
            metrics.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
        }
        if !metrics.is_empty() {
            spec.insert("metrics".to_owned(), metrics.into());
        }
        if let Some(behavior) = notes.read(BEHAVIOR).map(lower) {
            spec.insert("behavior".to_owned(), behavior);
        }
    }
    store_status(value, &notes);
}

fn store_status(value: &mut Value, notes: &Notes) {
    let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) else { return };
    let share = status.remove(SHARE).filter(|share| !share.is_null());
    let mut metrics: Vec<Value> = notes.list(CURRENT).iter().filter_map(state).collect();
    if let Some(share) = share.filter(|_| metrics.is_empty()) {
        let current = json!({"averageUtilization": share});
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu", "current": current}}));
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

/// An object of those members that are there.
fn with(members: &[(&str, &Value)]) -> Value {
    let some = members.iter().filter(|(_, value)| !value.is_null());
    some.map(|(name, value)| ((*name).to_owned(), (*value).clone())).collect::<Map<_, _>>().into()
}

fn wish(told: &Value) -> Option<Value> {
    let member = member_of(told["type"].as_str()?)?;
    let source = &told[member];
    let selector = if member == "external" { &source["metricSelector"] } else { &source["selector"] };
    let metric = with(&[("name", &source["metricName"]), ("selector", selector)]);
    let average = if member == "object" { &source["averageValue"] } else { &source["targetAverageValue"] };
    let (share, value) = (&source["targetAverageUtilization"], &source["targetValue"]);
    let kind = match (share.is_null(), average.is_null()) {
        (false, _) => "Utilization",
        (true, false) => "AverageValue",
        (true, true) => "Value",
    };
    let value = if kind == "Value" || member == "external" { value } else { &Value::Null };
    let kind = json!(kind);
    let target =
        with(&[("type", &kind), ("value", value), ("averageValue", average), ("averageUtilization", share)]);
    let wanted = match member {
        "object" => json!({"describedObject": source["target"], "target": target, "metric": metric}),
        "pods" | "external" => json!({"metric": metric, "target": target}),
        _ => with(&[("name", &source["name"]), ("container", &source["container"]), ("target", &target)]),
    };
    Some(json!({"type": told["type"], member: wanted}))
}

fn state(told: &Value) -> Option<Value> {
    let member = member_of(told["type"].as_str()?)?;
    let source = &told[member];
    let selector = if member == "external" { &source["metricSelector"] } else { &source["selector"] };
    let metric = with(&[("name", &source["metricName"]), ("selector", selector)]);
    let average = if member == "object" { &source["averageValue"] } else { &source["currentAverageValue"] };
    let share = &source["currentAverageUtilization"];
    // Beside a share the old version shows an amount of zero if there is none.
    let average = if *average == "0" && !share.is_null() { &Value::Null } else { average };
    let current =
        with(&[("value", &source["currentValue"]), ("averageValue", average), ("averageUtilization", share)]);
    let seen = match member {
        "object" => json!({"describedObject": source["target"], "current": current, "metric": metric}),
        "pods" | "external" => json!({"metric": metric, "current": current}),
        _ => with(&[("name", &source["name"]), ("container", &source["container"]), ("current", &current)]),
    };
    Some(json!({"type": told["type"], member: seen}))
}

/// Go's inner names as those of the API: the first letter small; nulls dropped.
fn lower(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let small = |name: &str| name[..1].to_ascii_lowercase() + &name[1..];
            let members = members
                .into_iter()
                .filter(|(name, value)| !value.is_null() && name.is_ascii() && !name.is_empty());
            members.map(|(name, value)| (small(&name), lower(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.into_iter().map(lower).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests;
