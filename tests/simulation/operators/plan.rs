//! What is drawn for one run of an operator.
//!
//! Answers "how large is this operator, how does it work, how much goes wrong, and how long may it take to recover?". The
//! same for the same seed.

use std::time::Duration;

use crate::dice::Dice;

/// No incident lasts longer: those that a world draws take 40 s at most.
const LONGEST_INCIDENT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// How many sites there are at most.
    pub(crate) sites: usize,
    /// How often a user changes something.
    pub(crate) actions: usize,
    /// How many things go wrong.
    pub(crate) incidents: usize,
    /// For how long users act and things go wrong.
    pub(crate) lasts: Duration,
    pub(crate) replicas: usize,
    /// With an election among the replicas: what becomes of the one that leads.
    pub(crate) takeover: Option<Takeover>,
    pub(crate) workers: usize,
    /// How often each key is looked at without a reason: the only way to learn of what has no events.
    pub(crate) every: Option<Duration>,
    /// Whether sites have a theme, an object of another kind that several sites refer to.
    pub(crate) themes: bool,
    /// Whether users switch a second child of sites on and off.
    pub(crate) mirrors: bool,
    /// Whether something outside of the cluster is made for each site, which a finalizer removes.
    pub(crate) outside: bool,
    /// Whether the operator records events.
    pub(crate) events: bool,
    /// How long one reconcile may take. With the longer limit, one whose process has stood still goes on afterwards.
    pub(crate) time_limit: Duration,
    /// A time in which no event comes, while the operator works.
    pub(crate) silence: Option<Silence>,
    /// Whether an event of its own write is no reason for another reconcile.
    pub(crate) ignores_own_writes: bool,
    /// Whether a reconcile ends after it has made a child, and the event of the child leads to the next step.
    pub(crate) step_by_step: bool,
}

/// The end of a leader.
#[derive(Debug, Clone)]
pub(crate) struct Takeover {
    pub(crate) after: Duration,
    /// For how long it is away: longer than the lease lasts.
    pub(crate) lasts: Duration,
    /// Whether it stands still, as after SIGSTOP, and goes on then; else it is killed, and started again.
    pub(crate) stands_still: bool,
}

/// Watches are open and bring nothing.
#[derive(Debug, Clone)]
pub(crate) struct Silence {
    pub(crate) after: Duration,
    /// Longer than a key waits for the caches to have what was written.
    pub(crate) lasts: Duration,
}

impl Plan {
    pub(crate) fn draw(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let replicas = dice.pick(&[1, 1, 1, 2, 2]);
        let lasts = dice.milliseconds(&[1_000, 20_000, 120_000]);
        let is_elected = replicas == 2 && !dice.one_in(3);
        let takeover = is_elected.then(|| Takeover::draw(&mut dice, lasts));
        let mut plan = Self {
            seed,
            sites: 1 + dice.below(8),
            actions: dice.below(30),
            incidents: dice.below(8),
            lasts,
            replicas,
            workers: 1 + dice.below(4),
            every: dice.pick(&[None, Some(Duration::from_secs(300))]),
            themes: dice.one_in(2),
            mirrors: dice.one_in(2),
            // Two replicas at once may make what the other one has just removed: that takes an election.
            outside: (replicas == 1 || is_elected) && !dice.one_in(3),
            events: dice.one_in(3),
            takeover,
            time_limit: dice.milliseconds(&[30_000, 120_000, 120_000]),
            silence: None,
            ignores_own_writes: dice.one_in(3),
            step_by_step: dice.one_in(3),
        };
        plan.step_by_step &= !plan.ignores_own_writes;
        // What stands still is late for another reason.
        plan.silence = (!is_elected && dice.one_in(4)).then(|| Silence::draw(&mut dice, lasts));
        plan
    }

    /// Twenty sites, ten things that go wrong.
    pub(crate) fn large(seed: u64) -> Self {
        let drawn = Self::draw(seed);
        let lasts = Duration::from_secs(120);
        Self { sites: 20, actions: 20, incidents: 10, lasts, replicas: 1, takeover: None, ..drawn }
    }

    /// How long after the last trouble each key that waits has been reconciled, and everything is as it should be.
    pub(crate) fn bound(&self) -> Duration {
        let seconds = Duration::from_secs;
        // The waits of a key that fails are doubled: the one that has begun is not longer than all before it together.
        let backoff = self.lasts + LONGEST_INCIDENT;
        // Ten failing keys a second are let through after the first hundred.
        let bucket = seconds(10);
        // The longest wait of a reflector before it asks again, and a watch that was silent.
        let watch = seconds(60 + 30);
        // A lease that runs out, the longest wait of a candidate, and two requests.
        let taken = LEASE_DURATION + RETRY_PERIOD.mul_f64(2.2) + RENEW_DEADLINE;
        let election = if self.takeover.is_some() { taken } else { Duration::ZERO };
        // One reconcile that began in trouble, until its time limit, and its writes.
        let reconcile = self.time_limit + WRITE_WAIT;
        backoff + bucket + watch + election + reconcile + self.every.unwrap_or_default()
    }
}

/// How long each part of an operator may take to stop.
pub(crate) const STOP_LIMIT: Duration = Duration::from_secs(30);
/// How long a key waits for the caches to have what was written.
pub(crate) const WRITE_WAIT: Duration = Duration::from_secs(5);
/// How long a lease lasts, when its holder gives up, and how often it is renewed: less often than by default, since each
/// renewal costs the simulation a request.
pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(30);
pub(crate) const RENEW_DEADLINE: Duration = Duration::from_secs(20);
pub(crate) const RETRY_PERIOD: Duration = Duration::from_secs(5);

fn moment(dice: &mut Dice, within: Duration) -> Duration {
    Duration::from_millis(dice.below(within.as_millis() as usize) as u64)
}

impl Silence {
    fn draw(dice: &mut Dice, within: Duration) -> Self {
        Self { after: moment(dice, within), lasts: dice.milliseconds(&[10_000, 20_000]) }
    }
}

impl Takeover {
    fn draw(dice: &mut Dice, within: Duration) -> Self {
        Self {
            after: moment(dice, within),
            lasts: dice.milliseconds(&[35_000, 50_000, 60_000]),
            stands_still: !dice.one_in(3),
        }
    }
}
