//! The five actors of an informer. They build on `runtime` and `supervision`, and do not depend on users' handles.
//! Begin with `pipeline/messages.rs`, every message; `pipeline/wiring.rs` builds them all.

pub(crate) mod board;
pub(crate) mod callback_host;
pub(crate) mod delta_fifo;
pub(crate) mod ending;
pub(crate) mod figures;
pub(crate) mod indexer;
pub(crate) mod listener;
pub(crate) mod listener_roster;
pub(crate) mod marking;
pub(crate) mod messages;
pub(crate) mod namespace_filter;
pub(crate) mod namespace_set;
pub(crate) mod notifications;
pub(crate) mod owner;
pub(crate) mod processor;
pub(crate) mod published;
pub(crate) mod reflector;
pub(crate) mod shared;
pub(crate) mod source_cells;
pub(crate) mod source_spec;
pub(crate) mod sources;
pub mod status;
pub(crate) mod status_text;
pub(crate) mod subscription_state;
pub(crate) mod unexpected_data;
pub(crate) mod waits;
pub(crate) mod wiring;
