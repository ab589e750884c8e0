//! Which actor or closure a thread runs now, for the watchdog: one number that each poll writes, and a table
//! of names.
//!
//! A poll writes only the number of its label and never takes the table's lock, so its cost does not depend
//! on other threads. A poll inside another poll shows its own label; afterwards the outer one shows again,
//! also after a panic. A [`Labelled`] is never dropped during its own poll.
use crate::runtime::locked::locked;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The name of an actor or closure on a thread. It shares existing texts and is formatted only when read.
#[derive(Debug)]
pub struct Label {
    /// The owner of the actor or closure: an informer's name.
    pub owner: Arc<str>,
    /// The kind of the child, with a space after it; empty if its name is enough.
    pub kind: &'static str,
    /// The child's name.
    pub name: Arc<str>,
}

impl Label {
    /// The name within its owner.
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

#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// 0 while none is polled.
    running: AtomicU32,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    labels: Vec<Option<Arc<Label>>>,
    free: Vec<u32>,
}

impl Labels {
    pub(crate) fn add(self: &Arc<Self>, label: Arc<Label>) -> Labelled {
        let mut table = self.table();
        let number = table.free.pop().unwrap_or_else(|| {
            table.labels.push(None);
            u32::try_from(table.labels.len()).expect("a thread has fewer than four billion actors")
        });
        table.labels[number as usize - 1] = Some(label);
        Labelled { labels: Arc::clone(self), number }
    }

    pub(super) fn running(&self) -> Option<String> {
        let table = self.table();
        // Read under the lock, so that the running label cannot be removed in between.
        let number = self.running.load(Ordering::Acquire);
        let label = table.labels.get((number as usize).checked_sub(1)?)?.as_ref();
        label.map(ToString::to_string)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        locked(&self.table)
    }
}

/// A label in the table of its thread, until dropped.
#[derive(Debug)]
pub struct Labelled {
    labels: Arc<Labels>,
    number: u32,
}

impl Labelled {
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
