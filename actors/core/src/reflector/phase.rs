//! The phases and flags of the reflector's machine, and which of them go together.
//!
//! Answers "what can this machine be doing, and what does it remember?" as data; the transitions are in the files named
//! in the last column.
//!
//! | phase | open requests | waits for | ends in |
//! |---|---|---|---|
//! | `Idle` | none | `start` | `AwaitingPermit` (`list.rs`) |
//! | `AwaitingPermit` | none | the list budget; no timer | `Listing` (`list.rs`), `InitialEvents` (`watch_list.rs`) |
//! | `Listing` | one page of a list | its next part, `list_deadline` | `Watching`, `AwaitingPermit`, `Waiting` (`list.rs`) |
//! | `InitialEvents` | one watch | a new object, `initial_events_deadline` | `Gathering`, `AwaitingPermit`, `Waiting` (`watch_list.rs`) |
//! | `Gathering` | the same watch | the next `poll_effect` | `Watching` (`watch_list.rs`) |
//! | `Watching` | see below | frames, one [`WatchTimer`](super::watch::WatchTimer) | `Watching`, `AwaitingPermit`, `Waiting` (`watch.rs`) |
//! | `Waiting` | none | `until` | by [`Next`]: `AwaitingPermit`, `Watching` (`retry.rs`) |
//! | `Stopped` | none | nothing | never |
//!
//! `Watching` has four legal combinations of its fields; `watch_timer` names the deadline of each:
//!
//! | `stream.head_at` | `question_until` | `renewal` | meaning | deadline |
//! |---|---|---|---|---|
//! | none | none | none | the watch is being opened | head |
//! | some | some | none | the server's version is asked for; parts wait in `held` | question |
//! | some | none | none | the watch is followed | silence, then a renewal opens |
//! | some | none | some | a second watch is being opened because of silence | head of the renewal |
//!
//! Every flag of [`RetryHints`] names who sets and who clears it. `without_limit` is true only while `list_at_latest`
//! is. `rewinding` and `after_rewind` may both be true: a second rewind before the list after the first. All other
//! flags are independent of each other.

use std::collections::BTreeSet;
use std::time::Duration;

use super::list::Listing;
use super::retry::{Next, RelistReason};
use super::watch::Watching;
use super::watch_list::{Gathering, InitialEvents};
use crate::meta::ResourceVersion;

/// What the machine is doing; the table above describes each phase.
pub(super) enum Phase<S> {
    /// Before the start; also for a moment inside a handler, while one phase is replaced by another.
    Idle,
    Waiting {
        until: Duration,
        next: Next,
    },
    AwaitingPermit,
    Listing(Listing<S>),
    InitialEvents(InitialEvents<S>),
    Gathering(Gathering<S>),
    Watching(Watching<S>),
    Stopped,
}

/// What earlier answers say about the next requests.
pub(super) struct RetryHints {
    /// The next list asks at `""`. Set when a list or watch-list was expired or too large; cleared by that next list.
    pub(super) list_at_latest: bool,
    /// The next list has no limit. Set when a page had expired; cleared by that next list.
    pub(super) without_limit: bool,
    /// The server went back to this version: lists ask at `""` and decode every object. Set by a rewind; cleared by its
    /// Replace.
    pub(super) rewinding: Option<ResourceVersion>,
    /// The last Replace was that of a rewind: the next list decodes every object, too. Set and cleared by a Replace.
    pub(super) after_rewind: bool,
    /// Lists instead of watch-lists. Set when a watch-list failed or a selector was rejected; cleared by a
    /// Replace.
    pub(super) skip_watch_list: bool,
    /// The source does not know watch-lists. Cleared only if the list that followed was refused because of its selector:
    /// that may have been what the watch-list was refused for.
    pub(super) watch_list_refused: bool,
    /// The server pages lists at `"0"`, so it has no watch cache and honours limits. Never cleared.
    pub(super) paged: bool,
    /// The server may be another one, or restored, since it last proved its version: the next watch is followed by the
    /// rewind question. Set by a failure or an early end; cleared by a Replace or by the answer.
    pub(super) version_unproven: bool,
    /// Which reasons led to a relist without a wait. Cleared by an object or bookmark.
    pub(super) relisted_for: BTreeSet<RelistReason>,
    /// Which reason the next relist is counted and logged under. Set by whatever leads to a relist.
    pub(super) relist_reason: RelistReason,
}

impl RetryHints {
    pub(super) fn new() -> Self {
        Self {
            list_at_latest: false,
            without_limit: false,
            rewinding: None,
            after_rewind: false,
            skip_watch_list: false,
            watch_list_refused: false,
            paged: false,
            version_unproven: false,
            relisted_for: BTreeSet::new(),
            relist_reason: RelistReason::Resumed,
        }
    }
}

/// What a stream is to the machine in its present phase.
#[derive(Clone, Copy)]
pub(super) enum StreamRole {
    /// It brings initial events.
    Initial,
    /// It is followed, or is being opened for that.
    Live,
    /// It is the second watch of a renewal.
    Renewal,
    /// It is not open: what it brings is ignored.
    Closed,
}
