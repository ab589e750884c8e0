//! Logs each reconcile at its end: as a debug line, or as a warning for a new failure.

use std::fmt;
use std::time::Duration;

use crate::controller::machine::{MOST_FAILING, Telling};
use informer_core::words::Short;

use super::Run;
use informer_actors::informer::Body;

impl<S: Body> Run<S> {
    pub(super) fn log(&self, telling: Telling, then: &Then) {
        let (controller, key, cause) = (&self.shared.name, &self.key, &self.begun.causes);
        let since = || self.shared.runtime.now().saturating_sub(self.began);
        let took = Short(self.took.get().copied().unwrap_or_else(since));
        let _entered = self.span.enter();
        let Some(why) = self.why.get() else {
            if matches!(then, Then::InOrder) {
                tracing::debug!(target: "actix_informer::controller", %cause, "controller {controller}: {key} was reconciled in {took}");
            } else {
                tracing::debug!(target: "actix_informer::controller", %cause, "controller {controller}: the reconcile of {key} was cancelled after {took}; {then}");
            }
            return;
        };
        let attempt = u64::from(self.attempt) + 1;
        match telling {
            Telling::Warning => {
                tracing::warn!(target: "actix_informer::controller", %cause, attempt, "controller {controller}: {key} was not reconciled: {why} (attempt {attempt}, after {took}; {then})");
            }
            Telling::WarningOfMany(count) => {
                tracing::warn!(target: "actix_informer::controller", %cause, attempt, count, "controller {controller}: more than {MOST_FAILING} keys fail, {key} too: {why} (attempt {attempt}, after {took}; {then}; {count} such failures since the last warning)");
            }
            _ => {
                tracing::debug!(target: "actix_informer::controller", %cause, attempt, "controller {controller}: {key} was again not reconciled: {why} (attempt {attempt}, after {took}; {then})");
            }
        }
    }
}

pub(super) enum Then {
    InOrder,
    Rests,
    /// After this time; `None` if the queue is shut down.
    TriedAgain(Option<Duration>),
}

impl fmt::Display for Then {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InOrder => f.write_str("it is in order"),
            Self::Rests => f.write_str("it is tried again when its object changes"),
            Self::TriedAgain(Some(after)) => write!(f, "next try in {}", Short(*after)),
            Self::TriedAgain(None) => f.write_str("it is not tried again: the controller stops"),
        }
    }
}
