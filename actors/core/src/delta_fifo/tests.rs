//! The queue: contract scenarios, and a proptest against a list of events.
