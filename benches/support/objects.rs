//! A population of decoded objects, and updates of it without end.
//!
//! Answers "what goes through the machinery?": keys, uids and versions as the client's decoder makes them, so that the
//! states of one object share the texts of its names, and a body of one word. The machinery never looks at bodies, and
//! what they cost to make and to free is counted with decoding. Invariants:
//! 1. Updates are spread: within as many as there are keys, each key is updated once.
//! 2. Versions rise by one with every object made.
//! 3. Outside `cargo bench` populations are small: the benches are only tried.

use actix_informer::core::delta::WatchPart;
use actix_informer::core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId, Uid};

/// The body: the number of its key.
pub(crate) type Body = usize;
/// What a watch hands over at once.
pub(crate) type Batch = Vec<WatchPart<Body>>;

/// Updates in one batch: what the client decodes in one chunk.
pub(crate) const BATCH: usize = 64;
/// Objects in one namespace.
const NAMESPACE: usize = 200;
/// What an object counts for at the queue's byte bound.
const WIRE_BYTES: u32 = 8_848;
/// How far apart the keys of two updates in a row are; a prime, so that all are met.
const STRIDE: usize = 48_271;

/// Objects by number.
pub(crate) struct Population {
    names: Vec<(ObjectKey, Option<Uid>)>,
    next: usize,
    version: u64,
    source: SourceId,
}

impl Population {
    /// Nothing is made yet.
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
        let meta =
            Meta { key, uid, version: self.version(), source: self.source.clone(), wire_bytes: WIRE_BYTES };
        Object::new(meta, number)
    }
}

/// `count` where figures are taken, a hundredth of it where the benches are only tried.
pub(crate) fn scaled(count: usize) -> usize {
    if is_measured() { count } else { count / 100 }
}

/// Whether cargo asks for figures; `cargo test` starts the same program without this word.
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
