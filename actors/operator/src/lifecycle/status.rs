//! The status of an operator and its parts, in values and in words. A replica that waits for the lease misses
//! nothing. A part that panics in a call for its status is not called again for that status.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::lifecycle::machine::{PartId, PartState, Phase, Stage};
use informer_core::words::{Brief, QUOTED, one_line};

use super::Shared;
use super::content::WaitsFor;
use super::part::{Part, Stale};

/// How an operator is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperatorStatus {
    /// Its name.
    pub name: Arc<str>,
    /// When this was read, as time since the runtime's start.
    pub at: Duration,
    /// What it is doing as a whole.
    pub stage: Stage,
    /// Whether this process leads; `None` without an election.
    pub leads: Option<bool>,
    /// Its parts, in the order in which they start.
    pub parts: Vec<PartStatus>,
}

/// How one part is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartStatus {
    /// Its name.
    pub name: Arc<str>,
    /// When it starts and stops.
    pub phase: Phase,
    /// What it is doing.
    pub state: PartState,
    /// Since when, as time since the runtime's start.
    pub since: Duration,
    /// How often it was started again after a failure.
    pub restarts: u32,
    /// Its newest failure, kept after it has been overcome.
    pub last_error: Option<Arc<str>>,
    /// What it waits for while it is not ready, if it says so.
    pub missing: Option<String>,
    /// Whether its data is out of date while it is ready, if it reports this.
    pub stale: Option<Stale>,
    /// How long it may be stale before it counts as not ready, if there is a limit.
    pub stale_limit: Option<Duration>,
    /// Why the process should be restarted, if it says so.
    pub unhealthy: Option<String>,
}

pub(super) struct Named {
    pub(super) phase: Phase,
    pub(super) name: Arc<str>,
    pub(super) part: Arc<dyn Part>,
    pub(super) stale_limit: Option<Duration>,
}

impl Shared {
    pub(super) fn status(&self) -> OperatorStatus {
        let (at, stage, leads, known) = self.with(|lifecycle, now| {
            let leads = lifecycle.has_election().then(|| lifecycle.leads());
            let history = |at: usize| lifecycle.history(PartId(at)).unwrap_or_default();
            let known: Vec<_> =
                lifecycle.states().enumerate().map(|(at, state)| (state, history(at))).collect();
            (now, lifecycle.stage(), leads, known)
        });
        let known = self.parts.iter().zip(known).enumerate();
        let parts = known.map(|(at, (named, (state, (since, restarts, last_error))))| {
            let is_missing = state == PartState::Starting;
            let missing = || named.missing(self.waits_for(PartId(at)));
            PartStatus {
                name: Arc::clone(&named.name),
                phase: named.phase,
                state,
                since,
                restarts,
                last_error,
                missing: is_missing.then(missing).flatten(),
                stale: (state == PartState::Ready).then(|| named.stale()).flatten(),
                stale_limit: named.stale_limit,
                unhealthy: (stage == Stage::Running).then(|| named.unhealthy()).flatten(),
            }
        });
        OperatorStatus { name: Arc::clone(&self.name), at, stage, leads, parts: parts.collect() }
    }
}

impl Named {
    fn missing(&self, waits_for: Option<WaitsFor>) -> Option<String> {
        let missing = || waits_for.map_or_else(|| self.part.missing(), |waits_for| waits_for());
        catch_unwind(AssertUnwindSafe(missing)).unwrap_or_else(|_| {
            Some("what it waits for is not known: it panicked when it was asked".to_owned())
        })
    }

    fn stale(&self) -> Option<Stale> {
        let stale = catch_unwind(AssertUnwindSafe(|| self.part.stale()));
        stale.unwrap_or_else(|_| {
            Some(Stale::new(Duration::MAX, "it panicked when it was asked how old its data is"))
        })
    }

    fn unhealthy(&self) -> Option<String> {
        let unhealthy = catch_unwind(AssertUnwindSafe(|| self.part.unhealthy()));
        unhealthy.unwrap_or_else(|_| Some("it panicked when it was asked for its health".to_owned()))
    }

    pub(super) fn end(&self) {
        if catch_unwind(AssertUnwindSafe(|| self.part.end())).is_err() {
            tracing::error!(target: "actix_informer::operator", part = %self.name, "{} panicked when it was told to end what it holds", self.name);
        }
    }
}

impl OperatorStatus {
    /// The part of this name.
    pub fn part(&self, name: &str) -> Option<&PartStatus> {
        self.parts.iter().find(|part| &*part.name == name)
    }

    /// What is missing before it can do its work, each with the reason; empty when it is ready.
    pub fn unready(&self) -> Vec<String> {
        let whole = match self.stage {
            Stage::Running => None,
            Stage::Stopping(phase) => Some(format!("operator {} is stopping: {phase}", self.name)),
            _ => Some(format!("operator {} has stopped", self.name)),
        };
        let parts = self.parts.iter().filter(|_| self.stage == Stage::Running);
        whole.into_iter().chain(parts.filter_map(|part| part.missing_at(self.at))).collect()
    }

