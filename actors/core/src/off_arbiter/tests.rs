//! Tests of the hand-over, with a `Release` that keeps what it gets.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Freeing, OffArbiter, Owed, PIECE, Release};

/// Keeps what is handed to it.
#[derive(Default)]
struct Kept(Mutex<Vec<Owed>>);

impl Kept {
    fn take(&self) -> Vec<Owed> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Release for Kept {
    fn release(&self, owed: Owed) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(owed);
    }
}

#[test]
fn a_dropped_vector_is_handed_over_and_freed_in_pieces_that_share_its_weight() {
    let (kept, element) = (Arc::new(Kept::default()), Arc::new(()));
    let count = 2 * PIECE + 1;
    let mut vector = Freeing::in_pieces(kept.clone()).keep(vec![Arc::clone(&element); count]);
    vector.weigh(9);
    drop(vector);
    assert_eq!(Arc::strong_count(&element), count + 1, "nothing is freed by the drop");
    let mut owed = kept.take();
    let [owed] = owed.as_mut_slice() else { panic!("one value is owed") };
    let mut left = Vec::new();
    while let Some(bytes) = owed.free_piece() {
        left.push((bytes, Arc::strong_count(&element) - 1));
    }
    assert_eq!(left, [(3, PIECE + 1), (3, 1), (3, 0)]);
    assert_eq!(owed.bytes(), 0);
}

#[test]
fn what_is_no_vector_is_freed_in_one_piece() {
    let (kept, element) = (Arc::new(Kept::default()), Arc::new(()));
    let mut value = Freeing::whole(kept.clone()).keep([Arc::clone(&element), Arc::clone(&element)]);
    value.weigh(7);
    drop(value);
    let mut owed = kept.take();
    assert_eq!((owed.len(), Arc::strong_count(&element)), (1, 3));
    assert_eq!((owed[0].free_piece(), Arc::strong_count(&element)), (Some(7), 1));
    assert_eq!(owed[0].free_piece(), None);
}

#[test]
fn what_is_taken_out_or_empty_or_freed_in_place_is_handed_to_nobody() {
    let kept = Arc::new(Kept::default());
    let freeing = Freeing::in_pieces(kept.clone());
    assert_eq!(freeing.keep(vec![1]).into_inner(), [1]);
    drop(freeing.keep(Vec::<i32>::new()));
    drop(OffArbiter::in_place(vec![1]));
    assert!(kept.take().is_empty());
    let mut like = freeing.keep(Vec::new()).freeing().keep(vec![1]);
    like.push(2);
    drop(like);
    assert_eq!(kept.take().len(), 1, "a value made like another is freed like it");
}
