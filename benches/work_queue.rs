//! Measures what a key costs that is added to a work queue, taken and done, beside plain collections.
//!
//! Answers "how much slower is the queue than a hash set with a line, and delayed adds than a heap?". The plain ones do less:
//! they know no priorities, no namespaces that take turns and no key that is being processed, and they forget nothing in
//! a way that could be asked for. The core is measured alone, without its actor. Time of one pass over all keys.
//!
//! ```sh
//! cargo bench --bench work_queue
//! ```

mod support {
    pub(crate) mod setup;
}

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, VecDeque};
use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use informer_core::meta::ObjectKey;
use informer_operator::queue::machine::{Priority, QueueMachine};
use support::setup::criterion;

/// Takes all keys through the queue, and gives it back, since its drop is not measured.
type ThroughQueue = fn(QueueMachine<ObjectKey>, &[ObjectKey]) -> QueueMachine<ObjectKey>;
/// Takes all keys through plain collections, and gives how many are left.
type ThroughPlain = fn(&[ObjectKey]) -> usize;

fn main() {
    let mut criterion = criterion();
    let set = ("hash_set_and_line", through_set as ThroughPlain);
    compare(&mut criterion, "add_and_take", through_queue, set);
    let heap = ("hash_set_and_heap", through_heap as ThroughPlain);
    compare(&mut criterion, "delay_and_take", through_delays, heap);
    criterion.final_summary();
}

/// So many keys in no order, in namespaces of a thousand.
fn keys(count: usize) -> Vec<ObjectKey> {
    let namespaces: Vec<ObjectKey> =
        (0..count.div_ceil(1_000)).map(|n| ObjectKey::namespaced(format!("ns-{n}"), "")).collect();
    let mixed = (0..count).map(|n| n * 382_843 % count);
    mixed.map(|n| namespaces[n / 1_000].sibling(format!("pod-{n:07}"))).collect()
}

/// When each delayed key is due.
fn delay(n: usize) -> Duration {
    Duration::from_micros((n as u64).wrapping_mul(0x9e37_79b9) % 1_000_000)
}

/// Measures the queue beside the plain collections that are called so.
fn compare(
    criterion: &mut Criterion,
    what: &str,
    through_queue: ThroughQueue,
    (plain, through_plain): (&str, ThroughPlain),
) {
    let mut group = criterion.benchmark_group(format!("work_queue/{what}"));
    for count in [1_000, 100_000] {
        let keys = keys(count);
        group.throughput(Throughput::Elements(count as u64));
        group.bench_with_input(BenchmarkId::new("queue", count), &keys, |bencher, keys| {
            bencher.iter_batched(
                QueueMachine::by_namespace,
                |queue| through_queue(queue, keys),
                BatchSize::LargeInput,
            );
        });
        group.bench_with_input(BenchmarkId::new(plain, count), &keys, |bencher, keys| {
            bencher.iter(|| through_plain(keys));
        });
    }
}

fn through_queue(mut queue: QueueMachine<ObjectKey>, keys: &[ObjectKey]) -> QueueMachine<ObjectKey> {
    let now = Duration::ZERO;
    for key in keys {
        queue.add(key.clone(), Priority::Normal, now);
    }
    while let Some(taken) = queue.take(now) {
        queue.done(black_box(&taken.key), now);
    }
    queue
}

fn through_set(keys: &[ObjectKey]) -> usize {
    let (mut known, mut line) = (HashSet::new(), VecDeque::new());
    for key in keys {
        if known.insert(key.clone()) {
            line.push_back(key.clone());
        }
    }
    while let Some(key) = line.pop_front() {
        known.remove(black_box(&key));
    }
    known.len()
}

fn through_delays(mut queue: QueueMachine<ObjectKey>, keys: &[ObjectKey]) -> QueueMachine<ObjectKey> {
    for (n, key) in keys.iter().enumerate() {
        queue.add_after(key.clone(), delay(n), Priority::Normal, Duration::ZERO);
    }
    let end = Duration::from_secs(1);
    while let Some(taken) = queue.take(end) {
        queue.done(black_box(&taken.key), end);
    }
    queue
}

fn through_heap(keys: &[ObjectKey]) -> usize {
    let (mut known, mut heap) = (HashSet::new(), BinaryHeap::new());
    for (n, key) in keys.iter().enumerate() {
        if known.insert(key.clone()) {
            heap.push(Reverse((delay(n), key.clone())));
        }
    }
    while let Some(Reverse((_, key))) = heap.pop() {
        known.remove(black_box(&key));
    }
    known.len()
}
