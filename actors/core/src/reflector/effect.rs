//! The effects of the machine: requests to send, streams to drop, parts to deliver. The session carries them out in
//! order; a `Deliver` is in the queue before anything after it.

use std::fmt;

use crate::delta::{Replacement, WatchPart};
use crate::request::{ListRequest, WatchRequest};

/// Names one watch stream of one machine; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub(super) u32);

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One action for the session.
#[derive(Debug)]
#[non_exhaustive]
pub enum Effect<S> {
    /// Wait for a permit of the list budget, unless the session still holds one, and call
    /// `handle_list_permit`.
    AcquireListPermit,
    /// Send a list request and feed its parts to `handle_list_part`, its end to `handle_list_end`. One at a
    /// time.
    List {
        /// The page to request.
        request: ListRequest,
        /// Decode every object, also those already published. Set after a rewind: an equal version may then
        /// belong to another object.
        everything: bool,
    },
    /// Open a watch and feed it to `handle_watch_parts` and `handle_watch_end`.
    Watch {
        /// Its name from now on.
        stream: StreamId,
        /// What to watch.
        request: WatchRequest,
        /// Decode every object, also those already published.
        everything: bool,
    },
    /// Drop that watch. The machine ignores what still comes from it.
    Close(StreamId),
    /// Drop the list under way.
    CloseList,
    /// Ask for the server's version and feed the answer to `handle_version`. Replaces a question that is
    /// still open.
    AskVersion(ListRequest),
    /// One slice of work is done and more follow: let other actors run before the next `poll_effect`.
    Yield,
    /// Put this into the queue; the next effect waits until the queue has taken it.
    Deliver(Delivery<S>),
}

/// One entry for the queue.
#[derive(Debug)]
#[non_exhaustive]
pub enum Delivery<S> {
    /// The whole content of the source.
    Replace(Replacement<S>),
    /// What happened since the entry before, in the order of the stream; never empty.
    Delta(Vec<WatchPart<S>>),
}
