//! A long list in chunks. To add never copies items: a copy of 500,000 takes milliseconds. Each chunk but the last
//! has [`CHUNK`] items.

use std::iter::{Chain, Flatten};
use std::slice;

/// Items in one chunk.
pub const CHUNK: usize = 250;

/// A list in chunks.
///
/// ```
/// # use informer_core::chunks::Chunks;
/// let mut numbers: Chunks<usize> = (0..600).collect();
/// numbers.push(600);
/// assert_eq!((numbers.len(), numbers.get(599), numbers.get(601)), (601, Some(&599), None));
/// assert!(numbers.iter().copied().eq(0..601));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunks<T> {
    full: Vec<Vec<T>>,
    /// A short list is one allocation. Empty only if the list is.
    last: Vec<T>,
}

type Items<'a, T> = Chain<Flatten<slice::Iter<'a, Vec<T>>>, slice::Iter<'a, T>>;

impl<T> Chunks<T> {
    /// No items.
    pub const fn new() -> Self {
        Self { full: Vec::new(), last: Vec::new() }
    }

    /// Adds an item at the end.
    pub fn push(&mut self, item: T) {
        if self.last.len() == CHUNK {
            self.full.push(std::mem::replace(&mut self.last, Vec::with_capacity(CHUNK)));
        }
        self.last.push(item);
    }

    /// How many items there are. O(1).
    pub fn len(&self) -> usize {
        self.full.len() * CHUNK + self.last.len()
    }

    /// Whether there is no item.
    pub const fn is_empty(&self) -> bool {
        self.full.is_empty() && self.last.is_empty()
    }

    /// The item of this number, counted from 0. O(1).
    pub fn get(&self, number: usize) -> Option<&T> {
        match self.full.get(number / CHUNK) {
            Some(chunk) => chunk.get(number % CHUNK),
            None => self.last.get(number - self.full.len() * CHUNK),
        }
    }

    /// All items in order.
    pub fn iter(&self) -> Items<'_, T> {
        self.full.iter().flatten().chain(&self.last)
    }

    pub(crate) const fn chunks(&self) -> usize {
        self.full.len() + !self.last.is_empty() as usize
    }

    pub(crate) fn drop_chunk(&mut self) {
        self.last = self.full.pop().unwrap_or_default();
    }
}

impl<T> Extend<T> for Chunks<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T> FromIterator<T> for Chunks<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut chunks = Self::new();
        chunks.extend(items);
        chunks
    }
}

impl<'a, T> IntoIterator for &'a Chunks<T> {
    type Item = &'a T;
    type IntoIter = Items<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self::new()
    }
}
