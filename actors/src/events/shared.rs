//! What the handles and the actor of a recorder share: the content, and the actor's address.
//!
//! Answers "how does the actor learn that there is something to send?": by one `Look` that waits in its mailbox, however
//! much was emitted. Invariants:
//! 1. At most one `Look` is in the mailbox, and one more for each restart. The actor takes the mark away before it looks,
//!    and when it starts: a change after that sends another one.
//! 2. The end of the last handle closes the recorder.
//!
//! Read next: `content.rs`; `actor.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix::Addr;
use informer_core::events::WARN_EVERY;
use informer_core::words::Brief;
use tokio_util::sync::CancellationToken;

use super::EventSink;
use super::actor::RecorderActor;
use super::content::Content;
use super::messages::Look;

/// What the actor has, too.
pub(super) struct Inside {
    pub(super) name: Arc<str>,
    pub(super) content: Content,
    pub(super) sink: Arc<dyn EventSink>,
    pub(super) is_told: AtomicBool,
    /// Cancelled when nothing of the actor exists any more.
    pub(super) over: CancellationToken,
}

/// What all handles have together.
pub(super) struct Shared {
    pub(super) inside: Arc<Inside>,
    pub(super) address: Addr<RecorderActor>,
}

impl Inside {
    /// Logs a loss, if the core says that it is to be logged.
    pub(super) fn warn(&self) {
        let Some(warning) = self.content.with(|recorder, _| recorder.take_warning()) else { return };
        let (recorder, why, quiet) = (&self.name, &warning.why, Brief(WARN_EVERY));
        let others = match warning.others {
            0 => String::new(),
            others => format!(" ({others} more since the last line)"),
        };
        tracing::warn!(target: "actix_informer::events", %recorder, "recorder {recorder}: an event is dropped: {why}{others}; others are counted, and logged after {quiet} at the earliest");
    }
}

impl Shared {
    /// Tells the actor that something has changed.
    #[expect(
        clippy::disallowed_methods,
        reason = "bounded: one Look is in the mailbox at most, and one more for each restart"
    )]
    pub(super) fn tell(&self) {
        if !self.inside.is_told.swap(true, Ordering::AcqRel) {
            self.address.do_send(Look);
        }
    }

    /// Refuses events from here on.
    pub(super) fn close(&self) {
        self.inside.content.with(|recorder, _| recorder.close());
        self.tell();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.close();
    }
}
