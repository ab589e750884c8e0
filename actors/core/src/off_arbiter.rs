//! Values that are freed elsewhere: whoever drops one only hands it away.
//!
//! Answers "where is a large value freed?". An arbiter is shared by many informers, and freeing a list of 500,000 objects
//! there holds all of them up for a second. So lists, frames, queues and backlogs are kept in an [`OffArbiter`]: its drop
//! costs one allocation, wherever it happens, and the value is freed by a [`Release`]. Invariants:
//! 1. A value is handed over at most once, and never by whoever takes it out ([`OffArbiter::into_inner`]).
//! 2. Vectors are freed in pieces of [`PIECE`] elements, and what they owe shrinks with each piece; all else is freed whole.
//! 3. Without a `Release`, or for an empty vector, a value is freed where it is dropped.
//!
//! Read next: `runtime/freeing.rs` of the actors' crate, the thread that frees.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Elements of a vector that are freed at a time.
pub const PIECE: usize = 250;

/// Frees what is handed to it, at another place or later.
pub trait Release: Send + Sync {
    /// Takes a value over. Must not block: it is called wherever something is dropped.
    fn release(&self, owed: Owed);
}

/// A value that is to be freed, and roughly how many bytes that gives back. Dropping it frees the rest at once.
pub struct Owed {
    value: Box<dyn Pieces>,
    bytes: usize,
}

impl Owed {
    /// What is still held, roughly.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Frees one piece and gives its bytes; `None` when nothing is left.
    pub fn free_piece(&mut self) -> Option<usize> {
        let left = self.value.left();
        if left == 0 {
            return None;
        }
        let share = self.bytes / left;
        self.bytes -= share;
        self.value.free_piece();
        Some(share)
    }
}

/// How values of one type are freed. Cloning copies a pointer.
pub struct Freeing<T>(Option<(Arc<dyn Release>, Hand<T>)>);

/// Packs a value for its release; hands it back if that is not worth it.
type Hand<T> = fn(T) -> Result<Box<dyn Pieces>, T>;

impl<T> Freeing<T> {
    /// Where they are dropped.
    pub const fn in_place() -> Self {
        Self(None)
    }

    /// Keeps a value that is freed this way; it weighs nothing until [`OffArbiter::weigh`].
    pub fn keep(&self, value: T) -> OffArbiter<T> {
        OffArbiter { value: Some(value), bytes: 0, freeing: self.clone() }
    }
}

impl<T: Send + 'static> Freeing<T> {
    /// By `release`, each in one piece.
    pub fn whole(release: Arc<dyn Release>) -> Self {
        Self(Some((release, |value| Ok(Box::new(Whole(Some(value)))))))
    }
}

impl<E: Send + 'static> Freeing<Vec<E>> {
    /// By `release`, in pieces.
    pub fn in_pieces(release: Arc<dyn Release>) -> Self {
        Self(Some((release, |vector| if vector.is_empty() { Err(vector) } else { Ok(Box::new(vector)) })))
    }
}

/// A value that is freed elsewhere. It is used like the value itself.
///
/// ```
/// use informer_core::off_arbiter::{Freeing, Owed, Release};
/// use std::sync::{Arc, Mutex};
///
/// #[derive(Default)]
/// struct Later(Mutex<Vec<Owed>>);
/// impl Release for Later {
///     fn release(&self, owed: Owed) {
///         self.0.lock().expect("no panic").push(owed);
///     }
/// }
///
/// let (later, kept) = (Arc::new(Later::default()), Arc::new(()));
/// let freeing = Freeing::in_pieces(later.clone());
/// drop(freeing.keep(vec![kept.clone()]));
/// assert_eq!(Arc::strong_count(&kept), 2, "handed away");
/// later.0.lock().expect("no panic").clear();
/// assert_eq!(Arc::strong_count(&kept), 1, "freed");
/// ```
#[must_use = "what is not kept is freed"]
pub struct OffArbiter<T> {
    /// There until the drop, or until it is taken out.
    value: Option<T>,
    bytes: usize,
    freeing: Freeing<T>,
}

impl<T> OffArbiter<T> {
    /// A value that is freed where it is dropped.
    pub const fn in_place(value: T) -> Self {
        Self { value: Some(value), bytes: 0, freeing: Freeing::in_place() }
    }

    /// Says roughly how many bytes freeing the value gives back.
    pub fn weigh(&mut self, bytes: usize) {
        self.bytes = bytes;
    }

    /// How values like this are freed.
    pub fn freeing(&self) -> &Freeing<T> {
        &self.freeing
    }

    /// Takes the value out: it is freed like any other from now on.
    pub fn into_inner(mut self) -> T {
        self.value.take().expect("the value is there until the drop")
    }
}

impl<T> Deref for OffArbiter<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("the value is there until the drop")
    }
}

impl<T> DerefMut for OffArbiter<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("the value is there until the drop")
    }
}

impl<T> Drop for OffArbiter<T> {
    fn drop(&mut self) {
        if let (Some(value), Freeing(Some((release, hand)))) = (self.value.take(), &self.freeing)
            && let Ok(value) = hand(value)
        {
            release.release(Owed { value, bytes: self.bytes });
        }
    }
}

/// What can be freed in pieces.
trait Pieces: Send {
    /// How many pieces are left.
    fn left(&self) -> usize;

    fn free_piece(&mut self);
}

impl<E: Send> Pieces for Vec<E> {
    fn left(&self) -> usize {
        self.len().div_ceil(PIECE)
    }

    fn free_piece(&mut self) {
        self.truncate(self.len().saturating_sub(PIECE));
    }
}

struct Whole<T>(Option<T>);

impl<T: Send> Pieces for Whole<T> {
    fn left(&self) -> usize {
        usize::from(self.0.is_some())
    }

    fn free_piece(&mut self) {
        self.0 = None;
    }
}

impl<T> Clone for Freeing<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> fmt::Debug for Freeing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Freeing(elsewhere)" } else { "Freeing(in place)" })
    }
}

impl fmt::Debug for Owed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owed").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for OffArbiter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

#[cfg(test)]
mod tests;
