//! The store: one revision counter over all tables, and the single place where a change is committed.
//!
//! Answers: what is the current version, and how is a change committed? It does not check the change.
//! 1. Revisions rise by one per commit, over all kinds together; 0 is never issued.
//! 2. `commit` updates the table, its history and the watches' queues as one step.
//! 3. A backup shares all objects with the live store (persistent maps), so it is cheap to take and to keep.
//! 4. Changes that no client could make (versions that jump, an object replaced under its name in one step) are here too;
//!    their switches are in `outages.rs`. Versions only rise; going back is `restore`. A replaced object keeps what its
//!    user wrote, and nothing the server wrote.
//!
//! Next: `write.rs` and `delete.rs` decide what is committed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use slab::Slab;

use super::call::{Call, SERVER};
use super::dependants::Garbage;
use super::history::{Event, History};
use super::kind::Kind;
use super::metadata::metadata_mut;
use super::object::Object;
use super::registry::Registry;
use super::rng::Rng;
use super::status::ApiError;
use super::table::Table;
use super::watcher::{Watch, WatchEnd};
use super::{ResourceId, rbac};

/// The initial settings of a store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// The revision of the last write before the first one of this store.
    pub(crate) first_revision: u64,
    /// How many events each resource remembers.
    pub(crate) event_window: usize,
    /// How many undelivered events a watcher may have.
    pub(crate) watch_queue: usize,
    pub(crate) seed: u64,
    /// Whether `metadata.managedFields` are kept.
    pub(crate) managed_fields: bool,
    /// Whether invalid objects are refused.
    pub(crate) validation: bool,
}

/// The whole state of the server.
#[derive(Debug)]
pub(crate) struct Cluster {
    revision: u64,
    /// The history floor of tables that do not exist yet.
    floor: u64,
    settings: Settings,
    pub(crate) registry: Registry,
    pub(super) tables: BTreeMap<ResourceId, Table>,
    pub(super) watches: Slab<Watch>,
    pub(super) woken: Vec<usize>,
    pub(super) rng: Rng,
    /// Continue tokens of an earlier epoch are expired.
    pub(super) token_epoch: u64,
    /// The compiled roles and bindings; none after a change, until they are needed.
    pub(super) policy: Option<Arc<rbac::Policy>>,
    /// The dependencies of objects, if the garbage collector is on.
    pub(super) garbage: Option<Garbage>,
}

/// The stored state at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Frozen {
    revision: u64,
    registry: Registry,
    tables: BTreeMap<ResourceId, Table>,
}

impl Cluster {
    /// A store that holds the namespaces every cluster begins with.
    pub(crate) fn new(settings: Settings, now: i64) -> Self {
        let mut cluster = Self {
            revision: settings.first_revision,
            floor: settings.first_revision,
            settings,
            registry: Registry::builtin(),
            tables: BTreeMap::new(),
            watches: Slab::new(),
            woken: Vec::new(),
            rng: Rng::new(settings.seed),
            token_epoch: 0,
            policy: None,
            garbage: None,
        };
        let kind = cluster.registry.find("", "v1", "namespaces").cloned().expect("the table has namespaces");
        for name in ["default", "kube-system", "kube-public"] {
            let call = Call { manager: SERVER, ..Call::plain(&kind, "", name, now) };
            let made = cluster.create(&call, json!({"metadata": {"name": name}}));
            debug_assert!(made.is_ok(), "a namespace with a sound name is created");
        }
        cluster
    }

    /// Whether there is, or was, anything of this resource.
    pub(crate) fn knows(&self, resource: &ResourceId) -> bool {
        self.tables.contains_key(resource)
    }

    /// The version of the last write.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Whether field owners are recorded.
    pub(super) fn keeps_owners(&self) -> bool {
        self.settings.managed_fields
    }

    pub(super) fn validates(&self) -> bool {
        self.settings.validation
    }

    pub(super) fn queue_bound(&self) -> usize {
        self.settings.watch_queue
    }

    pub(super) fn table(&self, resource: &ResourceId) -> Option<&Table> {
        self.tables.get(resource)
    }

    pub(super) fn table_mut(&mut self, resource: &ResourceId) -> &mut Table {
        if !self.tables.contains_key(resource) {
            let table = Table::new(self.history(self.floor));
            self.tables.insert(resource.clone(), table);
        }
        self.tables.get_mut(resource).expect("inserted above")
    }

