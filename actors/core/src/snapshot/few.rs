//! A short vector that needs no allocation for one element.
//!
//! Answers "how is a list kept that nearly always has one entry, and is copied with every publish?": most informers have
//! one source, so the versions of a frame are one. It reads like a slice. Read next: `frame.rs`, the user.

use std::ops::{Deref, DerefMut};

#[derive(Debug, Clone)]
pub(super) enum Few<T> {
    One([T; 1]),
    Many(Vec<T>),
}

impl<T> Few<T> {
    /// Puts an element in before that place. Linear.
    pub(super) fn insert(&mut self, at: usize, element: T) {
        let mut all = self.take();
        all.insert(at, element);
        *self = Self::from(all);
    }

    /// Keeps the elements that pass. Linear.
    pub(super) fn retain(&mut self, passes: impl FnMut(&T) -> bool) {
        let mut all = self.take();
        all.retain(passes);
        *self = Self::from(all);
    }

    fn take(&mut self) -> Vec<T> {
        match std::mem::take(self) {
            Self::One(one) => Vec::from(one),
            Self::Many(all) => all,
        }
    }
}

impl<T> From<Vec<T>> for Few<T> {
    fn from(all: Vec<T>) -> Self {
        all.try_into().map_or_else(Self::Many, Self::One)
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::One(one) => one,
            Self::Many(all) => all,
        }
    }
}

impl<T> DerefMut for Few<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::One(one) => one,
            Self::Many(all) => all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Few;

    #[test]
    fn a_short_vector_reads_like_a_vector_whatever_is_put_in_and_taken_out() {
        let mut few = Few::default();
        assert!(few.is_empty());
        few.insert(0, 2);
        assert!(matches!(few, Few::One(_)), "one element needs no vector");
        few[0] += 1;
        few.insert(0, 1);
        few.insert(2, 5);
        assert_eq!(*few, [1, 3, 5]);
        few.retain(|number| *number == 3);
        assert!(matches!(few, Few::One([3])), "nor does the last that is left");
        few.retain(|_| false);
        assert!(few.is_empty());
    }
}
