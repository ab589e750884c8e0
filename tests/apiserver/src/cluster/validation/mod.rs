//! Validation of built-in objects: what a real server refuses with 422, and its causes.
//!
//! Answers: what is wrong with this object, or with this change of one? Objects come with their defaults written.
//! 1. A check adds causes and never ends early: a client gets all causes at once, in the order of the API.
//! 2. What is not checked here is accepted: the checks cover what clients notice, not all that a cluster forbids.
//!
//! Next: `causes.rs` is what checks write to; `pods.rs`, `workloads.rs`, `jobs.rs`, `services.rs`, `networks.rs`,
//! `storage.rs`, `policy.rs`, `rights.rs`, `webhooks.rs` check.
mod causes;
mod containers;
mod events;
mod jobs;
mod metadata;
mod networks;
mod pods;
mod policy;
mod rights;
mod schedule;
mod selectors;
mod services;
mod storage;
#[cfg(test)]
mod tests;
mod webhooks;
mod workloads;

use serde_json::Value;

use super::kind::Kind;
use super::status::Cause;
use super::store::Cluster;
use causes::Causes;

impl Cluster {
    /// What is wrong with an object, or with the change from its stored state; nothing if validation is
    /// switched off.
    pub(super) fn faults_of(&self, kind: &Kind, body: &Value, old: Option<&Value>) -> Vec<Cause> {
        if !self.validates() {
            return Vec::new();
        }
        old.map_or_else(|| of_new(kind, body), |old| of_change(kind, old, body))
    }
}

/// What is wrong with a new object.
fn of_new(kind: &Kind, body: &Value) -> Vec<Cause> {
    let mut causes = Causes::default();
    let built_in = !kind.custom && !kind.is_definition();
    metadata::check(body, built_in, &mut causes);
    if built_in {
        spec(kind, body, &mut causes);
        events::of_new(kind, body, &mut causes);
        if kind.resource.is("batch", "cronjobs") {
            jobs::new_name(body, &mut causes);
        }
    }
    causes.into_list()
}

/// How often, beyond twice, a real server checks the metadata of an update before and after the rest: as a
/// new object's (true) or as a change (false).
fn passes(kind: &Kind) -> (&'static [bool], &'static [bool]) {
    if kind.custom {
        return (&[false], &[]);
    }
    match &*kind.resource.plural {
        "deployments" | "replicasets" | "daemonsets" | "statefulsets" | "cronjobs" => (&[false], &[]),
        "jobs" | "namespaces" | "nodes" => (&[true], &[false]),
        "limitranges" => (&[true], &[]),
        _ => (&[false, true], &[]),
    }
}

/// What is wrong with a change of an object.
fn of_change(kind: &Kind, old: &Value, body: &Value) -> Vec<Cause> {
    let mut causes = Causes::default();
    let built_in = !kind.custom && !kind.is_definition();
    let look = |new: bool, causes: &mut Causes| match new {
        true => metadata::check(body, built_in, causes),
        false => metadata::check_change(body, causes),
    };
    // Once for all kinds, then once more by the rules of the kind.
    metadata::check(body, false, &mut causes);
    look(false, &mut causes);
    let (before, after) = passes(kind);
    before.iter().for_each(|new| look(*new, &mut causes));
    if built_in && (old.get("spec") != body.get("spec") || body.get("spec").is_none()) {
        spec(kind, body, &mut causes);
    }
    after.iter().for_each(|new| look(*new, &mut causes));
    if built_in {
        change(kind, old, body, &mut causes);
        events::of_change(kind, old, body, &mut causes);
    }
    causes.into_list()
}

fn change(kind: &Kind, old: &Value, body: &Value, causes: &mut Causes) {
    let (group, plural) = (&*kind.resource.group, &*kind.resource.plural);
    match group {
        "apps" | "batch" => workloads::change(plural, old, body, causes),
        "" => {
            pods::change(plural, old, body, causes);
            services::change(plural, old, body, causes);
            storage::change(plural, old, body, causes);
        }
        _ => policy::change(plural, old, body, causes),
    }
}

fn spec(kind: &Kind, body: &Value, causes: &mut Causes) {
    let (group, plural) = (&*kind.resource.group, &*kind.resource.plural);
    match group {
        "apps" => workloads::check(plural, &body["spec"], causes),
        "batch" => jobs::check(plural, body, causes),
        "" => {
            pods::check(plural, body, causes);
            services::check(plural, body, causes);
            storage::check(plural, body, causes);
        }
        "networking.k8s.io" => networks::check(plural, body, causes),
        "storage.k8s.io" => storage::check(plural, body, causes),
        "rbac.authorization.k8s.io" => rights::check(plural, body, causes),
        "admissionregistration.k8s.io" => webhooks::check(plural, body, causes),
        _ => policy::check(plural, body, causes),
    }
}
