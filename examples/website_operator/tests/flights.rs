//! An audit of what is reconciled at the same time, by the spans that a controller logs.
//!
//! Answers "did a replica ever work on a key twice at once?" without a line in the operator: each reconcile is in a span
//! `reconcile` with its key, and each process of a world in a span `process` with its name. Invariants:
//! 1. A reconcile lasts from the moment its key is taken until the key may be taken again, or its process is killed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// What runs on this thread, for as long as it is the default subscriber. Cloning copies a pointer.
#[derive(Clone, Default)]
pub(crate) struct Flights(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    next: u64,
    spans: BTreeMap<u64, Span>,
    /// The spans that are entered, the innermost last.
    within: Vec<u64>,
    begun: u64,
    twice: Vec<String>,
}

/// A span that is open.
struct Span {
    /// The process with the number of its start, or a key and the process in which it is reconciled.
    text: String,
    handles: usize,
}

impl Flights {
    /// An audit of nothing yet.
    pub(crate) fn begin() -> Self {
        // `tracing` asks the subscriber of whatever thread meets a span first whether anybody wants it. Threads of other tests
        // have none of their own, so there is one for all.
        static FOR_ALL: Once = Once::new();
        FOR_ALL.call_once(|| drop(tracing::subscriber::set_global_default(Self::default())));
        Self::default()
    }

    /// Panics if a key was worked on twice at once in one process; gives how many reconciles there were.
    pub(crate) fn check(&self) -> u64 {
        let state = self.state();
        assert!(state.twice.is_empty(), "worked on twice at once: {:?}", state.twice);
        state.begun
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscriber for Flights {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && matches!(metadata.name(), "process" | "reconcile")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        let mut state = self.state();
        let is_reconcile = span.metadata().name() == "reconcile";
        let text = if is_reconcile {
            let process = state.within.iter().find_map(|id| state.spans.get(id));
            format!("{} in {}", fields.key, process.map_or("no process", |process| &process.text))
        } else {
            format!("{} {}", fields.name, fields.start)
        };
        if is_reconcile {
            state.begun += 1;
            if state.spans.values().any(|open| open.text == text) {
                state.twice.push(text.clone());
            }
        }
        state.next += 1;
        let id = state.next;
        state.spans.insert(id, Span { text, handles: 1 });
        Id::from_u64(id)
    }

    fn enter(&self, span: &Id) {
        self.state().within.push(span.into_u64());
    }

    fn exit(&self, span: &Id) {
        let mut state = self.state();
        if let Some(at) = state.within.iter().rposition(|id| *id == span.into_u64()) {
            state.within.remove(at);
        }
    }

    fn clone_span(&self, span: &Id) -> Id {
        if let Some(open) = self.state().spans.get_mut(&span.into_u64()) {
            open.handles += 1;
        }
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        let mut state = self.state();
        let Some(open) = state.spans.get_mut(&span.into_u64()) else { return true };
        open.handles -= 1;
        let is_closed = open.handles == 0;
        if is_closed {
            state.spans.remove(&span.into_u64());
        }
        is_closed
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {}
}

/// The fields of a span that matter here.
#[derive(Default)]
struct Fields {
    name: String,
    start: String,
    key: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "name" => self.name = format!("{value:?}"),
            "start" => self.start = format!("{value:?}"),
            "key" => self.key = format!("{value:?}"),
            _ => {}
        }
    }
}
