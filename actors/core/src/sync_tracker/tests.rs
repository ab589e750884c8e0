//! The sync tracker.
