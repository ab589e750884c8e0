//! Everything that the library logs in this process, at every level.
//!
//! Answers "what stands in the logs?" The subscriber is the only one of the process: it sees the other tests of this
//! binary too, so each test looks for marks of its own.

use std::fmt::{Debug, Write as _};
use std::sync::{Mutex, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static LINES: Mutex<String> = Mutex::new(String::new());
static INSTALLED: Once = Once::new();

/// Logs into memory from now on.
pub(crate) fn keep() {
    INSTALLED
        .call_once(|| tracing::subscriber::set_global_default(Keeper).expect("there is no other subscriber"));
}

/// What has been logged.
pub(crate) fn kept() -> String {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

struct Keeper;

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

fn keep_line(line: Line) {
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines.push_str(&line.0);
    lines.push('\n');
}

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("actix_informer")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line(format!("span {}", span.metadata().name()));
        span.record(&mut line);
        keep_line(line);
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, values: &Record<'_>) {
        let mut line = Line("record".to_owned());
        values.record(&mut line);
        keep_line(line);
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut line = Line(format!("{} {}", metadata.level(), metadata.target()));
        event.record(&mut line);
        keep_line(line);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}