    /// Why the process should be restarted: parts that are not started again, and what parts report of
    /// themselves.
    pub fn unhealthy(&self) -> Vec<String> {
        let given_up = |part: &PartStatus| {
            (part.state == PartState::GivenUp).then(|| part.missing_at(self.at)).flatten()
        };
        let unhealthy =
            |part: &PartStatus| Some(format!("{} is unhealthy: {}", part.name, part.unhealthy.as_ref()?));
        self.parts.iter().flat_map(|part| [given_up(part), unhealthy(part)]).flatten().collect()
    }
}

impl PartStatus {
    /// `None` if others can rely on it, or need not.
    fn missing_at(&self, now: Duration) -> Option<String> {
        let error = || one_line(self.last_error.as_deref().unwrap_or("unknown"), QUOTED);
        let text = match self.state {
            PartState::Starting => {
                let missing = self.missing.as_deref().unwrap_or("it has not said that it is ready");
                let before = match self.restarts {
                    0 => String::new(),
                    restarts => format!("; restarted {restarts} times, the last time after: {}", error()),
                };
                format!("is not ready: {missing}{before}")
            }
            PartState::WaitsForCaches => "waits for the caches".to_owned(),
            PartState::Backoff { until } => {
                format!("has failed and starts again in {}: {}", Brief(until.saturating_sub(now)), error())
            }
            PartState::GivenUp => format!("has failed and is not started again: {}", error()),
            PartState::Ending => "was dropped, and something of it still runs".to_owned(),
            PartState::Ready => match (&self.stale, self.stale_limit) {
                (Some(stale), Some(limit)) if stale.lasts > limit => format!("is {stale}"),
                _ => return None,
            },
            _ => return None,
        };
        Some(format!("{} {text}", self.name))
    }
}

impl fmt::Display for OperatorStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lead = match self.leads {
            Some(true) => ", the leader",
            Some(false) => ", not the leader",
            None => "",
        };
        match self.stage {
            Stage::Running => write!(f, "operator {}: running{lead}", self.name)?,
            Stage::Stopping(phase) => write!(f, "operator {}: stopping the {phase}{lead}", self.name)?,
            _ => write!(f, "operator {}: stopped", self.name)?,
        }
        for part in &self.parts {
            let state = match part.state {
                PartState::Standby => "standby".to_owned(),
                PartState::Ready => match &part.stale {
                    Some(stale) => format!("is ready, {stale}"),
                    None => "is ready".to_owned(),
                },
                PartState::Done => "is done".to_owned(),
                PartState::Draining { until } => {
                    format!("drains for at most {}", Brief(until.saturating_sub(self.at)))
                }
                PartState::Stopped { clean: true } => "has ended".to_owned(),
                PartState::Stopped { .. } => "was dropped, or has failed at its end".to_owned(),
                _ => String::new(),
            };
            match part.missing_at(self.at) {
                Some(missing) => write!(f, "\n  {}: {missing}", part.phase)?,
                None => write!(f, "\n  {}: {} {state}", part.phase, part.name)?,
            }
        }
        Ok(())
    }
}

/// How the parts of an operator have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperatorReport {
    /// Each part, in the order in which they had started.
    pub parts: Vec<PartEnd>,
}

/// How one part has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartEnd {
    /// Its name.
    pub name: Arc<str>,
    /// Its phase.
    pub phase: Phase,
    /// Whether it has ended by itself, within its time and without a failure.
    pub clean: bool,
    /// Its newest failure.
    pub last_error: Option<Arc<str>>,
}

impl OperatorReport {
    pub(super) fn of(status: &OperatorStatus) -> Self {
        let end = |part: &PartStatus| PartEnd {
            name: Arc::clone(&part.name),
            phase: part.phase,
            clean: matches!(part.state, PartState::Stopped { clean: true } | PartState::Done),
            last_error: part.last_error.clone(),
        };
        Self { parts: status.parts.iter().map(end).collect() }
    }

    /// Whether every part has ended by itself, within its time and without a failure.
    pub fn is_clean(&self) -> bool {
        self.parts.iter().all(|part| part.clean)
    }
}

impl fmt::Display for OperatorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = self.parts.iter().filter(|part| !part.clean);
        let text = left.map(|part| match &part.last_error {
            Some(error) => format!("{} has not ended in order: {}", part.name, one_line(error, QUOTED)),
            None => format!("{} has not ended in its time", part.name),
        });
        let text: Vec<_> = text.collect();
        if text.is_empty() {
            f.write_str("every part has ended in order")
        } else {
            f.write_str(&text.join("; "))
        }
    }
}
