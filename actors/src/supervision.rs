//! Who keeps actors alive: a kit that knows no informer.
//!
//! Answers "what happens when an actor ends?". An owner (an informer; later a queue or a controller) makes a
//! [`parent::Parent`] and starts children under it. A guard around each child survives its panics, asks the Supervisor
//! what follows, and carries that out; the owner is told of restarts and of giving up. It builds on `runtime` alone.
//!
//! ```text
//!   owner ──start──▶ guard(child) ──Exited──▶ Supervisor ──▶ verdict
//!     ▲─────────── News: restarted, given up, revived ◀─────────┘
//! ```
//! Read next: `owner.rs`, `parent.rs`, `guard.rs`, `supervisor.rs`; `children.rs` for children that come and go.

pub(crate) mod child;
pub(crate) mod children;
pub(crate) mod group;
pub(crate) mod guard;
pub(crate) mod messages;
pub(crate) mod owner;
pub(crate) mod parent;
mod start;
pub(crate) mod supervisor;

#[cfg(test)]
mod tests;
