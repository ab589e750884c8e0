//! Why a key is reconciled. A key keeps its first [`MOST_CAUSES`] different reasons and counts later ones.
//! They are a note in the queue ([`Why`]), so each goes to one reconcile.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::queue::machine::Merge;
use informer_core::delta::Cause;
use informer_core::meta::{Meta, Object, ObjectKey};

/// How many reasons a key keeps.
pub const MOST_CAUSES: usize = 4;

/// How many keys keep the events that lead to them. Further keys, such as those of a long first list, keep
/// none.
pub const MOST_WITH_CAUSES: usize = 4_096;

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "these three are what can happen to an object")]
pub enum EventKind {
    /// It is new.
    Added,
    /// It is in another state.
    Updated,
    /// It is gone.
    Deleted,
}

/// One reason to reconcile a key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Something happened to an object: to that of the key itself, or to one that belongs to it.
    Event {
        /// The informer that brought it.
        informer: Arc<str>,
        /// The object.
        key: ObjectKey,
        /// What happened to it.
        kind: EventKind,
        /// Why the informer says so.
        cause: Cause,
    },
    /// The program triggered it, or a stream yielded its key.
    Triggered,
    /// The period of the controller has passed.
    Timer,
    /// The last reconcile requested another one.
    Requeued,
    /// The last reconcile failed, or did not end.
    Failed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event { informer, key, kind, cause } => write!(f, "{kind:?} {informer} {key} ({cause})"),
            Self::Triggered => f.write_str("triggered"),
            Self::Timer => f.write_str("timer"),
            Self::Requeued => f.write_str("requeued"),
            Self::Failed => f.write_str("failed before"),
        }
    }
}

/// What leads to a key.
#[derive(Debug)]
#[non_exhaustive]
pub enum Arrival<'a, S> {
    /// Its object, in this state. After a rewind versions are not compared.
    Present {
        /// Which state.
        meta: &'a Meta,
        /// Whether the server went back to an older state.
        is_rewound: bool,
    },
    /// Its object is gone; this was its last state.
    Gone(&'a Object<S>),
    /// Its object is not followed any more, and may live on; this was its last state.
    Left(&'a Object<S>),
    /// What its reconcile depends on: a mapped object, a trigger, or its object that left the filter.
    Input,
    /// What its reconcile has made (an owned object), or nothing (a timer).
    Output,
    /// An owned object in this state: as [`Self::Output`], but no reason at all if a write of the key's last
    /// reconcile, or of the one in progress, was answered with this state.
    Made {
        /// The number of its informer, as in [`Writes`](super::Writes).
        informer: usize,
        /// Which state.
        meta: &'a Meta,
        /// Whether it was reported before, by a resync, or after the server went back: then it is a reason in
        /// any case.
        is_again: bool,
    },
    /// An owned object is gone: as [`Self::Output`]. Its answers do not count any more.
    Unmade {
        /// The number of its informer, as in [`Writes`](super::Writes).
        informer: usize,
        /// Which object.
        object: &'a ObjectKey,
    },
}

/// The reasons for one reconcile; reads like a slice of [`Reason`]. Empty if they were not kept, see
/// [`MOST_WITH_CAUSES`](super::MOST_WITH_CAUSES).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Causes {
    kept: Vec<Reason>,
    more: u32,
}

impl Causes {
    /// The number of further reasons.
    pub const fn more(&self) -> u32 {
        self.more
    }

    fn add_first(&mut self, reason: Reason) {
        self.kept.insert(0, reason);
        if self.kept.len() > MOST_CAUSES {
            self.kept.pop();
            self.more = self.more.saturating_add(1);
        }
    }

    fn add(&mut self, reason: Reason) {
        if self.kept.contains(&reason) {
            return;
        }
        if self.kept.len() < MOST_CAUSES {
            self.kept.push(reason);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }
}

/// Why a key waits, as the queue notes it: the events that lead to it, and the result of its last reconcile.
///
/// ```
/// # use informer_operator::controller::machine::{Reason, Why};
/// # use informer_operator::queue::machine::Merge;
/// let mut why = Why::from(Reason::Triggered);
/// why.merge(Why::from(Reason::Failed));
/// assert_eq!(why.into_causes().to_string(), "failed before, triggered");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Why {
    last: Option<Last>,
    events: Option<Box<Causes>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Requeued,
    Failed,
}

impl Why {
    /// The reasons; that of the last reconcile comes first.
    pub fn into_causes(self) -> Causes {
        let mut causes = self.events.map(|events| *events).unwrap_or_default();
        match self.last {
            Some(Last::Requeued) => causes.add_first(Reason::Requeued),
            Some(Last::Failed) => causes.add_first(Reason::Failed),
            None => {}
        }
        causes
    }
}

impl From<Reason> for Why {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Requeued => Self { last: Some(Last::Requeued), events: None },
            Reason::Failed => Self { last: Some(Last::Failed), events: None },
            event => {
                let mut events = Causes::default();
                events.add(event);
                Self { last: None, events: Some(Box::new(events)) }
            }
        }
    }
}

impl Merge for Why {
    type Tally = ();

    fn merge(&mut self, later: Self) {
        self.last = later.last.or(self.last);
        let (Some(events), Some(later)) = (&mut self.events, &later.events) else {
            self.events = self.events.take().or(later.events);
            return;
        };
        later.kept.iter().for_each(|reason| events.add(reason.clone()));
        events.more = events.more.saturating_add(later.more);
    }

    fn is_large(&self) -> bool {
        self.events.is_some()
    }

    fn cut(&mut self) {
        self.events = None;
    }
}

impl Deref for Causes {
    type Target = [Reason];

    fn deref(&self) -> &[Reason] {
        &self.kept
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kept.is_empty() {
            return f.write_str("not kept");
        }
        for (at, reason) in self.kept.iter().enumerate() {
            write!(f, "{}{reason}", if at == 0 { "" } else { ", " })?;
        }
        if self.more > 0 { write!(f, " and {} more", self.more) } else { Ok(()) }
    }
}
