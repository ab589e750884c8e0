//! Tests of the freeing thread, with values that report which thread drops them.

use std::sync::mpsc;
use std::time::Duration;

use futures_util::FutureExt;
use informer_core::chunks::{CHUNK, Chunks};
use informer_core::off_arbiter::{Freeing as By, OffArbiter};

use crate::runtime::DecodePool;

use super::{FREE_IN_PLACE_AT, Freeing, HELP_AT, LARGE, NO_LIST_AT, PIECES, ThreadState, WAKE_AT_VALUES};

const LIMIT: Duration = Duration::from_secs(60);

/// Sends the name of the thread that drops it, and then panics if the flag is set.
struct Dropped(mpsc::Sender<String>, bool);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.send(own_name()).expect("the test listens");
        assert!(!self.1, "a destructor that panics");
    }
}

fn kept(freeing: &Freeing, value: Dropped) -> OffArbiter<Dropped> {
    By::whole(freeing.as_release()).keep(value)
}

#[test]
fn one_small_value_and_many_are_all_freed_on_the_thread() {
    let (freeing, (told, drops)) = (Freeing::thread("small").expect("a thread"), mpsc::channel());
    drop(kept(&freeing, Dropped(told.clone(), false)));
    assert_eq!(drops.recv_timeout(LIMIT).as_deref(), Ok("small-free"));
    (0..3 * WAKE_AT_VALUES).for_each(|_| drop(kept(&freeing, Dropped(told.clone(), false))));
    let names: Vec<_> =
        (0..3 * WAKE_AT_VALUES).map(|_| drops.recv_timeout(LIMIT).expect("it is freed")).collect();
    assert!(names.iter().all(|name| name == "small-free"));
}

#[test]
fn a_destructor_that_panics_keeps_no_other_value_from_being_freed() {
    let (freeing, (told, drops)) = (Freeing::thread("panics").expect("a thread"), mpsc::channel());
    drop(kept(&freeing, Dropped(told.clone(), true)));
    drop(kept(&freeing, Dropped(told, false)));
    assert_eq!(drops.iter().count(), 2);
}

#[tokio::test]
async fn at_the_end_what_waits_is_freed_by_the_thread_and_what_comes_later_by_its_caller() {
    let (freeing, (told, drops)) = (Freeing::thread("ends").expect("a thread"), mpsc::channel());
    let (early, late) = (kept(&freeing, Dropped(told.clone(), false)), kept(&freeing, Dropped(told, false)));
    drop(early);
    freeing.close().await;
    assert_eq!(drops.try_recv().as_deref(), Ok("ends-free"), "before `close` has returned");
    drop(late);
    let own = own_name();
    assert_eq!(drops.try_recv(), Ok(own));
    assert_eq!(freeing.pending_bytes(), 0);
}

/// Says that it is being dropped, and is until the test says so.
struct Busy(mpsc::Sender<()>, mpsc::Receiver<()>);

impl Drop for Busy {
    fn drop(&mut self) {
        let (_heard, _said) = (self.0.send(()), self.1.recv());
    }
}

/// Makes the thread free a value of this number of bytes. That lasts until the returned sender is dropped.
fn busy(freeing: &Freeing, bytes: usize) -> mpsc::Sender<()> {
    let ((go, gate), (begins, begun)) = (mpsc::channel(), mpsc::channel());
    let value = By::whole(freeing.as_release()).keep(Busy(begins, gate));
    value.weigh(bytes);
    drop(value);
    begun.recv_timeout(LIMIT).expect("the thread frees it");
    go
}

/// Drops 100 values of this number of bytes; at most `most` bytes wait. Returns the threads that have freed
/// some so far.
fn drop_100(
    freeing: &Freeing,
    to: (&mpsc::Sender<String>, &mpsc::Receiver<String>),
    bytes: usize,
    most: usize,
) -> Vec<String> {
    for _ in 0..100 {
        let value = kept(freeing, Dropped(to.0.clone(), false));
        value.weigh(bytes);
        drop(value);
        assert!(freeing.pending_bytes() <= most, "{} bytes wait", freeing.pending_bytes());
    }
    to.1.try_iter().collect()
}

fn own_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

/// Checks again and again, for at least ten seconds, because the awaited thread sends no signal.
fn until(holds: impl Fn() -> bool) -> bool {
    (0..10_000).any(|_| {
        std::thread::park_timeout(Duration::from_millis(1));
        holds()
    })
}

#[test]
fn informer_14_what_waits_is_bounded_by_bytes_and_at_the_bound_a_value_is_freed_where_it_is_dropped() {
    let (freeing, (told, drops)) = (Freeing::thread("bound").expect("a thread"), mpsc::channel());
    let (go, bytes, own) = (busy(&freeing, LARGE), FREE_IN_PLACE_AT / 16, own_name());
    let here = drop_100(&freeing, (&told, &drops), bytes, LARGE + FREE_IN_PLACE_AT + bytes);
    assert!(here.len() >= 80 && here.iter().all(|name| *name == own), "{here:?}");
    drop(go);
    let there = (here.len()..100).map(|_| drops.recv_timeout(LIMIT).expect("it is freed"));
    assert!(there.into_iter().all(|name| name == "bound-free"));
}

