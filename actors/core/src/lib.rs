//! Every decision of an informer, as values and state machines.
//!
//! This crate answers "what follows from what happened?" for each actor of `informer-actors`. It has no runtime,
//! no clock, no randomness, no log and no network. The caller passes the time as a [`std::time::Duration`] since the
//! start of the runtime, and a random number between 0 and 1. Each module is the twin of one actor and holds its
//! decisions; the actor only translates messages into calls and effects into messages.
//!
//! Programs use `actix-informer`, which names what they need of this crate and promises it. Everything else here is the
//! inside of `informer-actors` and changes with it, in any version.
//!
//! Read [`meta`] and [`delta`] for the data, then follow an object: [`reflector`] (what to ask the server next),
//! [`delta_fifo`] (what is waiting), [`indexer`] (what changed), [`processor`] (which subscribers are notified),
//! [`listener`] (which events one subscriber still has to receive). [`restart`] has the supervisor's decision and
//! the watchdog's. [`namespaces`] decides which sources follow a set of them.
//! [`until`] decides for waits on a condition. What the client decides (for its own watches and lists, and for what a reader
//! sees of a write before the watch brings it) is in `informer-client`, what an operator decides (its queue, its
//! controllers, its election) in `informer-operator`.

pub mod backoff;
pub mod chunks;
pub mod delta;
pub mod delta_fifo;
#[doc(hidden)]
pub mod face;
pub mod index;
pub mod indexer;
pub mod list_watch_error;
pub mod listener;
pub mod meta;
pub mod namespaces;
pub mod off_arbiter;
pub mod processor;
pub mod reflector;
pub mod repair;
pub mod request;
pub mod restart;
pub mod resync;
pub mod snapshot;
mod tree;
pub mod until;
pub mod words;
