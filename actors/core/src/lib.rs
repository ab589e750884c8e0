//! Every decision of an informer, as values and state machines.
//!
//! This crate answers "what follows from what happened?" for each actor of `informer-actors`; it has no runtime,
//! no clock, no randomness, no log and no network. Time comes in as a [`std::time::Duration`] since the start of
//! the runtime, chance as a number between 0 and 1. Each module is the twin of one actor and holds its decisions;
//! the actor only translates messages into calls and effects into messages.
//!
//! Read [`meta`] and [`delta`] for the data, then follow an object: [`reflector`] (what to ask the server next),
//! [`delta_fifo`] (what is waiting), [`indexer`] (what changed), [`processor`] (who is told), [`listener`] (what one
//! subscriber is owed). [`restart`] is the supervisor's decision, [`stall`] the watchdog's.

pub mod backoff;
pub mod delta;
pub mod delta_fifo;
pub mod index;
pub mod indexer;
pub mod list_watch_error;
pub mod listener;
pub mod meta;
pub mod off_arbiter;
pub mod processor;
pub mod reflector;
pub mod repair;
pub mod request;
pub mod restart;
pub mod resync;
mod set_aside;
pub mod snapshot;
pub mod stall;
pub mod words;
