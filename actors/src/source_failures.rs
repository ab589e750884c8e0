//! Failures of sources, reported to a program as by client-go's watch error handler.
//!
//! They are read from the status board, so no Reflector waits for a reader.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{FutureExt, Stream, StreamExt, stream};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::SourceId;
use informer_core::words::{QUOTED, one_line};

use crate::informer::Informer;
use crate::pipeline::board::StatusBoard;
use crate::pipeline::ending::Ending;
use crate::pipeline::messages::Body;
use crate::pipeline::status::SourceStatus;
use crate::runtime::{drop_payload, panic_text};

/// A request of a source that failed: a list, a watch-list or a watch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SourceFailure {
    /// The informer's name.
    pub informer: Arc<str>,
    /// Which source.
    pub source: SourceId,
    /// The error. Its `class` says whether it is worth waiting.
    pub error: ListWatchError,
    /// How many attempts have failed in a row; 0 if the source already lists or streams again.
    pub attempts: u32,
    /// When the next request follows, as time since the runtime's start; `None` if it has been sent already.
    pub next_try: Option<Duration>,
    /// How many earlier failures of this source were not delivered since the last delivered one.
    pub missed: u64,
}

impl<S: Body> Informer<S> {
    /// The failures of its sources as a stream, from the first one on. It does not keep the informer running,
    /// and ends with it. While it is not polled, failures coalesce: the newest one of each source remains,
    /// with the number of failures that it replaces.
    ///
    /// A failure is what the status counts as one (`counters.failures`): one for each refused or broken
    /// request. What a list repairs at once, such as an expired version, is not a failure.
    pub fn failures(&self) -> impl Stream<Item = SourceFailure> + Send + Unpin + use<S> {
        let (name, board) = (&self.0.pipeline.parent.name, &self.0.pipeline.shared.board);
        failures(Arc::clone(name), board.clone(), Arc::clone(&self.0.ending))
    }

    /// Calls an async closure for each failure of a source, one at a time, on the callbacks' arbiter, until
    /// the informer ends; as client-go's `SetWatchErrorHandler`. The closure does not affect the next
    /// request, and must not block the thread. Failures during a call coalesce as in [`Self::failures`]. A
    /// panic is counted (`status().error_handler_panics`) and logged.
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// # #[cfg(feature = "testing")] {
    /// use actix_informer::informer::Informer;
    /// use actix_informer::runtime::Runtime;
    /// # use actix_informer::source::ListWatchError;
    /// # use actix_informer::testing::Server;
    /// # Runtime::simulated(1).run(|runtime| async move {
    /// # let server = Server::<String>::new();
    /// # server.refuse([ListWatchError::Denied("no access".into())]);
    /// let texts = Informer::builder(&runtime, "texts").source(move || server.clone()).start()?;
    /// texts.on_error(|failure| async move {
    ///     eprintln!("{} of {}: {} (attempt {})", failure.source, failure.informer, failure.error, failure.attempts);
    /// });
    /// # texts.synced().await.expect("it recovers");
    /// # Ok::<(), actix_informer::informer::StartError>(()) }).unwrap(); }
    /// ```
    pub fn on_error<F, Fut>(&self, mut closure: F)
    where
        F: FnMut(SourceFailure) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        let board = self.0.pipeline.shared.board.clone();
        let (mut failures, ended) = (self.failures(), Arc::clone(&self.0.ending));
        self.runtime().callback_arbiter().spawn(move || async move {
            while let Some(failure) = failures.next().await {
                let (informer, source) = (Arc::clone(&failure.informer), failure.source.clone());
                let call = AssertUnwindSafe(async { closure(failure).await }).catch_unwind();
                let called = tokio::select! {
                    biased;
                    called = call => called,
                    () = ended.over.cancelled() => return,
                };
                if let Err(panic) = called {
                    let panicked = one_line(panic_text(&*panic), QUOTED);
                    tracing::error!(target: "actix_informer::informer", %informer, %source, "the handler of failures of {informer} has panicked: {panicked}");
                    board.count_handler_panic();
                    drop_payload(panic);
                }
            }
        });
    }
}

struct Seen {
    informer: Arc<str>,
    board: StatusBoard,
    ending: Arc<Ending>,
    counted: BTreeMap<SourceId, u64>,
    waiting: VecDeque<SourceFailure>,
}

fn failures(
    informer: Arc<str>,
    board: StatusBoard,
    ending: Arc<Ending>,
) -> BoxStream<'static, SourceFailure> {
    let seen = Seen { informer, board, ending, counted: BTreeMap::new(), waiting: VecDeque::new() };
    stream::unfold(seen, |mut seen| async move {
        loop {
            let count = seen.board.changed().count();
            let status = seen.board.read();
            seen.look(&status.sources);
            if let Some(failure) = seen.waiting.pop_front() {
                return Some((failure, seen));
            }
            if status.stopped {
                return None;
            }
            tokio::select! {
                biased;
                () = seen.board.changed().since(count) => {}
                () = seen.ending.abandoned() => return None,
            }
        }
    })
    .boxed()
}

impl Seen {
    fn look(&mut self, sources: &[SourceStatus]) {
        self.counted.retain(|source, _| sources.iter().any(|status| status.source == *source));
        for status in sources {
            let counted = self.counted.entry(status.source.clone()).or_default();
            let news = status.counters.failures.saturating_sub(*counted);
            *counted = status.counters.failures;
            let Some(error) = status.last_error.clone().filter(|_| news > 0) else { continue };
            let before = self.waiting.iter().position(|waiting| waiting.source == status.source);
            let replaced = before.and_then(|at| self.waiting.remove(at));
            self.waiting.push_back(SourceFailure {
                informer: Arc::clone(&self.informer),
                source: status.source.clone(),
                error,
                attempts: status.state.attempts(),
                next_try: status.state.next_try(),
                missed: news - 1 + replaced.map_or(0, |replaced| replaced.missed + 1),
            });
        }
    }
}

impl fmt::Display for SourceFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "source {} of {}: {}", self.source, self.informer, self.error)
    }
}
