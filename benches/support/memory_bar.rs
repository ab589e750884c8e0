//! How much more memory a cache may take after many changes than after its list.
//!
//! Answers "has it grown too much?", for `tests/system_memory` and for `informer-compare -- memory --check`, so that both
//! hold the same bar.

/// The most objects that are on their way at once, however many there are in the cache: 512 in the queue, four chunks of
/// 64 that are decoded or pushed, a batch of 250 that is applied, as many that it replaces, and
/// as many that wait to be freed.
const ON_THEIR_WAY: u64 = 1_500;
/// What is no object, in KiB: the bytes of four chunks of 256 KiB, and the buffers of a connection and of threads.
const BUFFERS: f64 = 2_048.0;

/// How many KiB a cache of so many objects may take that took `listed` after its list: 5 % more, or what the objects that
/// are on their way take where that is more, and 2 MiB.
pub(crate) fn most(listed: u64, objects: u64) -> f64 {
    let more = (objects / 20).max(ON_THEIR_WAY) as f64 / objects as f64;
    listed as f64 * (1.0 + more) + BUFFERS
}