    fn history(&self, floor: u64) -> History {
        History::new(self.settings.event_window, self.settings.watch_queue, floor)
    }

    /// The version up to which a resource's events are dropped.
    pub(super) fn floor(&self, resource: &ResourceId) -> u64 {
        self.table(resource).map_or(self.floor, |table| table.history.floor())
    }

    /// Drops all past events of one resource.
    pub(super) fn forget(&mut self, resource: &ResourceId) {
        let (revision, taken) = (self.revision, self.taken_by_all(resource));
        self.table_mut(resource).history.compact(revision, taken);
    }

    pub(super) fn find(&self, resource: &ResourceId, key: &str) -> Option<&Arc<Object>> {
        self.table(resource).and_then(|table| table.objects.get(key))
    }

    /// Every object of a resource, in the order of lists.
    pub(super) fn all(&self, resource: &ResourceId) -> impl Iterator<Item = &Arc<Object>> {
        self.table(resource).into_iter().flat_map(|table| table.objects.values())
    }

    /// One object.
    ///
    /// # Errors
    /// 404 if it is not there.
    pub(crate) fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Arc<Object>, ApiError> {
        let found = self.find(&kind.storage, &kind.key(namespace, name));
        found.cloned().ok_or_else(|| ApiError::not_found(kind.named(name)))
    }

    /// Makes a change: `value` is the state after it, none for a removal. The next revision is taken.
    pub(super) fn commit(&mut self, kind: &Kind, key: &str, value: Option<Value>) -> Arc<Event> {
        self.revision += 1;
        let old = self.find(&kind.storage, key).cloned();
        let new = value.map(|value| Arc::new(Object::encode(kind, value, self.revision)));
        let event = Arc::new(Event::new(key.into(), self.revision, old, new));
        self.table_mut(&kind.storage).apply(&event);
        if let Some(garbage) = &mut self.garbage {
            garbage.note(&kind.storage, &event);
        }
        self.fan_out(&kind.storage, &event);
        if *kind.storage.group == *rbac::GROUP {
            self.policy = None;
        }
        event
    }

    /// The watches that have something new since the last call.
    pub(crate) fn take_woken(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.woken)
    }

    /// Drops all events but those of the last `revisions` versions, of one resource or of all.
    pub(crate) fn keep_revisions(&mut self, resource: Option<&ResourceId>, revisions: u64) {
        let floor = self.revision.saturating_sub(revisions);
        if resource.is_none() {
            self.floor = self.floor.max(floor);
        }
        let concerned = |id: &&ResourceId| resource.is_none_or(|resource| resource == *id);
        let concerned: Vec<ResourceId> = self.tables.keys().filter(concerned).cloned().collect();
        for resource in concerned.iter().chain(resource) {
            let taken = self.taken_by_all(resource);
            self.table_mut(resource).history.compact(floor, taken);
        }
    }

    /// Skips versions: the next write takes one this much higher.
    pub(crate) fn jump(&mut self, by: u64) {
        self.revision = self.revision.saturating_add(by);
    }

    /// Makes every continue token issued so far expire.
    pub(crate) fn expire_tokens(&mut self) {
        self.token_epoch += 1;
    }

    pub(crate) fn freeze(&self) -> Frozen {
        let frozen = |table: &Table| table.frozen(self.history(self.revision));
        let tables = self.tables.iter().map(|(id, table)| (id.clone(), frozen(table))).collect();
        Frozen { revision: self.revision, registry: self.registry.clone(), tables }
    }

    /// Restores an earlier state, including its versions. Open watches end, as at the restart a restore
    /// needs.
    pub(crate) fn restore(&mut self, frozen: &Frozen) {
        self.end_watches(None, WatchEnd::Clean);
        self.revision = frozen.revision;
        self.floor = frozen.revision;
        self.registry = frozen.registry.clone();
        self.tables = frozen.tables.clone();
        self.token_epoch += 1;
        self.policy = None;
        if self.garbage.is_some() {
            self.collect_garbage();
        }
    }

    /// The rules in force; what they allow is in `rbac`.
    pub(crate) fn policy(&mut self) -> Arc<rbac::Policy> {
        if let Some(policy) = &self.policy {
            return Arc::clone(policy);
        }
        let policy = Arc::new(rbac::Policy::compile(|plural| {
            self.all(&ResourceId::new(rbac::GROUP, plural)).cloned().collect()
        }));
        self.policy = Some(Arc::clone(&policy));
        policy
    }
}

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
