//! Fault hooks: kill an actor at a site, a number of times.
//!
//! Answers "how does a test choose where an actor dies?". The hook panics inside the actor, while it handles a message.
//! Invariants:
//! 1. A hook panics exactly as often as the test asked for, and not again.

use std::sync::Mutex;

use crate::runtime::faults::{Faults, Site};
use crate::runtime::locked::locked;

/// Kills the actor that reaches `site` for the `nth` time (the first is 1), once.
pub fn kill_at(site: Site, nth: u32) -> Faults {
    let visits = Mutex::new(0);
    Faults::new(move |here| {
        if here != site {
            return;
        }
        let visit = {
            let mut visits = locked(&visits);
            *visits += 1;
            *visits
        };
        assert!(visit != nth, "killed at {site:?}");
    })
}

/// Kills the actor at every `period`th visit to `site`, at most `times` times.
pub fn kill_every(site: Site, period: u32, times: u32) -> Faults {
    let state = Mutex::new((0_u32, 0_u32));
    Faults::new(move |here| {
        if here != site {
            return;
        }
        let kill = {
            let mut state = locked(&state);
            state.0 += 1;
            let kill = state.0.is_multiple_of(period) && state.1 < times;
            state.1 += u32::from(kill);
            kill
        };
        assert!(!kill, "killed at {site:?}");
    })
}
