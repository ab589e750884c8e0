//! The settings of an election, and which of them no candidate can work with.
//!
//! Answers "how long does a lease last, and do its durations fit together?". The defaults are client-go's. Invariants:
//! 1. A candidate that may be elected has settings that were checked: it gives up its work before anybody else may take
//!    the lease, with a margin for clocks that do not run equally fast.
//! 2. The lease is written in whole seconds, rounded up: nobody takes it sooner than its holder expects.
//!
//! Read next: `../machine.rs`.

use std::sync::Arc;
use std::time::Duration;

use informer_core::words::Brief;

/// The longest wait between two attempts of a candidate is this often the retry period, and once more.
pub const JITTER: f64 = 1.2;

/// What one candidate of an election is told. Checked by [`Settings::check`].
///
/// ```
/// use actix_informer::leader_election::Settings;
/// use std::time::Duration;
/// let settings = Settings::new("replica-1");
/// assert!(settings.check().is_ok());
/// let short = Settings { lease_duration: Duration::from_secs(5), ..settings };
/// assert_eq!(short.check().unwrap_err().to_string(), "lease duration 5s is not longer than the renew deadline 10s");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name of this candidate. No other candidate of the lease may have it.
    pub identity: Arc<str>,
    /// How long others wait, after they have seen a renewal, before they take the lease. 15 s unless set.
    pub lease_duration: Duration,
    /// How long after the last renewal was sent the leader stops its work. 10 s unless set.
    pub renew_deadline: Duration,
    /// The time between two attempts of the leader; other candidates wait up to 2.2 times as long. 2 s unless set.
    pub retry_period: Duration,
    /// Whether a controller of the server chooses the leader among candidates that have registered.
    pub coordinated: bool,
}

/// Settings that no election can work with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// Others could take the lease while its holder still works.
    #[error("lease duration {} is not longer than the renew deadline {}", Brief(*lease), Brief(*renew))]
    LeaseNotLonger {
        /// The lease duration.
        lease: Duration,
        /// The renew deadline.
        renew: Duration,
    },
    /// One late attempt would end the leader's term.
    #[error("renew deadline {} is not longer than 1.2 times the retry period {}", Brief(*renew), Brief(*retry))]
    DeadlineNotLonger {
        /// The renew deadline.
        renew: Duration,
        /// The retry period.
        retry: Duration,
    },
    /// The lease is written in seconds, and the others cannot be zero.
    #[error("{what} is too short: a lease lasts at least one second, and no other duration is zero")]
    TooShort {
        /// Which duration.
        what: &'static str,
    },
    /// The lease holds its duration as a number of 32 bits.
    #[error("lease duration {} is too long: a lease lasts at most 2147483647 seconds", Brief(*.0))]
    TooLong(Duration),
    /// A lease without a holder is free.
    #[error("the identity is empty")]
    NoIdentity,
}

impl Settings {
    /// client-go's durations: 15 s, 10 s and 2 s.
    pub fn new(identity: impl Into<Arc<str>>) -> Self {
        Self {
            identity: identity.into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            coordinated: false,
        }
    }

    /// Whether an election can work with them.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), SettingsError> {
        let (lease, renew, retry) = (self.lease_duration, self.renew_deadline, self.retry_period);
        let zero = |time: Duration| time.is_zero();
        let shortest = Duration::from_secs(1);
        for (what, is_too_short) in [
            ("lease duration", lease < shortest),
            ("renew deadline", zero(renew)),
            ("retry period", zero(retry)),
        ] {
            if is_too_short {
                return Err(SettingsError::TooShort { what });
            }
        }
        if lease <= renew {
            return Err(SettingsError::LeaseNotLonger { lease, renew });
        }
        if renew.as_secs_f64() <= retry.as_secs_f64() * JITTER {
            return Err(SettingsError::DeadlineNotLonger { renew, retry });
        }
        if lease > Duration::from_secs(i32::MAX.unsigned_abs().into()) {
            return Err(SettingsError::TooLong(lease));
        }
        if self.identity.is_empty() {
            return Err(SettingsError::NoIdentity);
        }
        Ok(())
    }

    /// How long one request may take: two fit into the renew deadline.
    pub fn request_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }

    /// The lease duration as it is written.
    pub(super) fn lease_seconds(&self) -> u32 {
        let seconds = self.lease_duration.as_secs() + u64::from(self.lease_duration.subsec_nanos() > 0);
        u32::try_from(seconds).unwrap_or(u32::MAX)
    }

    /// The wait of a candidate before its next attempt.
    pub(super) fn candidates_wait(&self, chance: f64) -> Duration {
        self.retry_period.saturating_add(self.retry_period.mul_f64(JITTER * chance))
    }
}

// What stands in a lease and in the registration of a candidate, and for how long a lease that was seen is held.
//
// Invariants:
// 1. The times in a record are of its writer's clock. They are compared for equality, never with a clock here: a lease
// lasts from when its record was first seen here.
// 2. A record without a holder is free at once.

/// What a lease says about its holder. Times of day are durations since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Who holds it; empty if nobody does.
    pub holder: Arc<str>,
    /// How long it is held after a renewal, in seconds.
    pub duration_seconds: u32,
    /// The time of day at which the holder took it.
    pub acquired: Option<Duration>,
    /// The time of day of the last renewal.
    pub renewed: Option<Duration>,
    /// How often it has begun to be held anew: the fencing number of its holder.
    pub transitions: u64,
    /// Who is to hold it next, as the controller of a coordinated election says; empty if nobody else is.
    pub preferred_holder: Arc<str>,
}

/// What the registration of a candidate says. Times of day are durations since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CandidateRecord {
    /// When the controller asked whether the candidate is there.
    pub pinged: Option<Duration>,
    /// When the candidate said so.
    pub renewed: Option<Duration>,
}

impl CandidateRecord {
    /// The time to answer with, if the question was not answered yet. It is never before the question, whatever the two
    /// clocks show: else the controller would not take it for an answer.
    pub(super) fn answer(self, wall: Duration) -> Option<Duration> {
        let pinged = self.pinged?;
        (self.renewed < Some(pinged)).then(|| wall.max(pinged))
    }
}

/// A record, and since when it stands as it is, by the clock here.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    pub(super) record: LeaseRecord,
    pub(super) since: Duration,
}

impl Observed {
    /// Whether nobody has renewed it for as long as it is held.
    pub(super) fn has_expired(&self, now: Duration) -> bool {
        self.kept_until() <= now
    }

    /// Until when it is held if nobody renews it.
    pub(super) fn kept_until(&self) -> Duration {
        self.since.saturating_add(Duration::from_secs(self.record.duration_seconds.into()))
    }

    /// Whether somebody else may still work under it.
    pub(super) fn is_held_by_other(&self, identity: &str, now: Duration) -> bool {
        !self.record.holder.is_empty() && &*self.record.holder != identity && !self.has_expired(now)
    }
}
