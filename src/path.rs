//! The path of one object, from the socket to the reconcile and back: when it passed which place.
//!
//! [`Runtime::paths`](crate::runtime::Runtime::paths) returns it. A change leaves marks if it is sampled or its key is followed;
//! in a simulation always. An informer keeps the marks of its newest 1,024 changes, a controller its newest 4,096.
//!
//! | hop | passed when |
//! |---|---|
//! | read, scanned, decoded | the bytes are off the connection, cut into events, objects |
//! | queued, published, distributed | in the DeltaFifo; visible for listers; with the listeners |
//! | delivered, handled | with a subscriber; handled by it |
//! | key added, key taken, reconciled | in the queue of a controller; with a worker; its function has returned |
//! | written, seen | a reconcile has written an object; its key is free again, since the caches have shown that |
//!
//! [`chrome_trace`] is a file that Perfetto opens; [`SpanExporter`] sends spans to a collector of OpenTelemetry, where one trace
//! shows who caused what, over controllers, through own writes. The `tracing` spans `change` and `reconcile` show the same: a
//! reconcile is within the change that added its key, a change within the change whose reconcile wrote it.
//!
//! [`Paths::states`] are the states of a followed key. The objects of a list have no mark before delivered, except those of
//! followed keys.
//!
//! ```
//! use actix_informer::path::chrome_trace;
//! use actix_informer::prelude::*;
//!
//! let runtime = Runtime::threads().start()?;
//! runtime.paths().sample(64); // one of 64 changes
//! // … later:
//! std::fs::write("/dev/null", chrome_trace(&runtime.paths().all()))?; // a file that Perfetto opens
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

mod export;
mod otlp;

pub use self::export::{SpanExporter, SpanFigures};
pub use self::otlp::otlp_request;
pub use informer_actors::runtime::{Paths, TooManyKeys};
pub use informer_core::path::{Hop, Mark, PastBody, PastState, Path};
use serde_json::{Value, json};

/// The marks as a trace in Chrome's format, which `ui.perfetto.dev` and `chrome://tracing` open. Each change
/// of an object is a row of spans, from hop to hop; each informer and controller is a process.
pub fn chrome_trace(path: &Path) -> String {
    let mut events = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut rows: BTreeMap<(usize, String), usize> = BTreeMap::new();
    let mut last: BTreeMap<(usize, usize), &Mark> = BTreeMap::new();
    for mark in &path.marks {
        let fresh = places.len() + 1;
        let process = *places.entry(&mark.place).or_insert_with(|| {
            events.push(named("process_name", (fresh, 0), &mark.place));
            fresh
        });
        let version = mark.version.as_ref().map(|version| format!(" version {version}")).unwrap_or_default();
        let row = format!("{}{}", mark.key, if is_of_queue(mark.hop) { "" } else { &version });
        let fresh = rows.len() + 1;
        let thread = *rows.entry((process, row.clone())).or_insert_with(|| {
            events.push(named("thread_name", (process, fresh), &row));
            fresh
        });
        let micros = |mark: &Mark| mark.at.as_secs_f64() * 1e6;
        let before = last.insert((process, thread), mark).unwrap_or(mark);
        events.push(json!({
            "name": if std::ptr::eq(before, mark) { mark.hop.name().to_owned() } else { format!("{} → {}", before.hop.name(), mark.hop.name()) },
            "cat": "path",
            "ph": "X",
            "pid": process,
            "tid": thread,
            "ts": micros(before),
            "dur": micros(mark) - micros(before),
            "args": {
                "key": mark.key.to_string(),
                "version": mark.version.as_ref().map(ToString::to_string),
                "by": mark.by.as_deref(),
                "other": mark.other.as_ref().map(ToString::to_string),
            },
        }));
    }
    json!({ "traceEvents": events, "displayTimeUnit": "ms" }).to_string()
}

/// These hops of a key are one row, whatever the versions of the objects are.
fn is_of_queue(hop: Hop) -> bool {
    matches!(hop, Hop::KeyAdded | Hop::KeyTaken | Hop::Reconciled | Hop::Seen)
}

fn named(what: &str, (process, thread): (usize, usize), name: &str) -> Value {
    json!({ "name": what, "ph": "M", "pid": process, "tid": thread, "args": { "name": name } })
}

#[cfg(all(test, feature = "test-kit"))]
mod tests;
