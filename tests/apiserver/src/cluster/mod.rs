//! The pure half of the API server: kinds, objects, versions, lists, watches and the rules of writes.
//!
//! It decides everything except bytes on a socket. No HTTP, no clock (`now` is an argument), no entropy (the seed is
//! an argument), no locks, no tasks.
//!
//! Reading order: `kind` → `builtin` → `object` → `history` → `table` → `store` → `list`, `watch` → `write`, `delete`.
//!
//! 1. Every change goes through `Cluster::commit`, takes the next revision and reaches every watch it concerns.
//! 2. The name of a resource, its group and its plural ([`ResourceId`]), says in which table objects are stored.
//! 3. Nothing here waits; streams that must be woken are left in `Cluster::take_woken` for the shell.
pub(crate) mod apply;
mod beginnings;
pub(crate) mod builtin;
pub(crate) mod call;
#[cfg(feature = "cel")]
mod cel;
pub(crate) mod convert;
pub(crate) mod crd;
mod defaults;
pub(crate) mod definition;
pub(crate) mod delete;
mod dependants;
pub(crate) mod discovery;
pub(crate) mod encoding;
mod escalation;
pub(crate) mod field_validation;
mod garbage;
pub(crate) mod go_json;
pub(crate) mod history;
pub(crate) mod json_patch;
pub(crate) mod kind;
pub(crate) mod label_query;
pub(crate) mod list;
pub(crate) mod metadata;
pub(crate) mod names;
pub(crate) mod object;
pub(crate) mod openapi;
pub(crate) mod options;
pub(crate) mod owners;
pub(crate) mod patch;
pub(crate) mod prepare;
pub(crate) mod printer;
pub(crate) mod propagation;
pub(crate) mod rbac;
pub(crate) mod registry;
pub(crate) mod representation;
pub(crate) mod rng;
pub(crate) mod rules;
pub(crate) mod schema;
pub(crate) mod selector;
pub(crate) mod server_side;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod strategic;
pub(crate) mod subresource;
pub(crate) mod table;
mod token;
mod validation;
mod warnings;
pub(crate) mod watch;
pub(crate) mod watcher;
pub(crate) mod write;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

/// The table in which a kind's objects are stored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ResourceId {
    pub(crate) group: Arc<str>,
    pub(crate) plural: Arc<str>,
}

impl ResourceId {
    pub(crate) fn new(group: &str, plural: &str) -> Self {
        Self { group: group.into(), plural: plural.into() }
    }

    /// Whether this is the resource of that group and name.
    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        *self.group == *group && *self.plural == *plural
    }

    /// Reads kubectl's form: `pods`, `deployments.apps`, `widgets.example.com`.
    pub(crate) fn parse(text: &str) -> Self {
        let (plural, group) = text.split_once('.').unwrap_or((text, ""));
        Self::new(group, plural)
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.plural)
        } else {
            write!(f, "{}.{}", self.plural, self.group)
        }
    }
}
