//! The roles and bindings in the store.
//!
//! Answers: which policy is in force, and which roles does a new cluster have? What a policy allows is in `rbac`.
use std::sync::Arc;

use serde_json::Value;

use super::call::Call;
use super::rbac::{GROUP, Policy};
use super::resource::ResourceId;
use super::store::Cluster;

impl Cluster {
    /// The rules in force.
    pub(crate) fn policy(&mut self) -> Arc<Policy> {
        if let Some(policy) = &self.policy {
            return Arc::clone(policy);
        }
        let policy =
            Arc::new(Policy::compile(|plural| self.all(&ResourceId::new(GROUP, plural)).cloned().collect()));
        self.policy = Some(Arc::clone(&policy));
        policy
    }

    /// Stores the roles and bindings of a new cluster, as far as clients notice them.
    pub(crate) fn add_default_roles(&mut self, now: i64) {
        let defaults: Vec<Value> =
            serde_json::from_str(include_str!("rbac/defaults.json")).expect("the default roles are JSON");
        for object in defaults {
            let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
            let kind = self.registry.by_type(text("apiVersion"), text("kind")).cloned();
            let kind = kind.expect("the table has the kinds of access control");
            let made = self.create(&Call::plain(&kind, "", "", now), object);
            debug_assert!(made.is_ok(), "a default role is a sound object");
        }
    }
}
