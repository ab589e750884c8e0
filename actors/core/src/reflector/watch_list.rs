//! Watch-lists: the initial events of a stream, until the bookmark that ends them. Invariants:
//! 1. Nothing is delivered before the end bookmark. Then the net result, without deleted objects, is one
//!    Replace.
//! 2. A source that does not know watch-lists gets no more requests for one. After other failures one list is made
//!    instead, except after an overload, a refusal, a missing kind or an expired version. The next relist is a
//!    watch-list again.
//! 3. Only new objects extend `initial_events_deadline`: live changes could keep a stream open for ever whose
//!    initial events never end.
//! 4. The net result is moved [`SLICE`] objects at a time, with `Effect::Yield` in between.

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
            // The session does not look at the timer while the stream is ready.
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

    /// Delivers the net result when all objects are moved.
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

    pub(super) fn gather_slice(&mut self) {
        self.gather(SLICE);
    }

    /// Moves the rest at once: the stream has already brought something else.
    pub(super) fn gather_rest(&mut self) {
        self.gather(usize::MAX);
    }
}

fn is_refusal_of_watch_lists(error: &ListWatchError) -> bool {
    error.class() == ErrorClass::Unsupported
        || matches!(error, ListWatchError::Status { code: 400 | 422, .. })
}
