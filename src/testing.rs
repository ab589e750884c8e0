//! What tests of operators need: simulated worlds, simulated runtimes, scripted sources, fault hooks.
//!
//! Answers "how do I test a controller, with its server, its crashes and its bad days, in milliseconds?". A [`World`] is one
//! simulation: an in-memory API server, a network between it and any number of processes, and a paused clock, all on one
//! thread and all from one seed. What informers alone need ([`Server`], [`Recorder`], [`kill_at`]) comes from
//! `informer_actors`. Invariants:
//! 1. Nothing in a world comes from outside of it: no real time, no socket, no thread, no random number but from the seed.
//! 2. One seed gives one trace.
//!
//! Feature `testing`; a [`World`] needs the feature `test-kit`. [`crate::guide::testing`] walks through it. Read next:
//! `testing/world.rs`.

pub use informer_actors::testing::{
    Backup, Faults, RandomNumbers, Recorder, RecorderHandle, RequestLine, Server, Site, kill_at, kill_every,
};

#[cfg(feature = "test-kit")]
pub use self::asserting::Check;
#[cfg(feature = "test-kit")]
pub use self::process::{Host, Process};
#[cfg(feature = "test-kit")]
pub use self::seeds::each_seed;
#[cfg(feature = "test-kit")]
pub use self::trace::Asked;
#[cfg(feature = "test-kit")]
pub use self::weather::Incident;
#[cfg(feature = "test-kit")]
pub use self::world::{World, WorldBuilder};
/// The in-memory API server of a [`World`], and its fault switches.
#[cfg(feature = "test-kit")]
pub use informer_apiserver::ApiServer;

#[cfg(feature = "test-kit")]
mod asserting;
#[cfg(feature = "test-kit")]
mod network;
#[cfg(feature = "test-kit")]
mod process;
#[cfg(feature = "test-kit")]
mod seeds;
#[cfg(feature = "test-kit")]
mod trace;
#[cfg(feature = "test-kit")]
mod weather;
#[cfg(feature = "test-kit")]
mod world;
