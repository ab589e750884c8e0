//! The five actors of an informer, from the source to its subscribers, and the messages in which they meet.
//!
//! Answers "which way does an object take?": Reflector, DeltaFifo, Indexer, Processor, Listener. It builds on `runtime`
//! and `supervision`; the handles of users know it, and it does not know them. Read next: `pipeline/messages.rs`, every
//! message; then any actor; `pipeline/wiring.rs`, who builds them all.

pub(crate) mod blocking_host;
pub(crate) mod board;
pub(crate) mod callback_host;
pub(crate) mod delta_fifo;
pub(crate) mod ending;
pub(crate) mod figures;
pub(crate) mod indexer;
pub(crate) mod listener;
pub(crate) mod listener_roster;
pub mod messages;
pub(crate) mod odd_data;
pub(crate) mod owner;
pub(crate) mod processor;
pub(crate) mod published;
pub(crate) mod reflector;
pub mod report;
pub mod seat;
pub(crate) mod seats;
pub(crate) mod shared;
pub(crate) mod source_spec;
pub(crate) mod sources;
pub mod status;
pub mod wiring;
