//! The names of definitions: which of them are accepted, and whether a definition is served.
//!
//! Answers: does a name of this definition belong to another one of its group already?
//! 1. A name belongs to the definition that had it accepted first, until it gives it up or is removed.
//! 2. A definition is served under its accepted names, from the moment when all of them were accepted once.
//! 3. When names are given up, the other definitions of the group are looked at again, in the order of their names.
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{check, first_status, kinds, stored_versions, text_at, texts_at};
use crate::cluster::ResourceId;
use crate::cluster::call::Call;
use crate::cluster::metadata::{condition_holds, timestamp};
use crate::cluster::store::Cluster;

const ACCEPTED: &str = "NamesAccepted";
const ESTABLISHED: &str = "Established";
const APPROVED: &str = "KubernetesAPIApprovalPolicyConformant";

/// The accepted names of all definitions of a group.
#[derive(Default)]
struct Used {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Used {
    fn note(&mut self, definition: &Value) {
        let name = |member: &str| text_at(definition, &format!("/status/acceptedNames/{member}")).to_owned();
        self.resources.extend([name("plural"), name("singular")]);
        self.resources.extend(texts_at(definition, "/status/acceptedNames/shortNames"));
        self.kinds.extend([name("kind"), name("listKind")]);
    }
}

/// The names that are accepted now, and the reason and the message of the last one that is not.
#[derive(Default)]
struct Decision {
    accepted: Map<String, Value>,
    refused: Option<(&'static str, String)>,
}

impl Decision {
    fn on(definition: &Value, used: &Used) -> Self {
        let accepted = definition["status"]["acceptedNames"].as_object().cloned().unwrap_or_default();
        let mut decision = Self { accepted, refused: None };
        decision.take(definition, "plural", &used.resources, "PluralConflict");
        decision.take(definition, "singular", &used.resources, "SingularConflict");
        decision.take_short_names(definition, used);
        decision.take(definition, "kind", &used.kinds, "KindConflict");
        decision.take(definition, "listKind", &used.kinds, "ListKindConflict");
        decision.put("categories", texts_at(definition, "/spec/names/categories"));
        decision
    }

    fn take(&mut self, definition: &Value, member: &str, used: &BTreeSet<String>, reason: &'static str) {
        let asked = text_at(definition, &format!("/spec/names/{member}"));
        if asked != text_at(definition, &format!("/status/acceptedNames/{member}")) && used.contains(asked) {
            self.refused = Some((reason, in_use(asked)));
        } else {
            self.accepted.insert(member.to_owned(), json!(asked));
        }
    }

    fn take_short_names(&mut self, definition: &Value, used: &Used) {
        let (asked, had) = (
            texts_at(definition, "/spec/names/shortNames"),
            texts_at(definition, "/status/acceptedNames/shortNames"),
        );
        let mut taken: Vec<String> = Vec::new();
        for name in asked.iter().filter(|name| !had.contains(name) && used.resources.contains(*name)) {
            let why = in_use(name);
            if !taken.contains(&why) {
                taken.push(why);
            }
        }
        match taken.as_slice() {
            [] => self.put("shortNames", asked),
            [one] => self.refused = Some(("ShortNamesConflict", one.clone())),
            all => self.refused = Some(("ShortNamesConflict", format!("[{}]", all.join(", ")))),
        }
    }

