//! The deletion of an object: at once, after its grace period, after its finalizers, or with its namespace or
//! definition.
//!
//! Answers: is this object removed now, and which objects with it? `garbage.rs` handles the objects that it owns.
//! 1. A DELETED event carries the last stored state with the version of the removal.
//! 2. An object with finalizers is only marked; the update that removes the last finalizer removes it.
//! 3. A namespace is removed after its last object; a definition is removed with its objects and its endpoints.
use std::sync::Arc;

use serde_json::{Value, json};

use super::call::Call;
use super::kind::Kind;
use super::list::{Page, scope_of};
use super::metadata::{has_finalizers, metadata_mut, timestamp};
use super::object::Object;
use super::propagation::Propagation;
use super::selector::Selector;
use super::status::{ApiError, Named};
use super::store::Cluster;
use super::table::Scope;
use super::watcher::WatchEnd;
use super::{ResourceId, prepare};

const POD_GRACE: i64 = 30;
const PERMANENT: [&str; 3] = ["default", "kube-system", "kube-public"];

/// The options of a DELETE.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) propagation: Option<Propagation>,
    /// Whether the body asks for a dry run; the query may do so too.
    pub(crate) dry_run: bool,
}

/// The result of a DELETE.
#[derive(Debug)]
pub(crate) struct Deleted {
    pub(crate) object: Arc<Object>,
    /// Whether the object is gone (else it is marked and stays for its finalizers or grace).
    pub(crate) removed: bool,
}

impl DeleteOptions {
    /// Reads a `DeleteOptions` body; null means none. The policy is left to `Propagation::read`.
    pub(crate) fn parse(body: &Value) -> Self {
        let text = |at: &str| body.pointer(at).and_then(Value::as_str).map(str::to_owned);
        Self {
            grace: body.get("gracePeriodSeconds").and_then(Value::as_i64),
            uid: text("/preconditions/uid"),
            version: text("/preconditions/resourceVersion"),
            propagation: None,
            dry_run: body.pointer("/dryRun/0").is_some_and(|value| value == "All"),
        }
    }
}

impl Cluster {
    /// Deletes one object, or marks it.
    ///
    /// # Errors
    /// 404, 409 for a precondition, 403 for a namespace that cannot go.
    pub(crate) fn delete(&mut self, call: &Call<'_>, options: &DeleteOptions) -> Result<Deleted, ApiError> {
        let kind = call.kind;
        let old = self.get(kind, call.namespace, call.name)?;
        check_preconditions(call, &old, options)?;
        let is_namespace = is_core(kind, "namespaces");
        if is_namespace && PERMANENT.contains(&call.name) {
            return Err(ApiError::forbidden(kind.named(call.name), "this namespace may not be deleted"));
        }
        if call.dry_run {
            return Ok(Deleted { object: old, removed: true });
        }
        if kind.is_definition() {
            return self.end_definition(call, &old, options);
        }
        let mut before = old.decode();
        if is_core(kind, "pods") && goes_no_sooner(&before, options) {
            return Ok(Deleted { object: old, removed: false });
        }
        if let Some(propagation) = options.propagation {
            propagation.write(&mut before);
        }
        let grace = grace_of(kind, &before, options);
        let key = kind.key(call.namespace, call.name);
        if grace.is_none() && !has_finalizers(&before) && !is_namespace {
            return Ok(self.remove_now(call, &key, &old));
        }
        let marked = mark(kind, before, grace.unwrap_or(0), call.now, is_namespace);
        let changed = Object::encode(kind, marked.clone(), old.revision).body != old.body;
        let object = if changed {
            let event = self.commit(kind, &key, Some(marked.clone()));
            event.new.clone().expect("a marked object has a state after it")
        } else {
            old
        };
        if is_namespace {
            self.empty_namespace(call);
        } else if grace == Some(0) && !has_finalizers(&marked) {
            return Ok(self.remove_now(call, &key, &object));
        }
        Ok(Deleted { object, removed: false })
    }

    fn remove_now(&mut self, call: &Call<'_>, key: &str, last: &Object) -> Deleted {
        let revision = self.remove(call, key);
        Deleted { object: Arc::new(last.stamped(call.kind, revision)), removed: true }
    }

    /// Removes the object from the store, and what depends on it. Returns the version of the removal.
    pub(super) fn remove(&mut self, call: &Call<'_>, key: &str) -> u64 {
        let kind = call.kind;
        if kind.is_definition() {
            self.remove_instances(key);
        }
        let event = self.commit(kind, key, None);
        if kind.is_definition() {
            self.accept_others(call, key);
        }
        if kind.namespaced {
            self.finish_namespace(call.namespace, call.now);
        }
        if kind.custom {
            self.finish_definition(kind, call.now);
        }
        event.revision
    }

    /// Deletes everything that a list with this selector would show. Returns the objects, at the version at
    /// which they were found.
    ///
    /// # Errors
    /// Those of the first delete that is refused.
    pub(crate) fn delete_collection(
        &mut self,
        call: &Call<'_>,
        selector: &Selector,
        options: &DeleteOptions,
    ) -> Result<Page, ApiError> {
        let namespace = (!call.namespace.is_empty()).then_some(call.namespace);
        let (scope, revision) = (scope_of(call.kind, namespace, selector), self.revision());
        let objects: Vec<Arc<Object>> = self.table(&call.kind.storage).map_or_else(Vec::new, |table| {
            let found = table.objects.range(scope.range(None)).map(|(_, object)| object);
            found.filter(|object| selector.matches(object)).cloned().collect()
        });
        for object in &objects {
            let one = Call { namespace: &object.namespace, name: &object.name, ..call.clone() };
            self.delete(&one, options)?;
        }
        Ok(Page { revision, objects, continue_token: None, remaining: None })
    }

