//! A thousand subscriptions at once (LIS-45).
//!
//! Answers "does any turn of the pipeline's thread grow with the number of subscribers that come?" by counting what each
//! turn does. Times are measured by `informer-compare turns`.

use std::sync::{Arc, Mutex, PoisonError};

use informer_actors::testing::{Faults, Site};

use crate::world::{LONG, run_with, three};

const SUBSCRIBERS: usize = 1_000;

/// What the present turn has done, and the most that any has.
#[derive(Default)]
struct Turns {
    now: usize,
    most: usize,
    all: usize,
}

/// Counts the listeners that are built or attached, turn by turn.
fn counting() -> (Faults, Arc<Mutex<Turns>>) {
    let turns = Arc::<Mutex<Turns>>::default();
    let counted = Arc::clone(&turns);
    let faults = Faults::new(move |site| {
        let mut turns = counted.lock().unwrap_or_else(PoisonError::into_inner);
        match site {
            Site::TurnBegun => turns.now = 0,
            Site::ListenerStarted | Site::ProcessorAttach => {
                turns.now += 1;
                turns.all += 1;
                turns.most = turns.most.max(turns.now);
            }
            _ => {}
        }
    });
    (faults, turns)
}

// LIS-45: given an informer that is synced, when 1,000 subscriptions are made at once, then no turn of its
// thread takes more than 250 of them.
#[test]
fn lis_45_a_thousand_subscriptions_at_once_are_taken_in_short_turns() {
    let (faults, turns) = counting();
    run_with(faults, three, |world| async move {
        world.synced().await;
        let ready = |_| std::future::ready(());
        let all: Vec<_> =
            (0..SUBSCRIBERS).map(|_| world.informer.for_each(ready).expect("it runs")).collect();
        for subscription in &all {
            subscription.synced_within(LONG).await.expect("it has received everything");
        }
        let turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(turns.all, 2 * SUBSCRIBERS);
        assert!(turns.most <= 250, "one turn took {} subscriptions", turns.most);
    });
}
