//! The backlog: contract scenarios.
