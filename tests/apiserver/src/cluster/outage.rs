//! Changes that no client could make: versions that jump, an object replaced under its name in one step.
//!
//! Answers: what is in the store after such a fault? The switches themselves are in `outages.rs`.
//! 1. Versions only rise here; going back is `restore`.
//! 2. A replaced object keeps what its user wrote, and nothing the server wrote.
use std::sync::Arc;

use serde_json::Value;

use super::call::Call;
use super::metadata::metadata_mut;
use super::object::Object;
use super::status::ApiError;
use super::store::Cluster;
use super::watcher::WatchEnd;

/// What the server writes into metadata.
const SERVERS_OWN: [&str; 8] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
    "selfLink",
];

impl Cluster {
    /// Removes an object despite its finalizers, and creates it again under the same name.
    ///
    /// # Errors
    /// 404, or what the creation is refused with.
    pub(crate) fn recreate(&mut self, call: &Call<'_>, unseen: bool) -> Result<Arc<Object>, ApiError> {
        let kind = call.kind;
        let body = fresh(self.get(kind, call.namespace, call.name)?.decode_as(kind));
        if unseen {
            self.end_watches(Some(&kind.storage), WatchEnd::Clean);
        }
        self.remove(call, &kind.key(call.namespace, call.name));
        let made = self.create(call, body);
        if unseen {
            self.forget(&kind.storage);
        }
        made
    }

    /// Removes an object despite its finalizers. Returns what its user wrote.
    ///
    /// # Errors
    /// 404 if it is not there.
    pub(crate) fn withdraw(&mut self, call: &Call<'_>) -> Result<Value, ApiError> {
        let body = fresh(self.get(call.kind, call.namespace, call.name)?.decode_as(call.kind));
        self.remove(call, &call.kind.key(call.namespace, call.name));
        Ok(body)
    }
}

fn fresh(mut body: Value) -> Value {
    metadata_mut(&mut body).retain(|name, _| !SERVERS_OWN.contains(&name.as_str()));
    if let Some(root) = body.as_object_mut() {
        root.remove("status");
    }
    body
}
