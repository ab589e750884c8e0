//! Every way to log in, against whole servers over HTTPS, with kubectl as the judge of kubeconfig files.
//!
//! Answers "does a file that works for kubectl work here, as the same user, and do credentials that change break
//! nothing?" What depends on time alone is tested beside `src/client/src/identity.rs`; what a server can do wrong, in
//! `tests/client/`. Invariants:
//! 1. Servers listen on loopback; files are in temporary folders.
//! 2. Without binaries the tests of the real control plane print that and pass, unless
//!    `INFORMER_REQUIRE_CONTROL_PLANE=1`.
//!
//! Read next: `kubeconfigs.rs`, the table; `stage.rs`, the servers and the files that the rows name.

mod door;
mod issuer;
mod keys;
mod kinds;
mod kubeconfigs;
mod load;
mod rotation;
mod rows;
#[path = "../client/small_proxy.rs"]
mod small_proxy;
mod stage;
