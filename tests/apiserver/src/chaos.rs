//! Chaos: a seeded sequence of faults, turned on and off step by step.
//!
//! Answers: what breaks next? The same seed over the same resources breaks the same things in the same order.
//! 1. Only faults that a correct client survives are drawn: no event is sent twice, in the wrong order, or taken back.
//! 2. A standing fault is over after at most `LONGEST` further steps; `rest` ends them all.
//! 3. Nothing here waits or reads a clock: the caller of `step` decides when.
use crate::cluster::rng::Rng;
use crate::fault::Fault;
use crate::faults::{FaultError, Faults};

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
    resources: Vec<String>,
    /// The fault that ends a standing fault, and after how many steps.
    standing: Vec<(u64, Fault)>,
    trail: Vec<Fault>,
}

impl Chaos {
    #[track_caller]
    pub(crate) fn new(faults: Faults, seed: u64, resources: &[&str]) -> Self {
        let resources = resources.iter().filter_map(|name| faults.of(name).place);
        let resources = resources.map(|resource| resource.to_string()).collect();
        Self { faults, rng: Rng::new(seed), resources, standing: Vec::new(), trail: Vec::new() }
    }

    /// Ends the faults that have lasted long enough, then breaks one more thing. Blocks while connections are
    /// reset.
    ///
    /// # Errors
    /// If the server's port cannot be listened on again.
    pub fn step(&mut self) -> Result<(), FaultError> {
        for (steps, _) in &mut self.standing {
            *steps -= 1;
        }
        let over: Vec<(u64, Fault)> = self.standing.extract_if(.., |(steps, _)| *steps == 0).collect();
        for (_, undone) in over {
            self.apply(undone)?;
        }
        let fault = draw(&mut self.rng, &self.resources);
        let stands = 1 + self.rng.below(LONGEST);
        if let Some(undone) = fault.undone() {
            self.standing.push((stands, undone));
        }
        self.apply(fault)
    }

    /// Ends every standing fault.
    ///
    /// # Errors
    /// As `step`.
    pub fn rest(&mut self) -> Result<(), FaultError> {
        for (_, undone) in std::mem::take(&mut self.standing) {
            self.apply(undone)?;
        }
        Ok(())
    }

    /// Every fault so far, in order, including those that end others.
    #[must_use]
    pub fn trail(&self) -> &[Fault] {
        &self.trail
    }

    fn apply(&mut self, fault: Fault) -> Result<(), FaultError> {
        let done = self.faults.apply(&fault);
        self.trail.push(fault);
        done
    }
}

/// One fault, for a drawn resource if the fault can be for one.
fn draw(rng: &mut Rng, resources: &[String]) -> Fault {
    let off = false;
    let one = |rng: &mut Rng| resources.get(rng.below(resources.len() as u64) as usize).cloned();
    let resource = one(rng).filter(|_| rng.below(3) > 0);
    let requests = 1 + rng.below(4) as u32;
    match rng.below(20) {
        0 => Fault::Compact { resource },
        1 => Fault::KeepRevisions { revisions: rng.below(20), resource },
        2 => Fault::ExpireContinueTokens {},
        3 => Fault::GoneNext { requests, resource },
        4 | 5 => Fault::FailNext { requests, code: [500, 503, 504][rng.below(3) as usize], resource },
        6 => Fault::TooManyRequestsNext { requests: 1, retry_after: 1, text: rng.below(2) == 0, resource },
        7 | 8 => Fault::EndWatches { resource },
        9 | 10 => Fault::ResetWatches { resource },
        11 => Fault::FreezeWatches { resource, off },
        12 => Fault::ShortWatches { resource, off },
        13 => Fault::DropBookmarks { resource, off },
        14 => Fault::RefuseWatchList { resource, off },
        15 => match one(rng) {
            Some(resource) => {
                Fault::Deny { verb: ["list", "watch"][rng.below(2) as usize].to_owned(), resource, off }
            }
            None => Fault::FreezeServer { off },
        },
        16 => Fault::DelayRequests { milliseconds: 1 + rng.below(20), resource },
        17 => Fault::JumpRevision { by: 1 + rng.below(1_000) },
        18 => Fault::FreezeServer { off },
        _ => Fault::RefuseConnections { off },
    }
}
