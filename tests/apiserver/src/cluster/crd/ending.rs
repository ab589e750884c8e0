//! The deletion of a definition: its objects are deleted first, and meanwhile none may be created.
//!
//! Answers: what follows from a DELETE of a definition, and when is the definition removed?
//! 1. A definition that is being deleted has a finalizer of the server and a condition, and stays while it has
//!    objects.
//! 2. Objects are deleted as by a DELETE of their own: those with finalizers delay the definition.
//! 3. Its endpoints are served until the end, only creations are refused.
use std::sync::Arc;

use serde_json::{Value, json};

use super::{condition, kinds};
use crate::cluster::call::Call;
use crate::cluster::delete::{DeleteOptions, Deleted};
use crate::cluster::kind::Kind;
use crate::cluster::metadata::{has_finalizers, metadata_mut, timestamp};
use crate::cluster::object::Object;
use crate::cluster::status::ApiError;
use crate::cluster::store::Cluster;

const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
const PENDING: &str = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";

impl Cluster {
    /// Marks a definition as being deleted and deletes its objects.
    ///
    /// # Errors
    /// Those of a delete that is refused for one of its objects.
    pub(in crate::cluster) fn end_definition(
        &mut self,
        call: &Call<'_>,
        old: &Arc<Object>,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        let mut value = old.decode();
        if value.pointer("/metadata/deletionTimestamp").is_some() {
            return Ok(self.delete_again(call, old, value, options));
        }
        mark(&mut value, call.now);
        let going = kinds(&value);
        let event = self.commit(call.kind, call.name, Some(value));
        let object = Arc::clone(event.new.as_ref().expect("a marked definition has a state after it"));
        let Some(resource) = going.first().map(|kind| kind.storage.clone()) else {
            self.remove(call, call.name);
            return Ok(Deleted { object, removed: false });
        };
        self.registry.replace(&resource, going);
        let Some(kind) = self.registry.stored(&resource).cloned() else {
            return Ok(Deleted { object, removed: false });
        };
        let objects: Vec<Arc<Object>> =
            self.table(&resource).map_or_else(Vec::new, |table| table.objects.values().cloned().collect());
        for one in objects {
            let call = Call { kind: &kind, namespace: &one.namespace, name: &one.name, ..call.clone() };
            self.delete(&call, &DeleteOptions { grace: Some(0), ..DeleteOptions::default() })?;
        }
        self.finish_definition(&kind, call.now);
        self.tell_progress(call);
        Ok(Deleted { object, removed: false })
    }

    /// A DELETE of an object that is being deleted already: only now a policy counts, as on a real server.
    fn delete_again(
        &mut self,
        call: &Call<'_>,
        old: &Arc<Object>,
        mut value: Value,
        options: &DeleteOptions,
    ) -> Deleted {
        if let Some(propagation) = options.propagation {
            propagation.write(&mut value);
        }
        metadata_mut(&mut value).insert("deletionGracePeriodSeconds".into(), json!(0));
        if Object::encode(call.kind, value.clone(), old.revision).body == old.body {
            return Deleted { object: Arc::clone(old), removed: false };
        }
        let event = self.commit(call.kind, call.name, Some(value));
        let object = event.new.clone().expect("a marked definition has a state after it");
        Deleted { object, removed: false }
    }

    /// Sets the condition of a definition that its objects are being deleted.
    fn tell_progress(&mut self, call: &Call<'_>) {
        let Some(definition) = self.find(&call.kind.storage, call.name) else { return };
        let mut value = definition.decode();
        let before = value.clone();
        let conditions = value.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        let pending = |one: &&mut Value| one["reason"] == "InstanceDeletionPending";
        let Some(condition) = conditions.into_iter().flatten().find(pending) else { return };
        condition["reason"] = json!("InstanceDeletionInProgress");
        condition["message"] = json!("CustomResource deletion is in progress");
        self.own_status(call, before, &mut value);
        self.commit(call.kind, call.name, Some(value));
    }

    /// Removes the definition of a kind if it is being deleted and no object of the kind is left.
    pub(in crate::cluster) fn finish_definition(&mut self, kind: &Kind, now: i64) {
        let going = self.registry.stored(&kind.storage).is_some_and(|kind| kind.terminating);
        if !going || self.table(&kind.storage).is_some_and(|table| !table.objects.is_empty()) {
            return;
        }
        let definitions = self.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        let definitions = definitions.cloned().expect("the table has definitions");
        let name = format!("{}.{}", kind.storage.plural, kind.storage.group);
        let Some(definition) = self.find(&definitions.storage, &name) else { return };
        let mut value = definition.decode();
        if let Some(Value::Array(finalizers)) = metadata_mut(&mut value).get_mut("finalizers") {
            finalizers.retain(|finalizer| *finalizer != json!(FINALIZER));
        }
        if has_finalizers(&value) {
            self.commit(&definitions, &name, Some(value));
        } else {
            self.remove(&Call::plain(&definitions, "", &name, now), &name);
        }
    }
}

fn mark(value: &mut Value, now: i64) {
    let metadata = metadata_mut(value);
    metadata.insert("deletionTimestamp".into(), json!(timestamp(now)));
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut().filter(|known| !known.contains(&json!(FINALIZER))) {
        finalizers.push(json!(FINALIZER));
    }
    let conditions = value.get_mut("status").and_then(|status| status.get_mut("conditions"));
    if let Some(conditions) = conditions.and_then(Value::as_array_mut) {
        conditions.push(condition("Terminating", "InstanceDeletionPending", PENDING, now));
    }
}
