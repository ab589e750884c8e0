//! Table tests of the core: one store, driven by calls, read by lists and drained watches.
//!
//! They answer whether the rules of versions, lists, watches and writes hold without a socket in between.
