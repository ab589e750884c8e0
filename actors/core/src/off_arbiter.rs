//! Large values that another thread frees; a drop only hands one over. To free 500,000 objects on an arbiter would
//! delay all its informers for a second.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::chunks::Chunks;

/// Frees values on another thread, or later.
pub trait Release: Send + Sync {
    /// Takes a value over. Must not block: a drop on any thread may call it.
    fn release(&self, pending: PendingFree);
}

/// A value that is to be freed, and roughly how many bytes that gives back. Dropping it frees the rest at
/// once.
pub struct PendingFree {
    value: Box<dyn Pieces>,
    bytes: usize,
}

impl PendingFree {
    /// How many bytes are still to be freed, roughly.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// In how many pieces it is freed: a chunk of a list is one, and so is any other value.
    pub fn pieces(&self) -> usize {
        self.value.left()
    }

    /// Frees one piece and returns its bytes; `None` when nothing is left.
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
pub struct Freeing<T>(Option<(Arc<dyn Release>, Pack<T>)>);

/// Returns the value if it is empty.
type Pack<T> = fn(T) -> Result<Box<dyn Pieces>, T>;

impl<T> Freeing<T> {
    /// Values are freed where they are dropped.
    pub const fn in_place() -> Self {
        Self(None)
    }

    /// Keeps a value that is freed this way. Its weight is zero until [`OffArbiter::weigh`].
    pub fn keep(&self, value: T) -> OffArbiter<T> {
        OffArbiter { value: Some(value), bytes: AtomicUsize::new(0), freeing: self.clone() }
    }
}

impl<T: Send + 'static> Freeing<T> {
    /// Values are freed by `release`, each in one piece.
    pub fn whole(release: Arc<dyn Release>) -> Self {
        Self(Some((release, |value| Ok(Box::new(Whole(Some(value)))))))
    }
}

impl<E: Send + 'static> Freeing<Chunks<E>> {
    /// Values are freed by `release`, chunk by chunk.
    pub fn by_chunks(release: Arc<dyn Release>) -> Self {
        Self(Some((release, |chunks| if chunks.is_empty() { Err(chunks) } else { Ok(Box::new(chunks)) })))
    }
}

/// A value that another thread frees. It is used like the value itself.
///
/// ```
/// # use informer_core::chunks::Chunks;
/// # use informer_core::off_arbiter::{Freeing, PendingFree, Release};
/// use std::sync::{Arc, Mutex};
///
/// #[derive(Default)]
/// struct Later(Mutex<Vec<PendingFree>>);
/// impl Release for Later {
///     fn release(&self, pending: PendingFree) {
///         self.0.lock().expect("no panic").push(pending);
///     }
/// }
///
/// let (later, kept) = (Arc::new(Later::default()), Arc::new(()));
/// let freeing = Freeing::by_chunks(later.clone());
/// drop(freeing.keep(Chunks::from_iter([kept.clone()])));
/// assert_eq!(Arc::strong_count(&kept), 2, "handed over, not freed");
/// later.0.lock().expect("no panic").clear();
/// assert_eq!(Arc::strong_count(&kept), 1, "freed");
/// ```
#[must_use = "a value that is not kept is freed"]
pub struct OffArbiter<T> {
    value: Option<T>,
    bytes: AtomicUsize,
    freeing: Freeing<T>,
}

impl<T> OffArbiter<T> {
    /// A value that is freed where it is dropped.
    pub const fn in_place(value: T) -> Self {
        Self { value: Some(value), bytes: AtomicUsize::new(0), freeing: Freeing::in_place() }
    }

    /// Says roughly how many bytes freeing the value gives back.
    pub fn weigh(&self, bytes: usize) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// How values like this are freed.
    pub fn freeing(&self) -> &Freeing<T> {
        &self.freeing
    }

    /// Takes the value out: from now on it is freed where it is dropped.
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
        if let (Some(value), Freeing(Some((release, pack)))) = (self.value.take(), &self.freeing)
            && let Ok(value) = pack(value)
        {
            release.release(PendingFree { value, bytes: *self.bytes.get_mut() });
        }
    }
}

trait Pieces: Send {
    fn left(&self) -> usize;

    fn free_piece(&mut self);
}

impl<E: Send> Pieces for Chunks<E> {
    fn left(&self) -> usize {
        self.chunks()
    }

    fn free_piece(&mut self) {
        self.drop_chunk();
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

crate::clone_of!([T] Freeing<T>);

impl<T> fmt::Debug for Freeing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Freeing(elsewhere)" } else { "Freeing(in place)" })
    }
}

crate::debug_as!(PendingFree, self, bytes = self.bytes);

impl<T: fmt::Debug> fmt::Debug for OffArbiter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

#[cfg(test)]
mod tests;
