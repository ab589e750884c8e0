//! How old the data of a source is.
//!
//! Answers "since when has nobody heard of the source that brought this object?". A source that is followed is heard
//! with every event, bookmark and part of a list; a server sends a bookmark about once a minute to an idle watch.
//! Invariants:
//! 1. An age is the time since the source last said something, by the clock of the runtime. It grows while the source
//!    is away, and its objects stay.
//! 2. Reading it asks nobody and visits no object: it costs one look-up by the source's name.
//!
//! Read next: `pipeline/board.rs`, where each reflector writes when it heard its source.

use std::sync::Arc;
use std::time::Duration;

use informer_core::meta::SourceId;

use crate::informer::{Informer, Lister};
use crate::pipeline::messages::Body;

impl<S: Body> Informer<S> {
    /// How long ago this source last said something: an event, a bookmark or a part of a list. `None`
    /// if there is no such source, or it has never said anything. While the source is streaming it is usually below the
    /// time between two bookmarks, a minute; while it is away it grows.
    ///
    /// Costs a look-up in a map of the informer's sources; never blocks for long.
    pub fn age(&self, source: &SourceId) -> Option<Duration> {
        let heard = self.0.pipeline.shared.board.of_source(source, |status| status.last_frame_at)??;
        Some(self.runtime().now().saturating_sub(heard))
    }
}

impl<S: Body> Lister<S> {
    /// How long ago the source of this name last said something: how old its objects in the cache may be. An object
    /// names its source ([`Object::source`](informer_core::meta::Object::source)). As [`Informer::age`].
    pub fn age(&self, source: &SourceId) -> Option<Duration> {
        Informer(Arc::clone(self.keep()?)).age(source)
    }
}
