//! The numbered behaviours of a Kubernetes API server, asked over real HTTP.
//!
//! Each test's name begins with the number of the behaviour it proves (README.md lists them); tests of the fault
//! switches and of the handle are named for what they promise. `client` is the whole HTTP client: blocking, raw.
mod access;
mod apply;
mod bodies;
mod built_in;
mod chaos;
mod client;
mod command;
mod crowd;
mod definitions;
mod discovery;
mod events;
mod faults;
mod garbage;
mod handle;
mod in_process;
#[cfg(feature = "fuzzing")]
mod languages;
mod names;
mod numbers;
mod openapi;
mod outages;
mod reads;
mod scale;
mod subresources;
mod tables;
mod tls;
mod watches;
mod wire;
mod writes;
