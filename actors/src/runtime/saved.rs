//! What a source says of the file to which it saves its objects.

use std::sync::Arc;
use std::time::Duration;

use super::locked::Guarded;
use super::signal::Signal;

/// A cache that is saved to a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedStatus {
    /// Where.
    pub file: Arc<str>,
    /// How old the objects were with which the informer began; `None` if it began with a list of the server.
    pub began_with: Option<Duration>,
    /// When it was last written, as time since the runtime's start.
    pub saved_at: Option<Duration>,
    /// Why it was not read, or is not written. A later write clears it.
    pub problem: Option<Arc<str>>,
}

/// A source says something of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a source outside this crate makes it")]
pub enum SavedNote {
    /// It has one, here.
    File(Arc<str>),
    /// It has begun with what the file holds, which is so old.
    Began(Duration),
    /// It was written.
    Saved,
    /// It cannot be read or written.
    Problem(Arc<str>),
}

/// Of one informer; `None` without a file.
#[derive(Debug)]
pub(crate) struct SavedCell {
    status: Guarded<Option<SavedStatus>>,
    changed: Arc<Signal>,
}

impl SavedCell {
    pub(crate) fn raising(changed: Arc<Signal>) -> Self {
        Self { status: Guarded::default(), changed }
    }

    pub(crate) fn read(&self) -> Option<SavedStatus> {
        self.status.with(|status| status.clone())
    }

    pub(crate) fn note(&self, note: SavedNote, (now, informer): (Duration, &str)) {
        match &note {
            SavedNote::Problem(why) => {
                tracing::warn!(target: "actix_informer::informer", informer, %why, "the cache is not saved or was not read");
            }
            SavedNote::Began(age) => {
                tracing::info!(target: "actix_informer::informer", informer, ?age, "the informer begins with what was saved");
            }
            SavedNote::File(_) | SavedNote::Saved => {}
        }
        self.status.with(|status| {
            let status = status.get_or_insert_default();
            match note {
                SavedNote::File(file) => *status = SavedStatus { file, ..SavedStatus::default() },
                SavedNote::Began(age) => status.began_with = Some(age),
                SavedNote::Saved => (status.saved_at, status.problem) = (Some(now), None),
                SavedNote::Problem(why) => status.problem = Some(why),
            }
        });
        self.changed.raise();
    }
}
