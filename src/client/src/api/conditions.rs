//! Usual conditions for `Api::until`: closures over `Option<&K>`, where `None` is an absent object. It meets
//! only those conditions that say so.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::{DynamicObject, Resource};
use serde_json::Value;

/// The object exists, in any state.
pub fn present<K>() -> impl FnMut(Option<&K>) -> bool + Send {
    |object| object.is_some()
}

/// No object has this name.
pub fn absent<K>() -> impl FnMut(Option<&K>) -> bool + Send {
    |object| object.is_none()
}

/// The object of this uid is gone, even if another one has its name now.
///
/// ```
/// use actix_informer::client::api::conditions;
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// let mut another = ConfigMap::default();
/// another.metadata.uid = Some("b".to_owned());
/// let mut deleted = conditions::deleted("a");
/// assert!(deleted(None) && deleted(Some(&another)));
/// ```
pub fn deleted<K: Resource>(uid: &str) -> impl FnMut(Option<&K>) -> bool + Send + use<K> {
    let uid = uid.to_owned();
    move |object| object.is_none_or(|object| object.meta().uid.as_deref() != Some(&*uid))
}

/// The pod's phase is `Running`.
pub fn pod_running() -> impl FnMut(Option<&Pod>) -> bool + Send {
    |pod| {
        let phase = pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref());
        phase == Some("Running")
    }
}

/// The pod's condition `Ready` is true.
pub fn pod_ready() -> impl FnMut(Option<&Pod>) -> bool + Send {
    |pod| {
        let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
        is_true(conditions, "Ready", |condition| (&condition.type_, &condition.status))
    }
}

/// The job's condition `Complete` is true. A job that fails never meets it: see [`job_ended`].
pub fn job_complete() -> impl FnMut(Option<&Job>) -> bool + Send {
    |job| job_is(job, "Complete")
}

/// The job's condition `Complete` or `Failed` is true.
pub fn job_ended() -> impl FnMut(Option<&Job>) -> bool + Send {
    |job| job_is(job, "Complete") || job_is(job, "Failed")
}

fn job_is(job: Option<&Job>, kind: &str) -> bool {
    let conditions = job.and_then(|job| job.status.as_ref()?.conditions.as_ref());
    is_true(conditions, kind, |condition| (&condition.type_, &condition.status))
}

/// The deployment's newest version is rolled out: all its replicas have this version and are available, and
/// no others are left.
pub fn deployment_rolled_out() -> impl FnMut(Option<&Deployment>) -> bool + Send {
    |deployment| {
        let rolled_out = |deployment: &Deployment| {
            let wanted = deployment.spec.as_ref()?.replicas.unwrap_or(1);
            let status = deployment.status.as_ref()?;
            let is_seen = status.observed_generation >= deployment.metadata.generation;
            let counts = [status.replicas, status.updated_replicas, status.available_replicas];
            Some(is_seen && counts.iter().all(|count| count.unwrap_or_default() == wanted))
        };
        deployment.and_then(rolled_out).unwrap_or_default()
    }
}

/// The definition of a custom kind is accepted and served: its condition `Established` is true.
pub fn crd_established() -> impl FnMut(Option<&CustomResourceDefinition>) -> bool + Send {
    |definition| {
        let conditions = definition.and_then(|definition| definition.status.as_ref()?.conditions.as_ref());
        is_true(conditions, "Established", |condition| (&condition.type_, &condition.status))
    }
}

/// An object of any kind has this condition with this status in `status.conditions`, as
/// `kubectl wait --for=condition`. A condition that was observed for an older generation of the object does
/// not count. Upper and lower case are the same.
///
/// ```
/// use actix_informer::client::api::conditions;
/// use actix_informer::kube_core::DynamicObject;
/// use serde_json::json;
///
/// let website: DynamicObject = serde_json::from_value(json!({
///     "apiVersion": "example.org/v1", "kind": "Website", "metadata": {"name": "a"},
///     "status": {"conditions": [{"type": "Ready", "status": "True"}]},
/// }))?;
/// assert!(conditions::has_condition("Ready", "True")(Some(&website)));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn has_condition(kind: &str, status: &str) -> impl FnMut(Option<&DynamicObject>) -> bool + Send + use<> {
    let (kind, status) = (kind.to_owned(), status.to_owned());
    move |object| {
        let Some(object) = object else { return false };
        let newest = object.metadata.generation.unwrap_or_default();
        let seen_at = |place: &Value| place["observedGeneration"].as_i64();
        let is = |found: &Value, wanted: &str| {
            found.as_str().is_some_and(|found| found.eq_ignore_ascii_case(wanted))
        };
        let reported = &object.data["status"];
        let mut conditions = reported["conditions"].as_array().into_iter().flatten();
        conditions.any(|condition| {
            let is_outdated =
                seen_at(condition).or_else(|| seen_at(reported)).is_some_and(|seen| seen < newest);
            is(&condition["type"], &kind) && is(&condition["status"], &status) && !is_outdated
        })
    }
}

fn is_true<C>(conditions: Option<&Vec<C>>, kind: &str, read: impl Fn(&C) -> (&String, &String)) -> bool {
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| {
        let (found, status) = read(condition);
        found == kind && status == "True"
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_counts_in_any_case_of_letters_and_not_where_it_is_of_an_older_generation() {
        for (status, expected) in [
            (json!({"conditions": [{"type": "Ready", "status": "True"}]}), true),
            (json!({"conditions": [{"type": "ready", "status": "true"}]}), true),
            (json!({"conditions": [{"type": "Ready", "status": "False"}]}), false),
            (json!({"conditions": [{"type": "Readier", "status": "True"}]}), false),
            (json!({"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 2}]}), true),
            (json!({"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}), false),
            (json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}), false),
            (
                json!({"observedGeneration": 1, "conditions": [
                    {"type": "Ready", "status": "True", "observedGeneration": 2}
                ]}),
                true,
            ),
            (json!({"conditions": "none"}), false),
            (json!({}), false),
        ] {
            let object = serde_json::from_value(json!({
                "apiVersion": "example.org/v1", "kind": "Website",
                "metadata": {"name": "a", "generation": 2}, "status": status,
            }));
            let object: DynamicObject = object.expect("an object");
            assert_eq!(has_condition("Ready", "True")(Some(&object)), expected, "{status}");
        }
        assert!(!has_condition("Ready", "True")(None));
    }
}
