//! The settings of an election, with client-go's defaults. Checked settings make the holder stop before
//! anybody else may take the lease, with a margin for clocks of different speed. Seconds in the lease are
//! rounded up, so nobody takes it too early.

use std::sync::Arc;
use std::time::Duration;

use informer_core::words::Brief;

/// The longest wait between two attempts of a candidate is this often the retry period, and once more.
pub const JITTER: f64 = 1.2;

/// The settings of one candidate. Checked by [`Settings::check`].
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
    /// The time between two attempts of the leader; other candidates wait up to 2.2 times as long. 2 s unless
    /// set.
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

    pub(super) fn lease_seconds(&self) -> u32 {
        let seconds = self.lease_duration.as_secs() + u64::from(self.lease_duration.subsec_nanos() > 0);
        u32::try_from(seconds).unwrap_or(u32::MAX)
    }

    pub(super) fn candidates_wait(&self, chance: f64) -> Duration {
        self.retry_period.saturating_add(self.retry_period.mul_f64(JITTER * chance))
    }
}

// The times in a record are of its writer's clock: they are only compared for equality. A lease lasts from
// when its record was first seen here. Without a holder it is free at once.

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
    /// How often a new term of the lease has begun: the fencing number of its holder.
    pub transitions: u64,
    /// Who should hold it next, as the controller of a coordinated election says; empty if nobody else.
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
    /// If the controller waits for an answer. It would not accept a time before its own.
    pub(super) fn answer(self, wall: Duration) -> Option<Duration> {
        let pinged = self.pinged?;
        (self.renewed < Some(pinged)).then(|| wall.max(pinged))
    }
}

/// `since`: by the clock here.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    pub(super) record: LeaseRecord,
    pub(super) since: Duration,
}

impl Observed {
    pub(super) fn has_expired(&self, now: Duration) -> bool {
        self.kept_until() <= now
    }

    /// Without a renewal.
    pub(super) fn kept_until(&self) -> Duration {
        self.since.saturating_add(Duration::from_secs(self.record.duration_seconds.into()))
    }

    pub(super) fn is_held_by_other(&self, identity: &str, now: Duration) -> bool {
        !self.record.holder.is_empty() && &*self.record.holder != identity && !self.has_expired(now)
    }
}