    /// Deletes all objects in a terminating namespace.
    pub(super) fn empty_namespace(&mut self, call: &Call<'_>) {
        let scope = Scope::Namespace(call.name.to_owned());
        for resource in self.registry.namespaced() {
            let Some(kind) = self.registry.preferred(&resource).cloned() else { continue };
            let names: Vec<Arc<Object>> = self.table(&resource).map_or_else(Vec::new, |table| {
                table.objects.range(scope.range(None)).map(|(_, object)| Arc::clone(object)).collect()
            });
            for object in names {
                let one = Call { kind: &kind, namespace: call.name, name: &object.name, ..call.clone() };
                let now = DeleteOptions { grace: Some(0), ..DeleteOptions::default() };
                let gone = self.delete(&one, &now);
                debug_assert!(gone.is_ok(), "an object that was listed can be deleted");
            }
        }
        self.finish_namespace(call.name, call.now);
    }

    /// Removes a terminating namespace once nothing is left in it.
    fn finish_namespace(&mut self, namespace: &str, now: i64) {
        let namespaces =
            self.registry.find("", "v1", "namespaces").cloned().expect("the table has namespaces");
        let Some(object) = self.find(&namespaces.storage, namespace) else { return };
        if object.fields.first().is_none_or(|phase| &**phase != "Terminating") {
            return;
        }
        let scope = Scope::Namespace(namespace.to_owned());
        let resources = self.registry.namespaced();
        let empty =
            |resource: &ResourceId| self.table(resource).is_none_or(|table| table.is_empty_in(&scope));
        if !resources.iter().all(empty) {
            return;
        }
        let mut value = object.decode();
        if let Some(held) = value.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut) {
            let before = held.len();
            held.retain(|name| name != "kubernetes");
            if !held.is_empty() {
                // Another controller still has work to do; it finishes through `finalize`.
                if held.len() < before {
                    self.commit(&namespaces, namespace, Some(value));
                }
                return;
            }
        }
        if has_finalizers(&value) {
            return;
        }
        let call = Call::plain(&namespaces, "", namespace, now);
        self.remove(&call, namespace);
    }

    /// Removes the objects of a custom kind, ends its watches and stops serving it.
    fn remove_instances(&mut self, definition: &str) {
        let (plural, group) = definition.split_once('.').unwrap_or((definition, ""));
        let resource = ResourceId::new(group, plural);
        let Some(kind) = self.registry.preferred(&resource).cloned().filter(|kind| kind.custom) else {
            return;
        };
        let keys: Vec<Arc<str>> =
            self.table(&resource).map_or_else(Vec::new, |table| table.objects.keys().cloned().collect());
        for key in keys {
            self.commit(&kind, &key, None);
        }
        self.end_watches(Some(&resource), WatchEnd::Clean);
        self.forget(&resource);
        self.registry.replace(&resource, Vec::new());
    }
}

fn is_core(kind: &Kind, plural: &str) -> bool {
    kind.resource.group.is_empty() && *kind.resource.plural == *plural
}

fn check_preconditions(call: &Call<'_>, old: &Object, options: &DeleteOptions) -> Result<(), ApiError> {
    let about = || Named { kind: &call.kind.kind, ..call.kind.named(call.name) };
    let failed = |what: &str, wanted: &str, has: &str, perhaps: &str| {
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({has}). The object might have been {perhaps}"
        );
        Err(ApiError::conflict(about(), &why))
    };
    match (&options.uid, &options.version) {
        (Some(uid), _) if **uid != *old.uid => failed("UID", uid, &old.uid, "deleted and then recreated"),
        (_, Some(version)) if *version != old.revision.to_string() => {
            failed("ResourceVersion", version, &old.revision.to_string(), "modified")
        }
        _ => Ok(()),
    }
}

/// Whether a pod is being deleted already, and this DELETE would not end it sooner: then it changes nothing.
fn goes_no_sooner(before: &Value, options: &DeleteOptions) -> bool {
    let running = before.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    let going = before.pointer("/metadata/deletionTimestamp").is_some();
    going && running.is_some_and(|running| options.grace.is_none_or(|asked| asked >= running))
}

/// The grace of a pod: 0 unless it runs on a node. Other kinds have none: they are removed without a mark.
fn grace_of(kind: &Kind, before: &Value, options: &DeleteOptions) -> Option<i64> {
    let on_node =
        before.pointer("/spec/nodeName").and_then(Value::as_str).is_some_and(|node| !node.is_empty());
    let over =
        matches!(before.pointer("/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed"));
    if !is_core(kind, "pods") {
        return None;
    }
    if !on_node || over {
        return Some(0);
    }
    let own = before.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    let asked = options.grace.or(own).unwrap_or(POD_GRACE).max(0);
    let running = before.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    // A later DELETE can only shorten the grace.
    Some(running.map_or(asked, |running| running.min(options.grace.unwrap_or(running))))
}

fn mark(kind: &Kind, mut value: Value, grace: i64, now: i64, is_namespace: bool) -> Value {
    let metadata = metadata_mut(&mut value);
    let already = metadata.contains_key("deletionTimestamp");
    let running = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64);
    if already && running == Some(grace) {
        return value;
    }
    metadata.insert("deletionTimestamp".into(), json!(timestamp(now + grace)));
    if is_namespace {
        value["status"] = json!({"phase": "Terminating"});
        return value;
    }
    metadata.insert("deletionGracePeriodSeconds".into(), json!(grace));
    if !already && kind.rules.generation.is_counted() {
        prepare::raise_generation(&mut value);
    }
    value
}
