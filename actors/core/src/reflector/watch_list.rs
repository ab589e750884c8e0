//! Watch-lists: the initial events of a stream, until the bookmark that ends them.
//!
//! Answers "which objects did the initial events bring, and what follows if they do not end?". `watch.rs` follows the
//! same stream after the end bookmark. Invariants:
//! 1. Nothing is delivered before the end bookmark. Then the net result is delivered as one Replace: the last state of
//!    each key, without the objects that were deleted again.
//! 2. A source that does not know watch-lists is not asked for one again by this machine. After any other failure one
//!    list is made instead, and the next relist is a watch-list again.
//! 3. A stream is cut if the number of objects does not grow for `initial_events_deadline` before the end bookmark.
//!    Only new objects count: live changes could otherwise keep a stream open for ever whose initial events never end.
//! 4. The net result is moved [`SLICE`] objects at a time, with `Effect::Yield` between them. If the stream goes on
//!    meanwhile, the rest is moved in one step. A net result that is not needed any more is freed by another thread
//!    (`freeing.rs`).
//!
//! Bounds: the machine holds one pointer for each object received, in key order.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use super::freeing::{Content, Rest};
use super::phase::{Gathering, InitialEvents, Next, RelistReason};
use super::{Effect, ListWatchMachine, Moment, Phase, SourceState};
use crate::chunks::Chunks;
use crate::delta::{WatchPart, listed_bytes};
use crate::list_watch_error::{ErrorClass, ListWatchError};
use crate::meta::ResourceVersion;
use crate::request::AskedVersion;

/// Objects moved at once when a net result becomes a Replace.
const SLICE: usize = 250;

impl<S> ListWatchMachine<S> {
    pub(super) fn is_watch_list_due(&self) -> bool {
        let hints = &self.hints;
        let lists = hints.watch_list_refused
            || hints.skip_watch_list
            || hints.without_limit
            || hints.rewinding.is_some();
        self.config.watch_list && !lists
    }

    pub(super) fn open_watch_list(&mut self, asked: AskedVersion, at: Moment) {
        let asked = if asked == AskedVersion::Any { AskedVersion::Latest } else { asked };
        self.counters.watch_lists += 1;
        let version = asked.to_string();
        self.log.debug(format_args!("lists {} by a watch at version {version:?}", self.config.resource));
        let stream = self.connect(asked.clone(), true, at);
        let content = Content { objects: BTreeSet::new(), undecodable: BTreeMap::new() };
        self.phase = Phase::InitialEvents(InitialEvents {
            stream,
            asked,
            deadline: at.now.saturating_add(self.config.initial_events_deadline),
            content: self.freeing.content.keep(content),
            most: 0,
            received: 0,
            bytes: 0,
        });
    }

    pub(super) fn initial_parts(&mut self, parts: Vec<WatchPart<S>>, at: Moment) {
        let Phase::InitialEvents(initial) = &mut self.phase else { return };
        initial.stream.head_at.get_or_insert(at.now);
        if !parts.is_empty() {
            self.last_frame_at = Some(at.now);
        }
        let mut parts = parts.into_iter();
        let mut end = None;
        while end.is_none()
            && let Some(part) = parts.next()
        {
            initial.received += u64::from(matches!(part, WatchPart::Applied(_) | WatchPart::Undecodable(_)));
            initial.bytes += part.wire_bytes();
            end = initial.content.absorb(part);
            if initial.content.len() > initial.most {
                initial.most = initial.content.len();
                initial.deadline = at.now.saturating_add(self.config.initial_events_deadline);
            }
        }
        initial.content.weigh(initial.bytes);
        let late = end.is_none() && at.now >= initial.deadline;
        self.state = SourceState::Listing { received: initial.received };
        if let Some(version) = end {
            self.initial_events_ended(version, parts.collect(), at);
        } else if late {
            // The session does not look at the timer while the stream is ready, so the deadline is checked here, too.
            self.initial_events_timed_out(at);
        }
    }

