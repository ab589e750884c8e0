//! Compares our server with a real kube-apiserver: the same requests to both, and their answers compared.
//!
//! They answer: does our server do what a real one does? Each script carries the number of the behaviour it proves
//! (`api_23_...`, `e7_...`); what still differs is listed in DIFFERENCES.md, with an owner.
//! 1. Without control plane binaries the scripts only run on ours; nothing is compared then.
//!
//! Next: `harness/mod.rs`.

mod harness;

mod autoscalers;
mod beginnings;
mod certificates;
mod crowds;
mod definitions;
mod definitions_of_projects;
mod definitions_refused;
mod deletions;
mod discovery;
mod errors;
mod extras;
mod fields;
mod go_clients;
mod grants;
mod histories;
mod kube_rs;
mod kubectl;
mod kubectl_writes;
mod languages;
mod lists;
mod lost_history;
mod naming;
mod patches;
mod refusals;
mod representations;
mod reviews;
mod rules;
mod rules_of_lists;
mod rules_of_objects;
mod rules_refused;
mod schemas;
mod schemas_of_projects;
mod selectors;
mod values;
mod versions;
mod versions_of_schemas;
mod watches;
mod writes;
