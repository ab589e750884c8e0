//! A recorder of events: what a program says about objects, sent by one supervised actor.
//!
//! [`EventRecorder::emit`] waits for nothing, and what is held is bounded. An accepted event is sent, dropped
//! for a counted reason, or named by a flush that fails, also if the actor dies. After the drop of the last
//! handle what waits is still sent.

use std::sync::Arc;
use std::time::Duration;

pub use crate::events::machine::{
    Answer, DropReason, Emitted, Event, EventRequest, EventText, EventType, InvalidEvent, LastError,
    RecorderConfig, RecorderFigures, Reference, Repeats, Verb,
};
use futures_util::future::LocalBoxFuture;

pub use content::RecorderReport;

use actor::Flushed;
pub(crate) use content::RegisteredRecorder;
use informer_actors::inner::{Closed, ask_with, within};
use informer_actors::runtime::Runtime;
use shared::Shared;

mod actor;
mod content;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
pub mod machine;
mod shared;
#[cfg(test)]
mod tests;

/// Where events are sent.
pub trait EventSink: Send + Sync + 'static {
    /// Sends one request, and returns what the server said. It must end at some time: until then the event
    /// has no other request. A panic counts as a refusal.
    fn send(&self, request: EventRequest) -> LocalBoxFuture<'static, Answer>;
}

type SpamKey = Arc<dyn Fn(&Event) -> String + Send + Sync>;

/// Not everything was sent when the time was up, or when the recorder ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("recorder {recorder}: {left} events were not sent{}", last_error.as_deref().map(|error| format!("; the last failure: {error}")).unwrap_or_default())]
#[non_exhaustive]
pub struct NotFlushed {
    /// The recorder.
    pub recorder: Arc<str>,
    /// How many events wait, or have a request without an answer.
    pub left: usize,
    /// What went wrong last, if anything did.
    pub last_error: Option<String>,
}

/// A recorder; the module's documentation describes it. Cloning is cheap.
///
/// ```
/// use futures_util::FutureExt;
/// use futures_util::future::LocalBoxFuture;
/// # use informer_operator::events::{Answer, Event, EventSink, EventText, EventType, EventRecorder, RecorderConfig, Reference, EventRequest};
/// # use informer_actors::runtime::Runtime;
/// use std::time::Duration;
///
/// struct Printed;
/// impl EventSink for Printed {
///     fn send(&self, request: EventRequest) -> LocalBoxFuture<'static, Answer> {
///         println!("{:?} {}: {} x {}", request.verb, request.event.regarding, request.note, request.count);
///         async { Answer::Done }.boxed_local()
///     }
/// }
///
/// # async fn work() -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = Runtime::threads().start()?;
/// let recorder = EventRecorder::start(&runtime, "baker", RecorderConfig::default(), Printed);
/// let cake = Reference { kind: "Cake".into(), name: "apple".into(), ..Reference::default() };
/// let text = EventText { reason: "Baked", action: "Bake", note: "after 40 minutes" };
/// recorder.emit(Event::new(cake, EventType::Normal, text));
/// recorder.shutdown(Duration::from_secs(5)).await?; // what waits is sent first
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct EventRecorder {
    shared: Arc<Shared>,
    spam_key: Option<SpamKey>,
}

impl EventRecorder {
    /// Starts a recorder with this name, which is shown in logs.
    pub fn start(
        runtime: &Runtime,
        name: impl Into<Arc<str>>,
        config: RecorderConfig,
        sink: impl EventSink,
    ) -> Self {
        let shared = shared::start(runtime, name.into(), config, Arc::new(sink));
        Self { shared: Arc::new(shared), spam_key: None }
    }

    /// The same recorder, in which events with the same text share the tokens of the spam filter. Unless set,
    /// the events of an object do. It is called where an event is emitted.
    #[must_use = "the recorder that it is called on stays as it is"]
    pub fn spam_key(self, key: impl Fn(&Event) -> String + Send + Sync + 'static) -> Self {
        Self { spam_key: Some(Arc::new(key)), ..self }
    }

    /// Takes an event, or drops it: neither waits. What is dropped is counted. It may be called on any
    /// thread.
    pub fn emit(&self, event: Event) -> Emitted {
        let key = self.spam_key.as_ref().map_or_else(|| event.object_key(), |key| key(&event));
        let inside = &self.shared.inside;
        let emitted = inside.with(|recorder, at| recorder.emit(event, &key, at));
        inside.warn();
        if emitted == Emitted::Accepted {
            self.shared.tell();
        }
        emitted
    }

    /// The name of the recorder.
    pub fn name(&self) -> &Arc<str> {
        &self.shared.inside.name
    }

    /// What is measured: sent, repeated, dropped by reason, the newest failure.
    pub fn figures(&self) -> RecorderFigures {
        self.shared.inside.with(|recorder, _| recorder.figures())
    }

    /// Waits until nothing waits to be sent, including events that are emitted during the wait. Further
    /// repeats of a series, which are only counted, are not sent by this.
    ///
    /// # Errors
    /// When the time is up, or the recorder has ended before: how many events are left, and the newest
    /// failure.
    pub async fn flush(&self, limit: Duration) -> Result<(), NotFlushed> {
        if within(limit, self.flushed()).await == Some(true) {
            return Ok(());
        }
        let RecorderFigures { waiting, in_flight, last_error, .. } = self.figures();
        let last_error = last_error.map(|error| error.text);
        Err(NotFlushed { recorder: Arc::clone(self.name()), left: waiting + in_flight, last_error })
    }

    /// Refuses events from here on, and waits until everything was sent, also the repeats of each series. A
    /// wait after a failure of the server is cut short. What is left when the time is up is tried further in
    /// the background, until it succeeds or is given up, or the runtime ends.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub async fn shutdown(&self, limit: Duration) -> Result<(), NotFlushed> {
        self.shared.close();
        self.flush(limit).await
    }

    /// False if the recorder ended.
    async fn flushed(&self) -> bool {
        let over = &self.shared.inside.over;
        loop {
            let answer = tokio::select! {
                biased;
                () = over.cancelled() => return self.shared.inside.with(|recorder, _| recorder.unsent()) == 0,
                answer = ask_with(&self.shared.address, Flushed) => answer,
            };
            match answer {
                Ok(()) => return true,
                // The actor died, and is restarted.
                Err(Closed) => tokio::task::yield_now().await,
            }
        }
    }
}

informer_core::debug_as!(EventRecorder, self, name = self.name());
