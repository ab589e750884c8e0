//! What happened while sources took over from each other.
//!
//! Answers "was each kind of change drawn in each kind of window?": a run counts what it does to objects, servers and
//! actors while a change of sources is under way. Invariants:
//! 1. A window is open by what the informer shows, or by a call that has not returned, not by what was drawn.

use std::collections::{BTreeMap, BTreeSet};

/// A change of sources that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Window {
    /// The source of a whole cluster is to take over from those of single namespaces, and has not listed.
    AllTakesOver,
    /// It has listed, and others are still there: new namespaces, or those that it has yet to take over.
    AllBesideEach,
    /// The sources of single namespaces are to take over from that of the whole cluster.
    EachTakesOver,
    /// The source of a whole cluster is refused, and still there.
    AllIsRefused,
    /// One source is to take over from another one.
    HandOver,
    /// A source is being removed.
    Removal,
}

/// What happens in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deed {
    Made,
    Changed,
    Deleted,
    MadeAgain,
    /// The server went back to an older state.
    Rewound,
    /// An actor was killed.
    Killed,
}

pub(crate) const DEEDS: [Deed; 6] =
    [Deed::Made, Deed::Changed, Deed::Deleted, Deed::MadeAgain, Deed::Rewound, Deed::Killed];
pub(crate) const WINDOWS: [Window; 6] = [
    Window::AllTakesOver,
    Window::AllBesideEach,
    Window::EachTakesOver,
    Window::AllIsRefused,
    Window::HandOver,
    Window::Removal,
];

/// How often each deed was done in each window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Windows {
    done: BTreeMap<(Window, Deed), usize>,
    /// Those that were open at the last look, and how many actors had been restarted.
    open: BTreeSet<Window>,
    restarts: u64,
}

impl Windows {
    pub(crate) fn note(&mut self, window: Window, deed: Deed) {
        *self.done.entry((window, deed)).or_default() += 1;
    }

    /// These are open now, and so many actors were restarted so far.
    pub(crate) fn look(&mut self, open: BTreeSet<Window>, restarts: u64) {
        if restarts > self.restarts {
            let stayed: Vec<Window> = self.open.intersection(&open).copied().collect();
            stayed.into_iter().for_each(|window| self.note(window, Deed::Killed));
        }
        (self.open, self.restarts) = (open, restarts);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (what, count) in &other.done {
            *self.done.entry(*what).or_default() += count;
        }
    }

    /// How often this deed was done in this window.
    pub(crate) fn count(&self, window: Window, deed: Deed) -> usize {
        self.done.get(&(window, deed)).copied().unwrap_or_default()
    }
}
