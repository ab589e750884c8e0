//! The filter that says which namespaces a cluster-wide source keeps. It outlives the reflector.
//!
//! 1. A namespace counts as listed when a list that kept it is published, and while it is kept.
//! 2. What a list keeps counts as held from before its delivery, so that the removal of the source does not
//!    take away these objects.

use std::sync::{Mutex, MutexGuard};

use informer_core::namespaces::Names;

use crate::pipeline::signal::Signal;
use crate::runtime::locked::locked;

#[derive(Debug, Default)]
pub(crate) struct NamespaceFilter {
    state: Mutex<State>,
    /// Raised when another set is requested.
    pub(crate) changed: Signal,
}

#[derive(Debug, Default)]
struct State {
    asked: Names,
    listed: Option<Names>,
    /// The namespaces whose objects the store may have from this source, now or after a publish.
    held: Names,
    /// The store has exactly what is requested of the source.
    is_settled: bool,
}

impl NamespaceFilter {
    pub(crate) fn new(asked: Names) -> Self {
        Self { state: Mutex::new(State { asked, ..State::default() }), changed: Signal::default() }
    }

    pub(crate) fn asked(&self) -> Names {
        Names::clone(&self.state().asked)
    }

    /// What is published with all its objects.
    pub(crate) fn listed(&self) -> Option<Names> {
        self.state().listed.clone()
    }

    pub(crate) fn held(&self) -> Names {
        Names::clone(&self.state().held)
    }

    pub(crate) fn deliver(&self, kept: &Names) {
        let mut state = self.state();
        state.held = Names::new(state.held.union(kept).cloned().collect());
    }

    pub(crate) fn ask(&self, asked: Names) {
        let mut state = self.state();
        state.listed = state.listed.take().map(|listed| intersection(&listed, &asked));
        (state.asked, state.is_settled) = (asked, false);
        drop(state);
        self.changed.raise();
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.state().is_settled
    }

    /// The store has exactly these of the source. True if this newly settles the request.
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