#[test]
fn informer_14_a_thread_that_makes_objects_frees_others_while_many_wait() {
    let (freeing, (told, drops)) = (Freeing::thread("helped").expect("a thread"), mpsc::channel());
    let go = busy(&freeing, LARGE);
    for _ in 0..16 {
        let value = kept(&freeing, Dropped(told.clone(), false));
        value.weigh(HELP_AT / 8);
        drop(value);
    }
    // As before a job that is done in place.
    DecodePool::threads("none", 0, &freeing).expect("no thread").help_free();
    let own = own_name();
    let here: Vec<_> = drops.try_iter().collect();
    assert!((8..=10).contains(&here.len()) && here.iter().all(|name| *name == own), "{here:?}");
    drop(go);
    assert_eq!(
        drops.iter().take(16 - here.len()).filter(|name| name == "helped-free").count(),
        16 - here.len()
    );
}

#[test]
fn informer_14_a_large_value_is_freed_where_it_is_dropped_while_too_much_waits() {
    let (freeing, (told, drops)) = (Freeing::thread("large").expect("a thread"), mpsc::channel());
    let (go, bytes, own) = (busy(&freeing, LARGE), NO_LIST_AT / 16, own_name());
    let here = drop_100(&freeing, (&told, &drops), bytes, NO_LIST_AT + bytes);
    assert!(here.len() == 84 && here.iter().all(|name| *name == own), "{}: {here:?}", here.len());
    // A value of one piece takes two calls: the second one sees that nothing is left.
    (0..2 * 16).for_each(|_| freeing.help());
    let helped: Vec<_> = drops.try_iter().collect();
    assert!(helped.len() == 16 && helped.iter().all(|name| *name == own), "{helped:?}");
    assert_eq!(freeing.pending_bytes(), LARGE, "what the thread is freeing");
    drop(go);
}

#[test]
fn a_list_is_never_freed_where_it_is_dropped_however_much_waits() {
    let (freeing, (told, drops)) = (Freeing::thread("lists").expect("a thread"), mpsc::channel());
    let go = busy(&freeing, NO_LIST_AT);
    for bytes in [LARGE, FREE_IN_PLACE_AT, 0] {
        let list: Chunks<_> = (0..PIECES * CHUNK + 1).map(|_| Dropped(told.clone(), false)).collect();
        let list = By::by_chunks(freeing.as_release()).keep(list);
        list.weigh(bytes);
        drop(list);
    }
    assert_eq!(drops.try_iter().count(), 0, "none here");
    drop(go);
    let there = drops.iter().take(3 * (PIECES * CHUNK + 1));
    assert!(there.into_iter().all(|name| name == "lists-free"));
}

#[test]
fn a_thread_that_is_woken_for_a_value_that_another_one_has_freed_is_woken_for_the_next() {
    let freeing = Freeing::thread("late").expect("a thread");
    let is_idle = || freeing.0.state().thread == ThreadState::Idle;
    assert!(until(is_idle));
    // As `release` leaves it once `help` was faster than the thread.
    freeing.0.state().thread = ThreadState::Busy;
    freeing.0.wake.notify_one();
    assert!(until(is_idle), "it would sleep for ever");
}

#[test]
fn a_large_value_that_a_helper_puts_back_while_the_thread_sleeps_is_freed_to_its_end() {
    let (freeing, (told, drops)) = (Freeing::thread("back").expect("a thread"), mpsc::channel());
    let go = busy(&freeing, 1);
    let value = kept(&freeing, Dropped(told, false));
    value.weigh(LARGE);
    drop(value);
    let large = freeing.0.state().large.pop_front().expect("it waits, as the thread is busy");
    drop(go);
    assert!(until(|| freeing.0.state().thread == ThreadState::Idle));
    // Its one piece is freed here; that nothing is left of it is for the thread to see.
    freeing.0.free_some(large);
    assert_eq!(drops.try_recv(), Ok(own_name()));
    assert!(until(|| freeing.0.state().large.is_empty() && freeing.pending_bytes() == 0));
}

#[tokio::test]
async fn a_list_waits_while_too_much_is_to_be_freed_and_begins_when_it_is_less() {
    let freeing = Freeing::thread("much").expect("a thread");
    let go = busy(&freeing, NO_LIST_AT);
    assert_eq!(freeing.pending_bytes(), NO_LIST_AT);
    let mut waits = Box::pin(freeing.until_below_limit());
    assert!((&mut waits).now_or_never().is_none(), "256 MiB are still to be freed");
    drop(go);
    tokio::time::timeout(LIMIT, waits).await.expect("it begins");
    assert_eq!(freeing.pending_bytes(), 0);
    assert!(freeing.until_below_limit().now_or_never().is_some(), "and so does every later one");
}
