//! For tests of operators: simulated worlds and runtimes, scripted sources, fault hooks.
//!
//! A [`World`] is one simulation from one seed on one thread: an in-memory API server, a network between it and any number of
//! processes, and a paused clock. It uses no real time, no socket, no other thread; all random numbers come from the seed. One
//! seed gives one trace. Tests of informers alone use [`Server`], [`Recorder`] and [`kill_at`].
//!
//! Feature `testing`; a [`World`] needs `test-kit`. How to: [`crate::guide::testing`].

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
