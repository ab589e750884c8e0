//! Chaos: a seeded sequence of faults, turned on and off step by step.
//!
//! Answers: what breaks next? The same seed over the same resources breaks the same things in the same order.
//! 1. Only faults that a correct client survives are drawn: no event is sent twice, in the wrong order, or taken back.
//! 2. A standing fault is over after at most `LONGEST` further steps; `rest` ends them all.
//! 3. Nothing here waits or reads a clock: the caller of `step` decides when.
use std::time::Duration;

use crate::cluster::rng::Rng;
use crate::faults::{ErrorBody, Faults};
use crate::serve::StartError;

/// For how many steps a standing fault holds at most.
const LONGEST: u64 = 3;

/// A source of faults for one server.
///
/// ```
/// let server = informer_apiserver::ApiServer::builder().start_blocking()?;
/// let mut chaos = server.chaos(42, &["pods", "nodes"]);
/// for _ in 0..10 {
///     chaos.step()?;
///     // ... let the client under test work ...
/// }
/// chaos.rest()?;
/// println!("seed 42 did this: {:?}", chaos.trail());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Chaos {
    faults: Faults,
    rng: Rng,
    resources: Vec<Faults>,
    /// The standing faults, each with the number of steps after which it ends.
    standing: Vec<(u64, Standing)>,
    trail: Vec<String>,
}

/// A fault that holds until it is ended.
#[derive(Debug)]
struct Standing {
    name: String,
    faults: Faults,
    /// Ends it if it is called with false; none for a server that refuses connections.
    turn: Option<fn(&Faults, bool)>,
}

impl Chaos {
    #[track_caller]
    pub(crate) fn new(faults: Faults, seed: u64, resources: &[&str]) -> Self {
        let resources = resources.iter().map(|name| faults.of(name)).collect();
        Self { faults, rng: Rng::new(seed), resources, standing: Vec::new(), trail: Vec::new() }
    }

    /// Ends the faults that have lasted long enough, then breaks one more thing. Blocks while connections are
    /// reset.
    ///
    /// # Errors
    /// If the server's port cannot be listened on again.
    pub fn step(&mut self) -> Result<(), StartError> {
        for (steps, _) in &mut self.standing {
            *steps -= 1;
        }
        self.end(|steps| steps == 0)?;
        self.break_one();
        Ok(())
    }

    /// Ends every standing fault.
    ///
    /// # Errors
    /// As `step`.
    pub fn rest(&mut self) -> Result<(), StartError> {
        self.end(|_| true)
    }

    /// Every fault so far, in order, and the ends of those that stood.
    #[must_use]
    pub fn trail(&self) -> &[String] {
        &self.trail
    }

    fn end(&mut self, over: impl Fn(u64) -> bool) -> Result<(), StartError> {
        let over: Vec<_> = self.standing.extract_if(.., |(steps, _)| over(*steps)).collect();
        for (_, Standing { name, faults, turn }) in over {
            self.trail.push(format!("end of {name}"));
            match turn {
                Some(turn) => turn(&faults, false),
                None => faults.accept_connections()?,
            }
        }
        Ok(())
    }

    /// A drawn resource.
    fn one(&mut self) -> Option<Faults> {
        let at = self.rng.below(self.resources.len() as u64) as usize;
        self.resources.get(at).cloned()
    }

    /// Breaks one thing, for a drawn resource if it can be for one.
    fn break_one(&mut self) {
        let resource = self.one().filter(|_| self.rng.below(3) > 0);
        let (at, all) = (resource.unwrap_or_else(|| self.faults.clone()), self.faults.clone());
        match self.rng.below(20) {
            0 => self.once("compact", &at, Faults::compact),
            1 => {
                let revisions = self.rng.below(20);
                self.once(&format!("keep-revisions {revisions}"), &at, |at| at.keep_revisions(revisions));
            }
            2 => self.once("expire-continue-tokens", &all, Faults::expire_continue_tokens),
            drawn @ 3..=6 => self.refuse_next(drawn, at),
            7 | 8 => self.once("end-watches", &at, Faults::end_watches),
            9 | 10 => self.once("reset-watches", &at, Faults::reset_watches),
            11 => self.switch("freeze-watches", at, Faults::freeze_watches),
            12 => self.switch("short-watches", at, Faults::short_watches),
            13 => self.switch("drop-bookmarks", at, Faults::drop_bookmarks),
            14 => self.switch("refuse-watch-list", at, Faults::refuse_watch_list),
            15 => match self.one() {
                Some(at) if self.rng.below(2) == 0 => {
                    self.switch("deny list", at, |at, on| at.forbid("list", on))
                }
                Some(at) => self.switch("deny watch", at, |at, on| at.forbid("watch", on)),
                None => self.switch("freeze-server", all, Faults::freeze_server),
            },
            16 => {
                let milliseconds = 1 + self.rng.below(20);
                at.delay_requests(Some(Duration::from_millis(milliseconds)));
                let name = format!("delay-requests {milliseconds}");
                self.stands(&name, at, Some(|at, _| at.delay_requests(None)));
            }
            17 => {
                let by = 1 + self.rng.below(1_000);
                self.once(&format!("jump-revision {by}"), &all, |at| at.jump_revision(by));
            }
            18 => self.switch("freeze-server", all, Faults::freeze_server),
            _ => {
                all.refuse_connections();
                self.stands("refuse-connections", all, None);
            }
        }
    }

    /// Refuses the next requests.
    fn refuse_next(&mut self, drawn: u64, at: Faults) {
        let requests = 1 + self.rng.below(4) as u32;
        let name = match drawn {
            3 => {
                at.gone_next(requests);
                format!("gone-next {requests}")
            }
            4 | 5 => {
                let code = [500, 503, 504][self.rng.below(3) as usize];
                at.fail_next(requests, code);
                format!("fail-next {requests} {code}")
            }
            _ => {
                let body = if self.rng.below(2) == 0 { ErrorBody::Text } else { ErrorBody::Status };
                at.too_many_requests_next(1, 1, body);
                format!("too-many-requests-next {body:?}")
            }
        };
        self.stands(&name, at, Some(|at, _| at.fail_next(0, 500)));
    }

    fn once(&mut self, name: &str, at: &Faults, act: impl FnOnce(&Faults)) {
        act(at);
        self.trail.push(told(name, at));
    }

    fn switch(&mut self, name: &str, at: Faults, turn: fn(&Faults, bool)) {
        turn(&at, true);
        self.stands(name, at, Some(turn));
    }

    fn stands(&mut self, name: &str, faults: Faults, turn: Option<fn(&Faults, bool)>) {
        let name = told(name, &faults);
        self.trail.push(name.clone());
        self.standing.push((1 + self.rng.below(LONGEST), Standing { name, faults, turn }));
    }
}

fn told(name: &str, at: &Faults) -> String {
    at.place.as_ref().map_or_else(|| name.to_owned(), |resource| format!("{name} of {resource}"))
}
