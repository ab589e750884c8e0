//! What a printed line says: changes, states, status, cached objects and the summary, for people or for scripts.
//!
//! Answers "how does this look on a line?". Pure but for the time of day in text. Invariants:
//! 1. A line holds no line end and commands no terminal: whatever is not our own goes through `printable.rs` here.
//! 2. Both styles are told the same; JSON leaves nothing out.
//!
//! Read next: `lines/text.rs`, `lines/json.rs`.

use std::time::Duration;

use crate::core::delta_fifo::Discipline;
use crate::core::listener::{Policy, WhenFull};
use crate::core::meta::Object;
use crate::core::reflector::SourceState;
use crate::messages::Notify;
use crate::seat::SubscriptionStatus;
use crate::status::InformerStatus;

use super::describe::{Describe, Values};
use super::run::Report;

mod json;
mod text;

pub(super) use text::Text;

/// How lines look.
#[derive(Debug, Clone)]
pub(super) enum Style {
    /// For people.
    Text(Text),
    /// For scripts: one JSON document a line.
    Json,
}

/// How one informer is doing, as far as a line tells it.
#[derive(Debug, Clone)]
pub(super) struct Doing {
    pub(super) status: InformerStatus,
    /// The subscription that prints.
    pub(super) subscription: SubscriptionStatus,
    /// The version that the cache is at.
    pub(super) version: Option<String>,
    /// Now, since the start of the runtime: what a state's times count from.
    pub(super) now: Duration,
}

impl Style {
    /// One notification.
    pub(super) fn event<S: Describe>(&self, (kind, values): (&str, Values), notify: &Notify<S>) -> String {
        match self {
            Self::Text(text) => text.event((kind, values), notify),
            Self::Json => json::event(kind, notify),
        }
    }

    /// A change of state.
    pub(super) fn state(&self, kind: &str, doing: &Doing) -> String {
        match self {
            Self::Text(text) => text.state(kind, doing),
            Self::Json => json::status(kind, doing),
        }
    }

    /// How it is doing, told from time to time; `changes` is how many a second there were since the last time.
    pub(super) fn status(&self, kind: &str, doing: &Doing, changes: f64) -> String {
        match self {
            Self::Text(text) => text.status(kind, doing, changes),
            Self::Json => json::status(kind, doing),
        }
    }

    /// One object of the cache.
    pub(super) fn object<S: Describe>(&self, kind: &str, object: &Object<S>) -> String {
        match self {
            Self::Text(text) => text.object(kind, object),
            Self::Json => json::object(kind, object),
        }
    }

    /// The end.
    pub(super) fn summary(&self, report: &Report) -> String {
        match self {
            Self::Text(text) => text.summary(report),
            Self::Json => json::summary(report),
        }
    }
}

/// A discipline as the configuration calls it.
pub(super) fn discipline_name(discipline: Discipline) -> &'static str {
    match discipline {
        Discipline::InOrder => "in-order",
        Discipline::PerKey => "per-key",
        _ => "unknown",
    }
}

/// A policy as the configuration calls it.
pub(super) fn policy_name(policy: Policy) -> &'static str {
    match policy {
        Policy::Coalesce => "coalesce",
        Policy::Every { when_full: WhenFull::Restate, .. } => "restate",
        Policy::Every { when_full: WhenFull::Disconnect, .. } => "disconnect",
        _ => "unknown",
    }
}

/// The name of a state, as it stands in JSON and in front of a state line.
pub(super) fn state_name(state: &SourceState) -> &'static str {
    match state {
        SourceState::Starting => "Starting",
        SourceState::Listing { .. } => "Listing",
        SourceState::Streaming => "Streaming",
        SourceState::Backoff { .. } => "Backoff",
        SourceState::Denied { .. } => "Denied",
        SourceState::Gone { .. } => "Gone",
        SourceState::GivenUp { .. } => "GivenUp",
        SourceState::Stopped => "Stopped",
        _ => "Unknown",
    }
}
