//! The decisions of an informer, as values and state machines: no runtime, clock, randomness, log or network.
//!
//! The caller passes the time, a [`std::time::Duration`] since the start of the runtime, and a random number between
//! 0 and 1. Each module decides for one actor of `informer-actors`.
//!
//! Programs use `actix-informer`, which keeps what it exports of this crate stable. All else may change in any
//! version.
//!
//! [`meta`] and [`delta`] hold the data. An object passes [`reflector`] (what to request next), [`delta_fifo`] (what
//! waits), [`indexer`] (what changed), [`processor`] (which subscribers are notified) and [`listener`] (which events
//! one subscriber still has to receive).

pub mod backoff;
pub mod chunks;
pub mod delta;
pub mod delta_fifo;
#[doc(hidden)]
pub mod face;
pub mod index;
pub mod indexer;
pub mod intake;
pub mod list_watch_error;
pub mod listener;
pub mod meta;
pub mod namespaces;
pub mod off_arbiter;
pub mod passing;
pub mod path;
pub mod processor;
pub mod reflector;
pub mod repair;
pub mod request;
pub mod restart;
pub mod resync;
pub mod snapshot;
pub mod timing;
mod tree;
pub mod until;
pub mod words;
