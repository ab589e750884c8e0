//! Locks a mutex whose content cannot be left half changed.
//!
//! Answers "what if a thread panicked while it held this lock?" for the short locks of this crate. Invariants:
//! 1. It never panics: what a panicking thread left behind is used as it is.
//! 2. It is for content that is whole after each statement, such as one field, one counter or one queue.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The content, also after a panic of a thread that held the lock.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
