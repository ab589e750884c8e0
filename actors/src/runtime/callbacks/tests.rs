//! The callback pool: its width, its end, and the thread on which the value of a strand (a `PooledValue`) is
//! used and dropped.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, mpsc};

use super::{CallbackPool, Job, PooledValue};
use crate::runtime::mailbox::Closed;

/// Sends the name of the thread that drops it.
struct Owned(mpsc::Sender<Option<String>>);

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.0.send(std::thread::current().name().map(str::to_owned));
    }
}

/// A job that reports nothing.
fn silent(job: impl FnOnce() + Send + 'static) -> Job {
    Box::new(move || {
        job();
        Box::new(())
    })
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

#[test]
fn a_job_never_waits_for_another_and_idle_threads_are_used_again() {
    let pool = CallbackPool::threads("grown");
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let (done, finished) = mpsc::channel();
    for _ in 0..8 {
        let (held, done) = (Arc::clone(&held), done.clone());
        let job = move || {
            let _ = held.lock().map(|held| held.recv());
            let _ = done.send(());
        };
        assert!(pool.run(silent(job)).is_ok(), "the pool is open");
    }
    let (told, heard) = mpsc::channel();
    let job = move || told.send("not delayed").expect("it is heard");
    assert!(pool.run(silent(job)).is_ok(), "the pool is open");
    assert_eq!(heard.recv(), Ok("not delayed"));
    assert!(pool.width() >= 8);
    drop(release);
    (0..8).for_each(|_| finished.recv().expect("they return"));
    pool.close();
}

#[test]
fn inf_10_after_the_close_no_thread_remains_that_had_reported_its_jobs_end_or_that_its_value_is_dropped() {
    /// Reports the end of the thread that keeps it.
    struct AtThreadsEnd(mpsc::Sender<()>);
    impl Drop for AtThreadsEnd {
        fn drop(&mut self) {
            let _heard = self.0.send(());
        }
    }
    thread_local!(static KEPT: RefCell<Vec<AtThreadsEnd>> = const { RefCell::new(Vec::new()) });
    for round in 0..2_000 {
        let pool = CallbackPool::threads("gone");
        let (ends, ended) = mpsc::channel();
        let (dropped, is_dropped) = mpsc::channel::<()>();
        let strand = PooledValue::new(pool.clone(), (), dropped);
        let job = strand.run(move |()| KEPT.with_borrow_mut(|kept| kept.push(AtThreadsEnd(ends))));
        if round % 2 == 0 {
            drop(strand);
            assert!(is_dropped.recv().is_err(), "nothing is sent");
        } else {
            wait(job).expect("the pool is open");
        }
        pool.close();
        assert_eq!(ended.try_recv(), Ok(()), "round {round}: the thread has ended");
    }
}

#[test]
fn a_job_that_panics_counts_as_ended_and_what_a_strand_owns_is_dropped_on_the_pool() {
    let (told, heard) = mpsc::channel();
    let strand = PooledValue::new(CallbackPool::threads("owning"), Owned(told), ());
    let ended = strand.run(|_| panic!("on purpose"));
    drop(strand);
    assert_eq!(wait(ended), Ok(()));
    let thread = heard.recv().expect("it is dropped").expect("a named thread");
    assert!(thread.starts_with("owning-callback-"), "{thread}");
}

// LIS-29: given a callback pool that is closed, when a blocking closure is to be called, then it is not, and
// its captures are dropped on a thread of their own, never on an arbiter.
// - a it is not called
// - b its captures are dropped on a thread of their own
#[test]
fn lis_29_after_the_close_no_job_begins_and_what_a_strand_owns_is_dropped_on_a_thread_of_its_own() {
    let (told, heard) = mpsc::channel();
    let pool = CallbackPool::threads("closed");
    let strand = PooledValue::new(pool.clone(), Owned(told), ());
    pool.close();
    let (ran, runs) = mpsc::channel();
    let ended = strand.run(move |_| ran.send(()).expect("it is heard"));
    assert_eq!(wait(ended), Err(Closed));
    assert_eq!(runs.recv(), Err(mpsc::RecvError), "the job was dropped");
    drop(strand);
    let thread = heard.recv().expect("it is dropped").expect("a named thread");
    assert_eq!(thread, "closed-callback-end");
}

#[test]
fn no_lock_is_held_while_a_job_runs_and_the_value_is_back_after_a_panic() {
    let strand = PooledValue::new(CallbackPool::threads("free"), 1, ());
    let owned = Arc::clone(&strand.0);
    let (told, heard) = mpsc::channel();
    let free = told.clone();
    let ended = strand.run(move |value| {
        *value += 1;
        free.send(i32::from(owned.value.try_lock().is_ok())).expect("it is heard");
        panic!("on purpose");
    });
    assert_eq!(wait(ended), Ok(()));
    assert_eq!(heard.recv(), Ok(1), "the lock is free");
    assert_eq!(wait(strand.run(move |value| told.send(*value).expect("it is heard"))), Ok(()));
    assert_eq!(heard.recv(), Ok(2), "the same value as before");
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("on purpose, in the drop of a payload");
    }
}

#[test]
fn a_panic_whose_payload_panics_when_it_is_dropped_ends_no_thread() {
    let pool = CallbackPool::threads("hard");
    assert!(pool.run(silent(|| std::panic::panic_any(Bomb))).is_ok(), "the pool is open");
    let threads = pool.0.as_ref().expect("it has threads");
    let is_idle = || {
        std::thread::yield_now();
        threads.state().idle == 1
    };
    assert!((0..10_000_000).any(|_| is_idle()), "the thread waits for its next job");
}
