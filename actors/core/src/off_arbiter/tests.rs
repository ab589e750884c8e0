//! Tests of the hand-over, with a `Release` that keeps what it gets.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Freeing, OffArbiter, PendingFree, Release};
use crate::chunks::{CHUNK, Chunks};

/// Keeps what is handed to it.
#[derive(Default)]
struct Kept(Mutex<Vec<PendingFree>>);

impl Kept {
    fn take(&self) -> Vec<PendingFree> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Release for Kept {
    fn release(&self, pending: PendingFree) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(pending);
    }
}

#[test]
fn dropped_chunks_are_handed_over_and_freed_one_by_one_and_share_their_weight() {
    let (kept, element) = (Arc::new(Kept::default()), Arc::new(()));
    let count = 2 * CHUNK + 1;
    let chunks: Chunks<_> = std::iter::repeat_n(Arc::clone(&element), count).collect();
    let chunks = Freeing::by_chunks(kept.clone()).keep(chunks);
    chunks.weigh(9);
    drop(chunks);
    assert_eq!(Arc::strong_count(&element), count + 1, "nothing is freed by the drop");
    let mut pending = kept.take();
    let [pending] = pending.as_mut_slice() else { panic!("not one value was handed over") };
    let mut left = Vec::new();
    while let Some(bytes) = pending.free_piece() {
        left.push((bytes, Arc::strong_count(&element) - 1));
    }
    assert_eq!(left, [(3, 2 * CHUNK), (3, CHUNK), (3, 0)]);
    assert_eq!(pending.bytes(), 0);
}

#[test]
fn a_value_without_chunks_is_freed_in_one_piece() {
    let (kept, element) = (Arc::new(Kept::default()), Arc::new(()));
    let value = Freeing::whole(kept.clone()).keep([Arc::clone(&element), Arc::clone(&element)]);
    value.weigh(7);
    drop(value);
    let mut pending = kept.take();
    assert_eq!((pending.len(), Arc::strong_count(&element)), (1, 3));
    assert_eq!((pending[0].free_piece(), Arc::strong_count(&element)), (Some(7), 1));
    assert_eq!(pending[0].free_piece(), None);
}

#[test]
fn a_value_that_is_taken_out_or_empty_or_freed_in_place_is_not_handed_over() {
    let kept = Arc::new(Kept::default());
    let freeing = Freeing::by_chunks(kept.clone());
    let one: Chunks<i32> = [1].into_iter().collect();
    assert_eq!(freeing.keep(one.clone()).into_inner(), one);
    drop(freeing.keep(Chunks::new()));
    drop(OffArbiter::in_place(one));
    assert!(kept.take().is_empty());
    let mut like = freeing.keep(Chunks::new()).freeing().keep(Chunks::from_iter([1]));
    like.push(2);
    drop(like);
    assert_eq!(kept.take().len(), 1, "a value made like another is freed like it");
}
