//! Operators: work queues, controllers, leader elections, recorders of events, reconcilers, and what starts and stops them.
//!
//! This crate answers "how does a program bring what it is told into the wanted state?". Each concept is a folder: its
//! `machine` decides, without a clock, a runtime or a log, as `informer_core` does; its actor carries that out, as those of
//! `informer_actors` do; with the feature `kubernetes` its `kubernetes` speaks with an API server through `informer_client`.
//!
//! | concept | its actor | its Kubernetes side |
//! |---|---|---|
//! | [`queue`] | hands keys to workers | |
//! | [`controller`] | reconciles each key to which something happens | owners, own writes |
//! | [`election`] | renews a lease | the Lease |
//! | [`events`] | sends events about objects | Events |
//! | [`lifecycle`] | starts and stops the parts of an operator | elections and recorders as parts |
//! | [`reconcile`] | | finalizers, children, conditions |
//!
//! [`report`] shows all that runs on a runtime. Programs use `actix-informer`, which names what they need of this crate and
//! promises it. Read next: `queue.rs`, then `controller.rs`.

pub mod controller;
pub mod election;
pub mod events;
pub mod lifecycle;
pub mod queue;
pub mod reconcile;
pub mod report;
