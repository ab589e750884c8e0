//! What a source says of the file to which it saves its objects.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::meta::ResourceVersion;

use super::locked::Guarded;
use super::signal::Signal;

/// A cache that is saved to a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedStatus {
    /// Where.
    pub file: Arc<str>,
    /// The age of the saved objects when the informer began with them; `None` if it began with a list of the server.
    pub began_with: Option<Duration>,
    /// When it began with them, as time since the runtime's start.
    pub began_at: Option<Duration>,
    /// The version at which the server was then, until the source has reached it, or its watch is open and brings
    /// nothing for two seconds. Until then the informer is not synced: its objects can be read, and are of the time when
    /// they were saved.
    pub catching_up_to: Option<ResourceVersion>,
    /// When it had caught up, as time since the runtime's start.
    pub caught_up_at: Option<Duration>,
    /// When it was last written, as time since the runtime's start.
    pub saved_at: Option<Duration>,
    /// Why it was not read, or is not written. A later write clears it.
    pub problem: Option<Arc<str>>,
}

impl SavedStatus {
    /// How old the objects are, while they are only what was saved.
    pub(crate) fn age(&self, now: Duration) -> Option<Duration> {
        self.catching_up_to.as_ref()?;
        Some(self.began_with?.saturating_add(now.saturating_sub(self.began_at?)))
    }

    /// Why the informer is not synced, if that is because its objects are only what was saved.
    pub fn catching_up(&self) -> Option<String> {
        let server = self.catching_up_to.as_ref()?;
        Some(format!("it began with saved objects, and catches up to version {server}"))
    }
}

/// With what it began, and why it is not saved if it is not.
impl fmt::Display for SavedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.began_with {
            Some(age) => write!(f, "began with the objects of {}, then {} s old", self.file, age.as_secs())?,
            None if self.saved_at.is_some() => write!(f, "saved to {}", self.file)?,
            None => write!(f, "not yet saved to {}", self.file)?,
        }
        if let Some(server) = &self.catching_up_to {
            write!(f, ", and catches up to version {server}")?;
        }
        self.problem.as_ref().map_or(Ok(()), |why| write!(f, "; not saved: {why}"))
    }
}

/// A source says something of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a source outside this crate makes it")]
pub enum SavedNote {
    /// It has one, here.
    File(Arc<str>),
    /// It has begun with what the file holds.
    Began {
        /// How old that is.
        age: Duration,
        /// Where the server is.
        server: ResourceVersion,
    },
    /// The source has reached the version at which the server was.
    CaughtUp,
    /// It was written.
    Saved,
    /// It cannot be read or written.
    Problem(Arc<str>),
}

/// `None` without a file.
#[derive(Debug)]
pub(crate) struct SavedCell {
    status: Guarded<Option<SavedStatus>>,
    raised: [Arc<Signal>; 2],
}

impl SavedCell {
    pub(crate) fn raising(raised: [Arc<Signal>; 2]) -> Self {
        Self { status: Guarded::default(), raised }
    }

    pub(crate) fn is_catching_up(&self) -> bool {
        self.status.with(|status| status.as_ref().is_some_and(|status| status.catching_up_to.is_some()))
    }

    pub(crate) fn read(&self) -> Option<SavedStatus> {
        self.status.with(|status| status.clone())
    }

    pub(crate) fn note(&self, note: SavedNote, (now, informer): (Duration, &str)) {
        let known = self.status.with(|status| status.as_ref().and_then(|status| status.problem.clone()));
        match &note {
            SavedNote::Problem(why) if known.as_ref() != Some(why) => {
                tracing::warn!(target: "actix_informer::informer", informer, %why, "the cache is not saved or was not read");
            }
            SavedNote::Began { age, .. } => {
                tracing::info!(target: "actix_informer::informer", informer, ?age, "the informer begins with what was saved");
            }
            _ => {}
        }
        self.status.with(|status| {
            let status = status.get_or_insert_default();
            match note {
                SavedNote::File(file) => *status = SavedStatus { file, ..SavedStatus::default() },
                SavedNote::Began { age, server } => {
                    (status.began_with, status.began_at) = (Some(age), Some(now));
                    status.catching_up_to = Some(server);
                }
                SavedNote::CaughtUp => (status.catching_up_to, status.caught_up_at) = (None, Some(now)),
                SavedNote::Saved => (status.saved_at, status.problem) = (Some(now), None),
                SavedNote::Problem(why) => status.problem = Some(why),
            }
        });
        self.raised.iter().for_each(|signal| signal.raise());
    }
}
