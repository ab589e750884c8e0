//! The pure half of the API server: kinds, objects, versions, lists, watches and the rules of writes.
//!
//! It decides everything except bytes on a socket. No HTTP, no clock (`now` is an argument), no entropy (the seed is
//! an argument), no locks, no tasks.
//!
//! Reading order: `kind` → `builtin` → `object` → `history` → `table` → `store` → `list`, `watch` → `write`, `delete`.
//!
//! 1. Every change goes through `Cluster::commit`, takes the next revision and reaches every watch it concerns.
//! 2. Nothing here waits; streams that must be woken are left in `Cluster::take_woken` for the shell.
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
pub(crate) mod label_selector;
pub(crate) mod list;
pub(crate) mod metadata;
pub(crate) mod names;
pub(crate) mod object;
pub(crate) mod openapi;
pub(crate) mod options;
pub(crate) mod outage;
pub(crate) mod owners;
pub(crate) mod patch;
pub(crate) mod prepare;
pub(crate) mod printer;
pub(crate) mod propagation;
pub(crate) mod rbac;
pub(crate) mod registry;
pub(crate) mod representation;
pub(crate) mod resource;
pub(crate) mod rng;
mod roles;
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
mod zones;

#[cfg(test)]
mod tests;
