//! A population of decoded objects, and an endless sequence of updates of them.
//!
//! Answers "which objects pass through the actors?": keys, uids and versions are as the client's decoder makes them, so
//! that the states of one object share the texts of its names. The body is one integer: the actors never look at bodies,
//! and the cost of making and freeing bodies is counted as decoding. Invariants:
//! 1. Updates are spread: of as many consecutive updates as there are keys, each is of another key.
//! 2. The version increases by one with every object.
//! 3. Outside of `cargo bench` populations are small: a test run only checks that the benchmarks work.

use informer_core::delta::WatchPart;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId, Uid};

/// The body: the number of its key.
pub(crate) type Body = usize;
/// What a watch delivers at once.
pub(crate) type Batch = Vec<WatchPart<Body>>;

/// Updates in one batch: what the client decodes in one chunk.
pub(crate) const BATCH: usize = 64;
/// Objects in one namespace.
const NAMESPACE: usize = 200;
/// The size of an object for the queue's bound in bytes.
const WIRE_BYTES: u32 = 8_848;
/// The distance between the keys of two consecutive updates; a prime, so that every key is updated.
const STRIDE: usize = 48_271;

/// Objects by number.
pub(crate) struct Population {
    names: Vec<(ObjectKey, Option<Uid>)>,
    next: usize,
    version: u64,
    source: SourceId,
}

impl Population {
    /// A population of this many keys; no object is made yet.
    pub(crate) fn new(count: usize) -> Self {
        let names = (0..count).map(|number| (key(number), uid(number))).collect();
        Self { names, next: 0, version: 0, source: SourceId::default() }
    }

    /// One new state of every object, in order of their keys.
    pub(crate) fn everything(&mut self) -> Vec<Object<Body>> {
        (0..self.names.len()).map(|number| self.object(number)).collect()
    }

    /// The next `size` updates.
    pub(crate) fn batch(&mut self, size: usize) -> Batch {
        let parts = (0..size).map(|_| {
            self.next = (self.next + STRIDE) % self.names.len();
            WatchPart::Applied(self.object(self.next))
        });
        parts.collect()
    }

    /// The version of the newest object made.
    pub(crate) fn version(&self) -> ResourceVersion {
        ResourceVersion::from_number(self.version).expect("something was made")
    }

    fn object(&mut self, number: usize) -> Object<Body> {
        self.version += 1;
        let (key, uid) = self.names[number].clone();
        let meta = Meta::new(key, self.version(), self.source.clone()).uid(uid).wire_bytes(WIRE_BYTES);
        Object::new(meta, number)
    }
}

/// `count` when the benchmarks measure, a hundredth of it in a test run.
pub(crate) fn scaled(count: usize) -> usize {
    if is_measured() { count } else { count / 100 }
}

/// Whether the benchmarks measure: `cargo bench` passes this argument, `cargo test` does not.
pub(crate) fn is_measured() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// The key of an object.
pub(crate) fn key(number: usize) -> ObjectKey {
    ObjectKey::namespaced(namespace(number), format!("checkout-api-6d5f8c9b74-{number:06}"))
}

fn uid(number: usize) -> Option<Uid> {
    Uid::new(&format!("5c1b9c0e-7a1d-4d6e-9a52-{number:012x}"))
}

/// The namespace of an object.
pub(crate) fn namespace(number: usize) -> String {
    format!("team-{:04}", number / NAMESPACE)
}
