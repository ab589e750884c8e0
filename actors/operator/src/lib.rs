//! Operators: work queues, controllers, leader elections, recorders of events, reconcilers, and what starts
//! and stops them.
//!
//! In each folder `machine` decides, without a clock, a runtime or a log; an actor carries that out;
//! `kubernetes`, a feature, speaks with an API server. Programs use `actix-informer`, which exports what they
//! need.

pub mod controller;
pub mod election;
pub mod events;
pub mod lifecycle;
pub mod queue;
pub mod reconcile;
pub mod report;
