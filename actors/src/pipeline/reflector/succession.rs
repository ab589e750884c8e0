//! A source that takes over from others.
//!
//! Answers "which version must its next list not be below?". Invariants:
//! 1. What a predecessor has delivered before the request is in the list. That is the newest version of any of
//!    its exchange, whether the source that delivered it is still there or not.
//! 2. What a predecessor tells after the request is kept for this source by the store, so the request is noted first.
//!
//! Read next: `informer_core::indexer`, whose store compares the versions.

use informer_core::delta::WatchPart;
use informer_core::meta::ResourceVersion;
use informer_core::reflector::Delivery;

use super::ReflectorSpec;
use crate::pipeline::messages::Body;
use crate::pipeline::sources::AskedFor;

/// Notes that the source is asked for a list. Gives the version that the list is to reach.
pub(super) fn begin<S: Body>(of: &ReflectorSpec<S>, asked: AskedFor) -> Option<ResourceVersion> {
    of.shared.sources.begin_list(&of.source, asked)
}

/// Notes what the source is about to deliver. A list after a rewind counts when it is published: whoever lists before
/// notices the rewind, too, also if this list is lost with its actor.
pub(super) fn note<S: Body>(of: &ReflectorSpec<S>, delivery: &Delivery<S>) {
    let version = match delivery {
        Delivery::Replace(list) => Some(&list.version),
        Delivery::Delta(parts) => parts.iter().rev().find_map(WatchPart::reached),
        _ => None,
    };
    if let Some(version) = version {
        of.shared.sources.note_delivered(&of.source, version);
    }
}
