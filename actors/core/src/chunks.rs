//! A long list in chunks, so that adding to it never copies its items: copying a full vector of 500,000
//! objects takes milliseconds. Every chunk but the last has exactly [`CHUNK`] items, and none is empty.

use std::iter::Flatten;
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
pub struct Chunks<T>(Vec<Vec<T>>);

impl<T> Chunks<T> {
    /// No items.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds an item at the end.
    pub fn push(&mut self, item: T) {
        match self.0.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(item),
            _ => {
                // A list that stays short allocates little.
                let mut chunk = if self.0.is_empty() { Vec::new() } else { Vec::with_capacity(CHUNK) };
                chunk.push(item);
                self.0.push(chunk);
            }
        }
    }

    /// How many items there are. O(1).
    pub fn len(&self) -> usize {
        let last = self.0.last().map_or(0, Vec::len);
        self.0.len().saturating_sub(1) * CHUNK + last
    }

    /// Whether there is no item.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The item of this number, counted from 0. O(1).
    pub fn get(&self, number: usize) -> Option<&T> {
        self.0.get(number / CHUNK)?.get(number % CHUNK)
    }

    /// All items in order.
    pub fn iter(&self) -> Flatten<slice::Iter<'_, Vec<T>>> {
        self.0.iter().flatten()
    }

    pub(crate) const fn chunks(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn drop_chunk(&mut self) {
        self.0.pop();
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
    type IntoIter = Flatten<slice::Iter<'a, Vec<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self::new()
    }
}
