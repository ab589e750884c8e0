//! The end of an informer: what is told to whom, exactly once, whoever ends first.
//!
//! Answers "how does everybody who waits learn that an informer has ended?". An informer ends by its own shutdown, with
//! its last handle, when supervision gives up on it, or with its runtime, its arbiter or its simulation. Invariants:
//! 1. [`Ending::end`] stops its actors, ends its subscriptions and frees its name; further calls do nothing.
//! 2. [`EndNotice`] is dropped when nothing of the informer runs any more, also when its arbiter drops it unheard. Only
//!    then its status says that it has stopped.
//! 3. Nothing here waits, and nothing here keeps the informer or its runtime alive.
//!
//! Read next: `informer.rs`, which waits; `runtime/registry.rs`, through which a runtime ends its informers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

use crate::pipeline::board::StatusBoard;
use crate::pipeline::seat::EndReason;
use crate::pipeline::seats::Seats;
use crate::runtime::{Registration, Resident};

/// Everything that takes part in the end of one informer.
pub(crate) struct Ending {
    /// Ends its actors.
    pub(crate) stop: CancellationToken,
    /// Ends its reading.
    pub(crate) stop_reading: CancellationToken,
    pub(crate) board: StatusBoard,
    pub(crate) seats: Seats,
    pub(crate) registration: Registration,
    /// Cancelled when a blocked thread keeps it although its runtime was shut down.
    abandoned: CancellationToken,
    /// Cancelled when nothing of it runs any more.
    pub(crate) over: CancellationToken,
    by_runtime: AtomicBool,
}

impl Ending {
    pub(crate) fn new(
        (stop, stop_reading): (CancellationToken, CancellationToken),
        board: StatusBoard,
        registration: Registration,
    ) -> Arc<Self> {
        Arc::new(Self {
            stop,
            stop_reading,
            board,
            seats: Seats::default(),
            registration,
            abandoned: CancellationToken::new(),
            over: CancellationToken::new(),
            by_runtime: AtomicBool::new(false),
        })
    }

    /// Ends the informer: nothing of it begins any more.
    pub(crate) fn end(&self) {
        self.stop.cancel();
        self.stop_reading.cancel();
        self.seats.end_all(&EndReason::InformerStopped);
        self.registration.release_name();
    }

    /// Waits until nobody need wait for this informer any more, though a blocked thread keeps a part of it.
    pub(crate) async fn abandoned(&self) {
        self.abandoned.cancelled().await;
    }

    /// Why it has stopped, as far as that is known.
    pub(crate) fn reason(&self) -> Option<Arc<str>> {
        let runtime = || self.by_runtime.load(Ordering::Acquire).then(|| "its runtime was shut down".into());
        self.board.read().failed.or_else(runtime)
    }
}

impl Resident for Ending {
    fn stop(&self) {
        let first = !self.stop.is_cancelled();
        self.by_runtime.fetch_or(first, Ordering::AcqRel);
        self.end();
    }

    fn abandon(&self) {
        self.abandoned.cancel();
    }

    fn over(&self) -> CancellationToken {
        self.over.clone()
    }
}

/// Says that nothing of the informer runs any more, when it is dropped: after the last task, or with the arbiter.
pub(crate) struct EndNotice(pub(crate) Arc<Ending>);

impl Drop for EndNotice {
    fn drop(&mut self) {
        self.0.end();
        self.0.board.stop();
        tracing::debug!(informer = %self.0.registration.name(), "the informer has stopped");
        self.0.over.cancel();
        self.0.registration.move_out();
    }
}
