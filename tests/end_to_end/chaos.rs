//! Chaos: the in-memory server breaks one thing after another, drawn from a seed, while pods are written.
//!
//! Answers "what if several faults happen at once, in an order that no test lists?" The other files cause one
//! fault each, on purpose; here `ApiServer::chaos` draws them. Invariants:
//! 1. The seed of the stage draws the faults and the writes; it is printed at the end and with every failure.
//! 2. Informers wait for at most 2 s here, and the scenario goes on for a moment between two faults, so that most
//!    faults meet an informer that is still recovering from the one before.
//! 3. At the end nothing is broken any more; the final check is the same as after any disaster (`trial.rs`).

use std::time::Duration;

use crate::stage::Stage;
use crate::trial::Trial;

const FAULTS: u32 = 60;
/// The time from one fault to the next: some have been recovered from by then, others are not yet noticed.
const BETWEEN: Duration = Duration::from_millis(200);

pub(crate) async fn one_fault_after_another(stage: Stage) {
    let seed = stage.seed;
    let trial = Trial::begin_hurried(stage).await;
    let mut chaos = trial.stage.server.in_memory().chaos(seed, &["pods"]);
    let faults = trial.stage.server.in_memory().faults();
    for _ in 0..FAULTS {
        // A step waits for threads of the server that it stops.
        let stepped = tokio::task::spawn_blocking(move || {
            chaos.step().expect("the port is still free");
            chaos
        });
        chaos = stepped.await.expect("a step does not panic");
        trial.lasts(BETWEEN).await;
    }
    let rested = tokio::task::spawn_blocking(move || {
        chaos.rest().expect("the port is still free");
        faults.clear();
        chaos.trail().len()
    });
    eprintln!("chaos of seed {seed}: {} faults", rested.await.expect("a rest does not panic"));
    trial.ends().await;
}
