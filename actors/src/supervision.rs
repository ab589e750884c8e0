//! Who keeps actors alive: guards, and the supervisor that they ask.
//!
//! Answers "what happens when an actor ends?". It builds on `runtime` alone, and on what an actor is made of; it knows
//! neither what an actor does nor whom it talks to. Read next: `supervision/guard.rs`, then `supervision/supervisor.rs`.

pub(crate) mod guard;
pub(crate) mod supervisor;
