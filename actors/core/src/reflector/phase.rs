//! The phases and flags of the reflector's machine. `without_limit` is true only while `list_at_latest` is.
//! `rewinding` and `after_rewind` are both set by a second rewind before the list after the first.

use std::collections::BTreeSet;
use std::time::Duration;

use super::freeing::{Content, Rest};
use super::{Moment, RelistCounters, StreamId};
use crate::chunks::Chunks;
use crate::delta::{Undecodable, WatchPart};
use crate::meta::{Object, ResourceVersion};
use crate::off_arbiter::OffArbiter;
use crate::request::{AskedVersion, ListRequest};

pub(super) enum Phase<S> {
    /// Before the start, and while a handler replaces the phase.
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
}

pub(super) struct Listing<S> {
    pub(super) asked: AskedVersion,
    pub(super) limit: Option<u32>,
    pub(super) everything: bool,
    /// Extended by each part that brings something new.
    pub(super) deadline: Duration,
    /// `None` for the first page.
    pub(super) token: Option<String>,
    pub(super) page: Page,
    /// The lowest version of the whole pages: a watch from there misses nothing.
    pub(super) version: Option<ResourceVersion>,
    pub(super) objects: OffArbiter<Chunks<Object<S>>>,
    pub(super) undecodable: OffArbiter<Chunks<Undecodable>>,
    pub(super) bytes: usize,
    pub(super) received: u64,
}

pub(super) enum Page {
    Open,
    Whole { next: Option<String> },
}

impl<S> Listing<S> {
    pub(super) fn request(&self) -> ListRequest {
        let version = if self.token.is_some() { AskedVersion::Latest } else { self.asked.clone() };
        ListRequest { version, limit: self.limit, token: self.token.clone(), name: None }
    }

    pub(super) fn close_page(&mut self, version: ResourceVersion, next: Option<String>) {
        self.page = Page::Whole { next: next.filter(|token| !token.is_empty()) };
        self.version = Some(match self.version.take() {
            Some(before) => before.min(version),
            None => version,
        });
    }
}

pub(super) struct InitialEvents<S> {
    pub(super) stream: Stream,
    pub(super) asked: AskedVersion,
    pub(super) deadline: Duration,
    pub(super) content: OffArbiter<Content<S>>,
    /// The most objects that `content` held.
    pub(super) most: usize,
    pub(super) received: u64,
    pub(super) bytes: usize,
}

pub(super) struct Gathering<S> {
    pub(super) stream: Stream,
    pub(super) version: ResourceVersion,
    pub(super) rest: OffArbiter<Rest<S>>,
    pub(super) objects: OffArbiter<Chunks<Object<S>>>,
    pub(super) undecodable: OffArbiter<Chunks<Undecodable>>,
    pub(super) bytes: usize,
    /// Parts after the end bookmark.
    pub(super) live: Vec<WatchPart<S>>,
    pub(super) at: Moment,
}

pub(super) struct Stream {
    pub(super) id: StreamId,
    pub(super) opened_at: Duration,
    pub(super) head_at: Option<Duration>,
    pub(super) timeout: Duration,
}

/// A plain watch, or a watch-list after its end bookmark. Its legal combinations:
/// - no `stream.head_at`: the watch is being opened;
/// - `head_at` and `question_until`: the rewind question is open, parts wait in `held`;
/// - `head_at` alone: the watch is followed;
/// - `head_at` and `renewal`: a second watch is being opened after silence.
pub(super) struct Watching<S> {
    pub(super) stream: Stream,
    pub(super) had_frames: bool,
    pub(super) question_until: Option<Duration>,
    pub(super) held: Vec<WatchPart<S>>,
    pub(super) renewal: Option<Stream>,
    pub(super) renew_at: Duration,
}

impl<S> Watching<S> {
    pub(super) fn new(stream: Stream, renew_at: Duration) -> Self {
        Self { stream, had_frames: false, question_until: None, held: Vec::new(), renewal: None, renew_at }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Listing,
    Watch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RelistReason {
    Resumed,
    Expired,
    Failed,
    Refused,
    Unreadable,
    Stale,
    Rewind,
    Asked,
}

impl RelistReason {
    pub(super) fn needs_no_wait(self) -> bool {
        matches!(self, Self::Expired | Self::Unreadable | Self::Stale | Self::Rewind | Self::Asked)
    }

    pub(super) fn count(self, counters: &mut RelistCounters) {
        let counter = match self {
            Self::Resumed => &mut counters.resumed,
            Self::Expired => &mut counters.expired,
            Self::Failed => &mut counters.failed,
            Self::Refused => &mut counters.refused,
            Self::Unreadable => &mut counters.unreadable,
            Self::Stale => &mut counters.stale,
            Self::Rewind => &mut counters.rewind,
            Self::Asked => &mut counters.asked,
        };
        *counter += 1;
    }
}

pub(super) struct RetryHints {
    /// The next list requests `""`. Set when a list or watch-list expired or was too large; cleared by that
    /// list.
    pub(super) list_at_latest: bool,
    /// The next list has no limit. Set when a page expired; cleared by that list.
    pub(super) without_limit: bool,
    /// The server went back to this version: lists request `""` and decode every object. Set by a rewind;
    /// cleared by its Replace.
    pub(super) rewinding: Option<ResourceVersion>,
    /// The last Replace was that of a rewind: the next list decodes every object too. Set and cleared by a Replace.
    pub(super) after_rewind: bool,
    /// Lists instead of watch-lists. Set when a watch-list failed or a selector was rejected; cleared by a
    /// Replace.
    pub(super) skip_watch_list: bool,
    /// The source does not know watch-lists. Cleared only if the next list is refused for its selector, which may be
    /// why the watch-list was refused.
    pub(super) watch_list_refused: bool,
    /// The server pages lists at `"0"`: it has no watch cache. Never cleared.
    pub(super) paged: bool,
    /// The server may be another one, or restored: the rewind question follows the next watch. Set by a
    /// failure or an early end; cleared by a Replace or the answer.
    pub(super) version_unproven: bool,
    /// The reasons of relists without a wait. Cleared by an object or bookmark.
    pub(super) relisted_for: BTreeSet<RelistReason>,
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

#[derive(Clone, Copy)]
pub(super) enum StreamRole {
    Initial,
    Live,
    Renewal,
    /// Not open: what it brings is ignored.
    Closed,
}
