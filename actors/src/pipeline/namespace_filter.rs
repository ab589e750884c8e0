//! Which namespaces a cluster-wide source keeps.
//!
//! Answers "which namespaces shall its next list keep, and which are published by it?" for the actor that exchanges
//! sources and for the source's reflector. Invariants:
//! 1. A namespace counts as listed only when a list that kept it is published, and while it has been kept since.
//! 2. What a list keeps counts as held from before its delivery on: who leaves the source must not take it away.
//! 3. Its lock guards two pointers. No user's code runs under it.
//!
//! Read next: `reflector/filtering.rs`, which lists again when the filter has changed.

use std::sync::{Mutex, MutexGuard};

use informer_core::namespaces::Names;

use crate::pipeline::signal::Signal;
use crate::runtime::locked::locked;

/// The filter of one cluster-wide source. It outlives its reflector.
#[derive(Debug, Default)]
pub(crate) struct NamespaceFilter {
    state: Mutex<State>,
    /// Raised when another set is asked for.
    pub(crate) changed: Signal,
}

#[derive(Debug, Default)]
struct State {
    asked: Names,
    listed: Option<Names>,
    /// What the store may have of the source, now or when what was delivered is published.
    held: Names,
    /// Whether the store has what is asked for of the source, and nothing else.
    is_settled: bool,
}

impl NamespaceFilter {
    /// Keeps these from its first list on.
    pub(crate) fn new(asked: Names) -> Self {
        Self { state: Mutex::new(State { asked, ..State::default() }), changed: Signal::default() }
    }

    /// What the next list keeps.
    pub(crate) fn asked(&self) -> Names {
        Names::clone(&self.state().asked)
    }

    /// What is published by the source, with all its objects.
    pub(crate) fn listed(&self) -> Option<Names> {
        self.state().listed.clone()
    }

    /// Of which namespaces the store may have objects by the source, now or when what was delivered is published.
    pub(crate) fn held(&self) -> Names {
        Names::clone(&self.state().held)
    }

    /// A list that keeps these is about to be delivered.
    pub(crate) fn deliver(&self, kept: &Names) {
        let mut state = self.state();
        state.held = Names::new(state.held.union(kept).cloned().collect());
    }

    /// Has the source keep these.
    pub(crate) fn ask(&self, asked: Names) {
        let mut state = self.state();
        state.listed = state.listed.take().map(|listed| intersection(&listed, &asked));
        (state.asked, state.is_settled) = (asked, false);
        drop(state);
        self.changed.raise();
    }

    /// Whether the store has all that is asked for of the source, and nothing else.
    pub(crate) fn is_settled(&self) -> bool {
        self.state().is_settled
    }

    /// The store has of the source exactly the objects of these. Whether that settles what was asked for.
    pub(crate) fn list(&self, kept: &Names) -> bool {
        let mut state = self.state();
        let was_settled = state.is_settled;
        (state.listed, state.held) = (Some(intersection(kept, &state.asked)), Names::clone(kept));
        state.is_settled = *kept == state.asked;
        state.is_settled && !was_settled
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

fn intersection(one: &Names, other: &Names) -> Names {
    if one == other {
        return Names::clone(one);
    }
    Names::new(one.intersection(other).cloned().collect())
}
