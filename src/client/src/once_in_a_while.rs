//! Which causes of a warning have been told of late.
//!
//! Answers "is this worth a warning, or has it just been told?" for what happens again and again: files that cannot be
//! read, certificates that are left out. Invariants:
//! 1. A cause is told at most once in ten minutes.
//! 2. At most 100 causes are remembered; then all are forgotten.
//!
//! Read next: `identity.rs`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a cause counts as told.
const WHILE: Duration = Duration::from_secs(600);
/// So many causes are remembered.
const REMEMBERED: usize = 100;

/// The causes that were told, and when.
#[derive(Debug, Default)]
pub(crate) struct OnceInAWhile(Mutex<BTreeMap<String, Instant>>);

impl OnceInAWhile {
    /// Whether this cause is to be told now. Then it counts as told.
    pub(crate) fn is_new(&self, cause: &str) -> bool {
        let now = Instant::now();
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|_, at| now < *at + WHILE);
        if told.contains_key(cause) {
            return false;
        }
        if told.len() == REMEMBERED {
            told.clear();
        }
        told.insert(cause.to_owned(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cause_is_told_once_in_ten_minutes_and_another_one_at_once() {
        let told = OnceInAWhile::default();
        assert!(told.is_new("a") && told.is_new("b"));
        for _ in 0..59 {
            advance(Duration::from_secs(10)).await;
            assert!(!told.is_new("a"));
        }
        advance(Duration::from_secs(10)).await;
        assert!(told.is_new("a"));
        assert!((0..REMEMBERED).all(|number| told.is_new(&number.to_string())), "bounded");
    }
}
