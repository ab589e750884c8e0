//! Supervision of actors; it uses only `runtime`.
//!
//! A guard around each child survives its panics, asks the Supervisor for a verdict, and carries it out. The owner is
//! notified.
//!
//! ```text
//!   owner ──start──▶ guard(child) ──Exited──▶ Supervisor ──▶ verdict
//!     ▲─────── ChildEvent: restarts, given up, revived ◀────────┘
//! ```

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
