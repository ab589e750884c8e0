//! A part that counts as not ready when it has been stale for too long.
//!
//! Answers "for how long may a part work with old data?". Without a limit a part that was ready once stays so: data that is
//! old can still be read, and a replica that is taken out of a service helps nobody if all replicas are. Read next: `part.rs`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::part::{Part, PartContext, PartError, Stale};

/// A part with a limit, by [`Part::unready_when_stale_for`].
pub struct StaleLimit<P> {
    pub(super) part: P,
    pub(super) limit: Duration,
}

impl<P: Part> Part for StaleLimit<P> {
    fn name(&self) -> Arc<str> {
        self.part.name()
    }

    fn run(&self, context: PartContext) -> BoxFuture<'static, Result<(), PartError>> {
        self.part.run(context)
    }

    fn missing(&self) -> Option<String> {
        self.part.missing()
    }

    fn unhealthy(&self) -> Option<String> {
        self.part.unhealthy()
    }

    fn stale(&self) -> Option<Stale> {
        self.part.stale()
    }

    fn stale_limit(&self) -> Option<Duration> {
        Some(self.limit)
    }

    fn holds(&self) -> bool {
        self.part.holds()
    }

    fn end(&self) {
        self.part.end();
    }
}

informer_core::debug_as!([P] StaleLimit<P>, self, limit = self.limit);
