//! What is kept beside a key, in its slot, and handed out with it.
//!
//! Answers "with what does the work on this key begin?" in one book: what an add brings merges with what came before, under
//! the lock of the queue, so that it is neither lost nor given twice. Invariants:
//! 1. What came with adds that are one is handed out once, with their key. So is what came with its delayed add, but for
//!    that of a retry: it goes with the retry when the key is in order first.
//! 2. At most as many keys as the queue was made for have notes with memory of their own. Notes of further ones are cut
//!    down to what fits into a slot.
//!
//! Read next: `work_queue.rs`; `controller/causes.rs`, the notes of a controller.

/// What is kept beside a key. The default says nothing. None of it runs code of a user: it happens while the queue is locked.
pub trait Merge: Default + Clone {
    /// Takes in what came later.
    fn merge(&mut self, later: Self);

    /// Whether it has memory of its own, outside of the slot.
    fn is_large(&self) -> bool {
        false
    }

    /// Gives that memory up.
    fn cut(&mut self) {}
}

impl Merge for () {
    fn merge(&mut self, (): Self) {}
}

/// How many notes are large, and may be.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Budget {
    pub(super) large: usize,
    pub(super) most: usize,
}

impl Budget {
    /// Merges a note into one of a slot.
    pub(super) fn merge<P: Merge>(&mut self, note: &mut P, mut later: P) {
        let was_large = note.is_large();
        if !was_large && later.is_large() && self.large >= self.most {
            later.cut();
        }
        note.merge(later);
        self.large += usize::from(!was_large && note.is_large());
    }

    /// Takes a note out of a slot.
    pub(super) fn take<P: Merge>(&mut self, note: &mut P) -> P {
        self.large -= usize::from(note.is_large());
        std::mem::take(note)
    }
}
