//! How much memory the keys of a work queue take.
//!
//! Answers "what does a key cost besides itself?", when keys come in their order and in another one, when they wait and
//! when they are delayed. The texts of the keys are those of the cache and are not counted.

use std::time::Duration;

use informer_core::meta::ObjectKey;
use informer_operator::queue::machine::{Priority, QueueMachine};

use super::held;

const KEYS: usize = 200_000;

/// The most bytes of a key in the queue, besides the key.
const MOST: usize = 100;

const MANY: usize = 1_000_000;

/// Of a million keys, in no order, of which every other one waits and the rest is delayed, each costs less than 100 bytes
/// besides the key.
pub(crate) fn a_million_keys_of_which_half_are_delayed_are_small() {
    let namespaces: Vec<ObjectKey> = (0..100).map(|n| ObjectKey::namespaced(format!("ns-{n}"), "")).collect();
    let keys: Vec<ObjectKey> = (0..MANY)
        .map(|n| n * 382_843 % MANY)
        .map(|n| namespaces[n / 10_000].sibling(format!("pod-{n:07}")))
        .collect();
    let before = held();
    let mut queue = QueueMachine::by_namespace();
    for (n, key) in keys.iter().enumerate() {
        let delay = Duration::from_micros(if n % 2 == 0 { 0 } else { n as u64 });
        queue.add_after(key.clone(), delay, Priority::Normal, Duration::ZERO);
    }
    let each = (held() - before) / MANY - size_of::<ObjectKey>();
    assert!(each < MOST, "a key costs {each} bytes besides itself");
    assert_eq!(queue.len(), MANY / 2);
}

/// Each key costs less than 100 bytes besides the key, and nothing when it is done.
pub(crate) fn the_keys_of_a_queue_are_small() {
    let namespaces: Vec<ObjectKey> = (0..20).map(|n| ObjectKey::namespaced(format!("ns-{n}"), "")).collect();
    let sorted: Vec<ObjectKey> =
        (0..KEYS).map(|n| namespaces[n / 10_000].sibling(format!("pod-{n:07}"))).collect();
    // A step that has no divisor in common with the number of keys: each comes once.
    let shuffled: Vec<ObjectKey> = (0..KEYS).map(|n| sorted[n * 382_843 % KEYS].clone()).collect();
    for (keys, delay) in [&sorted, &shuffled].into_iter().flat_map(|keys| [0, 1].map(|delay| (keys, delay))) {
        let before = held();
        let mut queue = QueueMachine::by_namespace();
        for (n, key) in keys.iter().enumerate() {
            let delay = Duration::from_millis(delay * u64::try_from(n).expect("a small number"));
            queue.add_after(key.clone(), delay, Priority::Low, Duration::ZERO);
        }
        let each = (held() - before) / KEYS - size_of::<ObjectKey>();
        assert!(each < MOST, "a key costs {each} bytes besides itself (delayed: {})", delay > 0);
        while let Some(taken) = queue.take(Duration::MAX) {
            queue.done(&taken.key, Duration::MAX);
        }
        assert!(held() - before < 64 << 10, "an empty queue holds {} bytes", held() - before);
    }
}
