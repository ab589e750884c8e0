//! Validation of built-in objects: what a real server refuses with 422, and the causes it tells.
//!
//! Answers: what is wrong with this object, or with this change of one? Objects come with their defaults written.
//! 1. A check adds causes and never ends early: a client is told everything at once, in the order of the API.
//! 2. What is not checked here is taken: this is what clients notice, not all that a cluster forbids.
//!
//! Next: `causes.rs` is what checks write to; `pods.rs`, `workloads.rs`, `services.rs`, `storage.rs`, `policy.rs` check.
mod causes;
mod metadata;
mod pods;
mod policy;
mod services;
mod storage;
mod workloads;

use serde_json::Value;

use super::crd;
use super::kind::Kind;
use super::status::Cause;
use super::store::Cluster;
use causes::Causes;

impl Cluster {
    /// What is wrong with an object, or with the change from its stored state; nothing where this server was told not to look.
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
    metadata::check(body, &mut causes);
    if !kind.custom && !crd::is_definition(kind) {
        spec(kind, body, &mut causes);
        if kind.resource.is("events.k8s.io", "events") {
            storage::new_event(body, &mut causes);
        }
    }
    causes.into_list()
}

/// What is wrong with a change of an object.
fn of_change(kind: &Kind, old: &Value, body: &Value) -> Vec<Cause> {
    let mut causes = Causes::default();
    metadata::check(body, &mut causes);
    if kind.custom || crd::is_definition(kind) {
        return causes.into_list();
    }
    if old.get("spec") != body.get("spec") || body.get("spec").is_none() {
        spec(kind, body, &mut causes);
    }
    let (group, plural) = (&*kind.resource.group, &*kind.resource.plural);
    match group {
        "apps" | "batch" => workloads::change(plural, old, body, &mut causes),
        "" => {
            pods::change(plural, old, body, &mut causes);
            services::change(plural, old, body, &mut causes);
            storage::change(plural, old, body, &mut causes);
        }
        _ => policy::change(plural, old, body, &mut causes),
    }
    causes.into_list()
}

fn spec(kind: &Kind, body: &Value, causes: &mut Causes) {
    let (group, plural) = (&*kind.resource.group, &*kind.resource.plural);
    match group {
        "apps" | "batch" => workloads::check(plural, body, causes),
        "" => {
            pods::check(plural, body, causes);
            services::check(plural, body, causes);
            storage::check(plural, body, causes);
        }
        "networking.k8s.io" => services::check(plural, body, causes),
        "storage.k8s.io" => storage::check(plural, body, causes),
        _ => policy::check(plural, body, causes),
    }
}
