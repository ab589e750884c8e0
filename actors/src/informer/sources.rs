//! The sources of a running informer.
//!
//! Answers "what can be done when one of its sources is not followed any more?". Read next: `pipeline/wiring.rs`, who
//! starts a reflector for each source; `supervision/children.rs`, who keeps them.

use std::sync::Arc;

use informer_core::meta::SourceId;

use super::Informer;
use crate::pipeline::messages::Body;
use crate::supervision::children::NotRevived;

/// Why a source was not revived.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReviveError {
    /// The informer has no source of this name.
    #[error("informer {informer:?} has no source {:?}", .name.as_str())]
    UnknownSource {
        /// The informer's name.
        informer: Arc<str>,
        /// The name that was given.
        name: SourceId,
    },
    /// The source is followed.
    #[error("source {:?} of informer {informer:?} is not given up", .name.as_str())]
    NotGivenUp {
        /// The informer's name.
        informer: Arc<str>,
        /// The name of the source.
        name: SourceId,
    },
    /// The informer has stopped.
    #[error("informer {informer:?} has stopped")]
    Stopped {
        /// Its name.
        informer: Arc<str>,
    },
}

impl<S: Body> Informer<S> {
    /// Follows a source again that was given up because its reflector had failed too often. It goes on where it was:
    /// what it held is served all the time, and only differences are told. It may be restarted as often as a new one.
    /// Returns at once; the state of the source is then no longer `GivenUp`. Waits that have ended with
    /// [`WaitError::SourceGivenUp`] may be begun again.
    ///
    /// # Errors
    /// When there is no such source, it is not given up, or the informer has stopped; nothing changes then.
    pub fn revive(&self, source: &SourceId) -> Result<(), ReviveError> {
        let (pipeline, name) = (&self.0.pipeline, source.clone());
        let informer = Arc::clone(&pipeline.parent.name);
        if self.0.ending.stop.is_cancelled() {
            return Err(ReviveError::Stopped { informer });
        }
        pipeline.reflectors.revive(source).map_err(|why| match why {
            NotRevived::Unknown => ReviveError::UnknownSource { informer, name },
            NotRevived::NotGivenUp => ReviveError::NotGivenUp { informer, name },
        })
    }
}
