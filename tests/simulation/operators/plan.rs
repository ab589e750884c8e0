//! What is drawn for one run of an operator.
//!
//! Answers "how large is this operator, how does it work, and how much goes wrong?". The same for the same seed.

use std::time::Duration;

use crate::dice::Dice;

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
    pub(crate) workers: usize,
    /// How often each key is looked at without a reason: the only way to learn of what has no events.
    pub(crate) every: Option<Duration>,
    /// Whether sites have a theme, an object of another kind that several sites refer to.
    pub(crate) themes: bool,
    /// Whether something outside of the cluster is made for each site, which a finalizer removes.
    pub(crate) outside: bool,
}

impl Plan {
    pub(crate) fn draw(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let replicas = dice.pick(&[1, 1, 1, 2]);
        Self {
            seed,
            sites: 1 + dice.below(8),
            actions: dice.below(30),
            incidents: dice.below(8),
            lasts: dice.milliseconds(&[1_000, 20_000, 120_000]),
            replicas,
            workers: 1 + dice.below(4),
            every: dice.pick(&[None, Some(Duration::from_secs(300))]),
            themes: dice.one_in(2),
            // Two replicas at once may make what the other one has just removed: that takes an election.
            outside: replicas == 1 && !dice.one_in(3),
        }
    }

    /// Twenty sites, ten things that go wrong.
    pub(crate) fn large(seed: u64) -> Self {
        let drawn = Self::draw(seed);
        Self { sites: 20, actions: 20, incidents: 10, lasts: Duration::from_secs(120), replicas: 1, ..drawn }
    }
}
