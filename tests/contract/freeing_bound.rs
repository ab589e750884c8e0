//! What exists beside the store while objects are replaced, with bodies that are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::blocking::{Gate, Held, on_threads};
use crate::fed::Fed;
use crate::off_arbiter::comes_true;
use crate::threads::{LIMIT, start};

/// A body that is counted while it exists. The freeing thread waits for the gate before it drops one.
struct Counted(Arc<AtomicUsize>, Held);

impl Drop for Counted {
    fn drop(&mut self) {
        if std::thread::current().name().is_some_and(|name| name.ends_with("-free")) {
            self.1.wait();
        }
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn informer_14_while_the_freeing_thread_does_not_run_no_more_objects_exist_than_its_bound_allows() {
    const OBJECTS: u64 = 10_000;
    const ROUND: u64 = 25;
    // Replaced objects wait in lists of 25, each of 2,500 bytes and 4 KiB for itself, up to 1 MiB.
    const LISTS: u64 = (1 << 20) / (2_500 + (4 << 10)) + 1;
    // Beside these: the store, the objects that replace others, those that are replaced, and what the thread has.
    const MOST: u64 = OBJECTS + ROUND * (LISTS + 3);
    on_threads(async {
        let (runtime, (gate, held), exist) = (start(), Gate::new(), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&exist);
        let fed = Fed::new(OBJECTS, move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Counted(Arc::clone(&counted), held.clone())
        });
        let informer = fed.informer(&runtime, "bounded");
        fed.watched().await;
        for first in (0..OBJECTS).step_by(ROUND as usize) {
            let newest = fed.update(first..first + ROUND, OBJECTS + first);
            informer.lister().wait_for(&newest, LIMIT).await.expect("it arrives");
            let exist = exist.load(Ordering::Relaxed);
            assert!(exist as u64 <= MOST, "{exist} after {first} changes");
        }
        drop(gate);
        comes_true("all is free", || exist.load(Ordering::Relaxed) as u64 == OBJECTS).await;
    });
}
