//! Supervision of actors; it does not depend on informers.
//!
//! Answers "what happens when an actor ends?". An owner (an informer; later a queue or a controller) makes a
//! [`parent::Parent`] and starts children under it. A guard around each child survives its panics, asks the Supervisor
//! what follows, and carries that out. The owner is notified of restarts, and of children that are given up or revived.
//! This module builds on `runtime` alone.
//!
//! ```text
//!   owner ──start──▶ guard(child) ──Exited──▶ Supervisor ──▶ verdict
//!     ▲─────── ChildEvent: restarts, given up, revived ◀────────┘
//! ```
//! Read next: `owner.rs`, `parent.rs`, `guard.rs`, `supervisor.rs`; `children.rs` for children that come and go.

pub(crate) mod children;
pub(crate) mod group;
pub(crate) mod guard;
pub(crate) mod owner;
pub(crate) mod parent;
pub(crate) mod runner;
mod start;
pub(crate) mod supervisor;

#[cfg(test)]
mod tests;