    pub(super) fn initial_events_failed(&mut self, result: Result<(), ListWatchError>, at: Moment) {
        let Phase::InitialEvents(initial) = mem::replace(&mut self.phase, Phase::Idle) else { return };
        let error = match result {
            Ok(()) => self.unexpected("a watch-list ended before its initial events did"),
            Err(error) => error,
        };
        if is_refusal_of_watch_lists(&error) {
            self.hints.watch_list_refused = true;
            return self.begin_listing();
        }
        match error {
            ListWatchError::Expired(_) | ListWatchError::TooLargeVersion(_) => {
                self.counters.expired += 1;
                if initial.asked != AskedVersion::Latest {
                    self.hints.list_at_latest = true;
                    return self.begin_listing();
                }
                self.hints.skip_watch_list = true;
            }
            ListWatchError::Unreadable(_) => {
                // A list can skip an item that it cannot read; a stream cannot.
                self.counters.unreadable += 1;
                self.hints.skip_watch_list = true;
                return self.relist_unless_repeated(RelistReason::Unreadable, error, at);
            }
            ListWatchError::Overloaded { .. }
            | ListWatchError::Denied(_)
            | ListWatchError::Unauthorized(_)
            | ListWatchError::NotFound(_) => {}
            _ => self.hints.skip_watch_list = true,
        }
        self.fail(error, Next::Listing, at);
    }

    pub(super) fn initial_events_timed_out(&mut self, at: Moment) {
        let Phase::InitialEvents(initial) = &self.phase else { return };
        self.effects.push_back(Effect::Close(initial.stream.id));
        let error = self.timed_out("the next initial event", self.config.initial_events_deadline);
        self.initial_events_failed(Err(error), at);
    }

    fn initial_events_ended(&mut self, version: ResourceVersion, live: Vec<WatchPart<S>>, at: Moment) {
        let Phase::InitialEvents(initial) = mem::replace(&mut self.phase, Phase::Idle) else { return };
        if self.is_below(&version) {
            self.effects.push_back(Effect::Close(initial.stream.id));
            return self.rewind(version, at);
        }
        let Content { objects, undecodable } = initial.content.into_inner();
        let rest = Rest { objects: objects.into_iter(), undecodable: undecodable.into_values() };
        let rest = self.freeing.rest.keep(rest);
        rest.weigh(initial.bytes);
        self.phase = Phase::Gathering(Gathering {
            stream: initial.stream,
            version,
            objects: self.freeing.objects.keep(Chunks::new()),
            rest,
            bytes: 0,
            undecodable: self.freeing.undecodable.keep(Chunks::new()),
            live,
            at,
        });
        self.gather(SLICE);
    }

    /// Moves so many objects of the net result, and delivers it when all are moved.
    fn gather(&mut self, slice: usize) {
        let Phase::Gathering(gathering) = &mut self.phase else { return };
        let rest = &mut *gathering.rest;
        let objects: Vec<_> = rest.objects.by_ref().take(slice).map(|entry| entry.0).collect();
        let undecodable: Vec<_> = rest.undecodable.by_ref().take(slice - objects.len()).collect();
        gathering.bytes += listed_bytes(&objects, &undecodable);
        gathering.objects.extend(objects);
        gathering.undecodable.extend(undecodable);
        let is_whole = rest.objects.len() + rest.undecodable.len() == 0;
        gathering.objects.weigh(gathering.bytes);
        if !is_whole {
            return self.effects.push_back(Effect::Yield);
        }
        let Phase::Gathering(whole) = mem::replace(&mut self.phase, Phase::Idle) else { return };
        self.deliver_replace(whole.version, (whole.objects, whole.undecodable), whole.bytes);
        self.follow(whole.stream, whole.at);
        self.live_parts(whole.live, whole.at);
    }

    /// Moves one slice of the net result, if one is being gathered.
    pub(super) fn gather_slice(&mut self) {
        self.gather(SLICE);
    }

    /// Moves all that is left of the net result, since the stream has already brought something else.
    pub(super) fn gather_rest(&mut self) {
        self.gather(usize::MAX);
    }
}

/// Whether the answer says that the server does not know watch-lists, and not that this one failed.
fn is_refusal_of_watch_lists(error: &ListWatchError) -> bool {
    error.class() == ErrorClass::Unsupported
        || matches!(error, ListWatchError::Status { code: 400 | 422, .. })
}
