//! Assertions about a world: what becomes true, what never does, and when nothing happens any more.
//!
//! 1. What must never be is checked after each request that takes effect and each event that arrives; what is waited for, within
//!    [`SOON`] of these. If nothing happens, both are checked each [`LOOK`].
//! 2. A failure names the place of the assertion, the newest state that the condition told, the seed, and the command that
//!    repeats it.

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use super::process::Process;
use super::world::World;

/// If nothing happens.
const LOOK: Duration = Duration::from_secs(10);
/// After a change: many changes are one check.
const SOON: Duration = Duration::from_millis(100);

impl World {
    /// Waits until the condition holds. Look at what is stored ([`World::server`]), at shared state of the program, at what
    /// it has logged: it is asked again after changes, and each ten seconds.
    ///
    /// # Panics
    /// When it does not hold within `limit` of simulated time: with what a `Result` says in its error, and with the seed.
    #[track_caller]
    pub fn eventually<C: Into<Check>>(
        &self,
        limit: Duration,
        mut condition: impl FnMut() -> C,
    ) -> impl Future<Output = ()> {
        let (world, place) = (self.clone(), Location::caller());
        async move {
            let end = world.runtime().now().saturating_add(limit);
            loop {
                let seen = world.network().lines();
                let check: Check = condition().into();
                if check.holds() {
                    return;
                }
                let left = end.saturating_sub(world.runtime().now());
                if left.is_zero() {
                    world.fail(place, &format!("not within {limit:?}: {check}"));
                }
                tokio::time::sleep(left.min(SOON)).await;
                let left = end.saturating_sub(world.runtime().now());
                let _changed_or_late =
                    tokio::time::timeout(left.min(LOOK), world.network().more_than(seen)).await;
            }
        }
    }

    /// Waits for this time, in which the condition must not hold once. It is asked after each request that takes effect, as
    /// they take effect one by one: no state of the server is missed.
    ///
    /// # Panics
    /// When it holds: with the seed.
    #[track_caller]
    pub fn never<C: Into<Check>>(
        &self,
        time: Duration,
        mut condition: impl FnMut() -> C,
    ) -> impl Future<Output = ()> {
        let (world, place) = (self.clone(), Location::caller());
        async move {
            let end = world.runtime().now().saturating_add(time);
            let mut before = String::from("nothing, it was there from the first look on");
            loop {
                let seen = world.network().lines();
                let check: Check = condition().into();
                if check.holds() {
                    let left = end.saturating_sub(world.runtime().now());
                    let what = format!(
                        "what must not be is there, {left:?} before the end of {time:?}; before: {before}"
                    );
                    world.fail(place, &what);
                }
                before = check.to_string();
                let left = end.saturating_sub(world.runtime().now());
                if left.is_zero() {
                    return;
                }
                let _changed_or_late =
                    tokio::time::timeout(left.min(LOOK), world.network().more_than(seen)).await;
            }
        }
    }

    /// Waits until for `quiet_for` nothing was written, no write was under way, and in the work queues and controllers of the
    /// processes no key waited, was worked on, or was to be tried again: the operator is content with what is there. It knows
    /// what is there: all that time no process was about to start, and each cache followed its sources.
    ///
    /// A source that the server refuses (401, 403, a kind or a selector that it does not know) is not waited for, as that may
    /// last; nor is one that a test has frozen, with its watches or with its process.
    ///
    /// A key that has failed is to be tried again until it has succeeded, also if its delay is longer than `quiet_for`. A key
    /// that is only delayed counts as quiet until it is due: that of a reconcile with
    /// [`Outcome::RequeueAfter`](crate::controller::Outcome::RequeueAfter), or of a period. So does a key that rests after a
    /// terminal error. Leases are left out: a leader renews its own each few seconds.
    ///
    /// # Panics
    /// When that is not so within `limit` of simulated time: with what was still to do, and with the seed.
    #[track_caller]
    pub fn settles(&self, quiet_for: Duration, limit: Duration) -> impl Future<Output = ()> {
        let (world, place) = (self.clone(), Location::caller());
        async move {
            let start = world.runtime().now();
            let (mut revision, mut quiet_since) = (world.server().revision(), start);
            loop {
                let seen = world.network().lines();
                let (now, newest) = (world.runtime().now(), world.server().revision());
                // After a restore of the server the newest revision is lower.
                let written = newest.checked_sub(revision);
                let written = match written {
                    None => 1,
                    Some(0) => 0,
                    Some(all) => all.saturating_sub(world.renewed_since(revision)),
                };
                let (mut work, mut retrying, mut behind) = (0, 0, None);
                for one in world.processes().iter().map(Process::work) {
                    (work, retrying) = (work + one.to_do, retrying + one.retrying);
                    behind = behind.or(one.behind);
                }
                let writes = world.network().writes();
                revision = newest;
                if behind.is_some() || (written, work, retrying, writes) != (0, 0, 0, 0) {
                    quiet_since = now;
                } else if now.saturating_sub(quiet_since) >= quiet_for {
                    return;
                }
                if now.saturating_sub(start) >= limit {
                    let last = if written == 0 { "no object" } else { "an object" };
                    let behind = behind.map(|behind| format!(", {behind}")).unwrap_or_default();
                    let seen = format!(
                        "{work} keys to do, {retrying} that have failed, {writes} writes under way, {last} was written last, revision {newest}{behind}"
                    );
                    world.fail(place, &format!("not quiet for {quiet_for:?} within {limit:?}: {seen}"));
                }
                let quiet = now.saturating_sub(quiet_since);
                let next = quiet_for.saturating_sub(quiet).clamp(SOON, LOOK);
                let _changed_or_late = tokio::time::timeout(next, world.network().more_than(seen)).await;
            }
        }
    }

    /// Leases that have changed since this revision.
    fn renewed_since(&self, revision: u64) -> u64 {
        let leases = self.server().list("leases.coordination.k8s.io").unwrap_or_default();
        let version = |lease: &serde_json::Value| lease["metadata"]["resourceVersion"].as_str()?.parse().ok();
        leases.iter().filter_map(version).filter(|version: &u64| *version > revision).count() as u64
    }

    fn fail(&self, place: &Location<'_>, what: &str) -> ! {
        panic!("{what}\n  asserted at {place}, {}", self.report(what));
    }
}

// What an assertion is told: `bool`, or a `Result` whose error is the state that a failure shows.

/// Whether something holds, and what is seen where it does not. Made from `bool` and from any `Result` whose error can be
/// shown.
///
/// ```
/// use actix_informer::testing::Check;
/// fn ready(sites: usize) -> Result<(), String> {
///     if sites == 20 { Ok(()) } else { Err(format!("{sites} of 20 sites are ready")) }
/// }
/// assert!(Check::from(ready(20)).holds());
/// assert_eq!(Check::from(ready(3)).to_string(), "3 of 20 sites are ready");
/// assert!(!Check::from(1 == 2).holds());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "it says whether something holds"]
pub struct Check(Result<(), String>);

impl Check {
    /// Whether it holds.
    pub fn holds(&self) -> bool {
        self.0.is_ok()
    }
}

impl From<bool> for Check {
    fn from(holds: bool) -> Self {
        Self(if holds { Ok(()) } else { Err("the condition does not hold".to_owned()) })
    }
}

impl<T, E: fmt::Display> From<Result<T, E>> for Check {
    fn from(result: Result<T, E>) -> Self {
        Self(result.map(drop).map_err(|error| error.to_string()))
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(()) => f.write_str("it holds"),
            Err(seen) => f.write_str(seen),
        }
    }
}
