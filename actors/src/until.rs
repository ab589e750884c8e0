//! Waits until the cached object of one key satisfies a condition.
//!
//! The condition runs from the first list on: before it, an absence means nothing. No code of the caller runs under a
//! lock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey, Uid};
use informer_core::reflector::SourceState;
use informer_core::until::{Decided, LastSeen, Seen, Verdict};

use crate::informer::Informer;
use crate::pipeline::messages::Body;
use crate::runtime::Stuck;
use crate::wait_error::{Looked, Undecided, WaitError, wait};

/// The error of a wait for a condition. `E` is the error of a condition that can fail.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum UntilError<E = std::convert::Infallible> {
    /// The limit was reached.
    #[error("{0}")]
    Deadline(Box<NotMet>),
    /// The informer has stopped, or cannot sync.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// The condition itself has failed.
    #[error("the condition failed: {0}")]
    Condition(E),
}

/// What was known of an object at the limit of a wait.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NotMet {
    /// The informer's name.
    pub informer: Arc<str>,
    /// The object's key.
    pub key: ObjectKey,
    /// How long the wait took.
    pub waited: Duration,
    /// The last known state of the object.
    pub seen: LastSeen,
    /// What the informer's worst source is doing.
    pub state: SourceState,
    /// The last error of that source, or else of another one.
    pub last_error: Option<ListWatchError>,
    /// What blocks a thread of the informer, if something does.
    pub stuck: Option<Stuck>,
}

impl fmt::Display for NotMet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { informer, key, waited, seen, state, .. } = self;
        write!(
            f,
            "the condition for {key} of informer {informer:?} did not hold within {waited:?}; last seen: {seen}"
        )?;
        if !matches!(state, SourceState::Streaming) {
            write!(f, "; the informer: {state}")?;
        }
        if let Some(error) = self.last_error.as_ref().filter(|_| state.error().is_none()) {
            write!(f, "; its last error: {}", error.with_causes())?;
        }
        self.stuck.as_ref().map_or(Ok(()), |stuck| write!(f, "; {stuck}"))
    }
}

impl<S: Body> Informer<S> {
    /// Waits until the condition holds for the object of this key, for at most `limit`, and returns the
    /// object as it was then; `None` if the condition held for its absence. `Duration::MAX` means no limit.
    ///
    /// The condition is called after the first list, and then with the newest state after each publish that
    /// changes the object. It may return `bool`, or `Result<bool, E>`, whose error ends the wait. Like every
    /// reader of a cache, it can miss a state that lasted for a moment. It does not miss that the object was
    /// deleted, even if another one has its name by now. No request is sent to the server. Only a publish
    /// that changes the object, or a list, wakes this wait. It waits without blocking, on the clock of its
    /// caller's runtime, also a simulated one.
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// use actix_informer::informer::Informer;
    /// use actix_informer::object::Object;
    /// use actix_informer::runtime::Runtime;
    /// use actix_informer::testing::Server;
    /// use std::time::Duration;
    ///
    /// Runtime::simulated(7).run(|runtime| async move {
    ///     let server = Server::new();
    ///     let connected = server.clone();
    ///     let texts = Informer::builder(&runtime, "texts").source(move || connected.clone()).start()?;
    ///     server.apply("a/one", "ready".to_owned());
    ///     let ready = |text: Option<&Object<String>>| text.is_some_and(|text| text.body() == "ready");
    ///     let found = texts.until(&"a/one".parse()?, ready, Duration::from_secs(60)).await?;
    ///     assert!(found.is_some());
    ///     Ok::<(), Box<dyn std::error::Error>>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`UntilError`].
    pub async fn until<V: Verdict>(
        &self,
        key: &ObjectKey,
        mut condition: impl FnMut(Option<&Object<S>>) -> V,
        limit: Duration,
    ) -> Result<Option<Object<S>>, UntilError<V::Error>> {
        let begun = self.runtime().now();
        let left = || limit.saturating_sub(self.runtime().now().saturating_sub(begun));
        let mut seen = Seen::default();
        match self.listed_within(limit).await {
            Ok(()) => {}
            Err(WaitError::Deadline(_)) => return Err(self.not_met(key, &seen, limit)),
            Err(why) => return Err(why.into()),
        }
        let published = &self.0.pipeline.shared.published;
        let mut known = None;
        let look = || loop {
            // Registered before the look: no publish is missed.
            let changed = published.changing(key, known.clone());
            let object = published.get(key);
            let version = object.as_ref().map(|object| object.version().clone());
            match seen.handle_state(object.as_ref(), identity, &mut condition) {
                Err(error) => return Looked::Decided(Err(UntilError::Condition(error))),
                Ok(Decided::ByState) => return Looked::Decided(Ok(object)),
                Ok(Decided::ByAbsence) => return Looked::Decided(Ok(None)),
                Ok(_) => {}
            }
            if version == known {
                return Looked::NotYet(changed);
            }
            // The next wait must be for a change of this state.
            known = version;
        };
        match wait(self.0.ending.stop.cancelled(), left(), look).await {
            Ok(decided) => decided,
            Err(Undecided::Ended) => Err(self.stopped().into()),
            Err(Undecided::Deadline) => Err(self.not_met(key, &seen, limit)),
        }
    }

    fn not_met<E>(&self, key: &ObjectKey, seen: &Seen, waited: Duration) -> UntilError<E> {
        let status = self.status();
        let (state, last_error) = (status.state(), status.last_error().cloned());
        UntilError::Deadline(Box::new(NotMet {
            informer: status.name,
            key: key.clone(),
            waited,
            seen: seen.last().clone(),
            state,
            last_error,
            stuck: status.stuck,
        }))
    }
}

fn identity<S>(object: &Object<S>) -> (Option<Uid>, String) {
    (object.object_uid().cloned(), object.version().to_string())
}
