//! The actor that a thread runs now: one number that each poll writes, and a table of names that the watchdog reads.
//!
//! Answers "which actor or closure runs on this thread now?" for another thread. A poll writes only the number of its
//! label, so its cost does not depend on other threads. Invariants:
//! 1. The table's lock is taken to add, remove or read a label, and never by a poll.
//! 2. A number belongs to one label until the label's [`Labelled`] is dropped, which never happens during its own poll.
//! 3. A poll inside a poll shows its own label, and afterwards the outer one again, also after a panic.
//!
//! Read next: `arbiter.rs`, which has one table; `watchdog.rs`, which reads it.
use crate::runtime::locked::locked;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The name of an actor or closure on a thread. It shares texts that exist anyway, and is formatted only when it is
/// read.
#[derive(Debug)]
pub struct Label {
    /// The owner of the actor or closure: an informer's name.
    pub owner: Arc<str>,
    /// The kind of the child with the space after it; empty if its name is enough.
    pub kind: &'static str,
    /// The child's.
    pub name: Arc<str>,
}

impl Label {
    /// The child's name within its owner.
    pub(crate) fn child(&self) -> Arc<str> {
        if self.kind.is_empty() {
            Arc::clone(&self.name)
        } else {
            format!("{}{}", self.kind, self.name).into()
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}{}", self.owner, self.kind, self.name)
    }
}

/// The labels of one thread, and which of them runs.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// The number of the label that is being polled; 0 while none is.
    running: AtomicU32,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Label number `n` is at `n - 1`.
    labels: Vec<Option<Arc<Label>>>,
    free: Vec<u32>,
}

impl Labels {
    /// Gives `label` a number until the returned value is dropped.
    pub(crate) fn add(self: &Arc<Self>, label: Arc<Label>) -> Labelled {
        let mut table = self.table();
        let number = table.free.pop().unwrap_or_else(|| {
            table.labels.push(None);
            u32::try_from(table.labels.len()).expect("a thread has fewer than four billion actors")
        });
        table.labels[number as usize - 1] = Some(label);
        Labelled { labels: Arc::clone(self), number }
    }

    /// The actor that is being polled now, as `informer/actor`.
    pub(super) fn running(&self) -> Option<String> {
        let table = self.table();
        // Read under the lock: a label that runs cannot be taken out meanwhile.
        let number = self.running.load(Ordering::Acquire);
        let label = table.labels.get((number as usize).checked_sub(1)?)?.as_ref();
        label.map(ToString::to_string)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        locked(&self.table)
    }
}

/// A label in the table of its thread; taken out when dropped.
#[derive(Debug)]
pub struct Labelled {
    labels: Arc<Labels>,
    number: u32,
}

impl Labelled {
    /// Shows the label until the returned value is dropped.
    pub(crate) fn enter(&self) -> Entered<'_> {
        let running = &self.labels.running;
        // Only this thread writes it.
        let outer = running.load(Ordering::Relaxed);
        running.store(self.number, Ordering::Release);
        Entered { running, outer }
    }

    /// Polls `future` under the label.
    pub async fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let _entered = self.enter();
            future.as_mut().poll(cx)
        })
        .await
    }
}

impl Drop for Labelled {
    fn drop(&mut self) {
        let mut table = self.labels.table();
        table.labels[self.number as usize - 1] = None;
        table.free.push(self.number);
    }
}

/// A label that is shown.
pub(crate) struct Entered<'a> {
    running: &'a AtomicU32,
    outer: u32,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.running.store(self.outer, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use super::{Label, Labels};

    fn label(name: &str) -> Arc<Label> {
        Arc::new(Label { owner: "pods".into(), kind: "listener ", name: name.into() })
    }

    #[test]
    fn the_label_of_the_innermost_poll_is_shown_and_none_after_a_panic() {
        let labels = Arc::new(Labels::default());
        let (outer, inner) = (labels.add(label("outer")), labels.add(label("inner")));
        assert_eq!(labels.running(), None);
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let _outer = outer.enter();
            {
                let _inner = inner.enter();
                assert_eq!(labels.running().as_deref(), Some("pods/listener inner"));
            }
            assert_eq!(labels.running().as_deref(), Some("pods/listener outer"));
            panic!("in a poll");
        }));
        assert!(polled.is_err());
        assert_eq!(labels.running(), None);
    }

    #[test]
    fn a_number_is_used_again_after_its_label_is_taken_out() {
        let labels = Arc::new(Labels::default());
        for round in 0..1_000 {
            let (kept, one) = (labels.add(label("kept")), labels.add(label(&round.to_string())));
            let _entered = one.enter();
            assert_eq!(labels.running(), Some(format!("pods/listener {round}")));
            drop(kept);
        }
        assert_eq!(labels.table().labels.len(), 2);
    }
}
