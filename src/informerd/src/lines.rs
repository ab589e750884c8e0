//! Formats the printed lines: changes, states, status, cached objects and the summary, for people or for scripts.
//!
//! Answers "how does this look on a line?". The only input besides the arguments is the time of day, in text.
//! Invariants:
//! 1. A line contains no line end and no control sequence except the line's own colours: all other texts are escaped by
//!    `printable`.
//! 2. Both styles get the same values; JSON leaves nothing out.
//!
//! Read next: `lines/text.rs`, `lines/json.rs`.

use std::time::Duration;

use actix_informer::informer::QueueOrder;
use actix_informer::object::Object;
use actix_informer::status::SourceState;
use actix_informer::subscription::{Notify, SubscriptionStatus};
use actix_informer::subscription::{Policy, WhenFull};

use super::describe::{Describe, Values};
use super::run::Report;
use actix_informer::status::InformerStatus;

pub(super) use text::Text;

mod json;
mod text;

/// The style of the lines.
#[derive(Debug, Clone)]
pub(super) enum Style {
    /// For people.
    Text(Text),
    /// For scripts: one JSON document per line.
    Json,
}

/// The status of one watched kind.
#[derive(Debug, Clone)]
pub(super) struct KindStatus {
    pub(super) informer: InformerStatus,
    /// The subscription that prints.
    pub(super) subscription: SubscriptionStatus,
    /// The resource version of the cache.
    pub(super) version: Option<String>,
    /// The time now, since the start of the runtime, like the times in a state.
    pub(super) now: Duration,
}

impl Style {
    /// One notification.
    pub(super) fn event<S: Describe>(&self, (kind, values): (&str, Values), notify: &Notify<S>) -> String {
        match self {
            Self::Text(text) => text.event((kind, values), notify),
            Self::Json => json::event((kind, values), notify),
        }
    }

    /// A change of state.
    pub(super) fn state(&self, kind: &str, status: &KindStatus) -> String {
        match self {
            Self::Text(text) => text.state(kind, status),
            Self::Json => json::status(kind, status, None),
        }
    }

    /// The status at an interval; `rate` is the number of changes per second since the last one.
    pub(super) fn status(&self, kind: &str, status: &KindStatus, rate: f64) -> String {
        match self {
            Self::Text(text) => text.status(kind, status, rate),
            Self::Json => json::status(kind, status, Some(rate)),
        }
    }

    /// One object of the cache.
    pub(super) fn object<S: Describe>(&self, kind: &str, object: &Object<S>) -> String {
        match self {
            Self::Text(text) => text.object(kind, object),
            Self::Json => json::object(kind, object),
        }
    }

    /// The summary at the end.
    pub(super) fn summary(&self, report: &Report) -> String {
        match self {
            Self::Text(text) => text.summary(report),
            Self::Json => json::summary(report),
        }
    }
}

/// The hints of the sources, such as that a namespace does not exist. At most this many: of many namespaces none may.
const MOST_HINTS: usize = 20;

/// Why there may be nothing to see of some sources.
pub(super) fn hints(status: &InformerStatus) -> Vec<String> {
    let hints = status.sources.iter().filter_map(|source| source.hint.as_ref());
    hints.take(MOST_HINTS).map(|hint| hint.to_string()).collect()
}

/// What has changed between two states, one phrase each; nothing in a resync.
fn changes<S: Describe>(old: &Object<S>, new: &Object<S>, values: Values) -> Vec<String> {
    if old.ptr_eq(new) { Vec::new() } else { new.body().changes(old.body(), values) }
}

/// In an informer of several namespaces: the source in the worst state, which a line is about.
fn worst_source(status: &InformerStatus) -> Option<&str> {
    status.worst().filter(|_| status.sources.len() > 1).map(|worst| worst.source.as_str())
}

/// The value of the setting `queue_order`.
pub(super) fn queue_order_name(queue_order: QueueOrder) -> &'static str {
    match queue_order {
        QueueOrder::InOrder => "in-order",
        QueueOrder::PerKey => "per-key",
        _ => "unknown",
    }
}

/// The value of the setting `policy`.
pub(super) fn policy_name(policy: Policy) -> &'static str {
    match policy {
        Policy::Coalesce => "coalesce",
        Policy::Every { when_full: WhenFull::Restate, .. } => "restate",
        Policy::Every { when_full: WhenFull::Disconnect, .. } => "disconnect",
        _ => "unknown",
    }
}

/// The name of a state in JSON and in state lines.
pub(super) fn state_name(state: &SourceState) -> &'static str {
    match state {
        SourceState::Starting => "Starting",
        SourceState::Listing { .. } => "Listing",
        SourceState::Streaming => "Streaming",
        SourceState::Backoff { .. } => "Backoff",
        SourceState::Denied { .. } => "Denied",
        SourceState::Gone { .. } => "Gone",
        SourceState::SelectorRejected { .. } => "SelectorRejected",
        SourceState::GivenUp { .. } => "GivenUp",
        SourceState::Stopped => "Stopped",
        _ => "Unknown",
    }
}

// The time of day at the beginning of each line for people, and the time in each line for scripts.
//
// It is the only reader of the wall clock, and no decision depends on it. Invariant:
// 1. For people, local time if the system knows its time zone, else UTC; for scripts, UTC.

/// Hours, minutes and seconds.
pub(super) fn time_of_day() -> String {
    jiff::Zoned::now().strftime("%H:%M:%S").to_string()
}

/// The time of day with its date, for scripts: RFC 3339, UTC.
pub(super) fn time() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}