    fn put(&mut self, member: &str, names: Vec<String>) {
        if names.is_empty() {
            self.accepted.remove(member);
        } else {
            self.accepted.insert(member.to_owned(), json!(names));
        }
    }
}

fn in_use(name: &str) -> String {
    format!("{name:?} is already in use")
}

/// Whether a definition has been served: once it was, it stays so.
pub(super) fn is_established(definition: &Value) -> bool {
    condition_holds(definition, ESTABLISHED)
}

/// Sets a condition; its time changes with its status.
fn put_condition(
    definition: &mut Value,
    name: &str,
    (status, reason, message): (bool, &str, &str),
    now: i64,
) {
    let status = if status { "True" } else { "False" };
    let mut put = json!({"type": name, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": timestamp(now)});
    let conditions = &mut definition["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|one| one["type"] == name) {
        None => conditions.push(put),
        Some(old) => {
            if old["status"] == status {
                put["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = put;
        }
    }
}

impl Cluster {
    /// Accepts the names of the definition under `key` and serves its kinds, and looks again at the others of its
    /// group.
    pub(in crate::cluster) fn establish(&mut self, call: &Call<'_>, key: &str) {
        let Some(stored) = self.find(&call.kind.storage, key) else { return };
        let is_new = stored.decode().pointer("/status/conditions").is_none_or(Value::is_null);
        let changed = self.accept_names(call, key);
        self.serve(call, key);
        if changed && !is_new {
            self.accept_others(call, key);
        }
    }

    /// Looks again at the names of all definitions in the group of `key` but its own.
    pub(in crate::cluster) fn accept_others(&mut self, call: &Call<'_>, key: &str) {
        let group = key.split_once('.').map_or("", |(_, group)| group);
        let of_group = |name: &Arc<str>| name.split_once('.').is_some_and(|(_, of)| of == group);
        let table = self.table(&call.kind.storage);
        let all: Vec<Arc<str>> = table
            .into_iter()
            .flat_map(|table| table.objects.keys())
            .filter(|name| of_group(name))
            .cloned()
            .collect();
        // Each round in which something changes settles at least one name for good.
        for _ in &all {
            let mut changed = false;
            for other in all.iter().filter(|other| ***other != *key) {
                if self.accept_names(call, other) {
                    self.serve(call, other);
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Writes which names of a definition are accepted; whether that has changed.
    fn accept_names(&mut self, call: &Call<'_>, key: &str) -> bool {
        let Some(stored) = self.find(&call.kind.storage, key) else { return false };
        let mut definition = stored.decode();
        let (names, accepted) = (&definition["spec"]["names"], &definition["status"]["acceptedNames"]);
        let is_new = definition.pointer("/status/conditions").is_none_or(Value::is_null);
        let approval = check::approval_of(&definition);
        if !is_new && names == accepted && approval.is_none() {
            return false;
        }
        let group = text_at(&definition, "/spec/group");
        let mut used = Used::default();
        for other in self.table(&call.kind.storage).into_iter().flat_map(|table| table.objects.values()) {
            let other = other.decode();
            if text_at(&other, "/spec/group") == group {
                used.note(&other);
            }
        }
        let mut before = definition.clone();
        if is_new {
            // The stored versions are recorded at the creation, without a field owner.
            before["status"] = first_status(&definition);
            definition["status"]["storedVersions"] = json!(stored_versions(&definition));
        }
        let Decision { accepted, refused } = Decision::on(&definition, &used);
        definition["status"]["acceptedNames"] = Value::Object(accepted);
        if let Some((is_approved, reason, why)) = &approval {
            put_condition(&mut definition, APPROVED, (*is_approved, reason, why), call.now);
        }
        let told = match &refused {
            None => (true, "NoConflicts", "no conflicts found"),
            Some((reason, message)) => (false, *reason, message.as_str()),
        };
        put_condition(&mut definition, ACCEPTED, told, call.now);
        if !is_established(&definition) {
            let told = match refused {
                None => (true, "InitialNamesAccepted", "the initial names have been accepted"),
                Some(_) => (false, "NotAccepted", "not all names are accepted"),
            };
            put_condition(&mut definition, ESTABLISHED, told, call.now);
        }
        if definition["status"] == before["status"] {
            return false;
        }
        self.own_status(call, before, &mut definition);
        self.commit(call.kind, key, Some(definition));
        true
    }

    /// Serves what the definition under `key` adds now.
    fn serve(&mut self, call: &Call<'_>, key: &str) {
        let Some(stored) = self.find(&call.kind.storage, key) else { return };
        let definition = stored.decode();
        let resource =
            ResourceId::new(text_at(&definition, "/spec/group"), text_at(&definition, "/spec/names/plural"));
        self.registry.replace(&resource, kinds(&definition));
        self.reread(&resource);
    }
}
