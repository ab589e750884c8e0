//! The random numbers of the client's own waits.
//!
//! Answers "where between the shortest and the longest wait?" The seed is the standard library's, drawn once for each
//! number: these waits spread clients, and nothing depends on their order. Invariants:
//! 1. Each number is at least 0 and below 1.
//! 2. Those of a client in process come from the seed of its runtime: a simulation repeats them.
//!
//! Read next: `informer_core::backoff`, which takes them.

use std::hash::{BuildHasher, RandomState};

use super::super::Client;

/// A random number in [0, 1) for a wait of this client.
pub(crate) fn chance(client: &Client) -> f64 {
    client.draw().unwrap_or_else(from_system)
}

fn from_system() -> f64 {
    let number = u32::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or_default();
    f64::from(number) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_between_0_and_1_and_differ() {
        let drawn: Vec<f64> = (0..100).map(|_| from_system()).collect();
        assert!(drawn.iter().all(|number| (0.0..1.0).contains(number)));
        assert!(drawn.iter().any(|number| *number < 0.5) && drawn.iter().any(|number| *number >= 0.5));
    }
}
