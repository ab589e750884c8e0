//! Deletions that were under way when the process ended.
//!
//! Answers: what must a start do so that all deletions in progress are completed? Each object that is being deleted is
//! marked; the garbage collector, if there is one, begins with all objects anyway.
//! 1. Finalizers and grace periods still count: only objects without them are removed.
//! 2. Resuming twice does nothing the second time.
use std::sync::Arc;

use serde_json::Value;

use super::delete::DeleteOptions;
use super::kind::{Kind, ResourceId};
use super::object::{Object, has_finalizers};
use super::store::{Call, Cluster};

const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

impl Cluster {
    /// Continues the deletions of namespaces, definitions and pods that had begun.
    pub(crate) fn resume_deletions(&mut self, now: i64) {
        for (group, plural) in [DEFINITIONS, ("", "pods"), ("", "namespaces")] {
            let kind = self.registry.find(group, "v1", plural).cloned().expect("the table has this kind");
            let going: Vec<Arc<Object>> =
                self.all(&kind.storage).filter(|object| is_going(object)).cloned().collect();
            for object in going {
                self.resume_deletion(&kind, &object, now);
            }
        }
    }

    fn resume_deletion(&mut self, kind: &Arc<Kind>, object: &Object, now: i64) {
        let call = Call::plain(kind, &object.namespace, &object.name, now);
        match &*kind.resource.plural {
            "namespaces" => self.empty_namespace(&call),
            "pods" => {
                let value = object.decode();
                let grace = value.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
                if grace == Some(0) && !has_finalizers(&value) {
                    self.remove(&call, &kind.key(&object.namespace, &object.name));
                }
            }
            _ => self.resume_definition(object, now),
        }
    }

    fn resume_definition(&mut self, definition: &Object, now: i64) {
        let (plural, group) = definition.name.split_once('.').unwrap_or((&definition.name, ""));
        let Some(kind) = self.registry.stored(&ResourceId::new(group, plural)).cloned() else {
            return;
        };
        let instances: Vec<Arc<Object>> = self.all(&kind.storage).cloned().collect();
        for one in instances {
            let call = Call::plain(&kind, &one.namespace, &one.name, now);
            let now = DeleteOptions { grace: Some(0), ..DeleteOptions::default() };
            let gone = self.delete(&call, &now);
            debug_assert!(gone.is_ok(), "an object that was listed can be deleted");
        }
        self.finish_definition(&kind, now);
    }
}

fn is_going(object: &Object) -> bool {
    let metadata: Value = serde_json::from_slice(object.metadata_only()).unwrap_or_default();
    metadata.pointer("/metadata/deletionTimestamp").is_some()
}
