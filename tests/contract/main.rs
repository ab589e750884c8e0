//! The informer contract on the running pipeline: one test per scenario; its number stands at the front of the test's
//! name.
//!
//! Every test runs the real wiring on a simulated runtime (paused clock, one thread) against the scripted server of
//! `informer_actors::testing`. What a core decides alone is tested beside that core. Nothing here sleeps or opens a
//! socket. Read `world.rs` first: it wraps the API, so that the tests read as sentences.

mod actors;
mod added_clusters;
mod blocking;
mod brief;
mod busy_source;
mod cancelled;
#[cfg(feature = "client")]
mod children;
mod cluster_ages;
mod cluster_wide;
mod clusters;
mod consistency;
#[cfg(feature = "client")]
mod controller;
mod delivery;
mod durations;
#[cfg(feature = "client")]
mod election_part;
mod endings;
mod endurance;
#[cfg(feature = "client")]
mod events;
mod every;
#[cfg(feature = "client")]
mod factory;
mod factory_declared;
#[cfg(feature = "client")]
mod factory_defaults;
#[cfg(feature = "client")]
mod factory_many;
#[cfg(feature = "client")]
mod factory_names;
#[cfg(feature = "client")]
mod factory_part;
mod fed;
mod figures;
mod filters;
mod freeing;
mod hand_over;
mod handles;
mod history;
mod indices;
mod informer;
mod keys;
#[cfg(feature = "client")]
mod leader_election;
mod leader_terms;
#[cfg(feature = "client")]
mod left;
mod lifecycle;
mod lifecycle_controllers;
mod lifecycle_parts;
mod list_budget;
mod lister;
mod log;
mod logs;
mod many_sources;
mod many_subscribers;
mod namespaces;
mod off_arbiter;
mod operator_parts;
mod own_callback;
mod predicates;
mod progress;
mod queue;
mod queue_orders;
#[cfg(feature = "client")]
mod reconcile;
#[cfg(feature = "client")]
mod reconcile_crashes;
mod reconcile_log;
mod reflector;
mod repair;
mod reports;
mod revival;
mod scripted_server;
mod slices;
mod source_changes;
mod source_failures;
mod source_streams;
mod sources;
mod stopping;
mod store;
mod streams;
mod subscribers;
mod supervision;
mod threads;
mod unexpected_data;
mod until;
mod views;
mod wait_ends;
mod waits;
mod watchdog;
mod windows;
mod world;
