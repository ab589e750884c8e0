//! Formats lines for people or for scripts. No line contains a line end or a control sequence except its own colours: `printable`
//! escapes all other texts. JSON leaves nothing out.

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

#[derive(Debug, Clone)]
pub(super) enum Style {
    Text(Text),
    Json,
}

#[derive(Debug, Clone)]
pub(super) struct KindStatus {
    pub(super) informer: InformerStatus,
    /// The one that prints.
    pub(super) subscription: SubscriptionStatus,
    /// Of the cache.
    pub(super) version: Option<String>,
    /// Since the start of the runtime.
    pub(super) now: Duration,
}

impl Style {
    pub(super) fn event<S: Describe>(&self, (kind, values): (&str, Values), notify: &Notify<S>) -> String {
        match self {
            Self::Text(text) => text.event((kind, values), notify),
            Self::Json => json::event((kind, values), notify),
        }
    }

    pub(super) fn state(&self, kind: &str, status: &KindStatus) -> String {
        match self {
            Self::Text(text) => text.state(kind, status),
            Self::Json => json::status(kind, status, None),
        }
    }

    /// `rate`: changes per second since the last status.
    pub(super) fn status(&self, kind: &str, status: &KindStatus, rate: f64) -> String {
        match self {
            Self::Text(text) => text.status(kind, status, rate),
            Self::Json => json::status(kind, status, Some(rate)),
        }
    }

    pub(super) fn object<S: Describe>(&self, kind: &str, object: &Object<S>) -> String {
        match self {
            Self::Text(text) => text.object(kind, object),
            Self::Json => json::object(kind, object),
        }
    }

    pub(super) fn summary(&self, report: &Report) -> String {
        match self {
            Self::Text(text) => text.summary(report),
            Self::Json => json::summary(report),
        }
    }
}

/// Many namespaces may have one.
const MOST_HINTS: usize = 20;

pub(super) fn hints(status: &InformerStatus) -> Vec<String> {
    let hints = status.sources.iter().filter_map(|source| source.hint.as_ref());
    hints.take(MOST_HINTS).map(|hint| hint.to_string()).collect()
}

/// Phrases; none in a resync.
fn changes<S: Describe>(old: &Object<S>, new: &Object<S>, values: Values) -> Vec<String> {
    if old.ptr_eq(new) { Vec::new() } else { new.body().changes(old.body(), values) }
}

fn worst_source(status: &InformerStatus) -> Option<&str> {
    status.worst().filter(|_| status.sources.len() > 1).map(|worst| worst.source.as_str())
}

pub(super) fn queue_order_name(queue_order: QueueOrder) -> &'static str {
    match queue_order {
        QueueOrder::InOrder => "in-order",
        QueueOrder::PerKey => "per-key",
        _ => "unknown",
    }
}

pub(super) fn policy_name(policy: Policy) -> &'static str {
    match policy {
        Policy::Coalesce => "coalesce",
        Policy::Every { when_full: WhenFull::Restate, .. } => "restate",
        Policy::Every { when_full: WhenFull::Disconnect, .. } => "disconnect",
        _ => "unknown",
    }
}

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

// For people local time, or UTC if the time zone is unknown. No decision depends on it.

pub(super) fn time_of_day() -> String {
    jiff::Zoned::now().strftime("%H:%M:%S").to_string()
}

/// RFC 3339, UTC.
pub(super) fn time() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}
